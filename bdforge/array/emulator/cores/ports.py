"""A core's ends of cascades, 512-bit FIFOs to its southern or eastern neighbour."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bdforge.array.emulator.scheduler import Agent, PlainWait
from bdforge.devices.limits import CASCADE_FIFO_VALUES

CAPACITY = 2 * CASCADE_FIFO_VALUES
"""Values under way: a FIFO at each end."""


@dataclass(slots=True, eq=False)
class CascadeFifo:
    """One cascade. Values are raw bytes: both ends may see them as any 512-bit type."""

    source: Agent
    target: Agent
    wake: Callable[[Agent], None]
    values: deque[bytes] = field(default_factory=deque)
    pending: bytes | None = None
    hungry: bool = False

    def put(self, value: bytes, where: Callable[[], str]) -> bool:
        """Put now and say True; or say False, and the source is woken when its value has room."""
        if self.source.observed:
            self.source.notify("put")
        if len(self.values) == CAPACITY:
            self.pending = value
            full = f"waits for {self.target.name} to take a value from the cascade"
            self.source.waiting = PlainWait(lambda: f"{full}{where()}", lambda: [self.target])
            return False
        self.values.append(value)
        if self.hungry:
            self.hungry = False
            self.wake(self.target)
        return True

    def ready(self, where: Callable[[], str]) -> bool:
        """Whether a value can be taken; if not, the target is woken when it can."""
        if self.target.observed:
            self.target.notify("get", self.source)
        if self.values:
            return True
        self.hungry = True
        empty = f"waits for a value on the cascade from {self.source.name}"
        self.target.waiting = PlainWait(lambda: f"{empty}{where()}", lambda: [self.source])
        return False

    def take(self) -> bytes:
        """The oldest value; a source that waits for room goes on."""
        value = self.values.popleft()
        if self.pending is not None:
            self.values.append(self.pending)
            self.pending = None
            self.wake(self.source)
        return value
