"""A runtime sequence as the template places it: tasks by name, in the order of the instruction stream."""

from dataclasses import dataclass
from math import prod

from bd_patterns import Pattern
from bdforge.design.tile_memory import Buffer, Lock, Packet

_BD_DIMS = 3  # of a runtime transfer's sizes; a fourth one is the runs of the task


@dataclass(frozen=True, slots=True)
class TaskBd:
    """One BD of a task's chain; `linear` BDs need no dimensions. `label` is its block, none for the first."""

    buffer: Buffer
    pattern: Pattern
    bd_id: int
    label: str = ""
    padding: tuple[()] = ()
    packet: Packet | None = None

    @property
    def linear(self) -> bool:
        """Whether offset and length say it all."""
        return self.pattern.rank == 1

    @property
    def elements(self) -> int:
        """Elements that one run moves: a fourth dimension only steps from run to run."""
        return prod(self.pattern.sizes[-_BD_DIMS:])


@dataclass(frozen=True, slots=True)
class Task:
    """One shim task: a chain of BDs on a named channel. `repeat_count` is the number of runs minus 1, as in MLIR."""

    name: str
    allocation: str
    bds: tuple[TaskBd, ...]
    repeat_count: int
    token: bool


@dataclass(frozen=True, slots=True)
class TokenWait:
    """Wait for a token of the same channel of each of `columns` shims, from `column` on."""

    direction: int
    channel: int
    column: int
    columns: int


@dataclass(frozen=True, slots=True)
class RtpWrite:
    """Word `slot` of a core's buffer of run-time parameters becomes `value`."""

    buffer: Buffer
    slot: int
    value: int


@dataclass(frozen=True, slots=True)
class LockWrite:
    """A lock becomes `value`."""

    lock: Lock
    value: int


@dataclass(frozen=True, slots=True)
class RegisterWrite:
    """The registers from full address `address` on become `values`; several are a constant of the module, `name`."""

    address: int
    values: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A stretch of the sequence: configure and start tasks, write parameters and locks, or wait and free."""

    comment: str
    tasks: tuple[Task, ...] = ()
    writes: tuple[RtpWrite | LockWrite | RegisterWrite, ...] = ()
    waits: tuple[TokenWait, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """A runtime sequence: host buffers in order, and events."""

    name: str
    comment: str
    arguments: tuple[Buffer, ...]
    events: tuple[Event, ...]

    @property
    def constants(self) -> dict[str, tuple[int, ...]]:
        """What its writes of several registers write, as i32, by name."""
        writes = (write for event in self.events for write in event.writes)
        named = {write.name: write.values for write in writes if isinstance(write, RegisterWrite) and write.name}
        return {name: tuple(v - (v >> 31 << 32) for v in values) for name, values in named.items()}
