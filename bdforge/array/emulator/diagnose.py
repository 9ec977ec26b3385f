"""Who waits when nothing moves any more; `waits` says for whom."""

from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.scheduler import Agent
from bdforge.array.emulator.silicon_rules import TokenKey

LONGEST_REPORT = 24


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
    """What a party does last and waits for."""
    last = f"; last: {', '.join(agent.history)}" if agent.history else ""
    return f"  {agent.name} {agent.waiting.sentence() if agent.waiting else 'has ended'}{last}"
