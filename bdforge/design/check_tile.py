"""Whether a tile can hold its buffers, locks and DMA programs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

from bd_patterns import Pattern
from bd_patterns import problems as pattern_problems
from bdforge.design.model import Channel, Subject, Tile
from bdforge.design.modes import BYTE_BITS, in_bytes, modes
from bdforge.design.placement import aligned, occupied
from bdforge.design.reasons import Places, Reason, within
from bdforge.design.tile_memory import Bd, Buffer, Padding
from bdforge.devices import Generation, TileKind, TileLimits
from bdforge.devices.limits import DEFAULT_STACK_BYTES, GRANULE_BYTES, MEMTILE_NEIGHBOUR_CHANNELS, TASK_QUEUE_ENTRIES
from bdforge.devices.rules import outside


def tile_reasons(tile: Tile, places: Places, generation: Generation) -> Iterator[Reason]:
    """What a tile cannot hold; `places` are all tiles, of which a memtile's channels reach the next ones too."""
    limits = generation.limits(tile.kind)
    yield from _memory(tile, limits)
    yield from _locks(tile, limits)
    yield from _bd_numbers(tile, limits)
    last = {(c.direction, c.index): place for place, c in enumerate(tile.channels)}
    for channel, tasks in Counter((c.direction, c.index) for c in tile.channels).items():
        if tasks > TASK_QUEUE_ENTRIES:
            what = f"{tasks} tasks wait at {channel[0]} {channel[1]}, whose queue holds {TASK_QUEUE_ENTRIES}"
            yield Reason("queue", what, "chain their BDs", about=(last[channel],))
    for index, channel in enumerate(tile.channels):
        yield from within((index,), _channel(tile, channel, limits, _within_reach(tile, channel, places)))


def _memory(tile: Tile, limits: TileLimits) -> Iterator[Reason]:
    limit, own = limits.memory_bytes, [buffer for buffer in tile.buffers if not buffer.mode]
    sums = {name: sum(aligned(buffer.bytes) for buffer in held) for name, held in modes(tile.buffers).items()}
    used = occupied(tile.stack_bytes, ((1, buffer.bytes) for buffer in own)) + max(sums.values(), default=0)
    if used > limit:
        parts = [f"{buffer.role or buffer.name}: {buffer.bytes}" for buffer in own]
        parts += [f"mode {name}: {size}" for name, size in sums.items()]
        yield _too_much(tile, used, limit, parts)
        return
    yield from _overlaps(tile, limit)
    for buffer in tile.buffers:
        yield from within((buffer.name,), (*_buffer(buffer), *_over(buffer, tile)))


def _too_much(tile: Tile, used: int, limit: int, parts: list[str]) -> Reason:
    stack = tile.stack_bytes
    parts += [f"stack: {stack}"] if stack else []
    fitting = limit - (used - aligned(stack))
    way = f"a stack of {fitting} would fit, or " if DEFAULT_STACK_BYTES <= fitting < stack else ""
    return Reason("memory", f"{used} bytes of {limit} ({', '.join(parts)})", f"{way}choose smaller or fewer buffers")


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


def _locks(tile: Tile, limits: TileLimits) -> Iterator[Reason]:
    for lock in tile.locks:
        if (problem := outside("lock value", lock.init, limits)) is not None:
            yield Reason("lock", f"a first {problem}", "use another value", about=(lock.name,))
        if (problem := outside("lock", lock.id, limits)) is not None:
            yield Reason("lock id", problem, "use fewer locks", about=(lock.name,))
    last = {lock.id: lock.name for lock in tile.locks}
    for number, count in Counter(lock.id for lock in tile.locks).items():
        if count > 1:
            yield Reason("lock id", f"{count} locks have id {number}", "number them apart", about=(last[number],))


def _bd_numbers(tile: Tile, limits: TileLimits) -> Iterator[Reason]:
    numbers: dict[range, list[int | None]] = {}
    places: dict[int | None, Subject] = {}
    for index, channel in enumerate(tile.channels):
        places |= {bd.bd_id: (index, place) for place, bd in enumerate(channel.bds)}
        share = limits.bds_of_channel(channel.index)
        reserved = [number for number in tile.reserved_bds if number in share]
        numbers.setdefault(share, [*reserved]).extend(bd.bd_id for bd in channel.bds)
    for share, used in numbers.items():
        shared = f"BD {share.start} to {share.stop - 1}"
        if len(used) > len(share):
            yield Reason("bds", f"{len(used)} BDs for channels that share {shared}", "use fewer or shorter chains")
            continue
        for number, count in Counter(used).items():
            if number not in share:
                what = f"number {number} of a BD whose channel may use {shared}"
                yield Reason("bds", what, "leave it to placed()", about=places.get(number, ()))
            if count > 1:
                what = f"{count} BDs have number {number}"
                yield Reason("bds", what, "leave numbers to placed()", about=places.get(number, ()))


def _within_reach(tile: Tile, channel: Channel, places: Places) -> list[Tile]:
    if tile.kind is not TileKind.MEMTILE or channel.index >= MEMTILE_NEIGHBOUR_CHANNELS:
        return [tile]
    columns = (tile.column, tile.column - 1, tile.column + 1)
    return [places[column, tile.row] for column in columns if (column, tile.row) in places]


def _channel(tile: Tile, channel: Channel, limits: TileLimits, reach: list[Tile]) -> Iterator[Reason]:
    where = f"{channel.direction} {channel.index}" + (f" ({channel.role})" if channel.role else "")
    if channel.direction not in ("S2MM", "MM2S") or not 0 <= channel.index < limits.channels:
        yield Reason(
            "channel", f"there is no such channel, but S2MM and MM2S 0 to {limits.channels - 1}", "use one", where
        )
        return
    if channel.back is not None and not 0 <= channel.back < len(channel.bds):
        yield Reason("chain", f"it goes back to BD {channel.back} of {len(channel.bds)}", "name one of its own", where)
    if channel.runs > 1 and channel.back is not None:
        yield Reason("chain", f"{channel.runs} runs of a chain that never ends", "let it end with back = None", where)
    for number, bd in enumerate(channel.bds):
        for rule, what, step in _bd(bd, channel, limits, reach):
            yield Reason(rule, what, step, f"{where}, BD {number}", about=(number,))


def _bd(bd: Bd, channel: Channel, limits: TileLimits, reach: list[Tile]) -> Iterator[tuple[str, str, str]]:
    if bd.buffer.name not in {buffer.name for tile in reach for buffer in tile.buffers}:
        yield "reach", f"{bd.buffer.name} lies outside the memory that the channel reaches", "use a nearer buffer"
    for use in (bd.acquire, bd.release):
        if use and use.lock.name not in {lock.name for tile in reach for lock in tile.locks}:
            yield "reach", f"{use.lock.name} is no lock that the channel reaches", "use a nearer lock"
        if use and not 1 <= use.count <= limits.lock_value_max:
            yield "lock", f"it takes or gives {use.count} of {use.lock.name}", f"use 1 to {limits.lock_value_max}"
    if (bd.packet or bd.padding) and channel.direction != "MM2S":
        yield "header", "only MM2S sends headers and zeros", "leave them out"
    for name, value in (("pkt_id", bd.packet.id), ("pkt_type", bd.packet.type)) if bd.packet else ():
        if (problem := outside(name, value, limits)) is not None:
            yield "packet", problem, "use one of those"
    # A contiguous run is written without dimensions, so that only its length counts.
    pattern = bd.pattern.coalesced() if bd.linear and bd.pattern.rank > 1 else bd.pattern
    if bd.buffer.mode and not bd.buffer.bits % BYTE_BITS:
        plain = in_bytes(replace(bd, pattern=pattern))
        problems = _pattern_problems(plain.pattern, limits, BYTE_BITS, bd.buffer.bytes, plain.padding)
    else:
        problems = _pattern_problems(pattern, limits, bd.buffer.bits, bd.buffer.elements, bd.padding)
    yield from (("pattern", problem, "") for problem in problems)


@lru_cache(maxsize=4096)
def _pattern_problems(pattern: Pattern, limits: TileLimits, bits: int, elements: int, padding: Padding) -> list[str]:
    """Tiles of a kind have the same BDs."""
    return pattern_problems(pattern, limits, bits, static=True, buffer_elements=elements, padding=padding or None)
