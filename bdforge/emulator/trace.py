"""What every party of a run did, in its own order and without time: what timed emulation replays.

A run leaves one list of actions for each party. Nothing here changes a value: a party notes what it is about to do.
Actions are tuples that start with a verb:

| verb | then | by |
|---|---|---|
| `acquire` | lock, value, whether equal | cores, channels |
| `release`, `set` | lock, amount or value | whoever releases or writes a lock |
| `send` | words, sinks, access to DRAM | whoever has a stream's source |
| `receive` | words, access to DRAM | whoever has a stream's sink |
| `take`, `give` | sinks | sources of packets: the sinks' arbiters |
| `task`, `end task` | for the end: whether a token is issued | channels |
| `push` | channel, BDs of the task | whoever writes its queue |
| `reset` | channel | whoever writes its control register |
| `write bd` | column, row, BD | whoever writes it |
| `was reset` | | channels: where they go on after a reset |
| `kernel` | name, elements of each array, bytes of all | cores |
| `work` | operations of the core program | cores |
| `run` | cycles of machine code, those it waits for its own banks, accesses by bank, cycles by name | cores |
| `touches` | words of the next transfer by bank | channels beside machine code |
| `put`, `get` | for `get`: the core it comes from | cores with cascades |
| `operation` | kind, words | controller |
| `token` | channel | controller |
| `poll lock`, `poll tasks` | lock or channel, and the values or numbers of tasks that it waits for | controller |
| `signal`, `await` | number of a signal | whoever the controller polls for otherwise; controller |
| `stop`, `start`, `dispatch` | for `start`: which configuration | controller |

Parties and locks are numbers: places in `Trace.parties` and `Trace.locks`. Accesses are None where no DRAM is behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bdforge.devices.limits import GRANULE_BYTES
from bdforge.emulator.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from bdforge.devices import Device
    from bdforge.emulator.bd import Order
    from bdforge.emulator.scheduler import Agent
    from bdforge.emulator.stream import Stream

Action = tuple[Any, ...]
CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Access:
    """How a BD goes through DRAM: its mean contiguous run, the usual distance of run starts, and where it begins.

    Bytes; `start` is the host's address, `stride_bytes` 0 where there is one run only.
    """

    run_bytes: float
    stride_bytes: int = 0
    start: int = 0

    @property
    def row(self) -> tuple[int, int]:
        """The row of a matrix of such a stride in which it begins: other runs of that row lie beside it."""
        return self.stride_bytes, self.start // self.stride_bytes if self.stride_bytes else self.start


@dataclass(slots=True, eq=False)
class Party:
    """One party: a channel, a core, a control port or the controller, as one configuration has it.

    `work` counts operations of a core program since the last action.
    """

    index: int
    name: str
    kind: str
    configuration: int
    place: tuple[int, int] = (0, 0)
    tile_kind: str = ""
    direction: str = ""
    actions: list[Action] = field(default_factory=list)
    work: int = 0

    def add(self, *action: Any) -> None:
        """Note an action."""
        if self.work:
            self.actions.append(("work", self.work))
            self.work = 0
        self.actions.append(action)


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole run, ready to be replayed any number of times (`bdforge.emulator.timed.replay`)."""

    device: "Device"
    parties: tuple[Party, ...]
    locks: tuple[str, ...]

    def kernels(self) -> dict[str, int]:
        """How often each kernel was called."""
        calls: dict[str, int] = {}
        for party in self.parties:
            for action in party.actions:
                if action[0] == "kernel":
                    calls[action[1]] = calls.get(action[1], 0) + 1
        return calls


@dataclass(slots=True, eq=False)
class TracedLock(Lock):
    """A lock that notes who acquires and releases it."""

    recorder: "Recorder | None" = None
    index: int = 0

    def take(self, agent: "Agent", need: int, equal: bool = False, where: "Callable[[], str]" = str) -> bool:
        if agent.trace is not None:
            agent.trace.add("acquire", self.index, need, equal)
        return Lock.take(self, agent, need, equal, where)

    def add(self, amount: int, where: "Callable[[], str]" = str, agent: "Agent | None" = None) -> None:
        assert self.recorder is not None
        self.released[agent] += 1
        self.recorder.running().add("release", self.index, amount)
        Lock.set(self, self.value + amount, where)

    def set(self, value: int, where: "Callable[[], str]" = str) -> None:
        assert self.recorder is not None
        self.recorder.running().add("set", self.index, value)
        Lock.set(self, value, where)


class Recorder:
    """Collects the parties of a run; a scheduler that has one makes every party note its actions."""

    def __init__(self) -> None:
        self.configuration = 0
        self.controller = Party(0, CONTROLLER, CONTROLLER, 0)
        self.agent: Agent | None = None
        self._parties = [self.controller]
        self._agents: list[Agent | None] = [None]
        self._locks: list[TracedLock] = []
        self._accesses: dict[int, tuple[Order, Access]] = {}
        self._signals = 0
        self.wants_banks = False  # whether cores run machine code, of which accesses to banks are known

    def party(self, agent: "Agent") -> Party:
        """A new party for an agent of the configuration that is being loaded."""
        party = Party(len(self._parties), agent.name, agent.kind, self.configuration)
        self._parties.append(party)
        self._agents.append(agent)
        return party

    def running(self) -> Party:
        """Who acts now: the agent that was let run, else the controller."""
        return self.controller if self.agent is None or self.agent.trace is None else self.agent.trace

    def lock(self, *arguments: Any) -> TracedLock:
        """A lock that notes its users."""
        lock = TracedLock(*arguments, recorder=self, index=len(self._locks))
        self._locks.append(lock)
        return lock

    def writes_bd(self, place: tuple[int, int], bd: int) -> None:
        """A word of a BD is written: noted once for all words that follow one another."""
        actions, action = self.running().actions, ("write bd", *place, bd)
        if not actions or actions[-1] != action:
            self.running().add(*action)

    def restart(self) -> None:
        """Another configuration is about to be loaded."""
        self.configuration += 1
        self.controller.add("stop")

    def sinks(self, stream: "Stream") -> tuple[int, ...]:
        """The parties that receive what a stream sends now."""
        return tuple(sink.owner.trace.index for sink in stream.sinks if sink.owner.trace is not None)

    def access(self, order: "Order", start: int) -> Access:
        """How a transfer that begins at a host address goes through DRAM."""
        if id(order) not in self._accesses:  # the order is kept with its result, so that its id stays its own
            self._accesses[id(order)] = order, access_of(order)
        return replace(self._accesses[id(order)][1], start=start)

    def satisfied(self, last: "Agent | None") -> None:
        """A poll of the controller ended with what `last` did (None: it had ended before)."""
        if last is None or last.trace is None:
            return
        self._signals += 1
        last.trace.add("signal", self._signals)
        self.controller.add("await", self._signals)

    def finish(self, device: "Device") -> Trace:
        """The trace of the run. Parties that did nothing keep their numbers."""
        for party, agent in zip(self._parties, self._agents, strict=True):
            if agent is not None:
                party.place, party.direction = agent.place, agent.direction
                row = party.place[1]
                party.tile_kind = str(device.kind(party.place[0], row))
            if party.work:
                party.add("work", 0)
        return Trace(device, tuple(self._parties), tuple(lock.name for lock in self._locks))


def access_of(order: "Order") -> Access:
    """Runs of a transfer's words, and the distance at which most of them begin."""
    size_bytes = order.length * GRANULE_BYTES
    if order.offsets is None or order.length < 2:
        return Access(float(size_bytes))
    starts = np.flatnonzero(np.diff(order.offsets) != 1) + 1
    if not len(starts):
        return Access(float(size_bytes))
    begins = order.offsets[np.concatenate([[0], starts])]
    distances, counts = np.unique(np.abs(np.diff(begins)), return_counts=True)
    return Access(size_bytes / len(begins), int(distances[np.argmax(counts)]) * GRANULE_BYTES)


def elements_of(arguments: Sequence[Any]) -> tuple[tuple[int, ...], int]:
    """Elements of each array among a kernel's arguments, and the bytes of all."""
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    return tuple(array.size for array in arrays), sum(array.nbytes for array in arrays)
