"""Flows that do not fit the stream switches."""

from collections.abc import Sequence

from xdsl.ir import Operation

from bdforge.array.mlir.errors import MlirError
from bdforge.array.mlir.locations import fault_at


class RoutingError(MlirError):
    """Flows that cannot be routed; points at the first of them.

    `definite` is False where only the search for routes gave up, so that routes may exist.
    """

    definite = True


def routing_error(ops: Sequence[Operation], message: str, definite: bool = True) -> RoutingError:
    """The error about some flows, placed at the first."""
    error = fault_at(RoutingError, ops[0], message)
    error.definite = definite
    return error
