"""Addresses of buffers and ids of locks that the text leaves open, chosen as aiecc's basic-sequential scheme chooses.

Source: mlir-aie 5ff2ab97, `AIEAssignBuffers.cpp` (`basicAllocation`) and `AIEAssignLockIDs.cpp`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import AffineMapAttr, IndexType, MemRefType, NoneAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.attributes import BlockFloatType
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.errors import MlirError
from bdforge.array.mlir.locations import fault_at, location, value_name
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.devices.types import BLOCK_FORMATS

Coordinates = tuple[int, int]

BASIC_SEQUENTIAL = "basic-sequential"
"""The scheme that is modelled here; a tile that names it is placed so, whatever aiecc's default is (bank-aware)."""

_INDEX_BITS = 64


class AllocationError(MlirError):
    """Buffers or locks that a tile cannot hold; points at the one that does not fit."""


Overflow = Callable[[AllocationError], None]


def _error(op: BufferOp | LockOp | CoreOp, message: str) -> AllocationError:
    named = f"{name_of(op)} " if not isinstance(op, CoreOp) else ""
    return fault_at(AllocationError, op, f"{op.tile.kind} {op.tile.place}: {named}{message}")


@dataclass(frozen=True)
class AddressMap:
    """Where every buffer and lock of a device stands: byte address in its tile's memory, id among its tile's locks."""

    buffers: dict[BufferOp, int]
    locks: dict[LockOp, int]

    @cached_property
    def by_tile(self) -> Mapping[tuple[int, int], Mapping[BufferOp | LockOp, int]]:
        """The same, of each tile by column and row."""
        found = defaultdict[tuple[int, int], dict[BufferOp | LockOp, int]](dict)
        for op, at in (*self.buffers.items(), *self.locks.items()):
            found[op.tile.place][op] = at
        return found


def element_bits(element: Attribute) -> int:
    """Bits that one element takes in memory; ValueError for types without a size."""
    if isinstance(element, IndexType):
        return _INDEX_BITS
    if isinstance(element, BlockFloatType) and element.block_type.data in BLOCK_FORMATS:
        return BLOCK_FORMATS[element.block_type.data].bits
    bits = getattr(element, "bitwidth", None)
    if not isinstance(bits, int):
        raise ValueError(f"elements of type {element} have no known size in memory")
    return bits


def memref_bytes(memref: MemRefType) -> int:
    """Bytes of a memref with a static shape, rounded up."""
    return -(-math.prod(memref.get_shape()) * element_bits(memref.element_type) // 8)


def is_row_major(memref: MemRefType) -> bool:
    """Whether a memref's elements follow one another in row-major order, wherever the first one lies."""
    shape = memref.get_shape()
    if isinstance(memref.layout, AffineMapAttr):
        return memref.layout.data == AffineMap.identity(len(shape))
    if isinstance(memref.layout, NoneAttr):
        return True
    strides, expected = memref.get_strides() or (), 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=False):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return len(strides) == len(shape)


def buffer_bytes(buffer: BufferOp) -> int:
    """Bytes of a buffer; AllocationError when its elements have no size."""
    try:
        return memref_bytes(buffer.type)
    except ValueError as error:
        raise _error(buffer, f"cannot be placed: {error}") from None


def allocate(device_op: DeviceOp, overflow: Overflow | None = None, overlap: Overflow | None = None) -> AddressMap:
    """Place every buffer and number every lock of a device.

    A tile's buffers without address go largest first (else in program order) from the end of the core's stack, or from
    0 where there is no core, upwards around those with an address; `mem_bank` alone moves none. Locks without
    id take the lowest free one in program order. AllocationError names tile, buffer or lock, bytes and limit. Where
    `overflow` is given, it gets the errors of buffers beyond a tile's memory (and may raise them) and they stay there;
    so does `overlap` those of addresses of the text that are others' too.
    """
    buffers: dict[Coordinates, list[BufferOp]] = defaultdict(list)
    locks: dict[Coordinates, list[LockOp]] = defaultdict(list)
    stacks: dict[Coordinates, int] = {}
    for op in device_op.walk():
        if isinstance(op, BufferOp):
            buffers[op.tile.place].append(op)
        elif isinstance(op, LockOp):
            locks[op.tile.place].append(op)
        elif isinstance(op, CoreOp):
            stacks[op.tile.place] = _stack(op)
    addresses = {
        op: at
        for tile, ops in buffers.items()
        for op, at in _place(ops, stacks.get(tile, 0), overflow or _refuse, overlap or _refuse).items()
    }
    return AddressMap(addresses, {op: lock_id for ops in locks.values() for op, lock_id in _number(ops).items()})


def _stack(core: CoreOp) -> int:
    size, limit = core.stack_size, core.tile.limits.memory_bytes
    if not 0 <= size <= limit:
        raise _error(core, f"stack_size = {size} is outside 0 to {limit}, the tile's memory")
    return size


def name_of(op: BufferOp | LockOp) -> str:
    """A buffer or lock in words: by its name, else by its value and line."""
    what = "buffer" if isinstance(op, BufferOp) else "lock"
    if op.symbol:
        return f"{what} @{op.symbol}"
    value = f"%{known} " if (known := value_name(op.result)) else ""
    return f"{what} {value}without a name (line {location(op).line})"


def _refuse(error: AllocationError) -> None:
    raise error


def _place(buffers: Sequence[BufferOp], stack_bytes: int, overflow: Overflow, overlap: Overflow) -> dict[BufferOp, int]:
    """Addresses of one tile's buffers."""
    placed = {op: op.address for op in buffers if op.address is not None}
    _check_fixed(placed, stack_bytes, overflow, overlap)
    fixed = sorted((address, address + buffer_bytes(op)) for op, address in placed.items())
    at = stack_bytes
    # Stable, so that equal sizes stay in the order of the text, as aiecc's.
    for op in sorted((op for op in buffers if op.address is None), key=buffer_bytes, reverse=True):
        at = _first_gap(at, buffer_bytes(op), fixed)
        placed[op] = at
        at += buffer_bytes(op)
        _check_end(op, at, buffers, stack_bytes, overflow)
    return placed


def _first_gap(at: int, size_bytes: int, fixed: Iterable[tuple[int, int]]) -> int:
    """Lowest address from `at` on where `size_bytes` bytes touch none of the sorted `fixed` ranges."""
    for start, end in fixed:
        if at < end and start < at + size_bytes:
            at = end
    return at


def _check_fixed(placed: dict[BufferOp, int], stack_bytes: int, overflow: Overflow, overlap: Overflow) -> None:
    end, before = stack_bytes, "the core's stack"
    for op, address in sorted(placed.items(), key=lambda item: item[1]):
        if address < end:
            overlap(_error(op, f"at {address:#x} overlaps {before}, which ends at {end:#x}"))
        own_end, limit = address + buffer_bytes(op), op.tile.limits.memory_bytes
        if own_end > end:  # what lies inside another one hides nothing of it from those behind
            end, before = own_end, name_of(op)
        if own_end > limit:
            overflow(_error(op, f"at {address:#x} with {buffer_bytes(op)} bytes ends beyond the tile's {limit} bytes"))


def _check_end(op: BufferOp, end: int, buffers: Sequence[BufferOp], stack_bytes: int, overflow: Overflow) -> None:
    limit = op.tile.limits.memory_bytes
    if end <= limit:
        return
    total = stack_bytes + sum(map(buffer_bytes, buffers))
    error = _error(
        op,
        f"with {buffer_bytes(op)} bytes would end at {end}, beyond the tile's {limit} bytes; stack ({stack_bytes} "
        f"bytes) and buffers take {total} bytes together: make a buffer smaller or move one to another tile",
    )
    overflow(error)


def _number(locks: Sequence[LockOp]) -> dict[LockOp, int]:
    """Ids of one tile's locks."""
    owners: dict[int, LockOp] = {}
    for op in locks:
        if op.id is not None:
            if op.id in owners:
                raise _error(op, f"and {name_of(owners[op.id])} both have id {op.id}")
            owners[op.id] = op
    for op in locks:
        if op.id is None:
            free = next(i for i in range(len(locks)) if i not in owners)  # there is one, be it beyond the tile's
            if free >= op.tile.limits.locks:
                raise _error(
                    op, f"finds no free id; the tile has {op.tile.limits.locks} and the design uses {len(locks)} there"
                )
            owners[free] = op
    return {op: lock_id for lock_id, op in owners.items()}


class OverrunError(ValueError):
    """A BD that moves words outside of its buffer."""


def overrun(allocation: AddressMap, buffer: BufferOp, start_bytes: int, end_bytes: int) -> OverrunError | None:
    """What is wrong with a BD that moves bytes from `start_bytes` to before `end_bytes` of `buffer`, if anything."""
    size = buffer_bytes(buffer)
    if end_bytes <= size:
        return None
    base = allocation.buffers[buffer]
    low, high = base + max(size, start_bytes), base + end_bytes
    met = [op for op, at in allocation.buffers.items() if _meets(buffer, op, at, low, high)]
    names = ", ".join(f"@{op.symbol}" if op.symbol else f"a buffer at {allocation.buffers[op]}" for op in met)
    into = f" and runs into {names}" if met else ""
    return OverrunError(
        f"the BD moves words up to byte {end_bytes - 1} of {name_of(buffer)}, which has {size} bytes{into}; "
        "check its offset, length and dimensions"
    )


def _meets(buffer: BufferOp, other: BufferOp, at: int, low: int, high: int) -> bool:
    same = other.tile.place == buffer.tile.place
    return same and other is not buffer and at < high and at + buffer_bytes(other) > low
