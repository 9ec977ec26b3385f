"""From flows to nets: what the router has to join, with the faults that a single port shows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Literal, NamedTuple

from xdsl.ir import Operation

from bdforge.array.mlir.array_ops import Endpoint, FlowOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.errors import MlirError
from bdforge.array.mlir.fields import PortName
from bdforge.array.mlir.locations import fault_at, location
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.devices import PortBundle, TileKind
from bdforge.devices.limits import PACKET_IDS
from bdforge.devices.switches import SHIM_MM2S_SLAVES, SHIM_S2MM_MASTERS, STEPS

AnyFlow = FlowOp | PacketFlowOp
Side = Literal["slave", "master"]
_NAMED = 6  # flows that a message lists before it only counts


class RoutingError(MlirError):
    """Flows that cannot be routed; points at the first of them.

    `definite` is False where only the search for routes gave up, so that routes may exist.
    """

    definite = True


def routing_error(op: Operation, message: str, definite: bool = True) -> RoutingError:
    """The error about a flow."""
    error = fault_at(RoutingError, op, message)
    error.definite = definite
    return error


class SwitchPort(NamedTuple):
    """A slave or master port of a tile's switch."""

    column: int
    row: int
    bundle: PortBundle
    channel: int

    @property
    def tile(self) -> tuple[int, int]:
        """Column and row."""
        return self.column, self.row

    @property
    def name(self) -> PortName:
        """Bundle and channel."""
        return self.bundle, self.channel

    def __str__(self) -> str:
        return f"({self.column}, {self.row}) {self.bundle} : {self.channel}"


@dataclass(eq=False, slots=True)
class Net:
    """Words of one slave port, as a circuit or as packets of one id, to all of their master ports."""

    source: SwitchPort
    packet_id: int | None
    start: Endpoint
    priority: bool = False
    sinks: dict[SwitchPort, Operation] = field(default_factory=dict)
    ends: dict[SwitchPort, Endpoint] = field(default_factory=dict)

    @property
    def flows(self) -> list[Operation]:
        """Its operations (flows, or the setting of a switch at its source), in the order of the text."""
        return list(dict.fromkeys(self.sinks.values()))

    def shares_with(self, other: "Net") -> bool:
        """Whether both may use one slave port: packets can, if an id leads to one place."""
        if self.packet_id is None or other.packet_id is None:
            return False
        return self.packet_id != other.packet_id or self.joins(other)

    def joins(self, other: "Net") -> bool:
        """Whether both carry packets of one id to the same single place, so that one may end in the other's route."""
        if self.packet_id is None or self.packet_id != other.packet_id:
            return False
        return len(self.sinks) == 1 and self.sinks.keys() == other.sinks.keys()

    def __str__(self) -> str:
        what = "" if self.packet_id is None else f"packets {self.packet_id} of "
        where = str(next(iter(self.ends.values()))) if len(self.ends) == 1 else f"{len(self.ends)} places"
        lines = sorted({location(flow).line for flow in self.flows})
        span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
        return f"{what}{self.start} to {where} ({span})"


def named(nets: Iterable[Net]) -> str:
    """Nets for a message."""
    texts = [str(net) for net in nets]
    rest = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + rest


def nets_of(device: DeviceOp) -> list[Net]:
    """Every net of a device, circuits first, then packets with priority; RoutingError for ports that cannot be.

    Flows with an open end are left out, and of equal ones all but the first, which `flow_cautions` names if they are
    circuits; those of packets are what aiecc's column overlay makes.
    """
    nets: dict[tuple[SwitchPort, int | None], Net] = {}
    for flow, packet_id, source, sink in flow_ends(device):
        if packet_id is None:
            _check_circuit(flow, source, sink)
        if is_wire(source, "slave") or is_wire(sink, "master"):
            continue
        _check(flow, source, "slave")
        _check(flow, sink, "master")
        start, end = slave_of(source), master_of(sink)
        net = nets.setdefault((start, packet_id), Net(start, packet_id, source))
        net.priority |= isinstance(flow, PacketFlowOp) and flow.priority_route
        if end not in net.sinks:
            net.sinks[end], net.ends[end] = flow, sink
    _check_sharing(nets.values())
    _check_masks(nets.values())
    return sorted(nets.values(), key=lambda net: (net.packet_id is not None, not net.priority))


def is_wire(end: Endpoint, side: Side) -> bool:
    """Whether a flow's end is a port between two switches: mlir-aie takes it, nothing starts or ends there."""
    return end.bundle in STEPS and not _to_outside(end) and end.channel < _ports(end, side).get(end.bundle, 0)


def _to_outside(end: Endpoint) -> bool:
    return end.tile.kind is TileKind.SHIM and end.bundle == PortBundle.SOUTH


def leaves_array(source: Endpoint, sink: Endpoint) -> bool:
    """Whether words other than completion tokens go out of the array at a shim's South."""
    return _to_outside(sink) and source.bundle != PortBundle.TILE_CONTROL


def flow_cautions(device: DeviceOp) -> Iterator[tuple[str, str]]:
    """Name and text of a warning about each flow that mlir-aie takes though all or part of it has no effect."""
    seen: dict[tuple[Endpoint, Endpoint], AnyFlow] = {}
    arriving: dict[Endpoint, PacketFlowOp] = {}
    for flow, packet_id, source, sink in flow_ends(device):
        where = f"{location(flow)}: {flow.name} from {source} to {sink}"
        if is_wire(source, "slave") or is_wire(sink, "master"):
            yield "open-flow", f"{where} has an end between two switches; nothing starts or ends there: it is left out"
        elif leaves_array(source, sink) and source.bundle != PortBundle.TRACE:
            yield "open-flow", f"{where} leaves the array, where nothing here reads the words: it is left out"
        elif packet_id is None:
            first = seen.setdefault((source, sink), flow)
            if first is not flow:
                yield "duplicate-flow", f"{where} says line {location(first).line} again; one of both is enough"
        if isinstance(flow, PacketFlowOp) and not _to_outside(sink):  # the controller gets headers in any case
            before = arriving.get(sink, flow)
            arriving[sink] = flow
            if before.keep_header != flow.keep_header:
                yield (
                    "packet-headers",
                    (
                        f"{where} {'keeps' if flow.keep_header else 'drops'} headers, and the flow of line "
                        f"{location(before).line} to the same port does not; the last flow to a port decides for all"
                    ),
                )


def _ports(end: Endpoint, side: Side) -> Mapping[PortBundle, int]:
    """Number of ports of each bundle on one side of an end's switch."""
    return end.tile.switch.slaves if side == "slave" else end.tile.switch.masters


def flow_ends(device: DeviceOp) -> Iterator[tuple[AnyFlow, int | None, Endpoint, Endpoint]]:
    """Every flow of a device with its id, for packets, its source and each of its destinations."""
    for op in device.walk():
        if isinstance(op, FlowOp):
            yield op, None, op.source, op.destination
        elif isinstance(op, PacketFlowOp):
            if op.id >= PACKET_IDS:
                raise routing_error(op, f"packet id {op.id} is outside 0 to {PACKET_IDS - 1}, what a header holds")
            yield from ((op, op.id, op.source, sink) for sink in op.destinations)


def slave_of(end: Endpoint) -> SwitchPort:
    """The slave port where an endpoint's words enter; a shim's DMA enters from the south (no check)."""
    return _port(end, SHIM_MM2S_SLAVES)


def master_of(end: Endpoint) -> SwitchPort:
    """The master port where words for an endpoint leave; a shim's DMA is to the south (no check)."""
    return _port(end, SHIM_S2MM_MASTERS)


def _port(end: Endpoint, shim_channels: Sequence[int]) -> SwitchPort:
    bundle, channel = end.bundle, end.channel
    if end.tile.kind is TileKind.SHIM and bundle is PortBundle.DMA:
        bundle, channel = PortBundle.SOUTH, shim_channels[channel]
    return SwitchPort(*end.tile.place, bundle, channel)


def _check(flow: AnyFlow, end: Endpoint, side: Side) -> None:
    """RoutingError unless a flow may start (slave) or end (master) at `end`."""
    tile, bundle = end.tile, end.bundle
    name = f"{tile.kind} {tile.place}"
    present = _ports(end, side)
    if side == "slave" and _to_outside(end):
        raise routing_error(flow, f"{name} South : {end.channel} is the way in from outside of the array, where no "
                            "flow starts; data from host memory comes from DMA")  # fmt: skip
    is_shim_dma = tile.kind is TileKind.SHIM and bundle is PortBundle.DMA
    count = tile.limits.channels if is_shim_dma else present.get(bundle, 0)
    if count == 0:
        known = ", ".join(b for b in present if b not in STEPS)
        raise routing_error(flow, f"{name} has no {side} port {bundle}; flows may use {known}")
    if not 0 <= end.channel < count:
        direction = "MM2S" if side == "slave" else "S2MM"
        what = f"{direction} channels" if bundle is PortBundle.DMA else f"{side} ports {bundle}"
        raise routing_error(flow, f"{name} has {what} 0 to {count - 1}, not {end.channel}")


def _check_masks(nets: Iterable[Net]) -> None:
    """RoutingError where packets of one port would follow others' rule as mlir-aie's router makes it.

    It gives all ids that go the same way one rule, whose mask leaves out the bits in which they differ.
    """
    ways: dict[SwitchPort, dict[frozenset[SwitchPort], list[Net]]] = defaultdict(lambda: defaultdict(list))
    for net in nets:
        if net.packet_id is not None:
            ways[net.source][frozenset(net.sinks)].append(net)
    for by_sinks in ways.values():
        for sinks, together in by_sinks.items():
            value, mask = one_rule(net.packet_id or 0 for net in together)
            apart = (net for others, found in by_sinks.items() if others != sinks for net in found)
            for net in (net for net in apart if ((net.packet_id or 0) ^ value) & mask == 0):
                raise routing_error(
                    net.flows[0],
                    f"{net}: mlir-aie makes one rule (mask {mask:#x}, value {value & mask:#x}) for {named(together)}, "
                    f"which packets {net.packet_id} would follow too; choose ids that differ from theirs in other bits",
                )


def one_rule(ids: Iterable[int]) -> tuple[int, int]:
    """Value and mask of the rule that mlir-aie makes for several ids: it looks at the bits that they share."""
    first, *others = ids
    differing = reduce(or_, (other ^ first for other in others), 0)
    return first, ~differing & (PACKET_IDS - 1)


def _check_circuit(flow: AnyFlow, source: Endpoint, sink: Endpoint) -> None:
    """RoutingError for a circuit that mlir-aie does not lead: its shims start none but those of DMAs (and tokens)."""
    kind = source.tile.kind
    if kind is TileKind.SHIM and source.bundle == PortBundle.TRACE:
        text = f"{source}: the trace of a shim leaves it as packets only; write aie.packet_flow"
    elif kind is not TileKind.CORE and is_wire(source, "slave"):
        text = f"{source} is a port between two switches: no flow starts at such a port of a {kind}"
    elif kind is TileKind.SHIM and source.tile is sink.tile and source.bundle == sink.bundle == PortBundle.DMA:
        text = f"{source} to {sink}: no circuit joins the DMA of a shim with itself; lead it by a tile"
    else:
        return
    raise routing_error(flow, text)


def _check_sharing(nets: Iterable[Net]) -> None:
    """A circuit has its first and its last port for itself."""
    users: dict[tuple[str, SwitchPort], list[tuple[Net, Operation, Endpoint]]] = defaultdict(list)
    for net in nets:
        users["start at", net.source].append((net, net.flows[0], net.start))
        for sink, flow in net.sinks.items():
            users["end in", sink].append((net, flow, net.ends[sink]))
    for (verb, _), sharing in users.items():
        if len(sharing) > 1 and any(net.packet_id is None for net, *_ in sharing):
            raise routing_error(
                sharing[1][1],
                f"{len(sharing)} streams {verb} {sharing[0][2]}, which carries 1 circuit, or packets only: "
                f"{named(net for net, *_ in sharing)}; use another channel, or packet flows for all of them",
            )
