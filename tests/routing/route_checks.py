"""An independent judge of routes: streams followed step by step over the tables of `support.switch_tables`."""

from collections import defaultdict

from route_designs import flows_only

from bdforge.array.mlir.array_ops import FlowOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.routing import Routing, route
from support.switch_tables import legal

ACROSS = {"North": (0, 1, "South"), "South": (0, -1, "North"), "East": (1, 0, "West"), "West": (-1, 0, "East")}


def _port(tile, bundle: str, channel: int, shim_channels: tuple[int, int]):
    if tile.row == 0 and bundle == "DMA":
        bundle, channel = "South", shim_channels[channel]
    return tile.column, tile.row, bundle, channel


def flow_ends(flow):
    """(source, destinations) of a flow as plain (column, row, bundle, channel)."""
    sinks = [flow.destination] if isinstance(flow, FlowOp) else flow.destinations
    source = _port(flow.source.tile, str(flow.source.bundle), flow.source.channel, (3, 7))
    return source, [_port(sink.tile, str(sink.bundle), sink.channel, (2, 3)) for sink in sinks]


def routed(device: str, *flows: str) -> Routing:
    """Routes of a device with every tile and these flows, judged."""
    design = flows_only(device, *flows)
    routing = route(design)
    check_routes(design, routing)
    return routing


def check_routes(device: DeviceOp, routing: Routing) -> None:
    """Every flow arrives over legal connections and existing wires; no circuit shares a port."""
    slaves: dict[tuple, set] = defaultdict(set)
    feeders: dict[tuple, set] = defaultdict(set)
    columns = device.device.columns
    flows = [op for op in device.walk() if isinstance(op, FlowOp | PacketFlowOp)]
    for flow in flows:
        source, sinks = flow_ends(flow)
        user = (source, flow.id if isinstance(flow, PacketFlowOp) else None)
        for number, sink in enumerate(sinks):
            path = routing.path(flow, number)
            at = source
            for slave, master in path.connections:
                assert tuple(slave) == at
                assert slave.tile == master.tile
                assert 0 <= slave.column < columns
                assert legal(slave.row, (str(slave.bundle), slave.channel), (str(master.bundle), master.channel))
                slaves[at].add(user)
                feeders[tuple(master)].add((user, at))
                if tuple(master) != sink:
                    east, north, side = ACROSS[str(master.bundle)]
                    at = (master.column + east, master.row + north, side, master.channel)
            assert tuple(path.connections[-1].master) == sink
    for users in slaves.values():
        assert len(users) == 1 or all(packet is not None for _, packet in users)
    for joined in feeders.values():
        circuits = {entry for entry in joined if entry[0][1] is None}
        assert len(joined) == 1 or not circuits
    check_packets(flows, routing)


def check_packets(flows, routing: Routing) -> None:
    """Follow a packet of every id by the rules alone: it reaches exactly its destinations."""
    for rules in routing.rules.values():
        assert len(rules) <= 4
        assert all(rule.arbiter < 6 and rule.msel < 4 for rule in rules)
    listeners: dict[tuple, set] = defaultdict(set)
    for rules in routing.rules.values():
        for rule in rules:
            for master in rule.masters:
                listeners[master].add(rule.arbiter)
    assert all(len(arbiters) == 1 for arbiters in listeners.values())
    wanted: dict[tuple, set] = defaultdict(set)
    for flow in flows:
        if isinstance(flow, PacketFlowOp):
            source, sinks = flow_ends(flow)
            wanted[source, flow.id] |= set(sinks)
    rules = {tuple(port): found for port, found in routing.rules.items()}
    for (source, packet_id), sinks in wanted.items():
        reached, at_ports = set(), [source]
        while at_ports:
            port = at_ports.pop()
            matching = {rule[2:] for rule in rules[port] if (packet_id ^ rule.id) & rule.mask == 0}
            assert len(matching) == 1
            for master in matching.pop()[2]:
                if tuple(master) in sinks:
                    reached.add(tuple(master))
                    continue
                east, north, side = ACROSS[str(master.bundle)]
                at_ports.append((master.column + east, master.row + north, side, master.channel))
        assert reached == sinks
