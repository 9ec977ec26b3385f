"""Routes by their endpoints: streams that join the same kinds of ports of other tiles are told together."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.array.routing import SwitchPort
from bdforge.array.routing.physical import RoutedStream
from bdforge.array.show.array_use import places, ranges
from bdforge.devices import Device


@dataclass(frozen=True, slots=True)
class RouteFold:
    """Streams between ports of one kind: `packets` are ids, empty for circuits; `lost` says why words end nowhere."""

    source: str
    packets: tuple[int, ...]
    sinks: tuple[str, ...]
    streams: int
    lost: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Circuits, or packets with their ids."""
        return f"packets {ranges(self.packets)}" if self.packets else "circuit"


def folded_routes(state: ArrayState) -> list[RouteFold]:
    """All streams of a configuration, followed through its switches; StateError where no array has its columns."""
    device = smallest_device(state)
    groups: dict[Hashable, list[RoutedStream]] = {}
    for stream in written_switches(state, device).streams():
        sinks = tuple(sorted({_kind(device, end) for end in stream.ends.values()}))
        key = _kind(device, stream.start), stream.packet_id is None, sinks, bool(stream.lost)
        groups.setdefault(key, []).append(stream)
    return [_fold(device, streams) for streams in groups.values()]


def _fold(device: Device, streams: Sequence[RoutedStream]) -> RouteFold:
    ends: dict[str, set[tuple[int, int]]] = {}
    for end in (end for stream in streams for end in stream.ends.values()):
        ends.setdefault(_kind(device, end), set()).add(end.tile)
    source, starts = _kind(device, streams[0].start), {stream.start.tile for stream in streams}
    return RouteFold(
        _ports(source, starts), tuple(sorted({s.packet_id for s in streams if s.packet_id is not None})),
        tuple(_ports(kind, tiles) for kind, tiles in sorted(ends.items())), len(streams),
        tuple(dict.fromkeys(why for stream in streams for why in stream.lost)),
    )  # fmt: skip


def _kind(device: Device, port: SwitchPort) -> str:
    """A port without its place: `memtile DMA 0`."""
    return f"{device.kind(*port.tile)} {port.bundle} {port.channel}"


def _ports(kind: str, tiles: set[tuple[int, int]]) -> str:
    """Ports of a kind with their places: `memtile (0-7, 1) DMA 0`."""
    tile, _, port = kind.partition(" ")
    return f"{tile} {places(sorted(tiles))} {port}"
