"""FIFOs between memory and registers: streams of blocks that begin at any byte, moved by lines of 64 bytes.

A load FIFO is a pointer to the next byte of a stream, two lines that were loaded, and a position: how many of their
last bytes lie before the next line. A fill loads a line; a pop loads one and takes the next bytes of the stream. A
store FIFO is a pointer, two lines and how many bytes wait in them: a push appends bytes and stores up to the end of
the pointer's line, a flush stores what waits for it. Pointers count bytes, as kernels that run on XDNA2 have them
(scalable-analyses); that of a pop with a step goes on from the next byte, with an empty FIFO.

Blocks lie in memory one behind the other, each exponent before its mantissas (mlir-aie's block data types).
"""

from bdforge.core.isa.errors import AccessError
from bdforge.core.isa.meaning.semantics import MemoryAccess, open_if, operation
from bdforge.core.isa.meaning.width import blocks_bfp16

LINE_BYTES = 64
_LINES_BYTES = 2 * LINE_BYTES
_LINE_BITS = 8 * LINE_BYTES
_ADDRESS, _WORD = 0xFFFFF, 0xFFFFFFFF
_BLOCKS = {64: 0, 68: 16, 72: 8}
"""Numbers in a block by the bytes that are moved at once: exponents come before them."""


def fifo_step(access: MemoryAccess, pointer: int, count: int) -> tuple[int, int, int]:
    """(address of the access, pointer and count behind it) of a FIFO's step."""
    size, room = access.amount, LINE_BYTES - pointer % LINE_BYTES
    match access.kind:
        case "fill":
            at = pointer + count & _ADDRESS
            return at - at % LINE_BYTES, pointer, count + LINE_BYTES - at % LINE_BYTES & _WORD
        case "pop":
            at = pointer + count & _ADDRESS
            return at - at % LINE_BYTES, pointer + size & _ADDRESS, count + LINE_BYTES - size & _WORD
        case "push":
            stored = room if count + size >= room else 0
            return pointer, pointer + stored & _ADDRESS, count + size - stored & _WORD
    stored = min(count, room)
    return pointer, pointer + stored & _ADDRESS, count - stored


def stored_bytes(access: MemoryAccess, pointer: int, count: int) -> int:
    """How many bytes a push or a flush stores."""
    return fifo_step(access, pointer, count)[1] - pointer & _ADDRESS


@operation("fifo_fill")
def fifo_fill(_: tuple[int, ...], line: int, held: int) -> int:
    """The last two lines."""
    return held >> _LINE_BITS | line << _LINE_BITS


@operation("fifo_pop")
def fifo_pop(options: tuple[int, ...], line: int, held: int, pointer: int, position: int) -> tuple[int, int]:
    """(the next bytes of a stream as a register has them, the last two lines); options: (bytes,)."""
    (size,) = options
    if position > _LINES_BYTES or position + LINE_BYTES < size:
        raise AccessError(f"takes {size} bytes of a FIFO at position {position}: it has two lines and loads a third")
    at = pointer + position & _ADDRESS
    open_if(at % LINE_BYTES, f"a FIFO whose lines end at {at:#x} is open: that is no multiple of {LINE_BYTES}")
    window = held | line << 8 * _LINES_BYTES
    taken = window >> 8 * (_LINES_BYTES - position) & ((1 << 8 * size) - 1)
    return _in_register(taken, size), fifo_fill((), line, held)


@operation("fifo_push")
def fifo_push(options: tuple[int, ...], held: int, source: int, pointer: int, count: int) -> tuple[int, int]:
    """(what is stored, what waits) with a register's bytes behind those that wait; options: (bytes,)."""
    (size,) = options
    _, after, left = fifo_step(MemoryAccess(True, LINE_BYTES, "push", size), pointer, count)
    if count > _LINES_BYTES or left > _LINES_BYTES:
        raise AccessError(f"puts {size} bytes behind {count} into a FIFO of {_LINES_BYTES}")
    whole = held & ((1 << 8 * count) - 1) | _in_memory(source, size) << 8 * count
    return _split(whole, after - pointer & _ADDRESS)


@operation("fifo_push_blocks")
def fifo_push_blocks(
    options: tuple[int, ...], held: int, source: int, rounding: int, pointer: int, count: int
) -> tuple[int, int]:
    """As `fifo_push`, of 64 fp32 numbers as block floats."""
    return fifo_push(options, held, blocks_bfp16((), source, rounding), pointer, count)


@operation("fifo_flush")
def fifo_flush(options: tuple[int, ...], held: int, pointer: int, count: int) -> tuple[int, int]:
    """(what is stored, what waits) when a line's bytes are stored; options: (whether the pointer is stepped then,)."""
    if count > _LINES_BYTES:
        raise AccessError(f"flushes {count} bytes of a FIFO of {_LINES_BYTES}")
    stored = stored_bytes(MemoryAccess(True, LINE_BYTES, "flush", LINE_BYTES), pointer, count)
    left = count - stored
    open_if(options[0] and left, f"a flush that leaves {left} bytes and steps the pointer is open")
    return _split(held & ((1 << 8 * count) - 1), stored)


def _split(whole: int, stored: int) -> tuple[int, int]:
    return whole & ((1 << 8 * stored) - 1), whole >> 8 * stored


def _in_register(taken: int, size: int) -> int:
    """Mantissas, then exponents, of blocks as memory has them."""
    if not _BLOCKS[size]:
        return taken
    data, step = taken.to_bytes(size, "little"), _BLOCKS[size] + 1
    mantissas = b"".join(data[i + 1 : i + step] for i in range(0, size, step))
    return int.from_bytes(mantissas + data[::step], "little")


def _in_memory(value: int, size: int) -> int:
    """Blocks as memory has them, of mantissas with exponents behind them."""
    if not _BLOCKS[size]:
        return value
    data, count = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"), _BLOCKS[size]
    blocks = (bytes([data[LINE_BYTES + i]]) + data[count * i : count * (i + 1)] for i in range(LINE_BYTES // count))
    return int.from_bytes(b"".join(blocks), "little")
