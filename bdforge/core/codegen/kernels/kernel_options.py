"""Options of kernels, as the C++ ones take them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.pipelined_function import set_register

ROUNDINGS = {
    "floor": 0, "ceil": 1, "symmetric_floor": 2, "symmetric_ceil": 3, "negative_inf": 8,
    "positive_inf": 9, "symmetric_zero": 10, "symmetric_inf": 11, "conv_even": 12, "conv_odd": 13,
}  # fmt: skip
"""Codes of crRnd by the names of `aie::rounding_mode` (llvm-aie; docs of the AIE API)."""

SIZES = {"i8": 1, "i16": 2, "i32": 4, "f32": 4, "bf16": 2}
"""Bytes of elements."""

LOOPS = ("jnz", "hardware")
"""What ends loops; the first is the default, since nobody saw hardware loops of ours on silicon."""

Maker = Callable[[], AssemblyKernel]
"""Writes a kernel for which there is one."""

_KNOWN = {
    "DIM_M", "DIM_K", "DIM_N", "DIM_RHO", "A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED", "C_IN_PARTS", "SHIFT",
    "ROUNDING", "FIELD_SCALED", "BIAS", "RELU", "SCALE", "ARRAY_ROWS", "FUNCTION", "TILE_ELEMENTS", "OPERANDS",
    "EPSILON", "RESIDUAL", "CODES", "LOOPS", "BLOCKS", "B_TOP_SIGNED", "HEAD_DIM", "NEIGHBOURS", "FACTOR",
    "ROW_ELEMENTS", "X_F32", "Y_F32", "RESIDUAL_F32", "OUTPUT_HEADS", "TURNED", "SCALED",
    "MEETS", "GROUP", "HEADS", "KV_HEADS", "KV_SPLITS", "ROWS", "COLUMNS", "DIGITS", "SCORE_SCALE", "CAUSAL", "WINDOW",
    "SOFT_CAP", "QUERIES_FROM",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """`-D` options of a kernel, as `kernels/` has them (docs/kernels.md)."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, defines: Iterable[str]) -> "Options":
        """From NAME and NAME=VALUE; CodegenError for one that no assembled kernel knows, and so would not keep to."""
        given = {name: value for name, _, value in (text.partition("=") for text in defines)}
        if unknown := sorted(given.keys() - _KNOWN):
            raise CodegenError(f"no kernel is assembled with {unknown[0]}")
        return cls(given)

    def number(self, name: str, default: int | None = None) -> int:
        """A number; CodegenError where it is missing."""
        text = self.given.get(name, default)
        if text is None:
            raise CodegenError(f"the kernel's tile is told by options: {name} is missing")
        return int(text)

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return name in self.given

    @property
    def parts(self) -> int:
        """Calls in which a pass over C comes: rho of them with C_IN_PARTS."""
        return self.number("DIM_RHO", 1) if self.has("C_IN_PARTS") else 1

    @property
    def hardware_loops(self) -> bool:
        """Whether pipelined loops are hardware loops, not JNZ; CodegenError for another word."""
        word = self.given.get("LOOPS", LOOPS[0])
        if word not in LOOPS:
            raise CodegenError(f"LOOPS={word} is unknown; there are {', '.join(LOOPS)}")
        return word == LOOPS[1]

    @property
    def shape(self) -> tuple[int, int] | None:
        """Micro-tiles of a block, where they are given; CodegenError for what is no ROWSxCOLUMNS."""
        text = self.given.get("BLOCKS")
        if text is None:
            return None
        rows, _, columns = text.partition("x")
        if not (rows.isdecimal() and columns.isdecimal()):
            raise CodegenError(f"BLOCKS={text} is no ROWSxCOLUMNS of micro-tiles, such as 4x1")
        return int(rows), int(columns)

    @property
    def met(self) -> tuple[int, int, int]:
        """How much operands share banks, three of percent; CodegenError for anything else."""
        text = self.given.get("MEETS", "0,0,0")
        shares = [int(share) for share in text.split(",") if share.isdecimal()]
        if len(shares) != 3 or text.count(",") != 2 or max(shares) > 100:
            raise CodegenError(f"MEETS={text} is no three shares of 0 to 100 percent, such as 26,34,0")
        return shares[0], shares[1], shares[2]

    @property
    def rounding(self) -> int:
        """The code of the rounding mode; CodegenError for an unknown name."""
        name = self.given.get("ROUNDING", "conv_even")
        if name not in ROUNDINGS:
            raise CodegenError(f"ROUNDING={name} is unknown; there are {', '.join(ROUNDINGS)}")
        return ROUNDINGS[name]


def to_part(size: int, parts: int) -> Iterator[AssemblyOp]:
    """Let p0 point at the part of C that r0 names."""
    if parts > 1:
        yield set_register("r1", size)
        yield AssemblyOp("mul r0, r0, r1", "the part")
        yield AssemblyOp("mov m0, r0")
        yield AssemblyOp("padda [p0], m0")
