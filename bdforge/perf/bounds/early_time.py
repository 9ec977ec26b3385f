"""What a step of a composition saves by tasks that start while steps before it still run."""

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod

from bdforge.design import Channel, Design, Port, Tile
from bdforge.design.sequences import Program
from bdforge.design.sequences.interpret import StartedTask
from bdforge.devices import TileKind
from bdforge.devices.limits import BYTE_BITS, SHIM
from bdforge.devices.timing import Timing

ByChannel = Mapping[tuple[int, int], int]
"""Bytes by column and number of a shim's channel that sends."""


def shortened_us(
    us: float, before_us: float, early: ByChannel, late: ByChannel, held: ByChannel, timing: Timing
) -> float:
    """What is left of a step's `us` where channels start to send `before_us` before it, while others run.

    `early` and `late` are what channels send that do and do not; as much comes early as tiles hold (`held`), at DRAM's
    rate. All that late ones send comes afterwards, each at a channel's rate at most.
    """
    waiting = sum(min(count, held.get(channel, 0)) for channel, count in early.items())
    saved = min(before_us, waiting / timing.dram_read_gb_s / 1e3)
    slowest = max((float(timing.channel_ns(count, write=False)) / 1e3 for count in late.values()), default=0.0)
    return min(us, max(us - saved, slowest))


def sent_bytes(tasks: Iterable[StartedTask], program: Program) -> dict[tuple[int, int], int]:
    """What tasks send, by channel."""
    found: dict[tuple[int, int], int] = {}
    for task in (task for task in tasks if task.direction == "MM2S"):
        bits = ((bd, bd.bits or program.arguments[bd.argument].bits) for bd in task.bds)
        count = sum(prod(bd.pattern.sizes[-SHIM.dims :]) * width // BYTE_BITS for bd, width in bits)
        found[task.column, task.channel] = found.get((task.column, task.channel), 0) + task.runs * count
    return found


@cache
def held_bytes(design: Design) -> dict[tuple[int, int], int]:
    """What tiles hold of each shim channel's words before a core works on any: buffers of memtiles, then of cores."""
    found = _Held(design)
    shims = ((flow.source, found.tiles[flow.source.tile]) for flow in design.flows)
    return {
        (tile.column, port.index): found.after(port)
        for port, tile in shims
        if tile.kind is TileKind.SHIM and port.bundle == "DMA"
    }


class _Held:
    def __init__(self, design: Design) -> None:
        self.tiles = {tile.name: tile for tile in design.tiles}
        self._ways = {flow.source: flow.targets for flow in design.flows}

    def after(self, source: Port) -> int:
        """Of the words that leave by a port; where several take them, of the one that holds least."""
        return min((self._at(self.tiles[port.tile], port) for port in self._ways.get(source, ())), default=0)

    def _at(self, tile: Tile, port: Port) -> int:
        """What a tile holds of a channel that fills its buffers, and those after it that get them."""
        filled = {bd.buffer for one in tile.channels if _is(one, "S2MM", port.index) for bd in one.bds}
        senders = {one.index for one in tile.channels if _is(one, "MM2S") and filled & {bd.buffer for bd in one.bds}}
        onward = () if tile.core else map(self.after, map(tile.dma, senders))
        return sum(buffer.bytes for buffer in filled) + min(onward, default=0)


def _is(channel: Channel, direction: str, index: int | None = None) -> bool:
    return channel.direction == direction and index in (None, channel.index)
