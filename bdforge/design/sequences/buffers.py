"""The host buffers of a planned sequence: made of the user's arrays before a run, and read after it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from bdforge.common.messages import warn_once
from bdforge.design.sequences.expressions import ProgramError
from bdforge.design.sequences.operands import OperandError, fetch, place
from bdforge.design.sequences.planned import PlannedSequence, planned
from bdforge.design.sequences.sequence_program import Operand, Program
from bdforge.devices import Device
from bdforge.devices.types import TYPES

_FEW = (1, 64, 1024)
"""First sizes that are tried: one row is refused where operators of tiles follow each other."""
_RANKS = {1: "vector", 2: "matrix"}
_MEMORY = {type_.memory: type_ for type_ in TYPES.values() if type_.memory_bits == type_.bits}
"""What a buffer of elements of each MLIR type holds."""


def inputs_of(program: Program) -> list[Operand]:
    """Operands that a host gives, in order."""
    return [operand for operand in program.operands if operand.direction == "in"]


def outputs_of(program: Program) -> list[Operand]:
    """Operands that the array makes, in order."""
    return [operand for operand in program.operands if operand.direction == "out"]


def check_array(operand: Operand, array: object) -> None:
    """OperandError unless `array` has the operand's type and rank."""
    dtype, rank = TYPES[operand.type].dtype, len(operand.axes)
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != rank or not array.size:
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        article = "an" if dtype.name.startswith("i") else "a"
        shape = _RANKS.get(rank, f"array of rank {rank}")
        raise OperandError(f"operand {operand.name} must be {article} {dtype.name} {shape}, got {got}")


def sizes_of(
    program: Program, arrays: Mapping[str, np.ndarray], known: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Sizes by parameter, as the shapes of arrays by operand name tell them; `known` ones must agree.

    OperandError for an operand that does not fit, or whose size another one contradicts.
    """
    found, told = dict(known or {}), dict.fromkeys(known or {}, "what is packed")
    for operand in program.operands:
        if (array := arrays.get(operand.name)) is None:
            continue
        check_array(operand, array)
        for axis, size in zip(operand.axes, array.shape, strict=True):
            name = program.values[axis.size]
            if not isinstance(name, str):
                continue
            if found.setdefault(name, size) != size:
                raise OperandError(
                    f"operand {operand.name} has the shape {'x'.join(map(str, array.shape))}, so that {name} = {size}; "
                    f"{told[name]} has {name} = {found[name]}"
                )
            told.setdefault(name, f"operand {operand.name}")
    return found


def placed(
    sequence: PlannedSequence, arrays: Mapping[str, np.ndarray], operands: Iterable[Operand] | None = None
) -> dict[int, np.ndarray]:
    """Buffers by argument, of the arrays of operands that a host gives (or of `operands`) by name.

    An operand that may be missing is its number throughout. Where the array reads the user's own memory, the buffer is
    that, but for block floats, which are made of the user's float32, and for memory in another order, which is copied.
    OperandError as of `place`.
    """
    buffers: dict[int, np.ndarray] = {}
    for operand in inputs_of(sequence.program) if operands is None else operands:
        array = arrays.get(operand.name)
        shape = tuple(sequence.values[axis.size] for axis in operand.axes)
        if array is None:
            if operand.missing is None:
                raise OperandError(f"operand {operand.name} is not given")
            array = np.full(shape, operand.missing, TYPES[operand.type].dtype)
        if array.shape != shape:
            has, needs = ("x".join(map(str, sizes)) for sizes in (array.shape, shape))
            raise OperandError(
                f"operand {operand.name} has the shape {has}, a problem of {sequence.shape} needs {needs}"
            )
        if not (sequence.values[operand.staged] or operand.blocked):
            buffers[operand.argument] = _in_order(operand, array)
            continue
        buffer = buffers.setdefault(operand.argument, empty(sequence, operand.argument))
        place(operand, sequence.values, array, buffer.reshape(-1).view(np.uint8))
    return buffers


def _in_order(operand: Operand, array: np.ndarray) -> np.ndarray:
    """Lines of the operand's order one after the other: the user's own memory where that lies so."""
    lines = array.T if operand.order == "column" else array
    if not lines.flags.c_contiguous:
        warn_once(
            f"operand {operand.name} is copied with each call: the design reads it {operand.order} by {operand.order} "
            f"without gaps; np.as{'fortran' if operand.order == 'column' else 'contiguous'}array copies it once"
        )
    return np.ascontiguousarray(lines)


def staying(program: Program) -> list[Operand]:
    """Inputs in which the first size takes no part, so that they may stay from run to run, such as weights; none where
    a run writes what lies with it, as the rows of a cache."""
    written = {operand.argument for operand in program.operands if operand.direction != "in"}
    inputs = [operand for operand in inputs_of(program) if operand.argument not in written]
    return [o for o in inputs if not any(program.needs[place].intersection(program.sizes[:1]) for place in o.places)]


def pack(
    program: Program, device: Device, arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, int], dict[int, np.ndarray]]:
    """Sizes and buffers, by argument, of inputs that stay from run to run; the first size is not in them.

    OperandError as of `placed`, ProgramError for sizes that the program refuses.
    """
    sizes = sizes_of(program, arrays)
    arguments = {operand.argument for operand in staying(program) if operand.name in arrays}
    operands = [operand for operand in staying(program) if operand.argument in arguments]
    return sizes, placed(few_rows(program, sizes, lambda known: planned(program, known, device)), arrays, operands)


def few_rows(
    program: Program, sizes: Mapping[str, int], plan: Callable[[dict[str, int]], PlannedSequence]
) -> PlannedSequence:
    """What `plan` makes of these sizes and of others on which nothing that stays depends, as small as they may be.

    ProgramError where no such sizes will do.
    """
    told = {name for operand in staying(program) for place in operand.places for name in program.needs[place]}
    free = [name for name in program.sizes if name not in told]
    for rows in _FEW[:-1]:
        with suppress(ProgramError):
            return plan({**dict.fromkeys(free, rows), **sizes})
    return plan({**dict.fromkeys(free, _FEW[-1]), **sizes})


def operands_in(program: Program, argument: int) -> list[Operand]:
    """Those that stand in an argument's buffer, in order."""
    return [operand for operand in program.operands if operand.argument == argument]


def layout_of(sequence: PlannedSequence, argument: int) -> tuple:
    """What says which bytes of an argument's buffer mean what: where two are equal, a buffer of one does for both."""

    def at(*places: int | None) -> tuple[int | None, ...]:
        return tuple(None if place is None else sequence.values[place] for place in places)

    def of(operand: Operand) -> tuple:
        form = operand.name, operand.type, operand.bits, operand.bias, tuple(operand.values or ()), operand.blocked
        axes = tuple((at(axis.size, axis.walked, axis.tile), axis.once) for axis in operand.axes)
        dims = tuple((dim.axis, at(dim.count, dim.step, dim.stride)) for dim in operand.dims)
        return form, operand.order, at(operand.staged, operand.offset), axes, dims

    return sequence.argument_bytes[argument], *map(of, operands_in(sequence.program, argument))


def check_buffer(sequence: PlannedSequence, argument: int, buffer: np.ndarray) -> None:
    """OperandError unless bytes from elsewhere are what `placed` makes of some arrays, padding included.

    Any bytes do for block floats, which are not made again as they were.
    """
    found, operands = buffer.reshape(-1).view(np.uint8), operands_in(sequence.program, argument)
    if any(operand.blocked for operand in operands):
        return
    made = np.zeros_like(found)
    for operand in operands:
        place(operand, sequence.values, fetch(operand, sequence.values, found, TYPES[operand.type].dtype), made)
    if len(wrong := np.flatnonzero(found != made)):
        at = int(wrong[0])
        raise OperandError(f"byte {at} is 0x{found[at]:02x} where this layout has 0x{made[at]:02x}")


def empty(sequence: PlannedSequence, argument: int) -> np.ndarray:
    """An argument's buffer of zeros."""
    dtype = _MEMORY[sequence.program.arguments[argument].type].dtype
    return np.zeros(sequence.argument_bytes[argument] // dtype.itemsize, dtype)


def arguments(sequence: PlannedSequence, given: Mapping[int, np.ndarray]) -> list[np.ndarray]:
    """The buffers of a run, in order: those given, and zeros."""
    return [
        given[index] if index in given else empty(sequence, index) for index in range(len(sequence.program.arguments))
    ]


def fetched(
    sequence: PlannedSequence,
    buffers: Sequence[np.ndarray] | Mapping[int, np.ndarray],
    operands: Iterable[Operand] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that a run made (or those of `operands`), by operand name; block floats as float32."""
    return {
        operand.name: fetch(
            operand, sequence.values, buffers[operand.argument].reshape(-1).view(np.uint8), TYPES[operand.type].dtype
        )
        for operand in (outputs_of(sequence.program) if operands is None else operands)
    }
