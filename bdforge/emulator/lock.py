"""Counting semaphores of tiles."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bdforge.emulator.errors import LockError
from bdforge.emulator.scheduler import Agent


@dataclass(slots=True)
class LockWait:
    """An agent waits for a lock's value."""

    lock: "Lock"
    need: int
    equal: bool
    where: Callable[[], str]

    def sentence(self) -> str:
        wanted = f"{'=' if self.equal else '>='} {self.need}"
        alone = "" if self.lock.releasers() else " and which nobody releases"
        return f"waits for lock {self.lock.name} {wanted}, which is {self.lock.value}{alone}{self.where()}"

    def providers(self) -> Iterator[Agent]:
        return iter(self.lock.releasers())


@dataclass(slots=True, eq=False)
class Lock:
    """A lock of one tile. Waiters are served in turn: who has waited longest is asked first."""

    name: str
    highest: int
    wake: Callable[[Agent], None]
    value: int = 0
    waiters: deque[tuple[Agent, LockWait]] = field(default_factory=deque)
    releasers: Callable[[], list[Agent]] = list
    tell: Callable[[int], None] | None = None
    fault: Callable[[LockError], None] | None = None

    def take(self, agent: Agent, need: int, equal: bool = False, where: Callable[[], str] = str) -> bool:
        """Take `need` now and say True, or queue `agent`, which is woken with the lock taken, and say False."""
        if self.value == need if equal else self.value >= need:
            self._store(self.value - need)
            return True
        agent.waiting = wait = LockWait(self, need, equal, where)
        self.waiters.append((agent, wait))
        return False

    def add(self, amount: int, where: Callable[[], str] = str) -> None:
        """Raise the value (a negative amount lowers it) and serve waiters; LockError outside the register's range."""
        self.set(self.value + amount, where)

    def set(self, value: int, where: Callable[[], str] = str) -> None:
        """Store a value and serve waiters."""
        if not 0 <= value <= self.highest:
            value = self._outside(value, where)
        self._store(value)
        if self.waiters:
            self._serve()

    def forget(self, agent: Agent) -> None:
        """Let `agent` wait no longer."""
        self.waiters = deque(waiter for waiter in self.waiters if waiter[0] is not agent)

    def _store(self, value: int) -> None:
        self.value = value
        if self.tell is not None:
            self.tell(value)

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

    def _serve(self) -> None:
        for _ in range(len(self.waiters)):
            agent, wait = self.waiters.popleft()
            if self.value == wait.need if wait.equal else self.value >= wait.need:
                self._store(self.value - wait.need)
                self.wake(agent)
            else:
                self.waiters.append((agent, wait))
