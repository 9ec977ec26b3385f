"""What happened in a run, for the page to step through: an observer of the emulated array."""

import re
from collections import defaultdict
from typing import Any

import numpy as np

from bdforge.array.emulator.cores.core import EmulatedCore
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.lock import EmulatedLock, LockWait
from bdforge.array.emulator.scheduler import Agent, WaitReason
from bdforge.array.emulator.trace import CONTROLLER

EVENTS_MAX = 20_000
"""Events that a record holds: some megabytes of a page; how all ends is kept besides."""
_LINE = re.compile(r":(\d+):\d+\)$")


class RunRecord:
    """Collects events in order, EVENTS_MAX at most, and how everybody stands at the end.

    Events are lists that begin with a party's number and a letter; texts are numbers in `texts`:

    | letter | then | means |
    |---|---|---|
    | b | what, line or None, buffers | a BD or a call begins; buffers of a call: column, row, byte address |
    | e | what | it ends |
    | v | lock, value | a lock has a new value |
    | w | sentence, parties, lock or -1 | it waits, for whom or what |
    | p | channel, BDs | a task is pushed |
    | f | whether a token is issued | a channel's task has ended |
    | t | channel | the controller has taken a token |
    """

    def __init__(self, most: int = EVENTS_MAX) -> None:
        self.most, self.count = most, 0
        self.events: list[list[Any]] = []
        self._parties: dict[Agent | None, int] = {None: 0}
        self._locks: dict[EmulatedLock, int] = {}
        self._first: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._open: dict[int, list[list[Any]]] = defaultdict(list)
        self._waits: dict[int, object] = {}
        self._started = False

    def event(self, party: Agent | None, verb: str, *about: Any) -> None:
        """Note an event that the page shows; what the configuration sets before the start is how all begins."""
        if verb == "start":
            self._started = True
        elif verb == "value":
            self._value(party, *about)
        elif (note := getattr(self, f"_on_{verb.replace(' ', '_')}", None)) is not None:
            note(party, *about)

    def data(self, fault: str = "") -> dict[str, Any]:
        """The record as the page reads it, and why the run failed if it did."""
        locks = list(self._locks)
        return {
            "parties": [_party(agent) for agent in self._parties],
            "locks": [[lock.name, self._first[i]] for i, lock in enumerate(locks)],
            "events": self.events, "count": self.count, "fault": fault,
            "end": {
                "locks": [lock.value for lock in locks],
                "waits": [[i, *self._reason(a.waiting)] for a, i in self._parties.items() if a and a.waiting],
                "open": [[i, *stack[-1]] for i, stack in self._open.items() if stack],
            },
            "texts": list(self._texts),
        }  # fmt: skip

    def _add(self, party: Agent | None, *event: Any) -> None:
        self.count += 1
        if len(self.events) < self.most:
            self.events.append([self._number(party), *event])

    def _number(self, party: Agent | None) -> int:
        return self._parties.setdefault(party, len(self._parties))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _lock(self, lock: EmulatedLock, value: int) -> int:
        number = self._locks.setdefault(lock, len(self._locks))
        self._first.setdefault(number, value)
        return number

    def _value(self, party: Agent | None, lock: EmulatedLock, value: int) -> None:
        if self._started:
            self._waits.pop(self._number(party), None)  # who acts waits no more
            self._add(party, "v", self._lock(lock, value), value)
        else:
            self._first[self._lock(lock, value)] = value

    def _on_begin(self, party: Agent, what: str) -> None:
        begun = [self._text(what), _line(party), []]
        self._open[self._number(party)].append(begun)
        self._waits.pop(self._number(party), None)
        self._add(party, "b", *begun)

    def _on_kernel(self, party: Agent, _: str, arguments: Any) -> None:
        """The call that has just begun gets its buffers, which are read where tiles hold them."""
        if stack := self._open[self._number(party)]:
            stack[-1][2].extend(_places(party, arguments))

    def _on_end(self, party: Agent, what: str) -> None:
        if stack := self._open[self._number(party)]:
            stack.pop()
        self._waits.pop(self._number(party), None)
        self._add(party, "e", self._text(what))

    def _on_wait(self, party: Agent, reason: WaitReason) -> None:
        """A wait, once for all turns in which it goes on."""
        number = self._number(party)
        same = _essence(reason)
        if self._waits.get(number) != same:
            self._waits[number] = same
            self._add(party, "w", *self._reason(reason))

    def _on_push(self, party: Agent | None, channel: DmaChannel, bds: tuple[int, ...]) -> None:
        self._add(party, "p", self._number(channel), list(bds))

    def _on_end_task(self, party: Agent, token: bool) -> None:
        self._add(party, "f", int(token))

    def _on_token(self, party: Agent | None, channel: DmaChannel) -> None:
        self._add(party, "t", self._number(channel))

    def _reason(self, reason: WaitReason) -> list[Any]:
        parties = [self._number(agent) for agent in reason.providers()]
        lock = self._lock(reason.lock, reason.lock.value) if isinstance(reason, LockWait) else -1
        return [self._text(reason.sentence()), parties, lock]


def _essence(reason: WaitReason) -> object:
    """What tells one wait from another: the lock, or for whom; words that are left change from turn to turn."""
    return (reason.lock, reason.need) if isinstance(reason, LockWait) else tuple(reason.providers())


def _party(agent: Agent | None) -> list[Any]:
    """Name, kind, tile."""
    if agent is None:
        return [CONTROLLER, CONTROLLER, None]
    return [agent.name, agent.kind, list(agent.place)]


def _line(party: Agent) -> int | None:
    """The line of the BD that a channel runs."""
    found = _LINE.search(party.source()) if isinstance(party, DmaChannel) else None
    return int(found[1]) if found else None


def _places(party: Agent, arguments: Any) -> list[list[int]]:
    """Tile and byte address of each array among a call's arguments that lies in the memory of a core's reach."""
    if not isinstance(party, EmulatedCore):
        return []
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    return [place for array in arrays if (place := _place(party, array)) is not None]


def _place(core: EmulatedCore, array: np.ndarray) -> list[int] | None:
    address, tiles = array.ctypes.data, core.array.tiles
    for at in sorted(tiles, key=lambda at: at != core.place):  # most lie in the core's own memory
        memory = tiles[at].bytes
        if 0 <= (offset := address - memory.ctypes.data) < memory.nbytes:
            return [*at, offset]
    return None
