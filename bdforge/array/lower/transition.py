"""From one configuration to the next by register writes, while the array stays loaded: what a load would do anew.

Cores and DMA channels that ran stop and start anew, as a load lets them (`configuration`); their locks and first values
of buffers are written again, since a run changed them. Of the rest (programs, BDs, switches) only what differs is
written: two configurations that are alike follow each other at little cost. Locks and BDs that what runs does not use,
lines of program memory, and all of a tile that it does not use but for its switch and its start, may be written ahead,
while it still runs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bdforge.array.lower.array_state import ArrayState, StateError, TileState
from bdforge.array.lower.tile_change import BLOCK_WORDS, IDLE, Busy, TileChange
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import DIRECTIONS, BlockWrite, MaskWrite, Operation, Write

Locks = Mapping[tuple[int, int], Collection[int]]
"""The locks that configurations use, by column and row of their tile."""

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

    def of_kind(self, kind: TileKind) -> set[tuple[str, int]]:
        """The channels of a kind of tile that runs push tasks to."""
        return {(way, channel) for one, way, channel in self.channels if one is kind}

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


class Transition(NamedTuple):
    """Writes that may come while what is there still runs, and those that wait until it has ended."""

    ahead: list[Operation]
    then: list[Operation]


@dataclass(frozen=True, slots=True)
class Running:
    """What runs until a transition: its configuration alone, and all locks and the places of all tiles that it uses.

    With `programs` lines of program memory that it does not use are written meanwhile; no source says that a core may
    run then.
    """

    state: ArrayState
    locks: Locks
    places: Collection[tuple[int, int]]
    programs: bool = False

    def busy(self, tile: TileState, touched: Touched) -> Busy:
        """What a tile's runs use."""
        place = tile.column, tile.row
        if place not in self.places:
            return IDLE
        own = self.state.tiles.get(place) or TileState(tile.kind, *place)
        bds = range(AIE2.limits(tile.kind).bds) if tile.kind in touched.bds else own.bds.keys()
        return Busy(frozenset(self.locks.get(place, ())), frozenset(bds), own.program if self.programs else None)


def transition(
    state: ArrayState, wanted: Iterable[Operation], locks: Locks | None = None, touched: Touched | None = None,
    running: Running | None = None, left: Collection[tuple[int, int]] = (),
) -> Transition:  # fmt: skip
    """The writes that turn `state` into what `wanted`, the writes of a configuration, makes of an array.

    `state` is what was loaded, whose runs have ended; it becomes what is there afterwards. `locks` are all that what is
    wanted uses: without it those that BDs name, and all of a core that has a program. `touched` is what the runs
    changed besides. Without `running` nothing is written ahead. Tiles at the places `left` stay as they are: what is
    wanted does not use them, and what ran there has ended and waits. StateError as of `ArrayState`, and where a shim
    runs tasks that its configuration started, since it has no reset that would end them.
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
    ran(state, known, state.tiles if running is None else running.places)
    tiles = [
        TileChange(
            old, after.tiles.get(place) or TileState(old.kind, *place), None if locks is None else locks.get(place, ()),
            None if running is None else running.busy(old, known),
        )
        for place, old in sorted(state.tiles.items())
        if place not in left
    ]  # fmt: skip
    made = Transition(*([*_merged(w for part in parts for tile in tiles for w in part(tile))] for parts in _PARTS))
    for old in (tile.old for tile in tiles):
        old.tasks.clear()
        old.pushes.clear()
        old.pushed.clear()
        if old.rewritten:
            old.bds.clear()  # until somebody writes them again
            old.rewritten = False
    for write in (*made.ahead, *made.then):
        state.apply(write)
    return made


def ran(state: ArrayState, touched: Touched, places: Iterable[tuple[int, int]]) -> None:
    """Runs of a configuration have changed what they touch in tiles at these places."""
    for tile in (state.tiles[place] for place in places if place in state.tiles):
        tile.pushed |= touched.of_kind(tile.kind)
        tile.rewritten |= tile.kind in touched.bds


_EARLY = (
    TileChange.stops, TileChange.programs, TileChange.memories, TileChange.lock_values, TileChange.descriptors,
    TileChange.lets_go,
)  # fmt: skip
_PARTS = (
    tuple(partial(part, ahead=True) for part in _EARLY),
    (
        *(partial(part, ahead=False) for part in _EARLY), TileChange.switches,
        partial(TileChange.starts, direction="S2MM"), partial(TileChange.starts, direction="MM2S"), TileChange.enables,
    ),
)  # fmt: skip
"""In order, each for all tiles: channels that send start once all that receive have, cores once all channels have."""


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
