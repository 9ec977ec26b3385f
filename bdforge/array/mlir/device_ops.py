"""Devices and their tiles."""

from typing import TypeVar

from xdsl.dialects.builtin import IndexType, StringAttr, SymbolNameConstraint
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, SymbolOpInterface, SymbolTable

from bdforge.array.mlir.attributes import PacketInfo, PacketInfoAttr
from bdforge.array.mlir.enums import DeviceName
from bdforge.array.mlir.fields import behind, integer, word
from bdforge.array.mlir.operation import AieOperation, enclosing
from bdforge.common.messages import listed
from bdforge.devices import MLIR_DEVICES, Device, Switch, TileKind, TileLimits, switch_of

NamedT = TypeVar("NamedT", bound=Operation)
DEFAULT_DEVICE = "main"
NO_TILE = "its tile operand must come from aie.tile"
_LOGICAL_KINDS = ("CoreTile", "MemTile", "ShimNOCTile", "ShimPLTile")


@irdl_op_definition
class EndOp(AieOperation):
    """End of a device, core, packet flow or DMA program."""

    name = "aie.end"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class DeviceOp(AieOperation):
    """One configuration of an array."""

    name = "aie.device"
    device_name = word(DeviceName, "device")
    """Its word in the text."""
    sym_name = prop_def(SymbolNameConstraint(), default_value=StringAttr(DEFAULT_DEVICE))
    body = region_def("single_block")
    traits = traits_def(SymbolTable(), SymbolOpInterface())
    assembly_format = (
        "`(` custom<DeviceNameWord>($device) `)` custom<OptionalName>($sym_name) custom<EndedBody>($body) attr-dict"
    )

    @property
    def symbol(self) -> str:
        """Name among the devices of a module; "main" by default."""
        return self.text("sym_name") or DEFAULT_DEVICE

    @property
    def device(self) -> Device:
        """Facts of the array."""
        return MLIR_DEVICES[self.device_name]


@irdl_op_definition
class TileOp(AieOperation):
    """A tile of the array."""

    name = "aie.tile"
    column = integer(key="col")
    """Column, from the west, 0 first."""
    row = integer()
    """Row, 0 is the shim."""
    allocation_scheme = opt_prop_def(StringAttr)
    result = result_def(IndexType)
    assembly_format = "`(` $col `,` $row `)` attr-dict"

    @property
    def device_op(self) -> DeviceOp:
        """The device around it."""
        device = enclosing(self, DeviceOp)
        if device is None:
            raise ValueError("aie.tile outside of an aie.device")
        return device

    @property
    def place(self) -> tuple[int, int]:
        """Column and row."""
        return self.column, self.row

    @property
    def kind(self) -> TileKind:
        """Shim, memtile or core."""
        return self.device_op.device.kind(self.column, self.row)

    @property
    def limits(self) -> TileLimits:
        """What this tile offers."""
        return self.device_op.device.limits(self.column, self.row)

    @property
    def switch(self) -> Switch:
        """Its stream switch."""
        return switch_of(self.device_op.device, *self.place)

    @property
    def controller_id(self) -> PacketInfo | None:
        """Packet of this tile's completion tokens, if given."""
        attribute = self.attributes.get("controller_id")
        return attribute.data if isinstance(attribute, PacketInfoAttr) else None


@irdl_op_definition
class LogicalTileOp(AieOperation):
    """A tile by its kind (mlir-aie #2888): with a column and a row it is read as that aie.tile."""

    name = "aie.logical_tile"

    @classmethod
    def parse(cls, parser: Parser) -> TileOp:  # pyrefly: ignore[bad-override]
        """Read `<CoreTile>(column, row)`."""
        with parser.in_angle_brackets():
            start = parser.pos
            if (kind := parser.parse_identifier()) not in _LOGICAL_KINDS:
                parser.raise_error(f"'{kind}' is no kind of tile; expected one of {', '.join(_LOGICAL_KINDS)}", start)
        return TileOp.parse(parser)


def named(device: DeviceOp | None, kind: type[NamedT], symbol: str | None) -> NamedT:
    """A device's operation of a kind by its symbol; ValueError tells which there are.

    As for mlir-aie a symbol is a name for others only where the operation stands directly in the device.
    """
    known: list[str] = []
    for op in [] if device is None else device.body.block.ops:
        if isinstance(op, kind):
            known.append(str(getattr(op, "symbol", None)))
            if known[-1] == symbol:
                return op
    inner = [] if device is None else [op for op in device.walk() if isinstance(op, kind)]
    if any(getattr(op, "symbol", None) == symbol for op in inner):
        raise ValueError(f"@{symbol} is declared in a region; to use its name, declare it in the device itself")
    names = listed(sorted(f"@{name}" for name in {*known})) or "none"
    holder = "" if device is None else f" @{device.symbol}"
    raise ValueError(f"no {kind.name} is called @{symbol}; device{holder} has {names}")


def device_named(op: Operation, symbol: str) -> DeviceOp:
    """The device of that name beside the one around `op`; ValueError if there is none."""
    holder = enclosing(op, DeviceOp)
    module = None if holder is None else holder.parent_block()
    for device in [] if module is None else module.ops:
        if isinstance(device, DeviceOp) and device.symbol == symbol:
            return device
    raise ValueError(f"no aie.device is called @{symbol}")


def on_tile() -> TileOp:
    """The tile that the operand `<name>_value` comes from."""
    return behind(TileOp, NO_TILE)
