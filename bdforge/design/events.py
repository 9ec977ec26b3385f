"""From the events of a sequence program's run to the runtime sequence that templates place."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bdforge.design.model import Design
from bdforge.design.sequence import Event, LockWrite, RegisterWrite, RtpWrite, Task, TaskBd, TokenWait
from bdforge.design.sequence import Sequence as RuntimeSequence
from bdforge.design.sequences import Await, Program, Start, StartedTask, Stored, WalkError
from bdforge.design.sequences import Event as SequenceEvent
from bdforge.design.sequences.instruction_words import Sync, syncs
from bdforge.design.tile_memory import Buffer, Lock
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES

_MOST_SLOTS = 64  # of run-time parameters in a buffer


def placed_sequence(
    name: str,
    comment: str,
    design: Design,
    program: Program,
    elements: Sequence[int],
    events: Sequence[SequenceEvent],
    wide: bool,
) -> RuntimeSequence:
    """What the events of a program's run are in MLIR; lowered, it is the same stream of words.

    `elements` of each of the program's arguments; `wide`: one wait for tokens of several columns. WalkError for a task
    on a channel that no allocation of the design names.
    """
    arguments = tuple(
        Buffer(argument.name, count, argument.type, argument.note)
        for argument, count in zip(program.arguments, elements, strict=True)
    )
    return RuntimeSequence(name, comment, arguments, tuple(_events(name, design, arguments, events, wide)))


@dataclass(slots=True)
class _Writes:
    """Register writes as MLIR has them; equal blocks of registers share a constant."""

    sequence: str
    homes: Mapping[int, "tuple[Buffer, int] | Lock"]
    constants: dict[tuple[int, ...], str] = field(default_factory=dict)

    def event(self, items: Sequence[Stored]) -> Event:
        of_cores = any(isinstance(self.homes.get(item.address), tuple) for item in items)
        comment = "cores may begin: their data are on the way" if of_cores else "BDs, locks and tasks of memtiles"
        return Event(comment, writes=tuple(map(self.write, items)))

    def write(self, stored: Stored) -> RtpWrite | LockWrite | RegisterWrite:
        if len(stored.values) > 1:
            name = self.constants.setdefault(stored.values, f"{self.sequence}_registers_{len(self.constants)}")
            return RegisterWrite(stored.address, stored.values, name)
        home, value = self.homes.get(stored.address), sum(stored.values)  # of one
        if home is None:
            return RegisterWrite(stored.address, stored.values)
        return LockWrite(home, value) if isinstance(home, Lock) else RtpWrite(*home, value)


def _events(
    name: str, design: Design, arguments: tuple[Buffer, ...], events: Sequence[SequenceEvent], wide: bool
) -> Iterator[Event]:
    allocations = {(a.tile.column, a.direction, a.channel): a.name for a in design.allocations}
    writes, names = _Writes(name, homes_of(design)), {}
    for event in events:
        match event:
            case Start(index, items):
                tasks = [item for item in items if isinstance(item, StartedTask)]
                names[index] = tuple(_names(index, [_allocation(allocations, task) for task in tasks]))
                yield from _started(event, names[index], arguments, allocations, writes)
            case Await(index, waits):
                yield Event(
                    f"step {index} is complete when its tokens are here; its BDs are free again",
                    waits=tuple(_token(sync) for wait in waits for sync in syncs(wait, wide)),
                    free=names[index],
                )


def _names(index: int, allocations: Sequence[str]) -> Iterator[str]:
    """Of a step's tasks; a channel's second one has a number."""
    seen: Counter[str] = Counter()
    for allocation in allocations:
        seen[allocation] += 1
        number = f"_{seen[allocation]}" if seen[allocation] > 1 else ""
        yield f"{allocation.replace('_', '')}_step{index}{number}"


def _token(sync: Sync) -> TokenWait:
    return TokenWait(sync.direction, sync.channel, sync.column, sync.columns)


def _started(event: Start, names, arguments, allocations, writes: _Writes) -> Iterator[Event]:
    """Runs of tasks and runs of writes, in order."""
    comment, named = f"step {event.index}: {event.note}", iter(names)
    for _, run in groupby(event.items, type):
        items = list(run)
        if stored := [item for item in items if isinstance(item, Stored)]:
            yield writes.event(stored)
        tasks = [item for item in items if isinstance(item, StartedTask)]
        if placed := tuple(_task(_allocation(allocations, t), next(named), t, arguments) for t in tasks):
            yield Event(comment, tasks=placed)


def _allocation(allocations: Mapping[tuple[int, str, int], str], task: StartedTask) -> str:
    name = allocations.get((task.column, task.direction, task.channel))
    if name is None:
        channel = f"{task.direction} {task.channel}"
        raise WalkError(f"a task is on {channel} of column {task.column}, which no allocation names; add one")
    return name


def _task(allocation: str, name: str, task: StartedTask, buffers: tuple[Buffer, ...]) -> Task:
    bds = tuple(
        TaskBd(buffers[bd.argument], bd.pattern, bd.bd_id, f"{name}_bd{i}" if i else "")
        for i, bd in enumerate(task.bds)
    )
    return Task(name, allocation, bds, task.runs - 1, task.token)


def homes_of(design: Design) -> dict[int, tuple[Buffer, int] | Lock]:
    """What stands at a full address: a word of a core's buffer that is in no mode, or a lock."""
    homes: dict[int, tuple[Buffer, int] | Lock] = {}
    for tile in design.tiles:
        homes |= {tile.address(lock): lock for lock in tile.locks}
        for buffer in tile.buffers if tile.kind is TileKind.CORE else ():
            base = tile.address(buffer)
            slots = buffer.elements if buffer.type == "i32" and not buffer.mode else 0
            homes |= {base + GRANULE_BYTES * slot: (buffer, slot) for slot in range(min(slots, _MOST_SLOTS))}
    return homes
