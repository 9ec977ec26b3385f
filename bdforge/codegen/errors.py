"""What can be wrong when machine code is made."""

from xdsl.ir import Operation

from bdforge.messages import InputError
from bdforge.mlir.places import location


class CodegenError(InputError):
    """A core program or kernel that cannot become machine code here; the message says where, why and what to do."""


def refused(op: Operation, reason: str) -> CodegenError:
    """The error about an operation of a core's program."""
    return CodegenError(f"{location(op)}: {reason}")
