"""Routes and what they use."""

from collections import Counter
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
    """The way of words from a source to one destination, a connection for each switch on it."""

    connections: tuple[Connection, ...]

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
            net: {sink: _path(fabric, sink, nodes) for sink, nodes in tree.items()} for net, tree in trees.items()
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
    def _joined(self) -> list[Connection]:
        """What all nets join."""
        return [connection for net in self.nets for connection in self.connections(net)]

    @cached_property
    def busiest(self) -> SwitchUse | None:
        """The switch with the largest share of its ports in use, the first of equal ones; None without flows."""
        slaves = Counter(slave.tile for slave in {slave for slave, _ in self._joined})
        masters = Counter(master.tile for master in {master for _, master in self._joined})
        uses = []
        for tile in sorted(masters):
            switch = switch_of(self.device, *tile)
            ports = sum(switch.masters.values()), sum(switch.slaves.values())
            uses.append(SwitchUse(*tile, masters[tile], ports[0], slaves[tile], ports[1]))
        return max(uses, key=lambda use: use.share, default=None)

    @cached_property
    def links(self) -> list[LinkUse]:
        """Use of the wires between neighbours, where there is any, by column, row and side."""
        masters = {master for _, master in self._joined if master.bundle in STEPS}
        used = Counter(port[:3] for port in masters if neighbour(self.device, *port.tile, port.bundle))
        return [LinkUse(*key, used[key], wires(self.device, *key)) for key in sorted(used)]


def _path(fabric: Fabric, sink: SwitchPort, nodes: Sequence[int]) -> Path:
    masters = [master for node in nodes[1:] if (master := fabric.feeders[node]) is not None]
    slaves = [fabric.ports[node] for node in nodes]
    joined = zip(slaves, [*masters, sink], strict=True)
    return Path(tuple(Connection(slave, master) for slave, master in joined))
