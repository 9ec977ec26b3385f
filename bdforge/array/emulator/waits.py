"""Who waits for whom when nothing moves any more, and the root of it.

Imported when there is a deadlock: networkx takes a fifth of the time in which a command starts.
"""

import networkx as nx

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.diagnose import LONGEST_REPORT, line
from bdforge.array.emulator.errors import Deadlock
from bdforge.array.emulator.lock import LockWait
from bdforge.array.emulator.scheduler import Agent, Wait

MOST_OTHERS = 4
SEQUENCE = "runtime sequence"
_DETOUR = 1000  # more than any way that follows only those who are behind


def deadlock(array: Array, wait: Wait) -> Deadlock:
    """The root of what `wait` waits for: parties that wait only for each other, or one that has nothing to do."""
    sequence = Agent(SEQUENCE)
    sequence.waiting = wait
    return Deadlock(_report(_waits(sequence), sequence))


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
    lines = [line(agent) for agent in way[: -1 if circle else None][:LONGEST_REPORT]]
    also = [line(agent) for agent in others[:MOST_OTHERS]]
    also = ["stuck as well, but waited for less directly:", *also] if also else []
    if not circle:
        return "\n".join(["deadlock: nothing can move:", *lines, *also])
    ring = [line(agent) for agent in circle[:LONGEST_REPORT]]
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
