"""`aie.trace` and its family: recording of events, which changes no result. Kept as text, and left out with a warning.

aiecc turns these operations into writes of trace registers, packet flows of Trace ports and a transfer to the host.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from bdforge.array.mlir.locations import location
from bdforge.array.mlir.operation import AieOperation

if TYPE_CHECKING:
    from bdforge.array.mlir.parser import TextParser

TRACE_PREFIX = "aie.trace"


class TraceOp(AieOperation):
    """One operation of the family with all that it holds."""

    text_attr = prop_def(StringAttr, prop_name="text")

    @classmethod
    def parse(cls, parser: Parser) -> "TraceOp":
        """Take the text up to the end of its line, or of the brackets that were opened there."""
        return cls(properties={"text": StringAttr(cast("TextParser", parser).rest_of_statement())})

    def print(self, printer: Printer) -> None:
        """Write the text as it was."""
        printer.print_string(self.text("text") or "", indent=0)


def is_trace(name: str) -> bool:
    """Whether an operation of this name belongs to the family."""
    return name.startswith(TRACE_PREFIX) and (name == TRACE_PREFIX or name[len(TRACE_PREFIX)] == ".")


@cache
def trace_operation(name: str) -> type[TraceOp]:
    """The operation of a name of the family."""
    return irdl_op_definition(type("TraceOp", (TraceOp,), {"name": name, "__doc__": TraceOp.__doc__}))


def trace_warnings(holder: Operation) -> Iterator[str]:
    """What a user should know about each such operation in a module or device."""
    for op in holder.walk():
        if isinstance(op, TraceOp):
            yield (
                f"{location(op)}: {op.name} is left out: nothing is recorded, and its flows, register writes and "
                "transfers, which aiecc adds, are not there"
            )
