"""Whether an operand's loops give each element of the user's array a place of its own in the buffer.

Checked for the numbers of one problem, as `host/src/layout.cpp` does in C++: counts, strides and steps of loops, that
no two loops of an operand lead to one place of the buffer, and that places hold each position of an axis. Not checked:
three or more loops of which only the sum leads to a place twice, tiles that end before their axis does, and operands of
one buffer that stand in each other.
"""

from collections.abc import Sequence
from itertools import combinations
from math import gcd, prod

from bdforge.design.sequences.expressions import ProgramError
from bdforge.design.sequences.sequence_program import Operand, PlacedAxis, PlacedDim
from bdforge.devices.formats import BLOCK

_MOST = 1 << 50  # elements of a buffer, as layout.cpp has it: sums of a few fit 64 bits
_ONE_PLACE = ": an element has one place, and a place one element"


def check_places(operand: Operand, values: Sequence[int]) -> None:
    """ProgramError for loops by which elements would have no place, or two would share one."""
    try:
        side = BLOCK if operand.blocked else 1
        _check_loops([(values[dim.count], values[dim.stride]) for dim in operand.dims])
        for number, axis in enumerate(operand.axes):
            dims = [dim for dim in operand.dims if dim.axis == number]
            _check_steps(dims, values)
            _check_held(axis, prod(values[dim.count] for dim in dims) * side, values)
        _check_shared([_used(dim, operand.axes[dim.axis], values, side) for dim in operand.dims])
    except ProgramError as error:
        raise ProgramError(f"operand {operand.name} {error}") from None


def _check_loops(loops: Sequence[tuple[int, int]]) -> None:
    for count, stride in loops:
        if not (1 <= count <= _MOST and 0 <= stride <= _MOST):
            raise ProgramError(
                f"has a loop of {count} by {stride}; counts begin at 1, strides at 0, both end at {_MOST}"
            )


def _used(dim: PlacedDim, axis: PlacedAxis, values: Sequence[int], side: int) -> tuple[int, int]:
    """The turns of a loop that lead to elements of the user's, and its stride: rows may be read beyond their end."""
    count, step = values[dim.count], max(values[dim.step], 1) * side
    return count if axis.tile is not None else min(count, -(-values[axis.size] // step)), values[dim.stride]


def _check_shared(loops: Sequence[tuple[int, int]]) -> None:
    moving = [loop for loop in loops if loop[0] > 1]
    for count in (count for count, stride in moving if stride == 0):
        raise ProgramError(f"has a loop of {count} by 0{_ONE_PLACE}")
    for (count, stride), (other, by) in combinations(moving, 2):
        common = gcd(stride, by)  # `by / common` turns of one loop lead where `stride / common` of the other do
        if by // common < count and stride // common < other:
            raise ProgramError(
                f"has loops of {count} by {stride} and {other} by {by}, which lead to the same place of the "
                f"buffer{_ONE_PLACE}"
            )


def _check_steps(dims: Sequence[PlacedDim], values: Sequence[int]) -> None:
    """Places of an axis are numbered by its loops as digits number: each steps over what those in it make."""
    places = 1
    for dim in sorted(dims, key=lambda dim: values[dim.step]):
        count, step = values[dim.count], values[dim.step]
        if count > 1 and step != places:
            raise ProgramError(f"has a loop with step {step} where the loops in it make {places} places")
        places *= count


def _check_held(axis: PlacedAxis, count: int, values: Sequence[int]) -> None:
    if not 1 <= (size := values[axis.size]) <= _MOST:
        raise ProgramError(f"has {size} positions; there must be 1 to {_MOST}")
    if axis.tile is not None:
        walked, tile = values[axis.walked], values[axis.tile]
        if not 1 <= tile <= walked:
            raise ProgramError(f"has tiles of {tile} in {walked} positions")
    if count < size:
        raise ProgramError(f"holds {count} of {size} positions")
