"""Transfers of host buffers."""

from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, SymbolRefAttr, i64
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)

from bdforge.array.mlir.array_ops import ShimDmaAllocationOp
from bdforge.array.mlir.attributes import PacketInfoAttr
from bdforge.array.mlir.device_ops import DeviceOp, named
from bdforge.array.mlir.fields import flag, integer, memref, optional_data, optional_integer, text
from bdforge.array.mlir.operation import AieOperation, Int64, constant_of, enclosing


@irdl_op_definition
class NpuDmaMemcpyNdOp(AieOperation):
    """Program a shim BD for a host buffer and start it."""

    name = "aiex.npu.dma_memcpy_nd"
    buffer = operand_def(AnyAttr())
    """The host buffer."""
    buffer_type = memref("buffer")
    """Its memref type."""
    dynamic_offsets = var_operand_def(i64)
    dynamic_sizes = var_operand_def(i64)
    dynamic_strides = var_operand_def(i64)
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    packet = optional_data(PacketInfoAttr)
    metadata = text(SymbolRefAttr)
    """Name of the shim_dma_allocation."""
    id = integer(Int64)
    """BD number on the shim."""
    issue_token = flag()
    """Whether its end sends a token (S2MM always does)."""
    burst_length = integer(Int64, default=0)
    """Bytes of the bursts; 0 means the longest."""
    axcache = optional_integer(IntegerAttr)
    """AXI cache code, if given (from mlir-aie #3546 on)."""
    MODERN_NAMES: ClassVar[tuple[str, ...]] = ("axcache",)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())  # pyrefly: ignore
    assembly_format = (
        "`(` $buffer `` custom<FourEntries>($dynamic_offsets, $static_offsets) "
        "`` custom<FourEntries>($dynamic_sizes, $static_sizes) "
        "`` custom<FourEntries>($dynamic_strides, $static_strides) (`,` `packet` `=` $packet^)? `)` "
        "attr-dict `:` type($buffer)"
    )

    def _resolved(self, what: str) -> tuple[int, ...]:
        static, rest = self.properties[f"static_{what}"], iter(getattr(self, f"dynamic_{what}"))
        assert isinstance(static, DenseArrayBase)
        entries = [constant_of(next(rest)) if e == DYNAMIC_INDEX else int(e) for e in static.get_values()]
        if None in entries:
            raise ValueError(f"{what} of {self.name} must be constants")
        return tuple(entry for entry in entries if entry is not None)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Four offsets, outermost first, in units of the strides; ValueError unless constant."""
        return self._resolved("offsets")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Four sizes, outermost first, in elements; ValueError unless constant."""
        return self._resolved("sizes")

    @property
    def strides(self) -> tuple[int, ...]:
        """Four strides, outermost first, in elements; ValueError unless constant."""
        return self._resolved("strides")

    @property
    def offset(self) -> int:
        """First element: the sum of offsets times strides, whatever the memref's shape."""
        return sum(o * t for o, t in zip(self.offsets, self.strides, strict=True))

    @property
    def allocation(self) -> ShimDmaAllocationOp:
        """The named channel; ValueError if nothing has that name."""
        return named(enclosing(self, DeviceOp), ShimDmaAllocationOp, self.metadata)
