"""Cheapest way from a net's tree to one more destination (A*)."""

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from bdforge.array.routing.fabric import Fabric
from bdforge.array.routing.nets import SwitchPort

BASE_COST = 1000  # of one wire on an empty array; every other cost is added to it
_NEW_CHANNEL_COST = 12  # prefers to keep the channel number, then the lowest one: streams stay straight
_TURN_COST = 20

END = -1  # successor of a slave port that leads out of the stream network


def find_path(
    fabric: Fabric,
    starts: Iterable[int],
    goal: SwitchPort,
    cost: Callable[[int], int],
    forced: Mapping[int, int],
) -> list[int] | None:
    """Slave ports from one of `starts` to the switch of `goal`, the cheapest; None if there is no way.

    `cost` is what a slave port adds beyond its wire. `forced` gives, for slave ports that packets of this id use
    already, where they must go on: another slave port, or END. Ties are broken by order, so results are repeatable.
    """
    ports, column, row = fabric.ports, goal.column, goal.row
    best: dict[int, int] = {}
    previous: dict[int, int | None] = {}
    heap: list[tuple[int, int, int]] = []

    def push(node: int, spent: int, origin: int | None) -> None:
        if spent < best.get(node, spent + 1):
            best[node], previous[node] = spent, origin
            port = ports[node]
            # Any wire costs BASE_COST at least, so this never overestimates and the first way is the cheapest.
            heappush(heap, (spent + BASE_COST * (abs(port.column - column) + abs(port.row - row)), node, spent))

    for node in starts:
        push(node, 0, None)
    while heap:
        _, node, spent = heappop(heap)
        if spent > best[node]:  # an older entry: the node was reached cheaper since
            continue
        if forced.get(node, END) == END and fabric.connects(node, goal):
            return trunk(previous, node)
        for after in _successors(fabric, node, forced):
            push(after, spent + BASE_COST + _bend(fabric, node, after) + cost(after), node)
    return None


def _successors(fabric: Fabric, node: int, forced: Mapping[int, int]) -> tuple[int, ...]:
    if node not in forced:
        return fabric.onward[node]
    return () if forced[node] == END else (forced[node],)


def _bend(fabric: Fabric, node: int, next_node: int) -> int:
    """Small costs that keep routes straight where it does not matter otherwise."""
    slave, after = fabric.ports[node], fabric.ports[next_node]
    if fabric.feeders[node] is None:
        return after.channel
    turn = _TURN_COST if slave.bundle is not after.bundle else 0
    return turn + after.channel + (_NEW_CHANNEL_COST if slave.channel != after.channel else 0)


def trunk(previous: Mapping[int, int | None], node: int) -> list[int]:
    """The way to a node from the one that has none before it."""
    path: list[int] = []
    current: int | None = node
    while current is not None:
        path.append(current)
        current = previous[current]
    return path[::-1]
