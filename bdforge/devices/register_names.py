"""What stands at an address of the array: memory, or a register with its name and layout."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from bdforge.devices.bd_registers import RegisterGroup
from bdforge.devices.limits import AIE2, GRANULE_BYTES, TileKind
from bdforge.devices.registers import TILE_REGISTERS, split_address
from bdforge.devices.switch_registers import (
    CASCADE,
    CASCADE_OFFSET,
    CIRCUIT_MASTER,
    RULE,
    SHIM_DEMUX,
    SHIM_DEMUX_OFFSET,
    SHIM_MUX,
    SHIM_MUX_OFFSET,
    SLAVE,
    master_offset,
    rule_offset,
    slave_offset,
)
from bdforge.devices.switches import PACKET_RULES_PER_SLAVE, masters_of, slaves_of

ROWS = 6
"""Of every array; addresses of rows beyond lead nowhere."""


class What(StrEnum):
    """What is at an address; OTHER is a register that no rule here knows."""

    MEMORY = "memory"
    PROGRAM = "program memory"
    BD = "BD"
    LOCK = "lock"
    QUEUE = "queue"
    CONTROL = "control"
    MASTER = "master"
    SLAVE = "slave"
    RULE = "rule"
    MUX = "shim mux"
    DEMUX = "shim demux"
    CORE = "core control"
    CASCADE = "cascade"
    PAD_VALUE = "pad value"
    OTHER = "register"


class Register(NamedTuple):
    """What stands at an address: a tile, a name within it, and the layout of its word or words if it has one.

    `index` are its numbers: byte of memory; BD and word; lock; channel; port and rule. A master port's `layout` is
    that of circuits.
    """

    kind: TileKind
    column: int
    row: int
    name: str
    layout: RegisterGroup | None = None
    what: What = What.OTHER
    index: tuple[int, ...] = ()
    direction: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.column}, {self.row}) {self.name}"


def register_at(address: int, memtile_rows: int = 1) -> Register:
    """The register or memory byte at a full address, in an array with so many rows of memtiles."""
    column, row, offset = split_address(address)
    kind = TileKind.SHIM if row == 0 else TileKind.MEMTILE if row <= memtile_rows else TileKind.CORE
    if (found := what_at(kind, offset)) is None:
        return Register(kind, column, row, f"register {offset:#x}")
    what, name, layout, index, direction = found
    return Register(kind, column, row, name, layout, what, index, direction)


_Found = tuple[What, str, RegisterGroup | None, tuple[int, ...], str]


@lru_cache(maxsize=1 << 14)
def what_at(kind: TileKind, offset: int) -> _Found | None:
    """What stands at a tile's offset, as `Register` has it: what, name, layout, index, direction; None if unknown."""
    if offset < AIE2.limits(kind).memory_bytes:  # both generations have the same counts
        return What.MEMORY, f"memory {offset:#x}", None, (offset,), ""
    program = TILE_REGISTERS[kind].program_memory
    if offset in program:
        place = offset - program.start
        return What.PROGRAM, f"program memory {place:#x}", None, (place,), ""
    return _registers(kind).get(offset)


@cache
def _registers(kind: TileKind) -> dict[int, _Found]:
    """Every register of a kind of tile, by its offset."""
    return dict((*_dma_registers(kind), *_switch_registers(kind), *_SINGLE.get(kind, ())))


def _dma_registers(kind: TileKind) -> Iterator[tuple[int, _Found]]:
    at, limits = TILE_REGISTERS[kind], AIE2.limits(kind)
    for bd, word in product(range(limits.bds), range(at.bd.words)):
        name, layout = (f"BD {bd} word {word}", None) if word else (f"BD {bd}", at.bd)
        yield at.bd_offset(bd) + GRANULE_BYTES * word, (What.BD, name, layout, (bd, word), "")
    for lock in range(limits.locks):
        yield at.lock_offset(lock), (What.LOCK, f"lock {lock}", None, (lock,), "")
    for way, i in product(("S2MM", "MM2S"), range(limits.channels)):
        yield at.control_offset(way, i), (What.CONTROL, f"{way} {i} control", at.control, (i,), way)
        yield at.queue_offset(way, i), (What.QUEUE, f"{way} {i} queue", at.queue, (i,), way)
        if way == "MM2S" and at.pad_value_base is not None:
            yield at.pad_value_base + GRANULE_BYTES * i, (What.PAD_VALUE, f"{way} {i} pad value", None, (i,), way)


def _switch_registers(kind: TileKind) -> Iterator[tuple[int, _Found]]:
    for port, (bundle, channel) in enumerate(masters_of(kind)):
        yield master_offset(kind, port), (What.MASTER, f"master {bundle} : {channel}", CIRCUIT_MASTER, (port,), "")
    for port, (bundle, channel) in enumerate(slaves_of(kind)):
        name = f"slave {bundle} : {channel}"
        yield slave_offset(kind, port), (What.SLAVE, name, SLAVE, (port,), "")
        for rule in range(PACKET_RULES_PER_SLAVE):
            yield rule_offset(kind, port, rule), (What.RULE, f"rule {rule} of {name}", RULE, (port, rule), "")


_SINGLE: Mapping[TileKind, tuple[tuple[int, _Found], ...]] = {
    TileKind.SHIM: (
        (SHIM_MUX_OFFSET, (What.MUX, "shim mux", SHIM_MUX, (), "")),
        (SHIM_DEMUX_OFFSET, (What.DEMUX, "shim demux", SHIM_DEMUX, (), "")),
    ),
    TileKind.CORE: (
        (CASCADE_OFFSET, (What.CASCADE, "cascade", CASCADE, (), "")),
        (TILE_REGISTERS[TileKind.CORE].core_control or 0, (What.CORE, "core control", None, (), "")),
    ),
}
