"""Negotiated routing: nets may first collide; ports that stay contested become dearer until all agree.

The method is PathFinder (McMurchie and Ebeling, FPGA 1995), on slave ports instead of FPGA wires. A few nets that are
always routed one after the other in the same order may push each other round for ever; so when it stalls it starts
again, and routes what collides in an order that is shuffled, by a fixed seed, before every round.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from bdforge.array.routing.fabric import Fabric
from bdforge.array.routing.nets import Net, SwitchPort, named, routing_error
from bdforge.array.routing.packets import PacketSetup, setup_packets
from bdforge.array.routing.path_search import BASE_COST, END, find_path, trunk

_ROUNDS = 100
_STALLED_ROUNDS = 25  # without fewer contested ports than ever before
_ATTEMPTS = 6  # the first in the order of the text; dense random designs that have routes needed 2 at most
_FIRST_PRESSURE = BASE_COST // 2  # cost of colliding with one net in the first round
_MAX_PRESSURE = BASE_COST * 8
_HISTORY = BASE_COST  # added to a contested port after each round
_SHARE_COST = 30  # of a port with packets of other sources and destinations: they would wait for each other
_APART_COST = 3  # of an empty port: packets of one source or to one place rather use a port together

Tree = dict[SwitchPort, list[int]]  # slave ports from the source to the switch of each destination


class Negotiation:
    """The state of all nets on the switches of a device."""

    def __init__(self, fabric: Fabric, nets: Sequence[Net]):
        self.fabric, self.nets = fabric, nets
        self.trees: dict[Net, Tree] = {}
        self.tenants: dict[int, list[Net]] = defaultdict(list)
        self.history: Counter[int] = Counter()
        self.pressure = _FIRST_PRESSURE
        self._same_id: dict[int, list[Net]] = defaultdict(list)
        for net in nets:
            if net.packet_id is not None:
                self._same_id[net.packet_id].append(net)

    def run(self) -> PacketSetup:
        """Route every net, and set up packet switching; RoutingError when that fails."""
        for attempt in range(_ATTEMPTS):
            if (setup := self._attempt(Random(attempt) if attempt else None)) is not None:
                return setup
        raise self._failure()

    def _attempt(self, order: Random | None) -> PacketSetup | None:
        """Negotiate from an empty array, in the order of the text or in random ones; None when it stalls."""
        self._clear()
        fewest, stalled, again = len(self.fabric.ports) + 1, 0, list(self.nets)
        for _ in range(_ROUNDS):
            if order is not None:
                order.shuffle(again)
            for net in again:
                self._remove(net)
                self._place(net)
            contested = self.contested()
            # Rules are worth their search only once no port is contested.
            setup = None if contested else setup_packets(self.fabric, self.trees)
            if setup is not None and not setup.crowded:
                return setup
            blamed = setup.crowded if setup else contested
            stalled = 0 if len(blamed) < fewest else stalled + 1
            fewest = min(fewest, len(blamed))
            if stalled == _STALLED_ROUNDS:
                break
            again = self._raise_prices(contested, setup)
        return None

    def _clear(self) -> None:
        self.trees.clear()
        self.tenants.clear()
        self.history.clear()
        self.pressure = _FIRST_PRESSURE

    def contested(self) -> list[int]:
        """Slave ports with nets that cannot share them, in order."""
        return sorted(node for node, nets in self.tenants.items() if _collide(nets))

    def _raise_prices(self, contested: Sequence[int], setup: PacketSetup | None) -> list[Net]:
        """Make disputed ports dearer; the nets to route again."""
        self.pressure = min(self.pressure * 3 // 2, _MAX_PRESSURE)
        disputed = set(contested) | (setup.branches if setup else set())
        for node in disputed:
            self.history[node] += _HISTORY
        if setup:
            disputed |= set(setup.crowded)
        return [net for net in self.nets if any(node in disputed for path in self.trees[net].values() for node in path)]

    def _remove(self, net: Net) -> None:
        for node in _nodes(self.trees.pop(net, {})):
            self.tenants[node].remove(net)

    def _place(self, net: Net) -> None:
        """Grow a net's tree from its source, nearest destination first."""
        source = self.fabric.index[net.source]
        forced = self._forced(net)
        parents: dict[int, int | None] = {source: None}
        tree: Tree = {}
        for sink in sorted(net.sinks, key=lambda sink: (_distance(net.source, sink), sink)):
            path = find_path(self.fabric, parents, sink, lambda node: self._cost(net, node), forced)
            if path is None:
                raise routing_error(
                    net.sinks[sink],
                    f"no way leads from {net.start} to {net.ends[sink]}, even on an empty array: "
                    "the switches between cannot join these ports; use another channel or bundle",
                )
            for before, after in pairwise(path):
                parents[after] = before
            tree[sink] = trunk(parents, path[0])[:-1] + path
        self.trees[net] = tree
        for node in _nodes(tree):
            self.tenants[node].append(net)

    def _forced(self, net: Net) -> dict[int, int]:
        """Where packets of this id go on from the ports that they use on their way to the same place."""
        steps: dict[int, int] = {}
        for mate in self._same_id.get(net.packet_id, ()) if net.packet_id is not None else ():
            if mate is not net and net.joins(mate):
                for path in self.trees.get(mate, {}).values():
                    steps |= dict(zip(path, [*path[1:], END], strict=True))
        return steps

    def _cost(self, net: Net, node: int) -> int:
        tenants = self.tenants.get(node, ())
        price = self.history[node] + self.pressure * sum(not net.shares_with(other) for other in tenants)
        if net.packet_id is None:
            return price
        if not tenants:
            return price + _APART_COST
        related = any(other.source == net.source or other.sinks.keys() & net.sinks.keys() for other in tenants)
        return price if related else price + _SHARE_COST

    def _failure(self):
        contested = self.contested()
        if contested:
            nets = list(dict.fromkeys(net for node in contested for net in self.tenants[node]))
            ports = [f"{_wire(self.fabric, node)} is wanted by {len(self.tenants[node])}" for node in contested[:4]]
            count = f"{len(contested)} port{'s stay' if len(contested) > 1 else ' stays'}"
            problem = f"{count} contested ({'; '.join(ports)})"
        else:
            setup = setup_packets(self.fabric, self.trees)
            nets = list(dict.fromkeys(net for node in setup.crowded for net in self.tenants[node]))
            problem = "; ".join(setup.problems[:4])
        return routing_error(
            nets[0].flows[0],
            f"no routes were found: {problem}. The search is a heuristic, so routes may exist, but none are known; "
            f"move channels, or join streams as packets: {named(nets)}",
            definite=False,
        )


def _collide(nets: Sequence[Net]) -> bool:
    return any(not net.shares_with(other) for i, net in enumerate(nets) for other in nets[:i])


def _nodes(tree: Tree) -> list[int]:
    return sorted({node for path in tree.values() for node in path})


def _distance(source: SwitchPort, sink: SwitchPort) -> int:
    return abs(source.column - sink.column) + abs(source.row - sink.row)


def _wire(fabric: Fabric, node: int) -> str:
    feeder = fabric.feeders[node]
    return str(feeder if feeder is not None else fabric.ports[node])
