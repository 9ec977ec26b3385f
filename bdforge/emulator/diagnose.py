"""Who waits for whom when nothing moves any more."""

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from bdforge.emulator.array import Array, TokenKey
from bdforge.emulator.dma import Channel
from bdforge.emulator.errors import Deadlock
from bdforge.emulator.scheduler import Agent, Wait

LONGEST_REPORT = 24
SEQUENCE = "runtime sequence"


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
    """The cycle of waits that `wait` leads into, or the chain to the party that has nothing to do."""
    sequence = Agent(SEQUENCE)
    sequence.waiting = wait
    graph = nx.DiGraph()
    graph.add_node(sequence)
    pending, seen = [sequence], {sequence}
    while pending:
        agent = pending.pop(0)
        if agent.waiting is None:
            continue
        providers = list(agent.waiting.providers())
        others = [provider for provider in providers if provider is not agent]  # itself only when nobody else could
        for provider in others or providers:
            graph.add_edge(agent, provider)
            if provider not in seen:
                seen.add(provider)
                pending.append(provider)
    return Deadlock(_report(graph, sequence))


def _report(graph: nx.DiGraph, sequence: Agent) -> str:
    try:
        cycle = [edge[0] for edge in nx.find_cycle(graph, sequence)]
        head = "deadlock: these wait for each other in a circle"
    except nx.NetworkXNoCycle:
        cycle = []
        head = "deadlock: nothing can move"
    start = cycle[0] if cycle else _dead_end(graph, sequence)
    path = nx.shortest_path(graph, sequence, start) if start in graph else [sequence]
    way = path[:-1] if cycle else path
    lines = [_line(agent) for agent in way[:LONGEST_REPORT]]
    if not cycle:
        return "\n".join([f"{head}:", *lines])
    ring = [_line(agent) for agent in cycle[:LONGEST_REPORT]]
    led = ["which was reached from:", *lines] if lines else []
    return "\n".join([f"{head}:", *ring, f"  ... and so back to {cycle[0].name}", *led])


def _dead_end(graph: nx.DiGraph, sequence: Agent) -> Agent:
    """The nearest party for which nobody could do anything."""
    if sequence not in graph:
        return sequence
    reached = nx.single_source_shortest_path_length(graph, sequence)
    ends = [agent for agent in reached if graph.out_degree(agent) == 0]
    return min(ends, key=lambda agent: reached[agent])


def _line(agent: Agent) -> str:
    last = f"; last: {', '.join(agent.history)}" if agent.history else ""
    return f"  {agent.name} {agent.waiting.sentence() if agent.waiting else 'has ended'}{last}"
