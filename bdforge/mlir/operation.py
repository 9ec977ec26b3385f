"""What the operations of the aie and aiex dialects share."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any, TypeVar

from xdsl.dialects.builtin import I8, I32, I64, IntegerAttr, IntegerType, Signedness, StringAttr, SymbolRefAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import EqAttrConstraint, IRDLOperation, ParsePropInAttrDict
from xdsl.parser import Parser
from xdsl.printer import Printer

Int8, Int32, Int64 = IntegerAttr[I8], IntegerAttr[I32], IntegerAttr[I64]
UNSIGNED32 = IntegerType(32, Signedness.UNSIGNED)
UNSIGNED64 = IntegerType(64, Signedness.UNSIGNED)
UNSIGNED8 = IntegerType(8, Signedness.UNSIGNED)
UInt32 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED32))
UInt64 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED64))
UInt8 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED8))
Bool = IntegerAttr.constr(EqAttrConstraint(IntegerType(1)))
OPTIONS = (ParsePropInAttrDict(),)

OperationT = TypeVar("OperationT", bound=Operation)


class AieOperation(IRDLOperation):
    """An operation whose properties read as plain Python values."""

    def number(self, name: str, default: Any = None) -> Any:
        """An integer property, or `default` where the text leaves it out."""
        attribute = self.properties.get(name)
        return attribute.value.data if isinstance(attribute, IntegerAttr) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean property, or `default`."""
        return bool(self.number(name, default))

    def text(self, name: str) -> str | None:
        """A string or flat symbol property, or None."""
        attribute = self.properties.get(name)
        if isinstance(attribute, SymbolRefAttr):
            return attribute.root_reference.data
        return attribute.data if isinstance(attribute, StringAttr) else None


def enclosing(op: Operation, kind: type[OperationT]) -> OperationT | None:
    """The nearest operation around `op` that is a `kind`, or None."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kind):
        parent = parent.parent_op()
    return parent


@lru_cache(maxsize=4096)
def number(value: int) -> IntegerAttr:
    """An i32 attribute, the dialect's usual integer."""
    return IntegerAttr(value, i32)


def wrapped(value: int, bits: int) -> IntegerAttr:
    """An attribute of `bits` bits; the upper half of the unsigned range becomes negative."""
    return IntegerAttr(value - (1 << bits) if value >> (bits - 1) == 1 else value, bits)


def parse_attr_dict(parser: Parser, op: type[IRDLOperation], properties: dict[str, Attribute]) -> dict[str, Attribute]:
    """Read an optional `{...}`: known names join `properties`, the others are returned."""
    start = parser.pos
    known = op.get_irdl_definition().properties
    attributes = parser.parse_optional_attr_dict()
    for name in [name for name in attributes if name in known]:
        if name in properties:
            parser.raise_error(f"'{name}' is given twice: by position and in braces", start)
        properties[name] = attributes.pop(name)
    return attributes


def print_attr_dict(printer: Printer, op: IRDLOperation, elsewhere: Collection[str]) -> None:
    """Write what `{...}` holds: all but the properties printed elsewhere and defaults."""
    definitions = op.get_irdl_definition().properties
    shown = {
        name: value
        for name, value in op.properties.items()
        if name not in elsewhere and value != getattr(definitions.get(name), "default_value", None)
    }
    printer.print_op_attributes(shown | dict(op.attributes))


def body_of(parser: Parser) -> Region:
    """Read a region, with at least one block."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return region
