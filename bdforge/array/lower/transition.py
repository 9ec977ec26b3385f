"""From one configuration to the next by register writes, while the array stays loaded: what a load would do anew.

Cores and DMA channels that ran stop and start anew, as a load lets them (`configuration`); their locks and first values
of buffers are written again, since a run changed them. Of the rest (programs, BDs, switches) only what differs is
written: two configurations that are alike follow each other at little cost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from bdforge.array.lower.array_state import ArrayState, StateError, TileState
from bdforge.array.txn.writer import WORD_MASK
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import CORE_ENABLE, CORE_RESET, TILE_REGISTERS, TileRegisters, address
from bdforge.devices.switch_registers import (
    CASCADE_OFFSET,
    SHIM_DEMUX_OFFSET,
    SHIM_MUX_OFFSET,
    master_offset,
    rule_offset,
    slave_offset,
)
from bdforge.devices.txn_format.operations import DIRECTIONS, BlockWrite, MaskWrite, Operation, Write

Locks = Mapping[tuple[int, int], Collection[int]]
"""The locks that configurations use, by column and row of their tile."""

_BLOCK_WORDS = 1 << 12  # of a block write, so that no operation is longer than what streams of others hold
_KEPT = {
    What.MASTER, What.SLAVE, What.RULE, What.MUX, What.DEMUX, What.CASCADE, What.CORE, What.PROGRAM, What.PAD_VALUE,
}  # fmt: skip
"""What is written where configurations differ: no run may change it."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What runs change themselves, by kind of tile: whether they write BDs, and the channels that they push tasks to.

    A kind of tile stands for all tiles of it: which ones a run touches depends on its sizes.
    """

    bds: frozenset[TileKind] = frozenset()
    channels: frozenset[tuple[TileKind, str, int]] = frozenset()

    @classmethod
    def everything(cls) -> "Touched":
        """What is assumed where nothing is known."""
        kinds = (TileKind.MEMTILE, TileKind.CORE)
        channels = ((k, way, c) for k in kinds for way in DIRECTIONS for c in range(AIE2.limits(k).channels))
        return cls(frozenset(kinds), frozenset(channels))

    def of(self, operations: Iterable[Operation]) -> "Touched":
        """With what these operations of a run touch besides; StateError for what a transition would not write again."""
        bds, channels = set(self.bds), set(self.channels)
        for operation in operations:
            if isinstance(operation, Write | MaskWrite | BlockWrite):
                register = register_at(operation.address)
                if register.what in _KEPT or (register.what is What.CONTROL and register.kind is not TileKind.SHIM):
                    raise StateError(
                        f"{register}: a run writes it, and nothing says how often; a change cannot restore it"
                    )
                if register.what is What.BD:
                    bds.add(register.kind)
                elif register.what is What.QUEUE:
                    channels.add((register.kind, register.direction, register.index[0]))
        return Touched(frozenset(bds), frozenset(channels))


def transition(
    state: ArrayState, wanted: Iterable[Operation], locks: Locks | None = None, touched: Touched | None = None
) -> list[Operation]:
    """The writes that turn `state` into what `wanted`, the writes of a configuration, makes of an array.

    `state` is what was loaded, whose runs have ended; it becomes what is there afterwards. `locks` are all that what is
    wanted uses: without it those that BDs name, and all of a core that has a program. `touched` is what the runs
    changed besides. StateError as of `ArrayState`, and where a shim runs tasks that its configuration started, since it
    has no reset that would end them.
    """
    for tile in state.tiles.values():
        if tile.kind is TileKind.SHIM and tile.tasks:
            task = tile.tasks[0]
            raise StateError(
                f"{tile.name}: {task.direction} {task.channel} runs a task from the start, which nothing ends; start "
                "it in the runtime sequence"
            )
    after = ArrayState(wanted)
    for place in after.tiles.keys() - state.tiles.keys():
        state.tiles[place] = TileState(after.tiles[place].kind, *place)
    tiles = [
        _Change(old, after.tiles.get(place) or TileState(old.kind, *place), locks, touched or Touched())
        for place, old in sorted(state.tiles.items())
    ]
    found: list[Operation] = [*_merged(write for part in _PARTS for tile in tiles for write in part(tile))]
    for old in state.tiles.values():
        old.tasks.clear()
        old.pushes.clear()
        if touched is not None and old.kind in touched.bds:
            old.bds.clear()  # until somebody writes them again
    for write in found:
        state.apply(write)
    return found


def _runs(tile: TileState) -> bool:
    return bool(tile.of(What.CORE).get((), 0) & CORE_ENABLE)


def _of_tasks(tile: TileState) -> set[tuple[str, int]]:
    return {(task.direction, task.channel) for task in tile.tasks}


@dataclass(frozen=True, slots=True)
class _Change:
    """One tile: what is there, and what is wanted."""

    old: TileState
    new: TileState
    locks: Locks | None
    touched: Touched

    @property
    def at(self) -> TileRegisters:
        return TILE_REGISTERS[self.old.kind]

    def write(self, offset: int, value: int) -> Write:
        return Write(address(self.old.column, self.old.row, offset), value)

    def filled(self, offset: int, data: bytes) -> Iterator[BlockWrite | MaskWrite]:
        """Bytes of a memory from an offset on: whole words, and masked ones at ends that are none."""
        before, behind = offset % GRANULE_BYTES, -(offset + len(data)) % GRANULE_BYTES
        words = np.frombuffer(bytes(before) + data + bytes(behind), "<u4").tolist()
        masks = np.frombuffer(bytes(before) + b"\xff" * len(data) + bytes(behind), "<u4").tolist()
        start = address(self.old.column, self.old.row, offset - before)
        at, end = 0, len(words)
        if masks[0] != WORD_MASK:
            yield MaskWrite(start, words[0], masks[0])
            at = 1
        if end > at and masks[-1] != WORD_MASK:
            end -= 1
        for first in range(at, end, _BLOCK_WORDS):
            yield BlockWrite(start + GRANULE_BYTES * first, tuple(words[first : min(first + _BLOCK_WORDS, end)]))
        if end < len(words):
            yield MaskWrite(start + GRANULE_BYTES * end, words[end], masks[end])

    @property
    def stopped(self) -> list[tuple[str, int]]:
        """Channels that had tasks; a shim's have no reset, and nothing to do once their tokens came."""
        if self.old.kind is TileKind.SHIM:
            return []
        pushed = {(way, channel) for kind, way, channel in self.touched.channels if kind is self.old.kind}
        return sorted(_of_tasks(self.old) | pushed)

    def control(self, tile: TileState, direction: str, channel: int) -> int:
        """A channel's control register: of a core tile's that has tasks the bit is set without which none starts."""
        value = tile.registers.get((What.CONTROL, direction, (channel,)), 0)
        starts = tile.kind is TileKind.CORE and (direction, channel) in _of_tasks(tile)
        return value | CORE_ENABLE if starts else value

    def stops(self) -> Iterator[Write]:
        """Stop the core, and hold channels in reset."""
        if _runs(self.old):
            yield self.write(self.at.core_control or 0, CORE_RESET)
        for direction, channel in self.stopped:
            yield self.write(self.at.control_offset(direction, channel), self.at.control.fields["reset"].mask)

    def programs(self) -> Iterator[BlockWrite | MaskWrite]:
        """A program that is not there yet."""
        for start, data in self.new.program.spans():
            if self.old.program.data[start : start + len(data)] != data:
                yield from self.filled(self.at.program_memory.start + start, data)

    def memories(self) -> Iterator[BlockWrite | MaskWrite]:
        """First values of buffers, and data of programs."""
        for start, data in self.new.memory.spans():
            yield from self.filled(start, data)

    def lock_values(self) -> Iterator[Write]:
        """Values of the locks that a run may have changed, or that start with another one."""
        for lock in sorted(self.used_locks | {lock for lock, value in self.new.locks.items() if value}):
            yield self.write(self.at.lock_offset(lock), self.new.locks.get(lock, 0))

    @property
    def used_locks(self) -> set[int]:
        if self.locks is not None:
            return set(self.locks.get((self.old.column, self.old.row), ()))
        count = AIE2.limits(self.old.kind).locks
        if _runs(self.old) or _runs(self.new):
            return set(range(count))
        tiles = (self.old, self.new)
        fields = [tile.fields(bd) for tile in tiles for bd in tile.bds]
        return {found.get(name, 0) % count for found in fields for name in ("lock_acq_id", "lock_rel_id")}

    def descriptors(self) -> Iterator[BlockWrite]:
        """BDs that differ, those that runs may have written, and those whose iteration a run has moved on."""
        unknown = self.old.kind in self.touched.bds or self.old.kind is TileKind.SHIM
        for bd, words in sorted(self.new.bds.items()):
            if unknown or self.old.bds.get(bd) != words or self.new.fields(bd)["iteration_wrap"]:
                yield BlockWrite(address(self.old.column, self.old.row, self.at.bd_offset(bd)), tuple(words))

    def switches(self) -> Iterator[Write]:
        """Ports, rules, shim muxes and cascades; 0 where only the configuration before set one."""
        kind = self.old.kind
        offsets = {
            What.MASTER: lambda port: master_offset(kind, port),
            What.SLAVE: lambda port: slave_offset(kind, port),
            What.RULE: lambda port, rule: rule_offset(kind, port, rule),
            What.MUX: lambda: SHIM_MUX_OFFSET,
            What.DEMUX: lambda: SHIM_DEMUX_OFFSET,
            What.CASCADE: lambda: CASCADE_OFFSET,
        }
        values: dict[int, int] = {}
        for what, offset in offsets.items():
            before, wanted = self.old.of(what), self.new.of(what)
            for index in before.keys() | wanted.keys():
                if before.get(index, 0) != wanted.get(index, 0):
                    values[offset(*index)] = wanted.get(index, 0)
        for offset, value in sorted(values.items()):
            yield self.write(offset, value)

    def releases(self) -> Iterator[Write]:
        """Let go of the core and of channels, whose controls become what is wanted."""
        if _runs(self.old):
            yield self.write(self.at.core_control or 0, 0)
        if self.old.kind is TileKind.SHIM:
            return
        for direction, channel in product(DIRECTIONS, range(AIE2.limits(self.old.kind).channels)):
            control = self.control(self.new, direction, channel)
            if (direction, channel) in self.stopped or control != self.control(self.old, direction, channel):
                yield self.write(self.at.control_offset(direction, channel), control)
        before, wanted = self.old.of(What.PAD_VALUE), self.new.of(What.PAD_VALUE)
        for (channel,) in sorted(before.keys() | wanted.keys()):
            if (value := wanted.get((channel,), 0)) != before.get((channel,), 0):
                yield self.write((self.at.pad_value_base or 0) + GRANULE_BYTES * channel, value)

    def starts(self) -> Iterator[Write]:
        """Push the tasks that run from the start."""
        for task in self.new.tasks:
            word = self.at.queue.encode({"bd": task.bd, "repeat": task.repeat, "token": int(task.token)})[0]
            yield self.write(self.at.queue_offset(task.direction, task.channel), word)

    def enables(self) -> Iterator[Write]:
        """Let a core run from program address 0 on."""
        if _runs(self.new):
            yield self.write(self.at.core_control or 0, CORE_ENABLE)


_PARTS = (
    _Change.stops, _Change.programs, _Change.memories, _Change.lock_values, _Change.descriptors, _Change.switches,
    _Change.releases, _Change.starts, _Change.enables,
)  # fmt: skip
"""In order, each for all tiles."""


def _merged(writes: Iterable[Write | BlockWrite | MaskWrite]) -> Iterator[Operation]:
    """Writes of registers that follow each other as one operation."""
    start, words = 0, ()
    for write in writes:
        if isinstance(write, MaskWrite):
            yield from _operation(start, words)
            yield write
            words = ()
            continue
        own = (write.value,) if isinstance(write, Write) else write.words
        joins = words and write.address == start + GRANULE_BYTES * len(words)
        if joins and len(words) + len(own) <= _BLOCK_WORDS:
            words += own
            continue
        yield from _operation(start, words)
        start, words = write.address, own
    yield from _operation(start, words)


def _operation(start: int, words: tuple[int, ...]) -> Iterator[Write | BlockWrite]:
    if words:
        yield Write(start, words[0]) if len(words) == 1 else BlockWrite(start, words)
