"""Packet switching along given routes: rules of slave ports, arbiters and msels of each switch.

A rule sends every id with `(id ^ rule.id) & rule.mask == 0` to one msel of one arbiter; the masters that listen to it
send the packet on. All masters of one arbiter wait for each other, so masters are joined only where an id needs both.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from bdforge.array.routing.fabric import Fabric
from bdforge.array.routing.nets import SwitchPort
from bdforge.devices.limits import PACKET_IDS
from bdforge.devices.switches import ARBITERS, MSELS_PER_ARBITER, PACKET_RULES_PER_SLAVE

if TYPE_CHECKING:
    from bdforge.array.routing.negotiate import Net, Tree

Masters = frozenset[SwitchPort]
_ID_BITS = (PACKET_IDS - 1).bit_length()


class PacketRule(NamedTuple):
    """Ids that match go to the masters of one msel of one arbiter."""

    id: int
    mask: int
    arbiter: int
    msel: int
    masters: tuple[SwitchPort, ...]

    def matches(self, packet_id: int) -> bool:
        """Whether packets of this id take the rule."""
        return (packet_id ^ self.id) & self.mask == 0


@dataclass(slots=True)
class PacketSetup:
    """Rules by slave port; `crowded` names ports that need more than the switch has, `problems` says it in words."""

    rules: dict[SwitchPort, tuple[PacketRule, ...]] = field(default_factory=dict)
    crowded: list[int] = field(default_factory=list)
    branches: set[int] = field(default_factory=set)  # next ports of crowded ones, beyond their main way on
    problems: list[str] = field(default_factory=list)


def setup_packets(fabric: Fabric, trees: "Mapping[Net, Tree]") -> PacketSetup:
    """Rules, arbiters and msels for the packet nets among `trees`."""
    setup = PacketSetup()
    ways = _ways(fabric, trees)
    urgent = _urgent(fabric, trees)
    tiles: dict[tuple[int, int], set[Masters]] = defaultdict(set)
    for node, by_id in ways.items():
        tiles[fabric.ports[node].tile] |= set(by_id.values())
    msels = {tile: _assign(sets, urgent) for tile, sets in tiles.items()}
    for node, by_id in sorted(ways.items()):
        slave = fabric.ports[node]
        assigned = msels[slave.tile]
        rules = _rules(by_id)
        if assigned is None or len(rules) > PACKET_RULES_PER_SLAVE:
            setup.crowded.append(node)
            setup.branches |= _branches(fabric, by_id.values())
            setup.problems.append(_problem(slave, len(rules), len(tiles[slave.tile]), assigned is None))
        else:
            setup.rules[slave] = tuple(
                PacketRule(packet_id, mask, *assigned[masters], tuple(sorted(masters)))
                for packet_id, mask, masters in rules
            )
    return setup


def _problem(slave: SwitchPort, rules: int, sets: int, no_arbiter: bool) -> str:
    if no_arbiter:
        return (f"the switch of ({slave.column}, {slave.row}) would send packets to {sets} sets of masters, more than "
                f"{ARBITERS} arbiters with {MSELS_PER_ARBITER} msels each separate")  # fmt: skip
    return f"{slave} would need {rules} packet rules and has {PACKET_RULES_PER_SLAVE}"


def _ways(fabric: Fabric, trees: "Mapping[Net, Tree]") -> dict[int, dict[int, Masters]]:
    """Of every slave port with packets: the masters that each id goes to."""
    ways: dict[int, dict[int, set[SwitchPort]]] = defaultdict(lambda: defaultdict(set))
    for net, tree in trees.items():
        if net.packet_id is None:
            continue
        for sink, path in tree.items():
            masters = [fabric.feeders[node] for node in path[1:]] + [sink]
            for node, master in zip(path, masters, strict=True):
                assert master is not None
                ways[node][net.packet_id].add(master)
    return {node: {i: frozenset(masters) for i, masters in by_id.items()} for node, by_id in ways.items()}


def _urgent(fabric: Fabric, trees: "Mapping[Net, Tree]") -> frozenset[SwitchPort]:
    """Masters that packets with priority leave a switch by."""
    found: set[SwitchPort] = set()
    for net, tree in trees.items():
        if net.packet_id is not None and net.priority:
            for sink, path in tree.items():
                found |= {master for node in path[1:] if (master := fabric.feeders[node]) is not None} | {sink}
    return frozenset(found)


def _branches(fabric: Fabric, sets: Iterable[Masters]) -> set[int]:
    """Slave ports behind all masters but the one that most ids use."""
    uses: dict[SwitchPort, int] = defaultdict(int)
    for masters in sets:
        for master in masters:
            uses[master] += 1
    rare = sorted(uses, key=lambda master: (-uses[master], master))[1:]
    return {node for node, feeder in enumerate(fabric.feeders) if feeder in rare}


def _rules(by_id: Mapping[int, Masters]) -> list[tuple[int, int, Masters]]:
    """Few (id, mask, masters) that send every id its way; one rule never matches an id of another way."""
    rules: list[tuple[int, int, Masters]] = []
    for masters in sorted(set(by_id.values()), key=sorted):
        own = {i for i, way in by_id.items() if way == masters}
        others = by_id.keys() - own
        cubes = [(matched, cube) for cube, matched in _CUBES.items() if not matched & others]
        while own:
            # Ties go by mask and id, so that rules are the same in every run.
            matched, (packet_id, mask) = max(cubes, key=lambda item: (len(item[0] & own), item[1][1], -item[1][0]))
            rules.append((packet_id, mask, masters))
            own -= matched
    return rules


def _cubes() -> dict[tuple[int, int], frozenset[int]]:
    found = {}
    for bits in product((0, 1, None), repeat=_ID_BITS):
        mask = sum(1 << place for place, bit in enumerate(bits) if bit is not None)
        packet_id = sum(1 << place for place, bit in enumerate(bits) if bit)
        found[packet_id, mask] = frozenset(i for i in range(PACKET_IDS) if (i ^ packet_id) & mask == 0)
    return found


_CUBES = _cubes()


def _assign(sets: set[Masters], urgent: frozenset[SwitchPort]) -> dict[Masters, tuple[int, int]] | None:
    """(arbiter, msel) for each set of masters, sets with a common master on one arbiter; None if there are too few.

    Each group gets an arbiter of its own as long as there is one: those with priority from the last downwards, last
    msel first, others from arbiter and msel 0 on, as mlir-aie's router does. Where that leaves a large group without a
    place they are packed, largest first, which finds a place for all if there is one.
    """
    largest = sorted(_joined(sets), key=len, reverse=True)
    spread = _placed(sorted(largest, key=lambda group: not _any(group, urgent)), urgent, max)
    return _placed(largest, urgent, min) if spread is None else spread


def _placed(
    groups: Sequence[list[Masters]], urgent: frozenset[SwitchPort], choice: Callable[..., int]
) -> dict[Masters, tuple[int, int]] | None:
    """Arbiters and msels of groups in order, each where `choice` of the numbers of free msels has it."""
    found: dict[Masters, tuple[int, int]] = {}
    free = [list(range(MSELS_PER_ARBITER)) for _ in range(ARBITERS)]
    for group in groups:
        first = _any(group, urgent)
        order = reversed(range(ARBITERS)) if first else range(ARBITERS)
        fitting = [arbiter for arbiter in order if len(group) <= len(free[arbiter])]
        if not fitting:
            return None
        arbiter = choice(fitting, key=lambda arbiter: len(free[arbiter]))
        for masters in group:
            found[masters] = arbiter, free[arbiter].pop(-1 if first else 0)
    return found


def _any(group: Sequence[Masters], urgent: frozenset[SwitchPort]) -> bool:
    return any(masters & urgent for masters in group)


def _joined(sets: set[Masters]) -> Sequence[list[Masters]]:
    """Groups of sets that have masters in common, directly or by way of others."""
    groups: list[list[Masters]] = []
    for masters in sorted(sets, key=sorted):
        touching = [group for group in groups if any(masters & other for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([*(other for group in touching for other in group), masters])
    return groups
