"""What register writes leave in an array: the state of every tile, decoded from a configuration of any origin."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bdforge.common.messages import InputError
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import ROWS, Register, What, register_at
from bdforge.devices.registers import TILE_REGISTERS, split_address
from bdforge.devices.txn_format.operations import BlockWrite, MaskPoll, MaskWrite, Operation, Write

_WORD_MASK = 0xFFFFFFFF


class StateError(InputError):
    """A write that no rule knows: an address without a register that configurations use, or an operation that waits."""


class PushedTask(NamedTuple):
    """What was pushed to a channel's queue; `repeat` runs follow the first."""

    direction: str
    channel: int
    bd: int
    repeat: int
    token: bool


Key = tuple[What, str, tuple[int, ...]]
"""What a register is, a channel's direction, and its numbers."""

ChannelKey = tuple[str, int]
"""A channel's direction and number."""


class ChannelWait(NamedTuple):
    """The BDs that a channel's tasks go through, and the locks of their tile in them."""

    bds: frozenset[int]
    locks: frozenset[int]


class WrittenMemory:
    """Bytes of a memory, and which of them were written."""

    def __init__(self, size: int) -> None:
        self.data, self.written = bytearray(size), bytearray(size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrittenMemory) and (self.data, self.written) == (other.data, other.written)

    def store(self, offset: int, data: bytes, mask: int = _WORD_MASK) -> None:
        """Write bytes; of a word only those whose mask is 0xFF. StateError for other masks and beyond the end."""
        if offset + len(data) > len(self.data):
            raise StateError(f"{len(data)} bytes at {offset:#x} end beyond the memory's {len(self.data):#x}")
        if mask == _WORD_MASK:
            self.data[offset : offset + len(data)] = data
            self.written[offset : offset + len(data)] = b"\1" * len(data)
            return
        for i, byte in enumerate(data):
            bits = mask >> 8 * (i % GRANULE_BYTES) & 0xFF
            if bits not in (0, 0xFF):
                raise StateError(f"mask {mask:#010x} of memory at {offset:#x} splits a byte")
            if bits:
                self.data[offset + i], self.written[offset + i] = byte, 1

    def spans(self) -> Iterator[tuple[int, bytes]]:
        """(start, bytes) of what was written without a gap."""
        start = self.written.find(1)
        while start >= 0:
            end = self.written.find(0, start)
            end = len(self.data) if end < 0 else end
            yield start, bytes(self.data[start:end])
            start = self.written.find(1, end)


@dataclass(eq=False)
class TileState:
    """One tile. Registers hold what was written to them last; those never written are missing.

    `registers` is keyed by what and numbers (`Register`): locks, channel controls, switch ports, rules, muxes, cascade,
    core control, padding values. `origins` has the last write of each, and of each BD; of tasks `pushes` has it. Runs
    have pushed tasks to the channels `pushed` and written the BDs `rewritten`. Channels in `waits` still have tasks of
    a configuration before.
    """

    kind: TileKind
    column: int
    row: int
    memory_bytes: int = 0
    registers: dict[Key, int] = field(default_factory=dict)
    origins: dict[Key, Operation] = field(default_factory=dict)
    bds: dict[int, list[int]] = field(default_factory=dict)
    tasks: list[PushedTask] = field(default_factory=list)
    pushes: list[Operation] = field(default_factory=list)
    pushed: set[ChannelKey] = field(default_factory=set)
    rewritten: set[int] = field(default_factory=set)
    waits: dict[ChannelKey, ChannelWait] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory = WrittenMemory(max(AIE2.limits(self.kind).memory_bytes, self.memory_bytes))
        self.program = WrittenMemory(len(TILE_REGISTERS[self.kind].program_memory))

    @property
    def name(self) -> str:
        """The tile in words."""
        return f"{self.kind} ({self.column}, {self.row})"

    def of(self, what: What) -> dict[tuple[int, ...], int]:
        """Values of all written registers of a kind, by their numbers."""
        return {index: value for (kind, _, index), value in sorted(self.registers.items()) if kind is what}

    @property
    def locks(self) -> dict[int, int]:
        """Values of locks."""
        return {lock: value for (lock,), value in self.of(What.LOCK).items()}

    def fields(self, bd: int) -> dict[str, int]:
        """A BD's fields."""
        return TILE_REGISTERS[self.kind].bd.decode(self.bds[bd])


class ArrayState:
    """All tiles that something was written to, by column and row.

    `sizes` are bytes of memories that reach further than a tile's, as emulated ones may.
    """

    def __init__(
        self, operations: Iterable[Operation] = (), sizes: Mapping[tuple[int, int], int] | None = None
    ) -> None:
        self._sizes = sizes or {}
        self.tiles: dict[tuple[int, int], TileState] = {}
        for operation in operations:
            self.apply(operation)

    def apply(self, operation: Operation) -> None:
        """Do a register write, or see that what a poll waits for holds; StateError where nothing is known to be."""
        match operation:
            case Write():
                self._store(operation, (operation.value,), _WORD_MASK)
            case MaskWrite():
                self._store(operation, (operation.value,), operation.mask)
            case BlockWrite():
                self._store(operation, operation.words, _WORD_MASK)
            case MaskPoll():
                self._check(operation)
            case _:
                raise StateError(f"a {type(operation).__name__} is no register write, so no configuration")

    def _check(self, poll: MaskPoll) -> None:
        register = register_at(poll.address)
        tile = self.tiles.get((register.column, register.row))
        key = register.what, register.direction, register.index
        value = 0 if tile is None else tile.registers.get(key, 0)
        if value & poll.mask != poll.value:
            raise StateError(f"{register}: waits for {poll.value:#x} under mask {poll.mask:#x}, but holds {value:#x}")

    def _store(self, operation: Write | MaskWrite | BlockWrite, words: tuple[int, ...], mask: int) -> None:
        address = operation.address
        column, row, offset = split_address(address)
        if row >= ROWS or address > _WORD_MASK or offset % GRANULE_BYTES:
            raise StateError(f"nothing is at address {address:#x}: column {column}, row {row}, offset {offset:#x}")
        register = register_at(address)
        tile = self.tiles.get((column, row))
        if tile is None:
            tile = self.tiles[column, row] = TileState(register.kind, column, row, self._sizes.get((column, row), 0))
        if register.what in (What.MEMORY, What.PROGRAM):
            memory = tile.memory if register.what is What.MEMORY else tile.program
            data = struct.pack(f"<{len(words)}I", *words)
            memory.store(register.index[0], data, mask)
            return
        for i, word in enumerate(words):
            _set(tile, register_at(address + GRANULE_BYTES * i) if i else register, word, mask, operation)


def _set(tile: TileState, register: Register, value: int, mask: int, operation: Operation) -> None:
    if register.what is What.OTHER:
        raise StateError(f"{register}: no rule knows what it is; {value:#x} is written to it")
    if register.what is What.BD:
        bd, word = register.index
        words = tile.bds.setdefault(bd, [0] * TILE_REGISTERS[tile.kind].bd.words)
        words[word] = words[word] & ~mask | value & mask
        tile.origins[What.BD, "", (bd,)] = operation
    elif register.what is What.QUEUE and mask == _WORD_MASK:
        fields = TILE_REGISTERS[tile.kind].queue.decode([value])
        token = bool(fields["token"])
        tile.pushes.append(operation)
        tile.tasks.append(PushedTask(register.direction, register.index[0], fields["bd"], fields["repeat"], token))
    elif register.what is What.QUEUE:
        raise StateError(f"{register}: a masked write to a task queue")
    else:
        key = register.what, register.direction, register.index
        tile.origins[key] = operation
        tile.registers[key] = tile.registers.get(key, 0) & ~mask | value & mask
