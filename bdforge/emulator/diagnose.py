"""Who waits for whom when nothing moves any more."""

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from bdforge.emulator.array import Array
from bdforge.emulator.dma import Channel
from bdforge.emulator.errors import Deadlock
from bdforge.emulator.lock import LockWait
from bdforge.emulator.scheduler import Agent, Wait
from bdforge.emulator.silicon import TokenKey

LONGEST_REPORT = 24
MOST_OTHERS = 4
SEQUENCE = "runtime sequence"
_DETOUR = 1000  # more than any way that follows only those who are behind


@dataclass(slots=True)
class TokenWait:
    """The runtime sequence waits for a task to end."""

    array: Array
    key: TokenKey
    where: str

    @property
    def channel(self) -> Channel:
        """Who is to issue the token."""
        column, row, direction, index = self.key
        return self.array.tile(column, row).channels[direction, index]

    def possible(self) -> bool:
        """Whether a task in flight will issue a token."""
        return any(task.token for task in self.channel.tasks)

    def sentence(self) -> str:
        doubt = "" if self.possible() else ", but no task there will issue one"
        return f"awaits a token of {self.channel.name}{doubt}{self.where}"

    def providers(self) -> Iterator[Agent]:
        yield self.channel


def deadlock(array: Array, wait: Wait) -> Deadlock:
    """The root of what `wait` waits for: parties that wait only for each other, or one that has nothing to do."""
    sequence = Agent(SEQUENCE)
    sequence.waiting = wait
    return Deadlock(_report(_waits(sequence), sequence))


def quiet(array: Array) -> str:
    """The cores that are blocked when nothing moves any more, one a line; empty if all have ended."""
    blocked = [core for core in array.cores if core.waiting is not None and core.has_program]
    if not blocked:
        return ""
    lines = [_line(core) for core in blocked[:LONGEST_REPORT]]
    more = [f"  ... and {len(blocked) - LONGEST_REPORT} more"] if len(blocked) > LONGEST_REPORT else []
    count = f"{len(blocked)} core{'s' if len(blocked) > 1 else ''}"
    return "\n".join([f"the array went quiet with {count} blocked:", *lines, *more])


def _waits(sequence: Agent) -> nx.DiGraph:
    """Who waits for whom, as far as the sequence depends on it. A way past those who are behind has less weight."""
    graph = nx.DiGraph()
    graph.add_node(sequence)
    pending = [sequence]
    while pending:
        agent = pending.pop(0)
        if agent.waiting is None:
            continue
        providers = list(agent.waiting.providers())
        others = [provider for provider in providers if provider is not agent]  # itself only when nobody else could
        behind = agent.waiting.behind() if isinstance(agent.waiting, LockWait) else providers
        for provider in others or providers:
            if provider not in graph:
                pending.append(provider)
            graph.add_edge(agent, provider, weight=1 if provider in behind else _DETOUR)
    return graph


def _report(graph: nx.DiGraph, sequence: Agent) -> str:
    """The nearest root: a circle of waits that no way leads out of, or a party that waits for nobody."""
    ways = nx.single_source_dijkstra_path(graph, sequence)
    distances = nx.single_source_dijkstra_path_length(graph, sequence)
    whole = nx.condensation(graph)
    roots = [whole.nodes[root]["members"] for root in whole if not whole.out_degree(root)]
    entries = sorted((min(root, key=distances.__getitem__) for root in roots), key=distances.__getitem__)
    first, *others = entries
    way, circle = ways[first], _circle(graph, first)
    lines = [_line(agent) for agent in way[: -1 if circle else None][:LONGEST_REPORT]]
    also = [_line(agent) for agent in others[:MOST_OTHERS]]
    also = ["stuck as well, but waited for less directly:", *also] if also else []
    if not circle:
        return "\n".join(["deadlock: nothing can move:", *lines, *also])
    ring = [_line(agent) for agent in circle[:LONGEST_REPORT]]
    led = ["which was reached from:", *lines] if lines else []
    head = "deadlock: these wait for each other in a circle:"
    return "\n".join([head, *ring, f"  ... and so back to {circle[0].name}", *led, *also])


def _circle(graph: nx.DiGraph, start: Agent) -> list[Agent]:
    """The shortest way from a party back to itself; empty where there is none."""
    back = []
    for following in graph.successors(start):
        if nx.has_path(graph, following, start):
            back.append(nx.dijkstra_path(graph, following, start))
    return [start, *min(back, key=len)[:-1]] if back else []


def _line(agent: Agent) -> str:
    last = f"; last: {', '.join(agent.history)}" if agent.history else ""
    return f"  {agent.name} {agent.waiting.sentence() if agent.waiting else 'has ended'}{last}"
