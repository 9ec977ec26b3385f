"""Routes as stream switches and shim muxes make them: streams followed through their settings.

A circuit goes where its slave ports are connected. A packet goes, at every packet-switched slave port, to the masters
that listen to the first rule that matches its id; circuits on its way pass it on. Where its header is dropped follows
`aie.masterset`; by default at masters of DMAs and at the south of a shim (MA-t).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from xdsl.ir import Operation

from bdforge.array.mlir.array_ops import Endpoint
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.mlir.switch_ops import MastersetOp, ShimMuxOp, SwitchboxOp
from bdforge.array.routing.fabric import fabric_of
from bdforge.array.routing.nets import Net, SwitchPort, flow_ends, master_of, routing_error, slave_of
from bdforge.array.routing.packets import PacketRule
from bdforge.array.routing.result import Routing
from bdforge.devices import Device, PortBundle, TileKind, neighbour
from bdforge.devices.limits import PACKET_IDS
from bdforge.devices.switches import OPPOSITE, SHIM_MM2S_SLAVES, SHIM_S2MM_MASTERS, SHIM_TOKEN_MASTER, STEPS


class SwitchArbiter(NamedTuple):
    """One arbiter of a tile's switch; a packet holds it to its end."""

    column: int
    row: int
    number: int

    def __str__(self) -> str:
        return f"arbiter {self.number} of the switch of ({self.column}, {self.row})"


@dataclass(frozen=True, slots=True)
class StreamLeaf:
    """Where a stream leaves the switches. `keeps_header` tells whether the first word of a packet arrives."""

    master: SwitchPort
    slaves: tuple[SwitchPort, ...]
    keeps_header: bool


@dataclass(eq=False, slots=True)
class RoutedStream:
    """Words of one slave port, as a circuit or as packets of one id, with all places that they reach.

    `start` and `ends` name them as flows do, so DMAs of shims too; where nothing takes the words `lost` says why.
    `arbiters` are those that a packet takes on its way, in order. `setting` is what the source's slave port is set by.
    """

    source: SwitchPort
    packet_id: int | None
    start: SwitchPort
    setting: Any
    leaves: list[StreamLeaf] = field(default_factory=list)
    ends: dict[SwitchPort, SwitchPort] = field(default_factory=dict)
    arbiters: list[SwitchArbiter] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    packet_switched: bool = False


def is_physical(device: DeviceOp) -> bool:
    """Whether a device sets its switches itself."""
    return any(isinstance(op, SwitchboxOp) and (op.connects or op.packet_rules) for op in device.body.block.ops)


class Switches:
    """The settings of all switches of an array, by port.

    `settings` are what slave ports are set by, operations of the text or register writes; `keeps` tells of masters of
    packets whether these keep their headers; `joined` are ports of shims that the mux joins to a DMA channel.
    """

    def __init__(self, device: Device):
        self.device = device
        self.circuits: dict[SwitchPort, list[SwitchPort]] = defaultdict(list)
        self.rules: dict[SwitchPort, tuple[PacketRule, ...]] = {}
        self.settings: dict[SwitchPort, Any] = {}
        self.keeps: dict[SwitchPort, bool] = {}
        self.joined_slaves: set[SwitchPort] = set()
        self.joined_masters: set[SwitchPort] = set()

    def streams(self) -> Iterator[RoutedStream]:
        """Every stream that starts inside of a tile or at the array's edge, by port; packets by id."""
        for source in sorted(self.settings):
            if self._comes_from_outside(source):
                circuit = self._followed(source, None)
                if not circuit.packet_switched:
                    yield circuit
                    continue
                for packet_id in range(PACKET_IDS):
                    stream = self._followed(source, packet_id)
                    if stream.leaves or stream.lost:
                        yield stream

    def follow(self, slave: SwitchPort, packet_id: int) -> list[StreamLeaf]:
        """Where packets of an id that enter at a slave port leave the switches."""
        return self._followed(slave, packet_id).leaves if slave in self.settings else []

    def _comes_from_outside(self, slave: SwitchPort) -> bool:
        return slave.bundle not in STEPS or neighbour(self.device, *slave.tile, slave.bundle) is None

    def _followed(self, source: SwitchPort, packet_id: int | None) -> RoutedStream:
        """One stream; without an id it stops where packets are switched."""
        stream = RoutedStream(source, packet_id, self._start(source), self.settings[source])
        ways: list[tuple[tuple[SwitchPort, ...], bool]] = [((source,), True)]
        while ways:
            slaves, keeps = ways.pop(0)
            slave = slaves[-1]
            if slave in slaves[:-1]:
                stream.lost.append(f"it runs in a circle through {slave}")
                continue
            masters = self._masters(stream, slave, keeps)
            if masters is None:
                return stream
            for master, kept in masters:
                self._onward(stream, slaves, master, keeps and kept, ways)
        return stream

    def _masters(
        self, stream: RoutedStream, slave: SwitchPort, has_header: bool
    ) -> list[tuple[SwitchPort, bool]] | None:
        """Masters that a slave's words go to, each with whether it keeps headers; None to stop a circuit's search."""
        if slave in self.circuits:
            return [(master, True) for master in self.circuits[slave]]
        if slave not in self.rules:
            stream.lost.append(f"nothing is set for slave port {slave}")
            return []
        stream.packet_switched = True
        if stream.packet_id is None:
            return None
        if not has_header:
            stream.lost.append(f"its header is dropped before the packet rules of {slave}")
            return []
        rule = next((rule for rule in self.rules[slave] if rule.matches(stream.packet_id)), None)
        if rule is None:
            if slave != stream.source:
                stream.lost.append(f"no rule of {slave} matches id {stream.packet_id}")
            return []
        arbiter = SwitchArbiter(*slave.tile, rule.arbiter)
        if arbiter not in stream.arbiters:
            stream.arbiters.append(arbiter)
        if not rule.masters:
            stream.lost.append(f"no master port of {slave.tile} listens to msel {rule.msel} of arbiter {rule.arbiter}")
        return [(master, self.keeps[master]) for master in rule.masters]

    def _onward(
        self, stream: RoutedStream, slaves: tuple[SwitchPort, ...], master: SwitchPort, keeps: bool, ways: list
    ) -> None:
        other = neighbour(self.device, *master.tile, master.bundle) if master.bundle in STEPS else None
        if other is not None:
            ways.append(((*slaves, SwitchPort(*other, OPPOSITE[master.bundle], master.channel)), keeps))
            return
        if any(leaf.master == master for leaf in stream.leaves):
            stream.lost.append(f"it reaches {master} twice")
            return
        stream.leaves.append(StreamLeaf(master, slaves, keeps))
        end = self._end(master)
        if end is None:
            stream.lost.append(f"it leaves the array at {master}, which no aie.shim_mux joins to a DMA channel")
        else:
            stream.ends[master] = end

    def _start(self, slave: SwitchPort) -> SwitchPort:
        """Who sends at a slave port."""
        if slave in self.joined_slaves:
            return slave._replace(bundle=PortBundle.DMA, channel=SHIM_MM2S_SLAVES.index(slave.channel))
        return slave

    def _end(self, master: SwitchPort) -> SwitchPort | None:
        """Who takes the words of a master port; None for nobody."""
        if self.device.kind(*master.tile) is not TileKind.SHIM or master.bundle is not PortBundle.SOUTH:
            return master
        if master in self.joined_masters:
            return master._replace(bundle=PortBundle.DMA, channel=SHIM_S2MM_MASTERS.index(master.channel))
        return master if master.channel == SHIM_TOKEN_MASTER else None


def switches_of(device: DeviceOp) -> Switches:
    """The settings that a device in physical form gives by `aie.switchbox` and `aie.shim_mux`."""
    found = Switches(device.device)
    for op in device.body.block.ops:
        if isinstance(op, ShimMuxOp):
            _read_mux(found, op)
        elif isinstance(op, SwitchboxOp):
            _read_switch(found, op)
    return found


def _read_mux(switches: Switches, op: ShimMuxOp) -> None:
    """Ways in and out by the numbers that their ports have in the switch; mlir.verify_switch knows others for none."""
    for connect in op.connects:
        (source, channel), (_, way) = connect.source, connect.destination
        if source is PortBundle.DMA:
            switches.joined_slaves.add(SwitchPort(*op.tile.place, PortBundle.SOUTH, way))
        else:
            switches.joined_masters.add(SwitchPort(*op.tile.place, PortBundle.SOUTH, channel))


def _read_switch(switches: Switches, op: SwitchboxOp) -> None:
    for connect in op.connects:
        slave = SwitchPort(*op.tile.place, *connect.source)
        switches.circuits[slave].append(SwitchPort(*op.tile.place, *connect.destination))
        switches.settings.setdefault(slave, connect)
    listeners: dict[Operation, list[SwitchPort]] = defaultdict(list)
    for masterset in op.mastersets:
        master = SwitchPort(*op.tile.place, *masterset.destination)
        switches.keeps[master] = keeps_header(op, masterset)
        for amsel in masterset.arbiters:
            listeners[amsel].append(master)
    for rules in op.packet_rules:
        slave = SwitchPort(*op.tile.place, *rules.source)
        switches.settings[slave] = rules
        switches.rules[slave] = tuple(
            PacketRule(rule.value, rule.mask, rule.target.arbiter, rule.target.msel,
                       tuple(sorted(listeners[rule.target])))
            for rule in rules.rules
        )  # fmt: skip


def read_routes(device: DeviceOp) -> Routing:
    """Routes that the switches of a device make; RoutingError for lost circuits, and for flows that they do not lead.

    Of packets only those that arrive are listed, and where the text has packet flows of a source, only their ids.
    """
    switches = switches_of(device)
    streams = list(switches.streams())
    for stream in streams:
        if stream.packet_id is None and stream.lost:
            raise routing_error(stream.setting, f"the circuit from {stream.source} is lost: {stream.lost[0]}")
    _check_flows(device, streams)
    named: dict[SwitchPort, set[int]] = defaultdict(set)
    for op in device.body.block.ops:
        if isinstance(op, PacketFlowOp):
            named[slave_of(op.source)].add(op.id)
    listed = (stream for stream in streams if stream.source not in named or stream.packet_id in named[stream.source])
    return routes_of(device, switches, listed)


def routes_of(device: DeviceOp, switches: Switches, streams: Iterable[RoutedStream]) -> Routing:
    """The streams of switches that arrive, as routes of a device, which has all their tiles."""
    fabric, trees = fabric_of(device.device), {}
    tiles = {op.place: op for op in device.body.block.ops if isinstance(op, TileOp)}
    for stream in (stream for stream in streams if stream.ends):
        sinks = dict.fromkeys(stream.ends, stream.setting)
        ends = {master: _endpoint(tiles, end) for master, end in stream.ends.items()}
        net = Net(stream.source, stream.packet_id, _endpoint(tiles, stream.start), sinks=sinks, ends=ends)
        trees[net] = {
            leaf.master: [fabric.index[slave] for slave in leaf.slaves]
            for leaf in stream.leaves
            if leaf.master in stream.ends
        }
    return Routing(fabric, trees, switches.rules)


def _endpoint(tiles: Mapping[tuple[int, int], TileOp], end: SwitchPort) -> Endpoint:
    return Endpoint(tiles[end.tile], end.bundle, end.channel)


def _check_flows(device: DeviceOp, streams: Sequence[RoutedStream]) -> None:
    """Flows that are left in the text must be what the switches do."""
    made = {(s.source, s.packet_id, master) for s in streams for master in s.ends}
    for flow, packet_id, source, sink in flow_ends(device):
        if (slave_of(source), packet_id, master_of(sink)) not in made:
            what = "words" if packet_id is None else f"packets {packet_id}"
            ends = f"from {source} to {sink}"
            raise routing_error(
                flow,
                f"the switchboxes of this device do not lead {what} {ends}; route this flow too, or drop the "
                "switchboxes and let every flow be routed",
            )


def keeps_header(op: SwitchboxOp, masterset: MastersetOp) -> bool:
    """Whether a master port of packets keeps their headers: what the text says, else what mlir-aie takes (MA-t)."""
    if masterset.keep_header is not None:
        return masterset.keep_header
    bundle, _ = masterset.destination
    return not (bundle is PortBundle.DMA or (bundle is PortBundle.SOUTH and op.tile.kind is TileKind.SHIM))
