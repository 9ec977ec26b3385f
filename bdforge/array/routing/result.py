"""Routes and what they use."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bdforge.array.mlir.array_ops import FlowOp
from bdforge.array.routing.fabric import Fabric, wires
from bdforge.array.routing.nets import AnyFlow, Net, SwitchPort, master_of, slave_of
from bdforge.devices import Device, PortBundle, neighbour, switch_of
from bdforge.devices.switches import STEPS


class Connection(NamedTuple):
    """A slave port joined to a master port inside one switch."""

    slave: SwitchPort
    master: SwitchPort


@dataclass(frozen=True, slots=True)
class Path:
    """The way of words from a source to one destination."""

    source: SwitchPort
    destination: SwitchPort
    connections: tuple[Connection, ...]

    @property
    def switches(self) -> int:
        """Switches on the way, both ends included."""
        return len(self.connections)

    @property
    def hops(self) -> int:
        """Borders between tiles on the way."""
        return len(self.connections) - 1


class SwitchUse(NamedTuple):
    """Ports of one switch that routes use, of those it has."""

    column: int
    row: int
    masters: int
    masters_available: int
    slaves: int
    slaves_available: int

    @property
    def share(self) -> float:
        """Part of all ports that is used."""
        return (self.masters + self.slaves) / (self.masters_available + self.slaves_available)


class LinkUse(NamedTuple):
    """Wires from one tile to a neighbour that routes use, of those there are."""

    column: int
    row: int
    side: PortBundle
    used: int
    available: int


class Routing:
    """Routes of every flow of a device.

    `rules` gives the packet rules of each slave port with packets.
    """

    def __init__(self, fabric: Fabric, trees, rules):
        self.device: Device = fabric.device
        self.rules = rules
        self.nets: list[Net] = list(trees)
        self._paths: dict[Net, dict[SwitchPort, Path]] = {
            net: {sink: _path(fabric, net, sink, nodes) for sink, nodes in tree.items()} for net, tree in trees.items()
        }
        self._nets = {(net.source, net.packet_id): net for net in self.nets}

    def path(self, flow: AnyFlow, destination: int = 0) -> Path:
        """Way of a flow; of a packet flow to its `destination`th place, in the order of the text."""
        sinks = [flow.destination] if isinstance(flow, FlowOp) else flow.destinations
        packet_id = None if isinstance(flow, FlowOp) else flow.id
        net = self._nets[slave_of(flow.source), packet_id]
        return self._paths[net][master_of(sinks[destination])]

    def paths(self, net: Net) -> Sequence[Path]:
        """Ways of a net, in the order of its destinations in the text."""
        return [self._paths[net][sink] for sink in net.sinks]

    def connections(self, net: Net) -> list[Connection]:
        """What a net joins, each once, from the source on."""
        return list(dict.fromkeys(c for path in self.paths(net) for c in path.connections))

    @cached_property
    def switches(self) -> list[SwitchUse]:
        """Use of every switch with a route, by column and row."""
        masters: dict[tuple[int, int], set[SwitchPort]] = defaultdict(set)
        slaves: dict[tuple[int, int], set[SwitchPort]] = defaultdict(set)
        for net in self.nets:
            for slave, master in self.connections(net):
                slaves[slave.tile].add(slave)
                masters[master.tile].add(master)
        found = []
        for tile in sorted(masters):
            switch = switch_of(self.device, *tile)
            found.append(SwitchUse(*tile, len(masters[tile]), sum(switch.masters.values()),
                                   len(slaves[tile]), sum(switch.slaves.values())))  # fmt: skip
        return found

    @property
    def busiest(self) -> SwitchUse | None:
        """The switch with the largest share of its ports in use, the first of equal ones; None without flows."""
        return max(self.switches, key=lambda use: use.share, default=None)

    @cached_property
    def links(self) -> list[LinkUse]:
        """Use of the wires between neighbours, where there is any, by column, row and side."""
        used: dict[tuple[int, int, PortBundle], set[SwitchPort]] = defaultdict(set)
        for net in self.nets:
            for _, master in self.connections(net):
                if master.bundle in STEPS and neighbour(self.device, *master.tile, master.bundle):
                    used[master.column, master.row, master.bundle].add(master)
        return [LinkUse(*key, len(used[key]), wires(self.device, *key)) for key in sorted(used)]


def _path(fabric: Fabric, net: Net, sink: SwitchPort, nodes: Sequence[int]) -> Path:
    masters = [master for node in nodes[1:] if (master := fabric.feeders[node]) is not None]
    slaves = [fabric.ports[node] for node in nodes]
    joined = zip(slaves, [*masters, sink], strict=True)
    return Path(net.source, sink, tuple(Connection(slave, master) for slave, master in joined))
