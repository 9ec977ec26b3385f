"""Whether a tile can hold its buffers, locks and DMA programs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from bd_patterns import Pattern
from bd_patterns import problems as pattern_problems
from bdforge.design.check_memory import memory_reasons
from bdforge.design.model import Channel, Subject, Tile
from bdforge.design.modes import BYTE_BITS, in_bytes
from bdforge.design.reasons import Places, Reason, within
from bdforge.design.tile_memory import Bd, Padding
from bdforge.devices import Generation, TileKind, TileLimits
from bdforge.devices.limits import MEMTILE_NEIGHBOUR_CHANNELS, TASK_QUEUE_ENTRIES
from bdforge.devices.rules import outside


def tile_reasons(tile: Tile, places: Places, generation: Generation) -> Iterator[Reason]:
    """What a tile cannot hold; `places` are all tiles, of which a memtile's channels reach the next ones too."""
    limits = generation.limits(tile.kind)
    yield from memory_reasons(tile, limits)
    yield from _locks(tile, limits)
    yield from _bd_numbers(tile, limits)
    last = {(c.direction, c.index): place for place, c in enumerate(tile.channels)}
    for channel, tasks in Counter((c.direction, c.index) for c in tile.channels).items():
        if tasks > TASK_QUEUE_ENTRIES:
            what = f"{tasks} tasks wait at {channel[0]} {channel[1]}, whose queue holds {TASK_QUEUE_ENTRIES}"
            yield Reason("queue", what, "chain their BDs", about=(last[channel],))
    for index, channel in enumerate(tile.channels):
        yield from within((index,), _channel(tile, channel, limits, _within_reach(tile, channel, places)))


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
