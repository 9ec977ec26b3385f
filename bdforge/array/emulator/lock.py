"""Counting semaphores of tiles."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bdforge.array.emulator.errors import LockError
from bdforge.array.emulator.scheduler import Agent

_MOST_NAMES = 4


@dataclass(slots=True)
class LockWait:
    """An agent waits for a lock's value."""

    lock: "EmulatedLock"
    need: int
    equal: bool
    where: Callable[[], str]

    def sentence(self) -> str:
        wanted = f"{'=' if self.equal else '>='} {self.need}"
        return f"waits for lock {self.lock.name} {wanted}, which is {self.lock.value}{self._history()}{self.where()}"

    def _history(self) -> str:
        """Who has released how often: those who are behind come first."""
        releasers = self.lock.releasers()
        if not releasers:
            return " and which nobody releases"
        still = "" if self.lock.taken or self.lock.released else " since the start"
        if len(releasers) == 1:
            return still
        groups: dict[int, list[str]] = {}
        for agent in releasers:
            groups.setdefault(self.lock.released[agent], []).append(agent.name)
        parts = [f"{_times(count)} by {_names(groups[count])}" for count in sorted(groups)]
        return f"{still} (released {', '.join(parts)})"

    def behind(self) -> list[Agent]:
        """The releasers that have released least often."""
        releasers = self.lock.releasers()
        fewest = min((self.lock.released[agent] for agent in releasers), default=0)
        return [agent for agent in releasers if self.lock.released[agent] == fewest]

    def providers(self) -> Iterator[Agent]:
        return iter(self.lock.releasers())


def _times(count: int) -> str:
    return ("never", "once", "twice")[count] if count < 3 else f"{count} times"


def _names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest


@dataclass(slots=True, eq=False)
class EmulatedLock:
    """A lock of one tile. Waiters are served in turn: who has waited longest is asked first.

    `taken`, `released` and `sets` (of the whole value) count since the configuration was loaded; None stands for the
    runtime sequence.
    """

    name: str
    highest: int
    wake: Callable[[Agent], None]
    value: int = 0
    waiters: deque[tuple[Agent, LockWait]] = field(default_factory=deque)
    releasers: Callable[[], list[Agent]] = list
    notify: Callable[..., None] | None = None  # observers, what whoever runs does
    fault: Callable[[LockError], None] | None = None
    taken: int = 0
    sets: int = 0
    released: Counter[Agent | None] = field(default_factory=Counter)

    def take(self, agent: Agent, need: int, equal: bool = False, where: Callable[[], str] = str) -> bool:
        """Take `need` now and say True, or queue `agent`, which is woken with the lock taken, and say False."""
        if agent.observed:
            agent.notify("acquire", self, need, equal)
        if self._grants(need, equal):
            self._give(need)
            return True
        agent.waiting = wait = LockWait(self, need, equal, where)
        self.waiters.append((agent, wait))
        return False

    def add(self, amount: int, where: Callable[[], str] = str, agent: Agent | None = None) -> None:
        """`agent` raises the value (a negative amount lowers it); waiters are served. LockError outside the range."""
        self.released[agent] += 1
        if self.notify is not None:
            self.notify("release", self, amount)
        self._change(self.value + amount, where)

    def set(self, value: int, where: Callable[[], str] = str) -> None:
        self.sets += 1
        if self.notify is not None:
            self.notify("set", self, value)
        self._change(value, where)

    def _change(self, value: int, where: Callable[[], str]) -> None:
        if not 0 <= value <= self.highest:
            value = self._outside(value, where)
        self._store(value)
        if self.waiters:
            self._serve()

    def restart(self, name: str) -> None:
        """Before another configuration: the value stays, all else begins anew."""
        self.name, self.taken = name, 0
        self.waiters.clear()
        self.released.clear()

    def forget(self, agent: Agent) -> bool:
        """Give the lock no more to `agent`; whether it waited for it still."""
        waited = len(self.waiters)
        self.waiters = deque(waiter for waiter in self.waiters if waiter[0] is not agent)
        return len(self.waiters) < waited

    def _store(self, value: int) -> None:
        self.value = value
        if self.notify is not None:
            self.notify("value", self, value)

    def _outside(self, value: int, where: Callable[[], str]) -> int:
        """Report a value outside of the range; where that is permitted, the value it saturates at."""
        error = LockError(
            f"lock {self.name} would become {value}, outside 0 to {self.highest}{where()}; "
            "check who releases it without an acquire"
        )
        if self.fault is None:
            raise error
        self.fault(error)
        return max(-self.highest - 1, min(value, self.highest))

    def _grants(self, need: int, equal: bool) -> bool:
        return self.value == need if equal else self.value >= need

    def _give(self, need: int) -> None:
        self.taken += 1
        self._store(self.value - need)
        if self.waiters:
            self._serve()  # what is left may be exactly what somebody waits for

    def _serve(self) -> None:
        for place, (agent, wait) in enumerate(self.waiters):
            if self._grants(wait.need, wait.equal):
                del self.waiters[place]
                self.wake(agent)
                self._give(wait.need)
                return
