"""What takes the array from one step's configuration to the next of a composition, and back to the first.

A core's tile that a step does not use stays as the step before left it, and waits. When a later step uses it, most of
what it gets is written while others still work. So what a run finds in such tiles, and in program memories, is what the
run before left: it is loaded with the first step's configuration.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bdforge.array.images.read import read_image
from bdforge.array.lower import allocated
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.transition import Locks, Running, Touched, ran, transition
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.stream_ops import CascadeFlowOp, ConfigureCascadeOp
from bdforge.array.txn.target import REFUSING
from bdforge.common.files import read_bytes
from bdforge.design.sequences.composed_tensors import UNCHANGED, ChangeNumbers
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import TILE_REGISTERS, address, split_address
from bdforge.devices.txn_format.operations import BlockWrite, MaskPoll, Operation
from bdforge.runtime.built_design import BuildError, BuiltDesign

Place = tuple[int, int]


@dataclass(frozen=True)
class ConfigurationChanges:
    """Operations of each part of a change, and the numbers of those before each step and behind the last one.

    `left` are writes of what a run leaves beside the first step's configuration; they come before its own.
    """

    operations: tuple[tuple[Operation, ...], ...]
    numbers: tuple[ChangeNumbers, ...]
    left: tuple[Operation, ...]


def configuration_changes(
    order: Sequence[str], designs: Mapping[str, BuiltDesign], programs_ahead: bool
) -> ConfigurationChanges:
    """The changes of a run of the designs in an order of their names.

    With `programs_ahead` a core's program memory may be written while it runs, where its program is not.
    """
    known = {name: _Configuration(design) for name, design in designs.items()}
    cycle = _Cycle(order, known, programs_ahead)
    owners, state = cycle.run(ArrayState(known[order[0]].writes))[1:]
    left = tuple(_left(owners, state, order[0], known))
    start = ArrayState([*left, *known[order[0]].writes])
    for place, owner in owners.items():
        ran(start, known[owner].touched, [place] if owner != order[0] else [])
    numbers, *_ = cycle.run(start)
    return ConfigurationChanges(tuple(cycle.operations), tuple(numbers), left)


@dataclass(frozen=True)
class _Configuration:
    """A design's configuration: its writes, the locks and tiles that it uses, and what its runs write themselves."""

    design: BuiltDesign

    @cached_property
    def writes(self) -> tuple[Operation, ...]:
        return read_image(read_bytes(self.design.image("xclbin"), BuildError)).configurations[0]

    @cached_property
    def _device(self) -> DeviceOp:
        module = parse(self.design.mlir, str(self.design.mlir_file))
        return next(op for op in module.walk() if isinstance(op, DeviceOp))

    @cached_property
    def locks(self) -> Locks:
        found: dict[Place, set[int]] = {}
        for lock, number in allocated(self._device, REFUSING).locks.items():
            found.setdefault(lock.tile.place, set()).add(number)
        return found

    @cached_property
    def places(self) -> frozenset[Place]:
        """Of all tiles that it names or writes to."""
        named = {op.place for op in self._device.walk() if isinstance(op, TileOp)}
        return frozenset(named | {_place(operation) for operation in self.writes})

    @cached_property
    def tied(self) -> frozenset[Place]:
        """Tiles of cores that share memory, locks or cascades with others: none of them can wait alone."""
        found: set[Place] = set()
        for op in self._device.walk():
            match op:
                case CascadeFlowOp():
                    found |= {op.source.place, op.destination.place}
                case ConfigureCascadeOp():
                    found.add(op.tile.place)
                case BufferOp() | LockOp():
                    cores = (enclosing(use.operation, CoreOp) for use in op.result.uses)
                    others = {core.tile.place for core in cores if core} - {op.tile.place}
                    found |= others | {op.tile.place} if others else set()
        return frozenset(found)

    @cached_property
    def touched(self) -> Touched:
        """By the writes of its built-in problems: what one size writes in a kind of tile another may write there."""
        if not self.design.manifest.problems:
            return Touched.everything()
        found = Touched()
        for problem in self.design.manifest.problems:
            found = found.of(self.design.sequence(problem.sizes).operations())
        return found


class _Cycle:
    """One run after the other; `operations` are those of the changes of the last one."""

    def __init__(self, order: Sequence[str], known: Mapping[str, _Configuration], programs_ahead: bool) -> None:
        self._order, self._known, self._programs_ahead = order, known, programs_ahead
        self._tied = frozenset().union(*(one.tied for one in known.values()))
        self.operations: list[tuple[Operation, ...]] = []

    def run(self, state: ArrayState) -> tuple[list[ChangeNumbers], dict[Place, str], ArrayState]:
        """Numbers of the changes before each step and behind the last; whose tiles are whose then, and their state."""
        changes: dict[tuple[Operation, ...], int] = {}
        before = self._order[0]
        owners = dict.fromkeys(self._known[before].places, before)
        numbers: list[ChangeNumbers] = []
        for name in [*self._order, self._order[0]]:
            if name == before:
                numbers.append(UNCHANGED)
                continue
            made = self._change(state, self._known[before], self._known[name])
            numbers.append(ChangeNumbers(*(changes.setdefault(tuple(p), len(changes)) if p else None for p in made)))
            owners |= dict.fromkeys(self._known[name].places, name)
            before = name
        self.operations = list(changes)
        return numbers, owners, state

    def _change(self, state: ArrayState, old: _Configuration, new: _Configuration) -> Iterable[list[Operation]]:
        running = Running(ArrayState(old.writes), old.locks, old.places, self._programs_ahead)
        cores = {place for place, tile in state.tiles.items() if tile.kind is TileKind.CORE}
        return transition(state, new.writes, new.locks, old.touched, running, cores - new.places - self._tied)


def _left(
    owners: Mapping[Place, str], state: ArrayState, first: str, known: Mapping[str, _Configuration]
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
            yield from (operation for operation in one.writes if owners[_place(operation)] == name)


def _place(operation: Operation) -> Place:
    assert not isinstance(operation, MaskPoll)
    column, row, _ = split_address(operation.address)  # type: ignore[attr-defined]
    return column, row
