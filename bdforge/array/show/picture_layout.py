"""Where things stand in the picture: each tile is a square of side 1, column and row are its lower left corner.

A tile's memory and ports stand at its lower left. Streams run in lanes: up and down at the right of the tile, east and
west at its top, one lane for each channel, so different streams never lie on each other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bdforge.array.routing import Connection, SwitchPort
from bdforge.devices import PortBundle, TileKind, TileLimits

Point = tuple[float, float]
LocalPort = tuple[str, str, int]  # "in" (master) or "out" (slave), bundle, channel

MARGIN = 0.035  # from the square to the tile's outline
CAPTION = (0.075, 0.08)

_LANE = 0.034
_INSIDE = 0.945  # upper and right end of the lanes
_GAP = 0.03  # between lanes of opposite directions
_TURNS = 0.09  # width left of the lanes, for streams that turn there
_TURN_STEP = 0.010
_PORT_WIDTH = 0.125
_LEFT, _BOTTOM = 0.075, 0.13
_KINK = 0.07  # from the border: where a stream that started beside its lane joins it


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of lanes, memory and ports, the same in every tile; `up`, `down`, `east`, `west` are channel 0's lanes."""

    up: float
    down: float
    east: float
    west: float
    panel_right: float
    ports_right: float
    top: float

    @property
    def panel(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of the memory."""
        return _LEFT, _BOTTOM, self.panel_right, self.top

    def slot_y(self, slot: int, slots: int) -> float:
        """Height of a port's middle."""
        return self.top - (slot + 0.5) * self.slot_height(slots)

    def slot_height(self, slots: int) -> float:
        """Height that a port has."""
        return (self.top - _BOTTOM) / slots

    def slave_lane(self, port: SwitchPort) -> Point:
        """Where words from a neighbour enter a tile."""
        return self._lane(port.bundle, port.channel, entering=True)

    def master_lane(self, port: SwitchPort) -> Point:
        """Where words for a neighbour leave a tile."""
        return self._lane(port.bundle, port.channel, entering=False)

    def _lane(self, side: PortBundle, channel: int, entering: bool) -> Point:
        upward = (side is PortBundle.SOUTH) == entering
        eastward = (side is PortBundle.WEST) == entering
        if side in (PortBundle.NORTH, PortBundle.SOUTH):
            x = (self.up if upward else self.down) + _LANE * channel
            return x, 1.0 if side is PortBundle.NORTH else 0.0
        y = (self.east if eastward else self.west) + _LANE * channel
        return 1.0 if side is PortBundle.EAST else 0.0, y

    def polyline(self, connection: Connection, start: Point, end: Point, slot: int, beside: bool) -> list[Point]:
        """Right-angled way between two places of a tile.

        `slot` sets streams apart that turn beside the ports; `beside` keeps the way out of its last lane until close
        to the border, because another stream ends in that lane.
        """
        if not beside:
            return self._straight(connection, start, end, slot)
        if end[1] in (0.0, 1.0):
            lane, kink = end[0] + _LANE / 2, abs(end[1] - _KINK)
            return [*self._straight(connection, start, (lane, kink), slot), (end[0], kink), end]
        lane, kink = end[1] + _LANE / 2, abs(end[0] - _KINK)
        return [*self._straight(connection, start, (kink, lane), slot), (kink, end[1]), end]

    def _straight(self, connection: Connection, start: Point, end: Point, slot: int) -> list[Point]:
        vertical = (PortBundle.NORTH, PortBundle.SOUTH)
        inside = self.ports_right
        rises = start[0] != inside and connection.slave.bundle in vertical
        falls = end[0] != inside and connection.master.bundle in vertical
        if rises and falls:
            middle = self.top + 0.008 * connection.slave.channel
            return [start, end] if start[0] == end[0] else [start, (start[0], middle), (end[0], middle), end]
        if rises:
            return [start, (start[0], end[1]), end]
        if falls:
            return [start, (end[0], start[1]), end]
        middle = self.ports_right + 0.038 + _TURN_STEP * slot
        return [start, end] if start[1] == end[1] else [start, (middle, start[1]), (middle, end[1]), end]


def layout_for(channels: Mapping[PortBundle, int]) -> Layout:
    """Lanes for `channels` streams per direction (by side to which they leave), the rest for memory and ports."""
    north, south, east, west = (
        channels.get(side, 0) for side in (PortBundle.NORTH, PortBundle.SOUTH, PortBundle.EAST, PortBundle.WEST)
    )
    down = _INSIDE - _LANE * max(south, 1) + _LANE / 2
    up = down - _GAP - _LANE * max(north, 1)
    to_west = _INSIDE - _LANE * west + _LANE / 2
    to_east = to_west - (_GAP if west else 0) - _LANE * east
    ports_right = up - _TURNS
    across = east + west
    return Layout(up, down, to_east, to_west, ports_right - _PORT_WIDTH, ports_right, to_east - 0.05 if across else 0.9)


def local_slots(limits: TileLimits, used: Iterable[LocalPort]) -> list[LocalPort]:
    """Ports inside a tile from the top down: every DMA channel, then other ports that are used."""
    channels = range(limits.channels)
    dma = [(way, "DMA", channel) for way in ("in", "out") for channel in channels]
    return dma + sorted(port for port in set(used) if port not in dma)


def local_port(port: SwitchPort, way: str, kind: TileKind, shim_channels: tuple[int, ...]) -> LocalPort:
    """A port inside a tile; of a shim's south ports, those of its DMA by their channel."""
    if kind is TileKind.SHIM and port.bundle is PortBundle.SOUTH and port.channel in shim_channels:
        return way, "DMA", shim_channels.index(port.channel)
    return way, str(port.bundle), port.channel
