"""The error about an operation that cannot become machine code."""

from xdsl.ir import Operation

from bdforge.array.mlir.locations import location
from bdforge.core.codegen.errors import CodegenError


def refused(op: Operation, reason: str) -> CodegenError:
    """The error about an operation of a core's program."""
    return CodegenError(f"{location(op)}: {reason}")
