"""The switches of a device as a graph of slave ports."""

from functools import cache

from bdforge.array.routing.nets import SwitchPort
from bdforge.devices import Device, PortBundle, neighbour, switch_of
from bdforge.devices.switches import OPPOSITE, STEPS


class Fabric:
    """Slave ports as nodes 0, 1, ...; an edge takes words through a switch and over a wire to the next slave.

    `ports[node]` is the slave port, `feeders[node]` the neighbour's master that is wired to it (None for ports that
    take words from inside a tile), `onward[node]` the nodes that one switch away.
    """

    def __init__(self, device: Device):
        self.device = device
        tiles = [(column, row) for column in range(device.columns) for row in range(device.rows)]
        self.ports = [
            SwitchPort(*tile, bundle, channel)
            for tile in tiles
            for bundle, count in switch_of(device, *tile).slaves.items()
            for channel in range(count)
        ]
        self.index = {port: node for node, port in enumerate(self.ports)}
        self.feeders = [self._feeder(port) for port in self.ports]
        self._wires: dict[tuple[int, int], list[tuple[SwitchPort, int]]] = {tile: [] for tile in tiles}
        for node, master in enumerate(self.feeders):
            if master is not None:
                self._wires[master.tile].append((master, node))
        self.onward = [self._onward(port) for port in self.ports]

    def connects(self, node: int, master: SwitchPort) -> bool:
        """Whether the switch at a slave port can send its words to a master port of the same tile."""
        slave = self.ports[node]
        if slave.tile != master.tile:
            return False
        switch = switch_of(self.device, *slave.tile)
        return switch.connects(slave.bundle, slave.channel, master.bundle, master.channel)

    def _feeder(self, slave: SwitchPort) -> SwitchPort | None:
        if slave.bundle not in STEPS:
            return None
        other = neighbour(self.device, *slave.tile, slave.bundle)
        return None if other is None else SwitchPort(*other, OPPOSITE[slave.bundle], slave.channel)

    def _onward(self, slave: SwitchPort) -> tuple[int, ...]:
        switch = switch_of(self.device, *slave.tile)
        return tuple(
            node
            for master, node in self._wires[slave.tile]
            if switch.connects(slave.bundle, slave.channel, master.bundle, master.channel)
        )


@cache
def fabric_of(device: Device) -> Fabric:
    """The graph of a device, built once."""
    return Fabric(device)


def wires(device: Device, column: int, row: int, side: PortBundle) -> int:
    """Streams that can leave a tile towards one side."""
    return switch_of(device, column, row).masters.get(side, 0)
