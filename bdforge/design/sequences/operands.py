"""The user's arrays in the buffers that the array reads and writes, as a program's operands say it.

`place` makes a buffer of an array, `fetch` an array of a buffer. Both are one gather and one strided copy.
"""

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from bdforge.common.messages import InputError
from bdforge.design.sequences.expressions import ProgramError
from bdforge.design.sequences.sequence_program import Operand, PlacedAxis, PlacedDim
from bdforge.devices.formats import BLOCK, TILE_BYTES, pack_bfp16, unpack_bfp16
from bdforge.devices.limits import BYTE_BITS

_TILE = np.dtype(f"V{TILE_BYTES}")


class OperandError(InputError):
    """An array with a value that its operand may not hold; the message names operand, position, value and range."""


def place(operand: Operand, values: Sequence[int], array: np.ndarray, buffer: np.ndarray) -> None:
    """Write `array` to its places in `buffer` (uint8): everything that the operand says of it, zeros included.

    OperandError for a value outside of the operand's range.
    """
    _check_values(operand, array)
    places = _units(operand, _arranged(operand, values, array))
    if places.dtype.itemsize * BYTE_BITS == operand.bits:
        _view(operand, values, buffer.view(places.dtype))[...] = _split(operand, values, places)
        return
    codes = np.add(places, np.int8(operand.bias), order="C").view(np.uint8) & np.uint8((1 << operand.bits) - 1)
    _pack(operand, values, _split(operand, values, codes), buffer)


def _check_values(operand: Operand, array: np.ndarray) -> None:
    """OperandError for the first value, row by row, that the operand may not hold."""
    if operand.values is None or not array.size:
        return
    low, high = operand.values
    if low <= array.min() and array.max() <= high:
        return
    position = np.unravel_index(int(np.argmax((array < low) | (array > high))), array.shape)
    raise OperandError(
        f"operand {operand.name}: the value at [{', '.join(map(str, position))}] is {array[position]}; {operand.type} "
        f"holds {low} to {high}: clip or quantise the array"
    )


def _pack(operand: Operand, values: Sequence[int], codes: np.ndarray, buffer: np.ndarray) -> None:
    """Codes narrower than a byte into their bytes; loops with strides below a byte go through its fields."""
    if _cross_bytes(operand, values):
        places, shifts = _bytes_and_shifts(operand, values, len(buffer))
        np.bitwise_or.at(buffer, places, codes << shifts)  # a byte may come several times, of which |= keeps one
        return
    fields, whole, steps = _fields(operand, values)
    # Field by field into its byte: a byte for each code took three times as long (29 and 93 ms, 2560 x 13824
    # ternary).
    by_field = codes.transpose([*fields, *whole])
    start = values[operand.offset] * operand.bits // BYTE_BITS
    packed = _strided(operand, buffer, start, by_field.shape[len(fields) :], steps)
    if by_field.strides[-1] == packed.strides[-1] == 1:  # many bytes at once: no code leaves its byte when shifted
        lane = np.dtype(f"u{gcd(packed.shape[-1], 8)}")
        packed, by_field = packed.view(lane), by_field.view(lane)
    for place in np.ndindex(by_field.shape[: len(fields)]):
        packed |= by_field[place] << packed.dtype.type(_shift(operand, values, place, fields))


def fetch(operand: Operand, values: Sequence[int], buffer: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array of which `buffer` (uint8) holds the places: what `place` wrote, but for what block floats lose."""
    counts = _counts(operand, values)
    if operand.bits < BYTE_BITS:
        loops = _unpack(operand, values, buffer)
    else:
        loops = _view(operand, values, buffer.view(_TILE if operand.blocked else dtype))
    places = loops.transpose(_steps(operand, values)).reshape(counts)
    if operand.blocked:
        places = _values_of_tiles(operand, places)
    for number, axis in enumerate(operand.axes):
        if axis.tile is None:
            places = places[(slice(None),) * number + (slice(values[axis.size]),)]
            continue
        positions, held = _positions(operand, axis, values, places.shape[number])
        where = np.zeros(values[axis.size], np.intp)
        where[positions[held]] = np.flatnonzero(held)
        places = places.take(where, axis=number)
    return places


def _unpack(operand: Operand, values: Sequence[int], buffer: np.ndarray) -> np.ndarray:
    """int8 of the loops' counts: what `_pack` wrote, codes without their bias or with their sign."""
    mask, sign = np.uint8((1 << operand.bits) - 1), 0 if operand.bias else 1 << operand.bits - 1
    found = (_codes(operand, values, buffer) & mask ^ np.uint8(sign)).view(np.int8)
    return found - np.int8(sign + operand.bias)


def _codes(operand: Operand, values: Sequence[int], buffer: np.ndarray) -> np.ndarray:
    """Bytes of the loops' counts with the codes in their lowest bits."""
    if _cross_bytes(operand, values):
        places, shifts = _bytes_and_shifts(operand, values, len(buffer))
        return buffer[places] >> shifts
    fields, whole, steps = _fields(operand, values)
    counts = [values[dim.count] for dim in operand.dims]
    inner = [counts[number] for number in whole]
    packed = _strided(operand, buffer, values[operand.offset] * operand.bits // BYTE_BITS, inner, steps)
    codes = np.empty([counts[number] for number in fields] + inner, np.uint8)
    for place in np.ndindex(codes.shape[: len(fields)]):
        codes[place] = packed >> np.uint8(_shift(operand, values, place, fields))
    return codes.transpose(np.argsort([*fields, *whole]))


def _cross_bytes(operand: Operand, values: Sequence[int]) -> bool:
    """Whether loops are others than some through whole bytes and some through the fields of each."""
    per_byte = BYTE_BITS // operand.bits
    loops = [(values[dim.count], values[dim.stride]) for dim in operand.dims]
    inner = (
        sum((count - 1) * stride for count, stride in loops if stride < per_byte) + values[operand.offset] % per_byte
    )
    steps = [stride for _, stride in loops if stride >= per_byte]
    return not steps or inner >= per_byte or any(step % per_byte for step in steps)


def _bytes_and_shifts(operand: Operand, values: Sequence[int], size_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the loops' counts: the byte of each code, and its lowest bit there."""
    per_byte = BYTE_BITS // operand.bits
    places = _view(operand, values, np.arange(size_bytes * per_byte))
    return places // per_byte, (places % per_byte * operand.bits).astype(np.uint8)


def _fields(operand: Operand, values: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Loops within a byte, loops over bytes, and the latter's strides in bytes."""
    per_byte = BYTE_BITS // operand.bits
    fields = [number for number, dim in enumerate(operand.dims) if values[dim.stride] < per_byte]
    whole = [number for number in range(len(operand.dims)) if number not in fields]
    return fields, whole, [values[operand.dims[number].stride] // per_byte for number in whole]


def _shift(operand: Operand, values: Sequence[int], place: Sequence[int], fields: Sequence[int]) -> int:
    """The lowest bit of a place of the loops within a byte."""
    first = values[operand.offset] % (BYTE_BITS // operand.bits)
    inside = (i * values[operand.dims[number].stride] for i, number in zip(place, fields, strict=True))
    return operand.bits * (first + sum(inside))


def _arranged(operand: Operand, values: Sequence[int], array: np.ndarray) -> np.ndarray:
    """The array's elements by places, 0 where there are none."""
    side = BLOCK if operand.blocked else 1
    found = array
    for number, count in enumerate(_counts(operand, values)):
        found = _along(operand, values, found, number, count * side)
    return found


def _along(operand: Operand, values: Sequence[int], array: np.ndarray, number: int, count: int) -> np.ndarray:
    """Positions as `count` places along one axis want them."""
    axis = operand.axes[number]
    places, held = _positions(operand, axis, values, count)
    if len(places) == values[axis.size] and held.all() and (places == np.arange(len(places))).all():
        return array
    found = array.take(np.where(held, places, 0), axis=number)
    shape = [1] * array.ndim
    shape[number] = count
    return np.where(held.reshape(shape), found, np.zeros((), array.dtype))


def _positions(operand: Operand, axis: PlacedAxis, values: Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Which position each of `count` places along an axis holds, and whether it holds one.

    ProgramError for a tile that the walk does not hold: programs may come from a file.
    """
    places = np.arange(count)
    size, walked = values[axis.size], values[axis.walked]
    if axis.tile is None:
        return places, places < size
    tile = values[axis.tile]
    if not 1 <= tile <= walked:
        raise ProgramError(f"operand {operand.name} has tiles of {tile} in {walked} positions")
    starts = np.minimum(places // tile * tile, walked - tile)
    covered = axis.once & (starts + places % tile < places // tile * tile)
    places = starts + places % tile
    return places, (places < size) & ~covered


def _units(operand: Operand, places: np.ndarray) -> np.ndarray:
    """What is copied as one: elements, or tiles of block floats."""
    if not operand.blocked:
        return places
    tiles = pack_bfp16(places if operand.blocked == "across" else places.T)
    units = np.ascontiguousarray(tiles).view(_TILE)[..., 0]
    return units if operand.blocked == "across" else units.T


def _values_of_tiles(operand: Operand, places: np.ndarray) -> np.ndarray:
    """The float32 matrix of tiles of block floats: what `_units` made them of."""
    along = places if operand.blocked == "across" else places.T
    found = unpack_bfp16(np.ascontiguousarray(along).view(np.uint8).reshape(*along.shape, TILE_BYTES))
    return found if operand.blocked == "across" else found.T


def _counts(operand: Operand, values: Sequence[int]) -> tuple[int, ...]:
    """Places along each axis."""
    axes = range(len(operand.axes))
    return tuple(prod(values[dim.count] for dim in operand.dims if dim.axis == axis) for axis in axes)


def _split(operand: Operand, values: Sequence[int], places: np.ndarray) -> np.ndarray:
    """Places as an array of the loops' counts, in the loops' order."""
    order = _steps(operand, values)
    split = places.reshape([values[operand.dims[place].count] for place in order])
    return split.transpose(np.argsort(order))


def _steps(operand: Operand, values: Sequence[int]) -> list[int]:
    """Loops by axis, from the longest step on: how places split."""

    def key(place: int) -> tuple[int, int]:
        dim: PlacedDim = operand.dims[place]
        return dim.axis, -values[dim.step]

    return sorted(range(len(operand.dims)), key=key)


def _view(operand: Operand, values: Sequence[int], elements: np.ndarray) -> np.ndarray:
    """The buffer's elements as the loops walk them."""
    counts = [values[dim.count] for dim in operand.dims]
    return _strided(operand, elements, values[operand.offset], counts, [values[dim.stride] for dim in operand.dims])


def _strided(
    operand: Operand, elements: np.ndarray, start: int, counts: Sequence[int], steps: Sequence[int]
) -> np.ndarray:
    """Elements from `start` on, in loops; ProgramError for loops that leave them: programs may come from a file."""
    if start < 0 or any(count < 1 for count in counts) or any(step < 0 for step in steps):
        raise ProgramError(
            f"operand {operand.name} starts at element {start} with loops of {tuple(counts)} by {tuple(steps)}; "
            "starts and strides begin at 0, counts at 1"
        )
    last = start + sum((count - 1) * step for count, step in zip(counts, steps, strict=True))
    if last >= len(elements):
        raise ProgramError(f"operand {operand.name} reaches element {last}; its buffer has {len(elements)}")
    strides = [step * elements.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(elements[start:], counts, strides)
