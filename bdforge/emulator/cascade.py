"""Cascades: 512-bit FIFOs from one core to its southern or eastern neighbour."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from xdsl.ir import Operation

from bdforge.devices.limits import CASCADE_FIFO_VALUES
from bdforge.emulator.cores.core import Core
from bdforge.emulator.errors import DesignError
from bdforge.emulator.scheduler import Agent
from bdforge.mlir import location
from bdforge.mlir.device_ops import TileOp
from bdforge.mlir.stream_ops import CascadeFlowOp, ConfigureCascadeOp
from bdforge.mlir.words import CascadeDirection

CAPACITY = 2 * CASCADE_FIFO_VALUES
"""Values under way: a FIFO at each end."""

_STEPS = {
    CascadeDirection.SOUTH: (0, -1), CascadeDirection.EAST: (1, 0),
    CascadeDirection.NORTH: (0, 1), CascadeDirection.WEST: (-1, 0),
}  # fmt: skip
_OPPOSITE = {CascadeDirection.SOUTH: CascadeDirection.NORTH, CascadeDirection.EAST: CascadeDirection.WEST}


@dataclass(slots=True)
class CascadeWait:
    """A core waits for a value from its neighbour, or for room towards it."""

    cascade: "Cascade"
    puts: bool
    where: Callable[[], str]

    def sentence(self) -> str:
        if self.puts:
            return f"waits for {self.cascade.target.name} to take a value from the cascade{self.where()}"
        return f"waits for a value on the cascade from {self.cascade.source.name}{self.where()}"

    def providers(self) -> Iterator[Agent]:
        yield self.cascade.target if self.puts else self.cascade.source


@dataclass(slots=True, eq=False)
class Cascade:
    """One cascade. Values are raw bytes: both ends may see them as any 512-bit type."""

    source: Agent
    target: Agent
    wake: Callable[[Agent], None]
    values: deque[bytes] = field(default_factory=deque)
    pending: bytes | None = None
    hungry: bool = False

    def put(self, value: bytes, where: Callable[[], str]) -> bool:
        """Put now and say True; or say False, and the source is woken when its value has room."""
        if self.source.trace is not None:
            self.source.trace.add("put")
        if len(self.values) == CAPACITY:
            self.pending = value
            self.source.waiting = CascadeWait(self, True, where)
            return False
        self.values.append(value)
        if self.hungry:
            self.hungry = False
            self.wake(self.target)
        return True

    def ready(self, where: Callable[[], str]) -> bool:
        """Whether a value can be taken; if not, the target is woken when it can."""
        if self.target.trace is not None and self.source.trace is not None:
            self.target.trace.add("get", self.source.trace.index)
        if self.values:
            return True
        self.hungry = True
        self.target.waiting = CascadeWait(self, False, where)
        return False

    def take(self) -> bytes:
        """The oldest value; a source that waits for room goes on."""
        value = self.values.popleft()
        if self.pending is not None:
            self.values.append(self.pending)
            self.pending = None
            self.wake(self.source)
        return value


def connect_cascades(operations: Iterable[Operation], core_at: Callable[[int, int], Core]) -> None:
    """Join cores by `aie.cascade_flow` and `aie.configure_cascade`; DesignError for what no array can do.

    An output of `configure_cascade` is a cascade where the neighbour on that side takes its input from this one.
    """
    operations = list(operations)
    configured = {(op.tile.column, op.tile.row): op for op in operations if isinstance(op, ConfigureCascadeOp)}
    for op in operations:
        if isinstance(op, CascadeFlowOp):
            _check_direction(op)
            _connect(op, _place(op.source), _place(op.destination), core_at)
    for place, op in configured.items():
        step = _STEPS[op.output]
        neighbour = configured.get((place[0] + step[0], place[1] + step[1]))
        if neighbour is not None and neighbour.input is _OPPOSITE[op.output]:
            _connect(op, place, _place(neighbour.tile), core_at)


def _place(tile: TileOp) -> tuple[int, int]:
    return tile.column, tile.row


def _check_direction(op: CascadeFlowOp) -> None:
    source, target = _place(op.source), _place(op.destination)
    step = target[0] - source[0], target[1] - source[1]
    if step not in (_STEPS[CascadeDirection.SOUTH], _STEPS[CascadeDirection.EAST]):
        raise DesignError(
            f"{location(op)}: a cascade runs to the core south or east of its source; {source} to {target} is "
            f"{'north' if step[1] else 'west'}"
        )


def _connect(op: Operation, source: tuple[int, int], target: tuple[int, int], core_at) -> None:
    sender, receiver = core_at(*source), core_at(*target)
    if sender.cascade_out is not None and sender.cascade_out is receiver.cascade_in:
        return
    if sender.cascade_out is not None:
        other = sender.cascade_out.target.name
        raise DesignError(f"{location(op)}: {sender.name} has one cascade output, which leads to {other} already")
    if receiver.cascade_in is not None:
        other = receiver.cascade_in.source.name
        raise DesignError(f"{location(op)}: {receiver.name} has one cascade input, which comes from {other} already")
    assert sender.scheduler is not None
    sender.cascade_out = receiver.cascade_in = Cascade(sender, receiver, sender.scheduler.wake)
