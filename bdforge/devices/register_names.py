"""What stands at an address of the array: memory, or a register with its name and layout."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

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
    switch_register,
)
from bdforge.devices.switches import masters_of, slaves_of

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


@dataclass(frozen=True, slots=True)
class Register:
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
    for find in (_memory, _bd_or_lock, _channel, _switch, _single):
        if (found := find(kind, offset)) is not None:
            return found
    return None


def _memory(kind: TileKind, offset: int) -> _Found | None:
    if offset < AIE2.limits(kind).memory_bytes:  # both generations have the same counts
        return What.MEMORY, f"memory {offset:#x}", None, (offset,), ""
    program = TILE_REGISTERS[kind].program_memory
    if offset in program:
        place = offset - program.start
        return What.PROGRAM, f"program memory {place:#x}", None, (place,), ""
    return None


def _bd_or_lock(kind: TileKind, offset: int) -> _Found | None:
    registers, limits = TILE_REGISTERS[kind], AIE2.limits(kind)
    bd, rest = divmod(offset - registers.bd_base, registers.bd_stride)
    if 0 <= bd < limits.bds and rest < GRANULE_BYTES * registers.bd.words:
        word = rest // GRANULE_BYTES
        name = f"BD {bd}" if word == 0 else f"BD {bd} word {word}"
        return What.BD, name, registers.bd if word == 0 else None, (bd, word), ""
    lock, rest = divmod(offset - registers.lock_base, registers.lock_stride)
    if 0 <= lock < limits.locks and rest == 0:
        return What.LOCK, f"lock {lock}", None, (lock,), ""
    return None


def _channel(kind: TileKind, offset: int) -> _Found | None:
    registers, limits = TILE_REGISTERS[kind], AIE2.limits(kind)
    if (found := registers.channel_register(offset, limits.channels)) is not None:
        direction, channel, register = found
        what, layout = (What.QUEUE, registers.queue) if register == "queue" else (What.CONTROL, registers.control)
        return what, f"{direction} {channel} {register}", layout, (channel,), direction
    if registers.pad_value_base is None:
        return None
    channel, rest = divmod(offset - registers.pad_value_base, GRANULE_BYTES)
    if 0 <= channel < limits.channels and rest == 0:
        return What.PAD_VALUE, f"MM2S {channel} pad value", None, (channel,), "MM2S"
    return None


def _switch(kind: TileKind, offset: int) -> _Found | None:
    masters, slaves = masters_of(kind), slaves_of(kind)
    found = switch_register(kind, offset, len(masters), len(slaves))
    if found is None:
        return None
    what, port, rule = found
    bundle, channel = (masters if what == "master" else slaves)[port]
    name = f"{bundle} : {channel}"
    if what == "master":
        return What.MASTER, f"master {name}", CIRCUIT_MASTER, (port,), ""
    if what == "slave":
        return What.SLAVE, f"slave {name}", SLAVE, (port,), ""
    return What.RULE, f"rule {rule} of slave {name}", RULE, (port, rule), ""


def _single(kind: TileKind, offset: int) -> _Found | None:
    if kind is TileKind.SHIM and offset in (SHIM_MUX_OFFSET, SHIM_DEMUX_OFFSET):
        what, layout = (What.MUX, SHIM_MUX) if offset == SHIM_MUX_OFFSET else (What.DEMUX, SHIM_DEMUX)
        return what, str(what), layout, (), ""
    if kind is TileKind.CORE and offset == CASCADE_OFFSET:
        return What.CASCADE, "cascade", CASCADE, (), ""
    if kind is TileKind.CORE and offset == TILE_REGISTERS[kind].core_control:
        return What.CORE, "core control", None, (), ""
    return None
