"""From one configuration to the next by register writes, while the array stays loaded: what a load would do anew.

Cores and DMA channels that ran stop and start anew, as a load lets them (`configuration`); their locks and first values
of buffers are written again, since a run changed them. Of the rest (programs, BDs, switches) only what differs is
written: two configurations that are alike follow each other at little cost.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product

from bdforge.array.lower.array_state import ArrayState, TileState
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What
from bdforge.devices.registers import CORE_ENABLE, CORE_RESET, TILE_REGISTERS, address
from bdforge.devices.switch_registers import (
    CASCADE_OFFSET,
    SHIM_DEMUX_OFFSET,
    SHIM_MUX_OFFSET,
    master_offset,
    rule_offset,
    slave_offset,
)
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write

Place = tuple[int, int]
"""Column and row of a tile."""
Locks = Mapping[Place, Collection[int]]
"""The locks by tile that a configuration's cores and BDs use."""

_MEMORY_WORDS = 1 << 12  # of a block write, so that no operation is longer than what streams of others hold
_DIRECTIONS = ("S2MM", "MM2S")


def ran(state: ArrayState, operations: Iterable[Operation]) -> None:
    """Let `state` know what a run's operations wrote; what they move is not followed, and shims' BDs are no state."""
    for operation in operations:
        if isinstance(operation, Write | MaskWrite | BlockWrite):
            state.apply(operation)


def transition(state: ArrayState, wanted: Iterable[Operation], locks: Locks | None = None) -> list[Operation]:
    """The writes that turn `state` into what `wanted`, the writes of a configuration, makes of an array.

    `state` is what is loaded and has run to its end; it becomes what is there afterwards. `locks` are all that either
    configuration uses; without it every lock of a core that has a program counts as used. StateError as `ArrayState`.
    """
    after = ArrayState(wanted)
    for place in after.tiles.keys() - state.tiles.keys():
        new = after.tiles[place]
        state.tiles[place] = TileState(new.kind, *place)
    pairs = [(old, after.tiles.get(place)) for place, old in sorted(state.tiles.items())]
    tiles = [(old, TileState(old.kind, old.column, old.row) if new is None else new) for old, new in pairs]
    parts = (_stops, _programs, _memories, _locks(locks), _bds, _switches, _releases, _starts, _enables)
    found: list[Operation] = [*_merged(write for part in parts for old, new in tiles for write in part(old, new))]
    for old, _ in tiles:
        old.tasks.clear()
        old.pushes.clear()
    ran(state, found)
    return found


def _at(tile: TileState, offset: int) -> int:
    return address(tile.column, tile.row, offset)


def _runs(tile: TileState) -> bool:
    return bool(tile.of(What.CORE).get((), 0) & CORE_ENABLE)


def _control(tile: TileState, direction: str, channel: int) -> int:
    """What a channel's control register holds: of a core tile's that has tasks the bit without which none starts."""
    value = tile.registers.get((What.CONTROL, direction, (channel,)), 0)
    return value | CORE_ENABLE if tile.kind is TileKind.CORE and (direction, channel) in _channels(tile) else value


def _channels(tile: TileState) -> list[tuple[str, int]]:
    """Channels that had tasks; a shim's have no reset, and nothing to do once their tokens came."""
    return sorted({(task.direction, task.channel) for task in tile.tasks}) if tile.kind is not TileKind.SHIM else []


def _stops(old: TileState, new: TileState) -> Iterator[Write]:
    """Stop the core, and hold channels in reset."""
    registers = TILE_REGISTERS[old.kind]
    if _runs(old):
        yield Write(_at(old, registers.core_control or 0), CORE_RESET)
    for direction, channel in _channels(old):
        held = registers.control.fields["reset"].mask
        yield Write(_at(old, registers.control_offset(direction, channel)), held)


def _programs(old: TileState, new: TileState) -> Iterator[BlockWrite]:
    """Programs that are not there yet."""
    for start, data in new.program.spans():
        if old.program.data[start : start + len(data)] != data:
            yield from _filled(old, TILE_REGISTERS[old.kind].program_memory.start + start, data)


def _memories(old: TileState, new: TileState) -> Iterator[BlockWrite]:
    """First values of buffers, and data of programs."""
    for start, data in new.memory.spans():
        yield from _filled(old, start, data)


def _filled(tile: TileState, offset: int, data: bytes) -> Iterator[BlockWrite]:
    words = struct.unpack(f"<{len(data) // GRANULE_BYTES}I", data)
    for first in range(0, len(words), _MEMORY_WORDS):
        yield BlockWrite(_at(tile, offset + GRANULE_BYTES * first), words[first : first + _MEMORY_WORDS])


def _locks(used: Locks | None):
    def write(old: TileState, new: TileState) -> Iterator[Write]:
        """Values of the locks that a run may have changed, or that start with another one."""
        place = old.column, old.row
        changed = set(_of_bds(old)) | set(_of_bds(new)) if used is None else set(used.get(place, ()))
        if used is None and (_runs(old) or _runs(new)):
            changed |= set(range(AIE2.limits(old.kind).locks))
        for lock in sorted(changed | {lock for lock, value in new.locks.items() if value}):
            yield Write(_at(old, TILE_REGISTERS[old.kind].lock_offset(lock)), new.locks.get(lock, 0))

    return write


def _of_bds(tile: TileState) -> Iterator[int]:
    """Locks that the tile's BDs name; of memtiles in its own window."""
    for bd in tile.bds:
        fields = tile.fields(bd)
        for name in ("lock_acq_id", "lock_rel_id"):
            yield fields.get(name, 0) % AIE2.limits(tile.kind).locks


def _bds(old: TileState, new: TileState) -> Iterator[BlockWrite]:
    """BDs that differ, and those whose iteration a run has moved on."""
    if old.kind is TileKind.SHIM:
        return
    for bd, words in sorted(new.bds.items()):
        if old.bds.get(bd) != words or new.fields(bd)["iteration_wrap"]:
            yield BlockWrite(_at(old, TILE_REGISTERS[old.kind].bd_offset(bd)), tuple(words))


def _switches(old: TileState, new: TileState) -> Iterator[Write]:
    """Ports, rules, shim muxes and cascades; 0 where only the configuration before set one."""
    offsets = {
        What.MASTER: lambda port: master_offset(old.kind, port),
        What.SLAVE: lambda port: slave_offset(old.kind, port),
        What.RULE: lambda port, rule: rule_offset(old.kind, port, rule),
        What.MUX: lambda: SHIM_MUX_OFFSET,
        What.DEMUX: lambda: SHIM_DEMUX_OFFSET,
        What.CASCADE: lambda: CASCADE_OFFSET,
    }
    writes: dict[int, int] = {}
    for what, offset in offsets.items():
        before, wanted = old.of(what), new.of(what)
        for index in before.keys() | wanted.keys():
            if before.get(index, 0) != wanted.get(index, 0):
                writes[offset(*index)] = wanted.get(index, 0)
    for offset, value in sorted(writes.items()):
        yield Write(_at(old, offset), value)


def _releases(old: TileState, new: TileState) -> Iterator[Write]:
    """Let go of the core and of channels, whose controls become what is wanted."""
    registers = TILE_REGISTERS[old.kind]
    if _runs(old):
        yield Write(_at(old, registers.core_control or 0), 0)
    stopped = _channels(old)
    for direction, channel in product(_DIRECTIONS, range(AIE2.limits(old.kind).channels)):
        control = _control(new, direction, channel)
        if (direction, channel) in stopped or (control != _control(old, direction, channel) and old.kind != "shim"):
            yield Write(_at(old, registers.control_offset(direction, channel)), control)
    for index, value in new.of(What.PAD_VALUE).items():
        if registers.pad_value_base is not None and value != old.of(What.PAD_VALUE).get(index, 0):
            yield Write(_at(old, registers.pad_value_base + GRANULE_BYTES * index[0]), value)


def _starts(old: TileState, new: TileState) -> Iterator[Write]:
    """Push the tasks that run from the start."""
    registers = TILE_REGISTERS[old.kind]
    for task in new.tasks:
        word = registers.queue.encode({"bd": task.bd, "repeat": task.repeat, "token": int(task.token)})[0]
        yield Write(_at(old, registers.queue_offset(task.direction, task.channel)), word)


def _enables(old: TileState, new: TileState) -> Iterator[Write]:
    """Let cores run from program address 0 on."""
    if _runs(new):
        yield Write(_at(old, TILE_REGISTERS[old.kind].core_control or 0), CORE_ENABLE)


def _merged(writes: Iterable[Write | BlockWrite]) -> Iterator[Write | BlockWrite]:
    """Writes of registers that follow each other as one operation."""
    start, words = 0, ()
    for write in writes:
        own = (write.value,) if isinstance(write, Write) else write.words
        joins = words and write.address == start + GRANULE_BYTES * len(words)
        if joins and len(words) + len(own) <= _MEMORY_WORDS:
            words += own
            continue
        yield from _operation(start, words)
        start, words = write.address, own
    yield from _operation(start, words)


def _operation(start: int, words: tuple[int, ...]) -> Iterator[Write | BlockWrite]:
    if words:
        yield Write(start, words[0]) if len(words) == 1 else BlockWrite(start, words)
