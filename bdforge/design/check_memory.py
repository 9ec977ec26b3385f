"""Whether a tile's memory holds its stack and buffers, and which of them share bytes that may not."""

from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

from bdforge.design.buffer_addresses import aligned, occupied
from bdforge.design.model import Tile
from bdforge.design.modes import modes
from bdforge.design.reasons import Reason, within
from bdforge.design.tile_memory import Buffer
from bdforge.devices import TileLimits
from bdforge.devices.limits import BYTE_BITS, DEFAULT_STACK_BYTES, GRANULE_BYTES


def memory_reasons(tile: Tile, limits: TileLimits) -> Iterator[Reason]:
    """What is wrong with a placed tile's buffers."""
    if stack_room(tile, limits) < aligned(tile.stack_bytes):
        yield _too_much(tile, limits)
        return
    yield from _overlaps(tile, limits.memory_bytes)
    for buffer in tile.buffers:
        yield from within((buffer.name,), (*_buffer(buffer), *_over(buffer, tile)))


def stack_room(tile: Tile, limits: TileLimits) -> int:
    """Bytes that a tile's buffers leave for its stack; negative where they alone are too many."""
    own = occupied(0, ((1, buffer.bytes) for buffer in tile.buffers if not buffer.mode))
    return limits.memory_bytes - own - max(_of_modes(tile).values(), default=0)


def _of_modes(tile: Tile) -> dict[str, int]:
    """Bytes of each mode's buffers."""
    return {name: sum(aligned(buffer.bytes) for buffer in held) for name, held in modes(tile.buffers).items()}


def _too_much(tile: Tile, limits: TileLimits) -> Reason:
    limit, stack, fitting = limits.memory_bytes, tile.stack_bytes, stack_room(tile, limits)
    parts = [f"{buffer.role or buffer.name}: {buffer.bytes}" for buffer in tile.buffers if not buffer.mode]
    parts += [f"mode {name}: {size}" for name, size in _of_modes(tile).items()]
    parts += [f"stack: {stack}"] if stack else []
    way = f"a stack of {fitting} would fit, or " if DEFAULT_STACK_BYTES <= fitting < stack else ""
    used = f"{limit - fitting + aligned(stack)} bytes of {limit} ({', '.join(parts)})"
    return Reason("memory", used, f"{way}choose smaller or fewer buffers")


def _overlaps(tile: Tile, limit: int) -> Iterator[Reason]:
    """Of each mode, with what is of none."""
    placed = [buffer for buffer in tile.buffers if buffer.address is not None]
    apart = True
    for mode in modes(tile.buffers) or [""]:
        spans = sorted(_span(buffer) for buffer in placed if buffer.mode in ("", mode))
        ends = [(0, tile.stack_bytes, "the stack"), *spans]
        step = "move one, or let them belong to two modes" if mode else "move one"
        for (_, end, before), (start, _, name) in pairwise(ends):
            if start < end:
                apart = False
                yield Reason("address", f"{name} starts at {start:#x}, {before} ends at {end:#x}", step, about=(name,))
        if (last := max(ends, key=itemgetter(1)))[1] > limit:
            what = f"{last[2]} ends at {last[1]:#x}, the memory at {limit:#x}"
            yield Reason("address", what, "move it down", about=(last[2],))
    if apart:
        yield from _between(placed)


def _between(placed: list[Buffer]) -> Iterator[Reason]:
    """Modes are one buffer of bytes in MLIR, from the first of theirs to the last."""
    shared = [_span(buffer) for buffer in placed if buffer.mode]
    start, end = min(shared, default=(0, 0, ""))[0], max((end for _, end, _ in shared), default=0)
    for at, _, name in (_span(buffer) for buffer in placed if not buffer.mode):
        if start < at < end:
            what = f"{name} of no mode starts at {at:#x}, between the bytes of modes, {start:#x} to {end:#x}"
            yield Reason("address", what, "move it below or above them", about=(name,))


def _span(buffer: Buffer) -> tuple[int, int, str]:
    start = buffer.address or 0
    return start, start + buffer.bytes, buffer.name


def _buffer(buffer: Buffer) -> Iterator[Reason]:
    if buffer.address is None and not buffer.over:
        yield Reason("address", f"{buffer.name} has no address", "let placed() give it one")
    elif (buffer.address or 0) % GRANULE_BYTES:
        yield Reason("address", f"{buffer.name}: {buffer.address:#x} is not at a word's start", "move it")
    if buffer.values and len(buffer.values) != buffer.elements:
        what = f"{buffer.name} has {buffer.elements} elements, but {len(buffer.values)} values"
        yield Reason("values", what, "give all or none")
    if buffer.mode and buffer.values:
        what = f"{buffer.name} has values, but shares its bytes with other modes than {buffer.mode}"
        yield Reason("values", what, "store them when the mode begins, or leave it out of modes")
    if buffer.mode and buffer.bits % BYTE_BITS:
        what = f"{buffer.name} of mode {buffer.mode} has elements of {buffer.bits} bits"
        yield Reason("mode", what, "give it a type of whole bytes")


def _over(buffer: Buffer, tile: Tile) -> Iterator[Reason]:
    others = {b.name: b for b in tile.buffers if b.mode not in ("", buffer.mode) and not b.over}
    below = others.get(buffer.over) if buffer.mode else None
    if buffer.over and below is None:
        what = f"{buffer.name} lies over {buffer.over}, no buffer of another mode of the tile with its own bytes"
        yield Reason("over", what, "name one that is, and give both a mode")
    elif below and below.bytes < buffer.bytes:
        what = f"{buffer.name} has {buffer.bytes} bytes, {below.name} below it {below.bytes}"
        yield Reason("over", what, "make it smaller")
