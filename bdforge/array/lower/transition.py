"""From one configuration to the next by register writes, while the array stays loaded: what a load would do anew.

Cores and DMA channels that ran stop and start anew, as a load lets them (`configuration`); their locks and first values
of buffers are written again, since a run changed them. Of the rest (programs, BDs, switches) only what differs is
written: two configurations that are alike follow each other at little cost. Locks and BDs that what runs does not use,
lines of program memory, channels that wait until words or locks come, and all of a tile that it does not use but for
its core's start, may be written ahead, while it still runs. A channel that what is wanted does not use stays as it
waits, or in reset.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bdforge.array.lower.array_state import ArrayState, ChannelKey, ChannelWait, StateError, TileState
from bdforge.array.lower.channel_waits import tasks_of
from bdforge.array.lower.tile_change import BLOCK_WORDS, TileChange
from bdforge.array.lower.tile_use import IDLE, Busy, TilePart, Used, part_of
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import Register, What, register_at
from bdforge.devices.txn_format.operations import DIRECTIONS, BlockWrite, MaskWrite, Operation, Write

Locks = Mapping[tuple[int, int], Collection[int]]
"""The locks that configurations use, by column and row of their tile."""

_KEPT = {
    What.MASTER, What.SLAVE, What.RULE, What.MUX, What.DEMUX, What.CASCADE, What.CORE, What.PROGRAM, What.PAD_VALUE,
}  # fmt: skip
"""What is written where configurations differ: no run may change it."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What runs change themselves, by kind of tile: the BDs that they write, and the channels that they push tasks to.

    A kind of tile stands for all tiles of it, and a BD for all that its channels may use: which ones a run touches
    depends on its sizes.
    """

    bds: frozenset[tuple[TileKind, int]] = frozenset()
    channels: frozenset[tuple[TileKind, str, int]] = frozenset()

    def of_kind(self, kind: TileKind) -> Used:
        """The BDs of a kind of tile that runs write, and the channels that they push tasks to."""
        channels = ((way, channel) for one, way, channel in self.channels if one is kind)
        return Used(frozenset(bd for one, bd in self.bds if one is kind), frozenset(channels))

    def with_(self, tile: TileState) -> Used:
        """The same of a tile, with what its configuration uses."""
        runs = self.of_kind(tile.kind)
        return Used(runs.bds | tile.bds.keys(), runs.channels | tasks_of(tile))

    @classmethod
    def everything(cls) -> "Touched":
        """What is assumed where nothing is known."""
        kinds = (TileKind.MEMTILE, TileKind.CORE)
        bds = ((k, bd) for k in kinds for bd in range(AIE2.limits(k).bds))
        channels = ((k, way, c) for k in kinds for way in DIRECTIONS for c in range(AIE2.limits(k).channels))
        return cls(frozenset(bds), frozenset(channels))

    def of(self, operations: Iterable[Operation]) -> "Touched":
        """With what these operations of a run touch besides; StateError for what a transition would not write again."""
        bds, channels = set(self.bds), set(self.channels)
        for operation in operations:
            for register in _registers(operation):
                if register.what in _KEPT or (register.what is What.CONTROL and register.kind is not TileKind.SHIM):
                    raise StateError(
                        f"{register}: a run writes it, and nothing says how often; a change cannot restore it"
                    )
                if register.what is What.BD:
                    bds |= _sharing(register.kind, register.index[0])
                elif register.what is What.QUEUE:
                    channels.add((register.kind, register.direction, register.index[0]))
        return Touched(frozenset(bds), frozenset(channels))


def _registers(operation: Operation) -> Iterator[Register]:
    """What an operation writes; of a memory only where that begins."""
    if isinstance(operation, Write | MaskWrite | BlockWrite):
        first = register_at(operation.address)
        yield first
        if isinstance(operation, BlockWrite) and first.what not in (What.MEMORY, What.PROGRAM):
            yield from (register_at(operation.address + GRANULE_BYTES * i) for i in range(1, len(operation.words)))


def _sharing(kind: TileKind, bd: int) -> set[tuple[TileKind, int]]:
    """The BDs of a kind of tile that channels may use which may use one."""
    shares = (AIE2.limits(kind).bds_of_channel(channel) for channel in range(2))
    return {(kind, one) for share in shares if bd in share for one in share}


class Transition(NamedTuple):
    """Writes that may come while what is there still runs, and those that wait until it has ended; `early` ones may
    come while what ran before that does."""

    ahead: list[Operation]
    then: list[Operation]
    early: list[Operation]


@dataclass(frozen=True, slots=True)
class Running:
    """What runs until a transition: its configuration alone, and all locks and parts of tiles that it uses.

    With `programs` lines of program memory that it does not use are written meanwhile; no source says that a core may
    run then.
    """

    state: ArrayState
    locks: Locks
    parts: Collection[TilePart]
    programs: bool = False

    def busy(self, tile: TileState, touched: Touched) -> Busy:
        """What a tile's runs use."""
        place = tile.column, tile.row
        switch_idle = TilePart(*place, switch=True) not in self.parts
        if TilePart(*place) not in self.parts:
            return replace(IDLE, switch_idle=switch_idle)
        own, locks = self.state.tiles.get(place) or TileState(tile.kind, *place), self.locks.get(place, ())
        program = own.program if self.programs else None
        return Busy(locks, touched.with_(own), program, switch_idle=switch_idle)


class Earlier(NamedTuple):
    """What ran before what runs, what its runs touch, and the parts of tiles that were written between the two."""

    running: Running
    touched: Touched
    written: Collection[TilePart]


def transition(
    state: ArrayState, wanted: Iterable[Operation], locks: Locks | None = None, touched: Touched | None = None,
    running: Running | None = None, left: Collection[TilePart] = (), uses: Touched | None = None,
    earlier: Earlier | None = None,
) -> Transition:  # fmt: skip
    """The writes that turn `state` into what `wanted`, the writes of a configuration, makes of an array.

    `state` is what was loaded, whose runs have ended; it becomes what is there afterwards. `locks` are all that what is
    wanted uses: without it those that BDs name, and all of a core that has a program. `touched` is what the runs
    changed besides, `uses` what those of what is wanted will change: with it channels that it does not use may stay as
    they wait. Without `running` nothing is written ahead, without `earlier` nothing early. The parts `left` of tiles
    stay as they are: what is wanted does not use them, or finds them as its own runs left them, and what ran there has
    ended and waits. StateError as of `ArrayState`, and where a shim runs tasks that its configuration started, since it
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
    known = touched or Touched()
    ran(state, known, state.tiles if running is None else {part[:2] for part in running.parts if not part.switch})
    changes = {
        place: TileChange(
            old, new, None if locks is None else locks.get(place, ()), None if uses is None else uses.with_(new),
            None if running is None else running.busy(old, known),
        )
        for place, old in sorted(state.tiles.items())
        for new in [after.tiles.get(place) or TileState(old.kind, *place)]
    }  # fmt: skip
    tiles = [change for place, change in changes.items() if TilePart(*place) not in left]
    switches = [change for place, change in changes.items() if TilePart(*place, switch=True) not in left]
    early = {} if earlier is None else dict.fromkeys(_early(tiles, switches, earlier))
    ahead = (write for write in _writes(tiles, switches, True) if write not in early)
    made = Transition(*(list(_merged(writes)) for writes in (ahead, _writes(tiles, switches, False), early)))
    for tile in tiles:
        _end_runs(tile.old, tile.channels.left)
    for write in (*made.early, *made.ahead, *made.then):
        state.apply(write)
    return made


def _early(
    tiles: Iterable[TileChange], switches: Iterable[TileChange], earlier: Earlier
) -> Iterator[Write | BlockWrite | MaskWrite]:
    """What of a transition neither what runs uses nor what ran before, in parts that were not written between them."""

    def longer(change: TileChange) -> TileChange:
        before = earlier.running.busy(change.old, earlier.touched)
        return replace(change, busy=None if change.busy is None else change.busy.with_(before))

    for write in _writes([*map(longer, tiles)], [*map(longer, switches)], ahead=True):
        if part_of(write) not in earlier.written:
            yield write


def ran(state: ArrayState, touched: Touched, places: Iterable[tuple[int, int]]) -> None:
    """Runs of a configuration have changed what they touch in tiles at these places."""
    for tile in (state.tiles[place] for place in places if place in state.tiles):
        used = touched.of_kind(tile.kind)
        tile.pushed |= used.channels
        tile.rewritten |= used.bds


def _end_runs(tile: TileState, waits: Mapping[ChannelKey, ChannelWait]) -> None:
    """No task is left but of channels that wait; BDs that runs wrote are unknown until somebody writes them again."""
    tile.waits = dict(waits)
    tile.tasks.clear()
    tile.pushes.clear()
    tile.pushed.clear()
    for bd in tile.rewritten:
        tile.bds.pop(bd, None)
    tile.rewritten.clear()


def left_by(state: ArrayState, start: ArrayState) -> None:
    """Let channels and BDs of what `start` loads be taken as a run left them, which ended in `state`."""
    for place, tile in state.tiles.items():
        there = start.tiles.setdefault(place, TileState(tile.kind, *place))
        there.pushed |= tile.pushed
        there.rewritten |= tile.rewritten
        there.waits |= tile.waits
        there.registers |= {key: value for key, value in tile.registers.items() if key[0] is What.CONTROL}


_BEFORE = (
    TileChange.stops, TileChange.programs, TileChange.memories, TileChange.lock_values, TileChange.descriptors,
    TileChange.lets_go,
)  # fmt: skip


def _writes(
    tiles: Sequence[TileChange], switches: Sequence[TileChange], ahead: bool
) -> Iterator[Write | BlockWrite | MaskWrite]:
    """Step by step, each of all tiles: channels that send start once all that receive have, cores once all have."""
    for part in _BEFORE:
        for tile in tiles:
            yield from part(tile, ahead)
    for tile in switches:
        yield from tile.switches(ahead)
    for direction in ("S2MM", "MM2S"):
        for tile in tiles:
            yield from tile.starts(ahead, direction)
    if not ahead:
        for tile in tiles:
            yield from tile.enables()


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
        if joins and len(words) + len(own) <= BLOCK_WORDS:
            words += own
            continue
        yield from _operation(start, words)
        start, words = write.address, own
    yield from _operation(start, words)


def _operation(start: int, words: tuple[int, ...]) -> Iterator[Write | BlockWrite]:
    if words:
        yield Write(start, words[0]) if len(words) == 1 else BlockWrite(start, words)
