"""What the parts of a picture share: the design, the layout, colours of streams by their role, and used ports."""

from collections import defaultdict
from collections.abc import Sequence

from bdforge.array.routing import Connection, Net, SwitchPort
from bdforge.array.show.array_use import Coordinates, DesignUse, ranges
from bdforge.array.show.picture_layout import Layout, LocalPort, Point, layout_for, local_port, local_slots
from bdforge.devices import PortBundle, TileKind
from bdforge.devices.switches import OPPOSITE, SHIM_MM2S_SLAVES, SHIM_S2MM_MASTERS, STEPS

TILE_COLORS = {TileKind.SHIM: "#fdf3e1", TileKind.MEMTILE: "#eaf2fb", TileKind.CORE: "#eef7ea"}
TILE_EDGES = {TileKind.SHIM: "#c9a869", TileKind.MEMTILE: "#86a8cf", TileKind.CORE: "#93bb84"}
BUFFER_COLORS = {TileKind.MEMTILE: ("#a9c6e8", "#c5d9f0"), TileKind.CORE: ("#b2d6a3", "#cbe4c0")}
STACK_COLOR, FREE_COLOR, IDLE_COLOR = "#cfcfcf", "#ffffff", "#b5b5b5"
TEXT_COLOR = "#333333"
CASCADE_COLOR = "#8a8a8a"

# Colours that people with any colour vision tell apart (Okabe and Ito), then darker ones.
STREAM_COLORS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a3d9a", "#8c564b", "#222222",
                 "#b8860b", "#2f4f8f", "#7a0019")  # fmt: skip

Role = tuple[str, ...]


def roles_of(nets: Sequence[Net]) -> dict[Net, Role]:
    """Streams of one role share a colour: same kind of tile and port at the source, same kind of tiles at the ends.

    Where that gives more roles than colours, the source's port no longer counts.
    """
    fine: dict[Net, Role] = {net: (*_kinds(net), str(net.start.bundle), str(net.start.channel)) for net in nets}
    if len(set(fine.values())) <= len(STREAM_COLORS):
        return fine
    return {net: _kinds(net) for net in nets}


def _kinds(net: Net) -> Role:
    sinks = "/".join(sorted({str(end.tile.kind) for end in net.ends.values()}))
    return str(net.start.tile.kind), sinks, "circuit" if net.packet_id is None else "packets"


def role_label(role: Role, nets: Sequence[Net]) -> str:
    """Legend text of one role."""
    ends = sum(len(net.ends) for net in nets)
    kind, sinks, how, *port = role
    source = f"{kind} {_port(*port)}" if port else kind
    arrives = {(str(end.bundle), end.channel) for net in nets for end in net.ends.values()}
    bundles = sorted({bundle for bundle, _ in arrives})
    ports = ", ".join(f"{_port(b)} {ranges(c for bundle, c in arrives if bundle == b)}" for b in bundles)
    ids = "" if how == "circuit" else f", packets {ranges(net.packet_id for net in nets if net.packet_id is not None)}"
    count = f"{len(nets)} stream{'s' * (len(nets) != 1)}" + (f", {ends} ends" if ends > len(nets) else "")
    return f"{source} to {sinks} {ports.replace('MM2S', 'S2MM')} ({count}{ids})"


def _port(bundle: str, channel: str | None = None) -> str:
    name = "MM2S" if bundle == "DMA" else bundle
    return name if channel is None else f"{name} {channel}"


_REFERENCE_INCHES = 2.1  # side of a tile for which sizes in points are given


class Scene:
    """A design laid out; `ports` holds, by tile, the colour of each used port inside it."""

    def __init__(self, use: DesignUse, layout: Layout, inches: float):
        self.use, self.layout, self.inches = use, layout, inches
        self.device = use.device.device
        self.roles = roles_of(use.routing.nets)
        order = list(dict.fromkeys(self.roles.values()))
        self.colors: dict[Role, str] = {role: STREAM_COLORS[i % len(STREAM_COLORS)] for i, role in enumerate(order)}
        self.ports: dict[Coordinates, dict[LocalPort, str]] = defaultdict(dict)
        self._slaves: set[SwitchPort] = set()
        for net in use.routing.nets:
            for connection in use.routing.connections(net):
                self._note(connection, self.colors[self.roles[net]])

    def points(self, size: float) -> float:
        """A size in points, grown with the tiles."""
        return size * self.inches / _REFERENCE_INCHES

    def slots(self, tile: Coordinates) -> list[LocalPort]:
        """Ports inside a tile, from the top down."""
        return local_slots(self.device.limits(*tile), self.ports[tile])

    def place(self, port: SwitchPort, way: str) -> tuple[Point, int | None]:
        """Where a port stands in its tile, and its slot if it is inside."""
        if self._is_wire(port):
            return (self.layout.slave_lane(port) if way == "out" else self.layout.master_lane(port)), None
        slots = self.slots(port.tile)
        slot = slots.index(self._local(port, way))
        return (self.layout.ports_right, self.layout.slot_y(slot, len(slots))), slot

    def way(self, connection: Connection) -> list[Point]:
        """A connection as points of the picture."""
        (start, out_slot), (end, in_slot) = self.place(connection.slave, "out"), self.place(connection.master, "in")
        slot = next((s for s in (out_slot, in_slot) if s is not None), connection.slave.channel)
        points = self.layout.polyline(connection, start, end, slot, self._lane_is_shared(connection))
        column, row = connection.slave.tile
        return [(column + x, row + y) for x, y in points]

    def ends_inside(self, connection: Connection) -> bool:
        """Whether a connection ends at a port of its tile."""
        return not self._is_wire(connection.master)

    def _note(self, connection: Connection, color: str) -> None:
        self._slaves.add(connection.slave)
        for port, way in ((connection.slave, "out"), (connection.master, "in")):
            if not self._is_wire(port):
                self.ports[port.tile][self._local(port, way)] = color

    def _lane_is_shared(self, connection: Connection) -> bool:
        """Whether the lane in which a connection leaves holds another stream on its way into the tile."""
        master = connection.master
        if not self._is_wire(master):
            return False
        facing = SwitchPort(*master.tile, OPPOSITE[master.bundle], master.channel)
        return facing != connection.slave and facing in self._slaves and self._is_wire(facing)

    def _is_wire(self, port: SwitchPort) -> bool:
        outside = self.device.kind(*port.tile) is TileKind.SHIM and port.bundle is PortBundle.SOUTH
        return port.bundle in STEPS and not outside

    def _local(self, port: SwitchPort, way: str) -> LocalPort:
        channels = SHIM_S2MM_MASTERS if way == "in" else SHIM_MM2S_SLAVES
        return local_port(port, way, self.device.kind(*port.tile), channels)


def scene_of(use: DesignUse, inches: float) -> Scene:
    """A design laid out in tiles of that size."""
    return Scene(use, layout_for(_channels(use)), inches)


def extent(use: DesignUse) -> tuple[range, range]:
    """Columns and rows that a picture shows: those of tiles and routes, from row 0 on."""
    shown = {slave.tile for net in use.routing.nets for slave, _ in use.routing.connections(net)} | set(use.tiles)
    columns = range(min(c for c, _ in shown), max(c for c, _ in shown) + 1) if shown else range(1)
    return columns, range(max((r for _, r in shown), default=0) + 1)


def _channels(use: DesignUse) -> dict[PortBundle, int]:
    """Lanes needed towards each side: one more than the highest channel in use."""
    lanes: dict[PortBundle, int] = defaultdict(int)
    for net in use.routing.nets:
        for _, master in use.routing.connections(net):
            if master.bundle in STEPS:
                lanes[master.bundle] = max(lanes[master.bundle], master.channel + 1)
    return lanes
