"""What takes the array from one step's configuration to the next of a composition, and back to the first.

A core's tile that a step does not use stays as the step before left it, and waits. When a later step uses it, most of
what it gets is written while others still work. So what a run finds in such tiles, and in program memories, is what the
run before left: it is loaded with the first step's configuration.

A composition may run where another one is loaded: it begins with what that one's runs leave, and ends with it.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from xdsl.ir import Operation as IrOperation

from bdforge.array.images.read import read_image
from bdforge.array.lower import allocated
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.stream_reach import ShimChannel, shim_reach
from bdforge.array.lower.tile_use import TilePart, part_of
from bdforge.array.lower.transition import Earlier, Locks, Running, Touched, Transition, left_by, transition
from bdforge.array.mlir import parsed
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.stream_ops import CascadeFlowOp, ConfigureCascadeOp
from bdforge.array.txn.target import REFUSING
from bdforge.common.files import read_bytes
from bdforge.design.sequences.composed_tensors import NOTHING_EARLY, ChangeNumbers, EarlyStart
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import TILE_REGISTERS, address
from bdforge.devices.txn_format.operations import BlockWrite, Operation
from bdforge.runtime.built_design import BuildError, BuiltDesign

Place = tuple[int, int]


@dataclass(frozen=True)
class ConfigurationChanges:
    """Operations of each part of a change, and the numbers of those before each step and behind the last one; what of
    each step may start early.

    `left` are writes of what a run leaves beside the first step's configuration; they come before its own.
    """

    operations: tuple[tuple[Operation, ...], ...]
    numbers: tuple[ChangeNumbers, ...]
    early: tuple[EarlyStart, ...]
    left: tuple[Operation, ...]


class StepOrder(NamedTuple):
    """The designs of steps, in order. With `programs_ahead` a core's program memory may be written while it runs, where
    its program is not. `resident` tiles that no design used since their own has run stay as they are, and run on."""

    designs: tuple[str, ...]
    programs_ahead: bool
    resident: bool


def configuration_changes(
    own: StepOrder, designs: Mapping[str, BuiltDesign], loaded: StepOrder | None = None
) -> ConfigurationChanges:
    """The changes of a run of the designs in an order, where that of `loaded`, or its own, is loaded."""
    known = {name: _Configuration(design) for name, design in designs.items()}
    cycle = _Cycle(loaded or own, known)
    first = cycle.order.designs[0]
    owners, state = cycle.run(ArrayState(known[first].writes), dict.fromkeys(known[first].parts, first))[1:]
    left = tuple(_left(owners, state, first, {name: known[name] for name in cycle.order.designs}))
    start = ArrayState([*left, *known[first].writes])
    left_by(state, start)
    if loaded is not None:
        tiles = {part[:2]: name for part, name in owners.items() if not part.switch}
        locks = {place: known[name].locks.get(place, ()) for place, name in tiles.items()}
        cycle = _Cycle(own, known, _Home(owners, first, (*left, *known[first].writes), locks))
    numbers, *_ = cycle.run(start, owners)
    return ConfigurationChanges(tuple(cycle.operations), tuple(numbers), tuple(cycle.early), left)


@dataclass(frozen=True)
class _Configuration:
    """A design's configuration: its writes, the locks and tiles that it uses, and what its runs write themselves."""

    design: BuiltDesign

    @cached_property
    def writes(self) -> tuple[Operation, ...]:
        return read_image(read_bytes(self.design.image("xclbin"), BuildError)).configurations[0]

    @cached_property
    def _device(self) -> DeviceOp:
        module = parsed(self.design.mlir, str(self.design.mlir_file))
        return next(op for op in module.walk() if isinstance(op, DeviceOp))

    @cached_property
    def locks(self) -> Locks:
        found: dict[Place, set[int]] = {}
        for lock, number in allocated(self._device, REFUSING).locks.items():
            found.setdefault(lock.tile.place, set()).add(number)
        return found

    @cached_property
    def state(self) -> ArrayState:
        """What it leaves in an array, which nobody changes."""
        return ArrayState(self.writes)

    @cached_property
    def parts(self) -> frozenset[TilePart]:
        """What it uses: the tiles that it names, and all that it writes to."""
        named = {TilePart(*op.place) for op in self._device.walk() if isinstance(op, TileOp)}
        return frozenset(named | {part_of(operation) for operation in self.writes})

    @cached_property
    def cores(self) -> frozenset[TilePart]:
        """All but the switches of cores' tiles that it uses."""
        kinds = {place: tile.kind for place, tile in self.state.tiles.items()}
        own = (part for part in self.parts if not part.switch)
        return frozenset(part for part in own if kinds.get((part.column, part.row)) is TileKind.CORE)

    @cached_property
    def reach(self) -> dict[ShimChannel, frozenset[TilePart]]:
        """What takes part in moving the words of each shim channel that sends."""
        return shim_reach(self.state)

    @cached_property
    def tied(self) -> frozenset[TilePart]:
        """All but the switches of tiles that share memory, locks or cascades with others: none waits but with all."""
        found: set[Place] = set()
        for op in self._device.walk():
            match op:
                case CascadeFlowOp():
                    found |= {op.source.place, op.destination.place}
                case ConfigureCascadeOp():
                    found.add(op.tile.place)
                case BufferOp() | LockOp():
                    users = (_user(use.operation) for use in op.result.uses)
                    others = {user.tile.place for user in users if user} - {op.tile.place}
                    found |= others | {op.tile.place} if others else set()
        return frozenset(TilePart(*place) for place in found)

    @cached_property
    def touched(self) -> Touched:
        """By the writes of its built-in problems: what one size writes in a kind of tile another may write there."""
        if not self.design.manifest.problems:
            return Touched.everything()
        found = Touched()
        for problem in self.design.manifest.problems:
            found = found.of(self.design.sequence(problem.sizes).operations())
        return found


@dataclass(frozen=True)
class _Home:
    """Another composition that is loaded, as a configuration: `owners` have its tiles, and the design `first` was there
    last."""

    owners: Mapping[TilePart, str]
    first: str
    writes: tuple[Operation, ...]
    locks: Locks
    touched = None
    """No channel may stay as it waits: runs of what is loaded do not know of it."""


class _Cycle:
    """One run after the other; `operations` are those of the changes of the last one, `early` what may start before
    each. With a `home` it begins and ends there, else with its first step's configuration."""

    def __init__(self, order: StepOrder, known: Mapping[str, _Configuration], home: _Home | None = None) -> None:
        self.order, self._known, self._home = order, known, home
        self.operations: list[tuple[Operation, ...]] = []
        self.early: list[EarlyStart] = []

    def run(
        self, state: ArrayState, owners: Mapping[TilePart, str]
    ) -> tuple[list[ChangeNumbers], dict[TilePart, str], ArrayState]:
        """Numbers of the changes before each step and behind the last; whose tiles are whose then, and their state.

        `owners` tells it of those that are loaded.
        """
        owners, made = dict(owners), [_Made()]
        designs = self.order.designs
        last = self._home.first if self._home else designs[0]
        for before, name in pairwise([last, *designs, *(() if self._home else designs[:1])]):
            if name == before:
                made.append(_Made())
                continue
            new = self._known[name]
            waiting = self._waiting(state, new, owners)
            kept = self._standing(new, owners) & new.parts if self.order.resident else frozenset()
            self._add(made, state, before, new, waiting | kept)
            owners |= dict.fromkeys(new.parts.union(owners) - waiting, name)
        if self._home:
            self._add(made, state, designs[-1], self._home, self._as_before(self._home.owners, owners))
        changes: dict[tuple[Operation, ...], int] = {}
        parts = [[tuple(part) for part in (one.ahead, one.then)] for one in made[1:]]
        numbers = [ChangeNumbers(*(changes.setdefault(p, len(changes)) if p else None for p in one)) for one in parts]
        self.operations, self.early = list(changes), [one.early for one in made[1:]]
        return numbers, owners, state

    def _add(
        self, made: list["_Made"], state: ArrayState, before: str, new: "_Configuration | _Home",
        left: frozenset[TilePart],
    ) -> None:  # fmt: skip
        """The next change, of which the one before it gets what comes early."""
        old = self._known[before]
        earlier = self._earlier(made[-1], old)
        change = transition(state, new.writes, new.locks, old.touched, self._running(old), left, new.touched, earlier)
        early = NOTHING_EARLY if isinstance(new, _Home) else self._early(made, old, new, change)
        made[-1].ahead.extend(change.early)
        made.append(_Made(before, change.ahead, change.then, early))

    def _as_before(self, loaded: Mapping[TilePart, str], owners: Mapping[TilePart, str]) -> frozenset[TilePart]:
        """Parts that stand as another composition left them."""
        standing = (self._standing(self._known[name], owners) for name in set(loaded.values()))
        same = frozenset(part for part, name in loaded.items() if owners[part] == name)
        return same.intersection(frozenset().union(*standing))

    def _earlier(self, change: "_Made", old: _Configuration) -> Earlier | None:
        """What ran before `old`, up to the change to it, where it has more tiles: few have little to do, and the
        controller as little time to write meanwhile."""
        before = self._known.get(change.before)
        if before is None or len(before.parts) <= len(old.parts):
            return None
        return Earlier(self._running(before), before.touched, change.written)

    def _early(
        self, made: Sequence["_Made"], old: _Configuration, new: _Configuration, change: Transition
    ) -> EarlyStart:
        """What of a design's runs neither the runs before touch nor the last of a change's writes.

        Cores get their parameters while what has more tiles runs: else the controller has more time behind it, while
        weights flow.
        """
        busy = old.parts.union(map(part_of, change.then))
        written = frozenset(map(part_of, (*change.ahead, *change.then, *change.early)))
        free = ((channel, parts) for channel, parts in new.reach.items() if parts.isdisjoint(busy))
        channels = {channel: self._between(made, parts, written, new) for channel, parts in free}
        before = self._known.get(made[-1].before)
        cores: dict[TilePart, int] = {}
        if len(old.parts) > len(new.parts):
            cores = dict.fromkeys(new.cores - busy, 0)
        elif before is not None and len(before.parts) > len(old.parts):
            cores = dict.fromkeys(new.cores - busy - before.parts - written - made[-1].written, 1)
        return EarlyStart(channels, {(column, row): between for (column, row, _), between in cores.items()})

    def _between(
        self, made: Sequence["_Made"], parts: Collection[TilePart], written: frozenset[TilePart], new: _Configuration
    ) -> int:
        """How many steps may stand between what runs and what a channel of a design starts meanwhile: none of them
        touches the parts, nor any change since then, and what runs is the same design, or leaves them alone, too."""
        if not written.isdisjoint(parts):
            return 0
        for between, one in enumerate(reversed(made)):
            before = self._known.get(one.before)
            if before is None or not one.written.isdisjoint(parts):
                return between
            if before is new:
                return between + 1
            if not before.parts.isdisjoint(parts):
                return between
        return len(made)

    def _running(self, one: _Configuration) -> Running:
        return Running(one.state, one.locks, one.parts, self.order.programs_ahead)

    def _waiting(self, state: ArrayState, new: _Configuration, owners: Mapping[TilePart, str]) -> frozenset[TilePart]:
        """Parts of cores' tiles, resident ones of any kind, that a step does not use, and leaves as they are."""
        kept = (place for place, tile in state.tiles.items() if self.order.resident or tile.kind is TileKind.CORE)
        some = {TilePart(*place, switch) for place in kept for switch in (False, True)}
        left = {part: owner for part, owner in owners.items() if part not in new.parts}
        standing = (self._standing(self._known[owner], left) for owner in set(left.values()))
        return frozenset(some).intersection(frozenset().union(*standing))

    @staticmethod
    def _standing(design: _Configuration, owners: Mapping[TilePart, str]) -> frozenset[TilePart]:
        """Parts of a design that are its own still, or wait; those that are tied only where all of them are."""
        own = frozenset(part for part, owner in owners.items() if owner == design.design.name)
        return own if design.tied <= own else own - design.tied


@dataclass(frozen=True, slots=True)
class _Made:
    """A change from a design to another; "": none."""

    before: str = ""
    ahead: list[Operation] = field(default_factory=list)
    then: list[Operation] = field(default_factory=list)
    early: EarlyStart = NOTHING_EARLY

    @property
    def written(self) -> frozenset[TilePart]:
        return frozenset(map(part_of, (*self.ahead, *self.then)))


def _left(
    owners: Mapping[TilePart, str], state: ArrayState, first: str, known: Mapping[str, _Configuration]
) -> Iterator[Operation]:
    """Program memories as a run leaves them, where the first step's configuration has less; then what else stands in
    tiles that are another's."""
    loaded = ArrayState(known[first].writes)
    start = TILE_REGISTERS[TileKind.CORE].program_memory.start
    for place, tile in sorted(state.tiles.items()):
        if place not in loaded.tiles or tile.program != loaded.tiles[place].program:
            for at, data in tile.program.spans():
                words = struct.unpack(f"<{len(data) // GRANULE_BYTES}I", data)
                yield BlockWrite(address(*place, start + at), words)
    for name, one in known.items():
        if name != first:
            yield from (operation for operation in one.writes if owners[part_of(operation)] == name)


def _user(operation: IrOperation) -> CoreOp | DmaProgramOp | None:
    """The core, or the DMAs, whose program an operation is part of."""
    return enclosing(operation, CoreOp) or enclosing(operation, DmaProgramOp)
