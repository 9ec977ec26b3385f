"""Flows that do not fit the stream switches."""

from collections.abc import Sequence

from xdsl.ir import Operation

from bdforge.mlir.errors import Location, MlirError
from bdforge.mlir.places import source_of


class RoutingError(MlirError):
    """Flows that cannot be routed; points at the first of them.

    `definite` is False where only the search for routes gave up, so that routes may exist.
    """

    definite = True


def routing_error(ops: Sequence[Operation], message: str, definite: bool = True) -> RoutingError:
    """The error about some flows, placed at the first."""
    found = source_of(ops[0])
    error = RoutingError.at(*found, message) if found else RoutingError(message, Location("<built>", 1, 1))
    assert isinstance(error, RoutingError)
    error.definite = definite
    return error
