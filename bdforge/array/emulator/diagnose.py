"""Who waits for whom when nothing moves any more, and the root of it."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.errors import Deadlock
from bdforge.array.emulator.lock import LockWait
from bdforge.array.emulator.scheduler import Agent, WaitReason
from bdforge.array.emulator.silicon_rules import TokenKey

LONGEST_REPORT = 24
MOST_OTHERS = 4
SEQUENCE = "runtime sequence"
_DETOUR = 1000  # more than any way that follows only those who are behind

Waits = Mapping[Agent, Mapping[Agent, int]]
"""Whom each party waits for, with the length of the step: a way past those who are behind is the shorter one."""


@dataclass(slots=True)
class AwaitedToken:
    """The runtime sequence waits for a task to end."""

    array: Array
    key: TokenKey
    where: str

    @property
    def channel(self) -> DmaChannel:
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


def quiet(array: Array) -> str:
    """The cores that are blocked when nothing moves any more, one a line; empty if all have ended."""
    blocked = [core for core in array.cores if core.waiting is not None and core.has_program]
    if not blocked:
        return ""
    lines = [line(core) for core in blocked[:LONGEST_REPORT]]
    more = [f"  ... and {len(blocked) - LONGEST_REPORT} more"] if len(blocked) > LONGEST_REPORT else []
    count = f"{len(blocked)} core{'s' if len(blocked) > 1 else ''}"
    return "\n".join([f"the array went quiet with {count} blocked:", *lines, *more])


def line(agent: Agent) -> str:
    last = f"; last: {', '.join(agent.history)}" if agent.history else ""
    return f"  {agent.name} {agent.waiting.sentence() if agent.waiting else 'has ended'}{last}"


def deadlock(wait: WaitReason) -> Deadlock:
    """The root of what `wait` waits for: parties that wait only for each other, or one that has nothing to do."""
    sequence = Agent(SEQUENCE)
    sequence.waiting = wait
    return Deadlock(_report(_waits(sequence), sequence))


def _waits(sequence: Agent) -> Waits:
    """Who waits for whom, as far as the sequence depends on it."""
    found: dict[Agent, dict[Agent, int]] = {sequence: {}}
    pending = [sequence]
    while pending:
        agent = pending.pop(0)
        if agent.waiting is None:
            continue
        providers = list(agent.waiting.providers())
        others = [provider for provider in providers if provider is not agent]  # itself only when nobody else could
        behind = agent.waiting.behind() if isinstance(agent.waiting, LockWait) else providers
        for provider in others or providers:
            if provider not in found:
                found[provider] = {}
                pending.append(provider)
            found[agent][provider] = 1 if provider in behind else _DETOUR
    return found


def _report(waits: Waits, sequence: Agent) -> str:
    """The nearest root: a circle of waits that no way leads out of, or a party that waits for nobody."""
    ways = _shortest_ways(waits, sequence)
    first, *others = _roots(waits, ways)
    way, circle = ways[first], _circle(waits, first)
    lines = [line(agent) for agent in way[: -1 if circle else None][:LONGEST_REPORT]]
    also = [line(agent) for agent in others[:MOST_OTHERS]]
    also = ["stuck as well, but waited for less directly:", *also] if also else []
    if not circle:
        return "\n".join(["deadlock: nothing can move:", *lines, *also])
    ring = [line(agent) for agent in circle[:LONGEST_REPORT]]
    led = ["which was reached from:", *lines] if lines else []
    head = "deadlock: these wait for each other in a circle:"
    return "\n".join([head, *ring, f"  ... and so back to {circle[0].name}", *led, *also])


def _shortest_ways(waits: Waits, start: Agent) -> dict[Agent, list[Agent]]:
    """The shortest way to each party that `start` depends on, both ends with it, nearest first (Dijkstra)."""
    found: dict[Agent, list[Agent]] = {}
    order = count()  # so that equal lengths never compare parties
    heap = [(0, next(order), [start])]
    while heap:
        length, _, way = heapq.heappop(heap)
        if way[-1] in found:
            continue
        found[way[-1]] = way
        for following, step in waits[way[-1]].items():
            heapq.heappush(heap, (length + step, next(order), [*way, following]))
    return found


def _roots(waits: Waits, ways: Mapping[Agent, list[Agent]]) -> list[Agent]:
    """The nearest party of each group that waits for nobody outside of it, the nearest group first.

    Who is in such a group depends on all of it, as does everybody whom it depends on: none of these on fewer.
    """
    depends = {agent: _depends(waits, agent) for agent in ways}
    groups: dict[frozenset[Agent], Agent] = {}
    for agent, group in depends.items():
        if all(len(depends[other]) == len(group) for other in group):
            groups.setdefault(group, agent)
    return list(groups.values())


def _depends(waits: Waits, agent: Agent) -> frozenset[Agent]:
    found, pending = {agent}, [agent]
    while pending:
        more = waits[pending.pop()].keys() - found
        found |= more
        pending += more
    return frozenset(found)


def _circle(waits: Waits, start: Agent) -> list[Agent]:
    """The shortest way from a party back to itself; empty where there is none."""
    ways = (_shortest_ways(waits, following).get(start) for following in waits[start])
    back = [way for way in ways if way]
    return [start, *min(back, key=len)[:-1]] if back else []
