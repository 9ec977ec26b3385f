"""Transfers that leave their buffer: what they run into."""

from bdforge.array.mlir.allocate import AddressMap, buffer_bytes, name_of
from bdforge.array.mlir.memory_ops import BufferOp


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
    same = (other.tile.column, other.tile.row) == (buffer.tile.column, buffer.tile.row)
    return same and other is not buffer and at < high and at + buffer_bytes(other) > low
