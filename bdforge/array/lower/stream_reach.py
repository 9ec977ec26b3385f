"""Where the words of a shim's channel go in a configuration: the tiles and switches that they pass, to the cores."""

from collections.abc import Mapping

from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.channel_waits import tasks_of, wait_of
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.array.lower.tile_use import TilePart
from bdforge.array.routing import SwitchPort
from bdforge.array.routing.physical import RoutedStream
from bdforge.devices import PortBundle, TileKind

ShimChannel = tuple[int, int]
"""Column and number of a shim's channel that sends."""


def shim_reach(state: ArrayState) -> dict[ShimChannel, frozenset[TilePart]]:
    """All that takes part in moving the words of each shim channel that sends to the first cores that take them.

    None of channels whose words go as packets, or through memtiles whose channels share locks with neighbours or BDs
    that runs write: what they reach is not known. StateError where no array has as many columns.
    """
    streams = {stream.start: stream for stream in written_switches(state, smallest_device(state)).streams()}
    shims = (start for start in streams if _of_shim(state, start))
    found = {(start.column, start.channel): _reach(state, streams, start) for start in shims}
    return {channel: parts for channel, parts in found.items() if parts is not None}


def _of_shim(state: ArrayState, start: SwitchPort) -> bool:
    return start.bundle is PortBundle.DMA and state.tiles[start.tile].kind is TileKind.SHIM


def _reach(
    state: ArrayState, streams: Mapping[SwitchPort, RoutedStream], shim: SwitchPort
) -> frozenset[TilePart] | None:
    """What the words of a port pass and reach, None where not all of it is known."""
    parts, ways = {TilePart(*shim.tile)}, [shim]
    for start in ways:
        stream = streams.get(start)
        if stream is None or stream.packet_switched or stream.lost:
            return None
        parts |= {TilePart(*slave.tile, switch=True) for leaf in stream.leaves for slave in leaf.slaves}
        for end in stream.ends.values():
            parts.add(TilePart(*end.tile))
            onward = _sent_on(state, end)
            if onward is None:
                return None
            ways += [one for one in onward if one not in ways]
    return frozenset(parts)


def _sent_on(state: ArrayState, end: SwitchPort) -> list[SwitchPort] | None:
    """The channels of a memtile that send what one receives: those that share locks with it; of a core none. None where
    that is not known."""
    tile = state.tiles.get(end.tile)
    if tile is None or tile.kind is not TileKind.MEMTILE:
        return []
    near = (state.tiles.get((end.column + step, end.row)) for step in (-1, 0, 1))
    if any(wait_of(one, channel) is None for one in near if one is not None for channel in tasks_of(one)):
        return None
    locks = {channel: wait.locks for channel in tasks_of(tile) if (wait := wait_of(tile, channel))}
    if (own := locks.get(("S2MM", end.channel))) is None:
        return None
    sent = (channel for (way, channel), other in sorted(locks.items()) if way == "MM2S" and not own.isdisjoint(other))
    return [end._replace(channel=channel) for channel in sent]
