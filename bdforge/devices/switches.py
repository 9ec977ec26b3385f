"""Stream switches: ports of each kind of tile, their physical numbers, and what a switch can join.

A *slave* port takes words into a switch, a *master* port sends them out. The master towards a neighbour is wired to the
neighbour's slave of the opposite side and the same channel. Both generations have the same switches.
Source of counts and legal connections: MA, RT; of port numbers: MA, RT; of packet switching: RT, 020.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.devices.coded_words import PortBundle
from bdforge.devices.limits import TileKind
from bdforge.devices.topology import Device, DeviceError

# The neighbour that each side leads to, as (columns east, rows north), and the side on which one arrives there.
STEPS: Mapping[PortBundle, tuple[int, int]] = {
    PortBundle.SOUTH: (0, -1), PortBundle.WEST: (-1, 0), PortBundle.NORTH: (0, 1), PortBundle.EAST: (1, 0),
}  # fmt: skip
OPPOSITE: Mapping[PortBundle, PortBundle] = {
    PortBundle.SOUTH: PortBundle.NORTH, PortBundle.WEST: PortBundle.EAST,
    PortBundle.NORTH: PortBundle.SOUTH, PortBundle.EAST: PortBundle.WEST,
}  # fmt: skip

# Ports in the order of their physical numbers (MA, RT). South of a shim leads to its DMA, DRAM and the controller.
_CORE, _DMA, _CONTROL, _FIFO = PortBundle.CORE, PortBundle.DMA, PortBundle.TILE_CONTROL, PortBundle.FIFO
_SOUTH, _WEST, _NORTH, _EAST = PortBundle.SOUTH, PortBundle.WEST, PortBundle.NORTH, PortBundle.EAST
_TRACE = PortBundle.TRACE
_MASTERS: Mapping[TileKind, Mapping[PortBundle, int]] = {
    TileKind.CORE: {_CORE: 1, _DMA: 2, _CONTROL: 1, _FIFO: 1, _SOUTH: 4, _WEST: 4, _NORTH: 6, _EAST: 4},
    TileKind.MEMTILE: {_DMA: 6, _CONTROL: 1, _SOUTH: 4, _NORTH: 6},
    TileKind.SHIM: {_CONTROL: 1, _FIFO: 1, _SOUTH: 6, _WEST: 4, _NORTH: 6, _EAST: 4},
}
_SLAVES: Mapping[TileKind, Mapping[PortBundle, int]] = {
    TileKind.CORE: {_CORE: 1, _DMA: 2, _CONTROL: 1, _FIFO: 1, _SOUTH: 6, _WEST: 4, _NORTH: 4, _EAST: 4, _TRACE: 2},
    TileKind.MEMTILE: {_DMA: 6, _CONTROL: 1, _SOUTH: 6, _NORTH: 4, _TRACE: 1},
    TileKind.SHIM: {_CONTROL: 1, _FIFO: 1, _SOUTH: 8, _WEST: 4, _NORTH: 4, _EAST: 4, _TRACE: 1},
}

# Where a shim's DMA channels meet its switch: South slaves of MM2S 0 and 1, South masters of S2MM 0 and 1 (MA, RT).
SHIM_MM2S_SLAVES = (3, 7)
SHIM_S2MM_MASTERS = (2, 3)
SHIM_TOKEN_MASTER = 0  # South master of a shim behind which the controller reads completion tokens (MA, hipscope)

PACKET_RULES_PER_SLAVE = 4  # each matches ids by (id ^ rule id) & mask == 0 (RT, 020)
ARBITERS = 6  # per switch; a master listens to one (MA: aie.amsel names 0 to 5; the registers have 3 bits)
MSELS_PER_ARBITER = 4  # a rule names one, a master any of its arbiter's (RT, 020)
_NEVER_BACK = (_CORE, _CONTROL)  # bundles that no switch sends back to where their words come from (MA)


@dataclass(frozen=True, slots=True)
class Switch:
    """The stream switch of one tile; `masters` and `slaves` give the number of ports of each bundle it has there."""

    kind: TileKind
    masters: Mapping[PortBundle, int]
    slaves: Mapping[PortBundle, int]

    def master_number(self, bundle: PortBundle, channel: int) -> int:
        """Physical number of a master port; ValueError if there is none."""
        return _number(_MASTERS[self.kind], self.masters, bundle, channel, "master")

    def slave_number(self, bundle: PortBundle, channel: int) -> int:
        """Physical number of a slave port; ValueError if there is none."""
        return _number(_SLAVES[self.kind], self.slaves, bundle, channel, "slave")

    def connects(self, slave: PortBundle, slave_channel: int, master: PortBundle, master_channel: int) -> bool:
        """Whether the switch can send words of a slave to a master (MA, `isLegalTileConnection`)."""
        if not 0 <= slave_channel < self.slaves.get(slave, 0) or not 0 <= master_channel < self.masters.get(master, 0):
            return False
        if slave is master and slave in _NEVER_BACK:
            return False
        return _RULES[self.kind](slave, master, slave_channel == master_channel, master_channel)


@cache
def masters_of(kind: TileKind) -> tuple[tuple[PortBundle, int], ...]:
    """Bundle and channel of every master port of a kind of tile, by its physical number."""
    return _ports(_MASTERS[kind])


@cache
def slaves_of(kind: TileKind) -> tuple[tuple[PortBundle, int], ...]:
    """Bundle and channel of every slave port of a kind of tile, by its physical number."""
    return _ports(_SLAVES[kind])


def _ports(counts: Mapping[PortBundle, int]) -> tuple[tuple[PortBundle, int], ...]:
    return tuple((bundle, channel) for bundle, count in counts.items() for channel in range(count))


def _number(numbered: Mapping[PortBundle, int], present: Mapping[PortBundle, int], bundle, channel, what) -> int:
    if not 0 <= channel < present.get(bundle, 0):
        raise ValueError(f"no {what} port {bundle} : {channel}; the switch has {present.get(bundle, 0)} of {bundle}")
    return _ports(numbered).index((bundle, channel))


def _core_tile(slave: PortBundle, master: PortBundle, same_channel: bool, master_channel: int) -> bool:
    if slave is _TRACE:
        return master in (_FIFO, _SOUTH) or (master is _DMA and master_channel == 0)
    if slave is _CONTROL and master is _DMA:
        return False
    return slave is not master or same_channel


def _memtile(slave: PortBundle, master: PortBundle, same_channel: bool, master_channel: int) -> bool:
    if slave is _TRACE:
        return master is _SOUTH or (master is _DMA and master_channel == 5)
    if slave is _CONTROL and master is _DMA:
        return master_channel == 5
    if slave in STEPS and master in STEPS:
        return same_channel
    return slave is not master or same_channel


def _shim(slave: PortBundle, master: PortBundle, same_channel: bool, master_channel: int) -> bool:
    if slave is _TRACE:
        return master in (_FIFO, _SOUTH) or (master in (_WEST, _EAST) and master_channel == 0)
    return slave is not master or slave is _SOUTH or same_channel


_RULES = {TileKind.CORE: _core_tile, TileKind.MEMTILE: _memtile, TileKind.SHIM: _shim}


def neighbour(device: Device, column: int, row: int, side: PortBundle) -> tuple[int, int] | None:
    """The tile that a side of (column, row) leads to, or None at the array's edge and where no streams cross."""
    east, north = STEPS[side]
    other = (column + east, row + north)
    try:
        kinds = device.kind(column, row), device.kind(*other)
    except DeviceError:
        return None
    # The bundle must exist in this kind of tile and its counterpart in the other: memtiles have no east and west.
    return other if _MASTERS[kinds[0]].get(side) and _SLAVES[kinds[1]].get(OPPOSITE[side]) else None


@cache
def switch_of(device: Device, column: int, row: int) -> Switch:
    """The switch of a tile; bundles towards a missing neighbour have no ports (MA, RT). DeviceError outside."""
    kind = device.kind(column, row)

    def present(bundle: PortBundle) -> bool:
        to_outside = kind is TileKind.SHIM and bundle is _SOUTH
        return bundle not in STEPS or to_outside or neighbour(device, column, row, bundle) is not None

    masters = {bundle: count for bundle, count in _MASTERS[kind].items() if present(bundle)}
    slaves = {bundle: count for bundle, count in _SLAVES[kind].items() if present(bundle)}
    return Switch(kind, masters, slaves)
