"""What every party of a run did, in its own order and without time: what timed emulation replays.

A run leaves one list of actions for each party, made of the events that observers are told: a party tells what it is
about to do. Nothing here changes a value.
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
| `reset` | channel or core | whoever writes its control register, or lets a core run that was reset |
| `write bd` | column, row, BD | whoever writes it |
| `was reset` | | channels and cores: where they go on after a reset |
| `kernel` | name, elements of each array, bytes of all | cores |
| `work` | operations of the core program | cores |
| `run` | cycles of machine code, those it waits for its own banks, accesses by bank, cycles by name | cores |
| `touches` | words of the next transfer by bank | channels beside machine code |
| `put`, `get` | for `get`: the core it comes from | cores with cascades |
| `operation` | kind, words | controller |
| `token` | channel | controller |
| `poll lock`, `poll tasks` | lock or channel, and the values or numbers of tasks that it waits for | controller |
| `signal`, `await` | number of a signal | whoever the controller polls for otherwise; controller |
| `stop`, `start`, `dispatch`, `finish` | for `start`: which configuration | controller |

Parties and locks are numbers: places in `Trace.parties` and `Trace.locks`. Accesses are None where no DRAM is behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent
from bdforge.devices import Device
from bdforge.devices.limits import GRANULE_BYTES

Action = tuple[Any, ...]
CONTROLLER = "controller"
_WORDS = ("begin", "end", "value", "wait")
_OF_LOCKS = {"acquire", "release", "set", "poll lock"}
_OF_PARTIES = {"push", "reset", "token", "poll tasks", "get"}


@dataclass(frozen=True, slots=True)
class DramAccess:
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
    """One party: a channel, a core, a control port or the controller, as one configuration has it."""

    index: int
    name: str
    kind: str
    configuration: int
    place: tuple[int, int] = (0, 0)
    tile_kind: str = ""
    direction: str = ""
    actions: list[Action] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole run, ready to be replayed any number of times (`bdforge.array.emulator.timed.replay`).

    `held_words` are those that streams held at most for a receiver that took none.
    """

    device: Device
    parties: tuple[Party, ...]
    locks: tuple[str, ...]
    held_words: int

    def kernels(self) -> dict[str, int]:
        calls: dict[str, int] = {}
        for party in self.parties:
            for action in party.actions:
                if action[0] == "kernel":
                    calls[action[1]] = calls.get(action[1], 0) + 1
        return calls


class Recorder:
    """An observer that collects what every party does."""

    def __init__(self) -> None:
        self.configuration = 0
        self.controller = Party(0, CONTROLLER, CONTROLLER, 0)
        self._parties: dict[Agent | None, Party] = {None: self.controller}
        self._locks: dict[EmulatedLock, int] = {}
        self._accesses: dict[int, tuple[Order, DramAccess]] = {}
        self._signals = 0

    def event(self, party: Agent | None, verb: str, *about: Any) -> None:
        """Note an action, parties and locks as their numbers; what is told in words only is left out."""
        if verb in _WORDS:
            return
        if verb == "join" and party is not None:
            self._parties[party] = Party(len(self._parties), party.name, party.kind, self.configuration)
            return
        actions = self._parties[party].actions
        if party is not None and party.work:
            actions.append(("work", party.work))
            party.work = 0
        if verb in _OF_LOCKS:
            about = self._locks.setdefault(about[0], len(self._locks)), *about[1:]
        elif verb in _OF_PARTIES:
            about = self._parties[about[0]].index, *about[1:]
        elif verb == "send":
            about = about[0], self._indices(about[1]), self._access(about[2])
        elif verb == "receive":
            about = about[0], self._access(about[1])
        elif verb in ("take", "give"):
            about = (self._indices(about[0]),)
        elif verb == "kernel":
            about = about[0], *elements_of(about[1])
        elif verb == "start":
            about = (self.configuration,)
        elif verb == "stop":  # another configuration is about to be loaded
            self.configuration += 1
        elif verb == "write bd" and actions and actions[-1] == (verb, *about):
            return  # noted once for all words that follow one another
        elif verb == "received":  # TLAST may have ended the BD early: its `receive`, noted last, gets what came
            verb, about = "receive", (*about, actions.pop()[2])
        elif verb == "satisfied":
            self._satisfied(*about)
            return
        actions.append((verb, *about))

    def _indices(self, parties: Sequence[Agent]) -> tuple[int, ...]:
        return tuple(self._parties[party].index for party in parties)

    def _satisfied(self, last: Agent | None) -> None:
        """A poll of the controller ended with what `last` did (None: it had ended before)."""
        if last is None:
            return
        self._signals += 1
        self.event(last, "signal", self._signals)
        self.controller.actions.append(("await", self._signals))

    def _access(self, dram: tuple[Order, int] | None) -> DramAccess | None:
        """How a transfer that begins at a host address goes through DRAM."""
        if dram is None:
            return None
        order, start = dram
        if id(order) not in self._accesses:  # the order is kept with its result, so that its id stays its own
            self._accesses[id(order)] = order, access_of(order)
        return replace(self._accesses[id(order)][1], start=start)

    def finish(self, device: Device, held_words: int) -> Trace:
        """The trace of the run; `held_words` as there."""
        for agent, party in self._parties.items():
            if agent is None:
                continue
            party.place, party.direction = agent.place, agent.direction
            party.tile_kind = str(device.kind(*party.place))
            if agent.work:
                party.actions.append(("work", agent.work))
        return Trace(device, tuple(self._parties.values()), tuple(lock.name for lock in self._locks), held_words)


def access_of(order: Order) -> DramAccess:
    """Runs of a transfer's words, and the distance at which most of them begin."""
    size_bytes = order.length * GRANULE_BYTES
    if order.offsets is None or order.length < 2:
        return DramAccess(float(size_bytes))
    starts = np.flatnonzero(np.diff(order.offsets) != 1) + 1
    if not len(starts):
        return DramAccess(float(size_bytes))
    begins = order.offsets[np.concatenate([[0], starts])]
    distances, counts = np.unique(np.abs(np.diff(begins)), return_counts=True)
    return DramAccess(size_bytes / len(begins), int(distances[np.argmax(counts)]) * GRANULE_BYTES)


def elements_of(arguments: Sequence[Any]) -> tuple[tuple[int, ...], int]:
    """Elements of each array among a kernel's arguments, and the bytes of all."""
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    return tuple(array.size for array in arrays), sum(array.nbytes for array in arrays)
