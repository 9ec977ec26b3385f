"""Over-subscription that no router could solve: more streams across a border than wires cross it."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from bdforge.array.routing.fabric import wires
from bdforge.array.routing.nets import Net, named, routing_error
from bdforge.devices import Device, PortBundle, neighbour
from bdforge.devices.switches import STEPS

Coordinates = tuple[int, int]


class TileRectangle(NamedTuple):
    """A rectangle of tiles: first and last column, first and last row."""

    west: int
    east: int
    south: int
    north: int

    def tiles(self) -> list[Coordinates]:
        """Its tiles."""
        rows = range(self.south, self.north + 1)
        return [(column, row) for column in range(self.west, self.east + 1) for row in rows]

    def __str__(self) -> str:
        if len(self.tiles()) == 1:
            return f"tile ({self.west}, {self.south})"
        return f"tiles ({self.west}, {self.south}) to ({self.east}, {self.north})"


class Exit(NamedTuple):
    """Wires out of a tile towards a neighbour."""

    tile: Coordinates
    side: PortBundle
    to: Coordinates
    wires: int


class Border(NamedTuple):
    """Ways across a region's border in one direction; `mask` has the bits of the tiles inside."""

    region: TileRectangle
    mask: int
    inward: bool
    exits: tuple[Exit, ...]
    wires: int


def check_cuts(device: Device, nets: Sequence[Net]) -> None:
    """RoutingError when more streams must leave or enter a rectangle of tiles than wires do.

    Each circuit needs a wire of its own; all packets together need one. The border with the fewest exits around the
    smallest rectangle is reported.
    """
    sources = np.array([_bit(device, net.source.tile) for net in nets], np.int64)
    sinks = np.array([_mask(device, [sink.tile for sink in net.sinks]) for net in nets], np.int64)
    circuits = np.array([net.packet_id is None for net in nets], bool)
    borders, masks, inward, exits = _borders(device)
    starts, stays = (sources & masks) != 0, (sinks & masks) != 0
    crossing = np.where(inward, ~starts & stays, starts & ((sinks & ~masks) != 0))
    wanted = (crossing & circuits).sum(1) + (crossing & ~circuits).any(1)
    if (over := np.flatnonzero(wanted > exits)).size:
        first = int(over[0])
        blamed = [nets[i] for i in np.flatnonzero(crossing[first]).tolist()]
        raise routing_error(
            blamed[0].flows[0], f"{_message(device, borders[first], int(wanted[first]))}: {named(blamed)}"
        )


def _bit(device: Device, tile: Coordinates) -> int:
    return 1 << (tile[0] * device.rows + tile[1])


def _mask(device: Device, tiles: Sequence[Coordinates]) -> int:
    mask = 0
    for tile in tiles:
        mask |= _bit(device, tile)
    return mask


@cache
def _borders(device: Device) -> tuple[list[Border], np.ndarray, np.ndarray, np.ndarray]:
    """Borders of all rectangles in the order in which they are reported; their masks, directions and wires in columns.

    A tile is a bit, so that each of some thousand borders meets each net by an AND.
    """
    exits = _exits(device)
    found = []
    for region in _regions(device):
        mask = _mask(device, region.tiles())
        for inward in (False, True):
            over = tuple(way for way, a, b in exits if bool(a & mask) != inward and bool(b & mask) == inward)
            found.append(Border(region, mask, inward, over, sum(e.wires for e in over)))
    found.sort(key=lambda border: (len(border.exits), len(border.region.tiles())))
    masks, inward = (np.array([[getattr(border, name)] for border in found]) for name in ("mask", "inward"))
    return found, masks, inward, np.array([border.wires for border in found])


def _exits(device: Device) -> list[tuple[Exit, int, int]]:
    """Every bundle of wires between tiles, with the bits of both."""
    found = []
    for tile in TileRectangle(0, device.columns - 1, 0, device.rows - 1).tiles():
        for side in STEPS:
            if (to := neighbour(device, *tile, side)) is not None:
                way = Exit(tile, side, to, wires(device, *tile, side))
                found.append((way, _bit(device, tile), _bit(device, to)))
    return found


def _regions(device: Device) -> Iterator[TileRectangle]:
    for west in range(device.columns):
        for east in range(west, device.columns):
            for south in range(device.rows):
                yield from (TileRectangle(west, east, south, north) for north in range(south, device.rows))


def _message(device: Device, border: Border, wanted: int) -> str:
    streams = f"{wanted} stream" + "s" * (wanted != 1)
    if len(border.exits) == 1:
        (column, row), side, _, count = border.exits[0]
        where = f"{device.kind(column, row)} ({column}, {row})"
        return f"{streams} must go {str(side).lower()} from {where}, which has {count} ports on that side"
    sides: dict[str, int] = {}
    for way in border.exits:
        sides[way.side.lower()] = sides.get(way.side.lower(), 0) + way.wires
    detail = ", ".join(f"{count} {side}" for side, count in sides.items()) or "none"
    verb = "enter" if border.inward else "leave"
    return f"{streams} must {verb} {border.region}, which {border.wires} wires do ({detail})"
