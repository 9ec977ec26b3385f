"""Instruction streams for reading: one line per operation, registers by name, fields spelt out by the kind of tile."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bdforge.devices import TileKind
from bdforge.devices.bd_registers import Layout
from bdforge.devices.limits import AIE2
from bdforge.devices.registers import OFFSET_MASK, TILE_REGISTERS, split_address
from bdforge.txn.codec import Header, Stream
from bdforge.txn.operations import (
    DIRECTIONS,
    PREEMPT_LEVELS,
    BlockWrite,
    LoadPdi,
    Operation,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)

_STORED_LESS_ONE = ("_step", "iteration_wrap", "repeat")


@dataclass(frozen=True, slots=True)
class Register:
    """What stands at an address: a tile, a name within it, and the layout of its word or words if it has one."""

    kind: TileKind
    column: int
    row: int
    name: str
    layout: Layout | None = None

    def __str__(self) -> str:
        return f"{self.kind} ({self.column}, {self.row}) {self.name}"


def register_at(address: int, header: Header) -> Register:
    """The register or memory byte at a full address, in the array that a stream's header describes."""
    column, row, offset = split_address(address)
    kind = TileKind.SHIM if row == 0 else TileKind.MEMTILE if row <= header.memtile_rows else TileKind.CORE
    registers, limits = TILE_REGISTERS[kind], AIE2.limits(kind)  # both generations have the same counts
    if offset < limits.memory_bytes:
        return Register(kind, column, row, f"memory {offset:#x}")
    bd, rest = divmod(offset - registers.bd_base, registers.bd_stride)
    if 0 <= bd < limits.bds and rest < 4 * registers.bd.words:
        name = f"BD {bd}" if rest == 0 else f"BD {bd} word {rest // 4}"
        return Register(kind, column, row, name, registers.bd if rest == 0 else None)
    lock, rest = divmod(offset - registers.lock_base, registers.lock_stride)
    if 0 <= lock < limits.locks and rest == 0:
        return Register(kind, column, row, f"lock {lock}")
    if found := registers.channel_register(offset, limits.channels):
        direction, channel, what = found
        layout = registers.queue if what == "queue" else registers.control
        return Register(kind, column, row, f"{direction} {channel} {what}", layout)
    return Register(kind, column, row, f"register {offset:#x}")


def describe(stream: Stream) -> str:
    """A listing: a line for the header, then one per operation with its index and, when known, its MLIR line."""
    return "\n".join(lines(stream))


def lines(stream: Stream) -> Iterator[str]:
    """The lines of `describe`."""
    header = stream.header
    device = f"generation {header.generation}, {header.columns} columns x {header.rows} rows"
    device = device if header.knows_device else "unknown device"
    yield f"version {header.major}.{header.minor}, {device}, {len(stream.operations)} operations"
    width = len(str(len(stream.operations)))
    for index, operation in enumerate(stream.operations):
        place = f"  ; {operation.location}" if operation.location else ""
        yield f"{index:>{width}}  {describe_operation(operation, header)}{place}"


def describe_operation(operation: Operation, header: Header) -> str:
    """One operation in one line."""
    name = type(operation).__name__
    match operation:
        case BlockWrite():
            return f"{name} {_block(operation, header)}"
        case Write():
            register = register_at(operation.address, header)
            return f"{name} {register} = {_value(register, (operation.value,))}"
        case Preempt():
            return f"{name} {PREEMPT_LEVELS[operation.level]}"
        case LoadPdi():
            device = f" @{operation.device}" if operation.device else ""
            return f"{name} {operation.id}{device}: {operation.size} bytes at {operation.address:#x}"
        case Sync():
            return f"{name} {_sync(operation, header)}"
        case Patch():
            register = register_at(operation.register, header)
            return f"{name} {register} = argument {operation.argument} + {operation.plus} bytes"
        case Unknown():
            return f"{name} code {operation.opcode}: {_hex(operation.payload)}"
    if (mask := getattr(operation, "mask", None)) is None:
        return name
    address, value = getattr(operation, "address", 0), getattr(operation, "value", 0)
    register = register_at(address, header)
    return f"{name} {register} = {_value(register, (value,), mask)} (mask {mask:#010x})"


def _sync(operation: Sync, header: Header) -> str:
    kind = register_at(operation.row << 20, header).kind
    channel = f"{DIRECTIONS[operation.direction]} {operation.channel}"
    tiles = f"{kind} ({operation.column}, {operation.row})"
    if (operation.columns, operation.rows) != (1, 1):
        tiles += f" and on, {operation.columns} columns x {operation.rows} rows"
    return f"token of {tiles} {channel}"


def _block(operation: BlockWrite, header: Header) -> str:
    register = register_at(operation.address, header)
    if register.layout and len(operation.words) == register.layout.words:
        return f"{register}: {_value(register, operation.words)}"
    return f"{register}: {len(operation.words)} words {_hex(operation.words)}"


def _hex(words: Sequence[int]) -> str:
    return " ".join(f"{word:08x}" for word in words)


def _value(register: Register, words: Sequence[int], mask: int | None = None) -> str:
    """Fields that are not 0; steps, iteration counts and repeats as they act, one more than stored."""
    if register.layout is None or len(words) != register.layout.words:
        return f"{words[0]} ({words[0]:#x})"
    layout = register.layout
    values = layout.decode(words)
    shown = [
        f"{name} {value + name.endswith(_STORED_LESS_ONE)}"
        for name, value in values.items()
        if _in_use(name, values) and (mask is None or layout.fields[name].mask & mask)
    ]
    return ", ".join(shown) or "0"


def _in_use(name: str, values: dict[str, int]) -> bool:
    """Whether a field says something: it is not 0, or the dimension that it belongs to is used."""
    if name.endswith(("_step", "_wrap")):
        dimension = name.rsplit("_", 1)[0]
        return bool(values.get(f"{dimension}_wrap") or values.get(f"{dimension}_step"))
    return bool(values[name]) or name in ("bd", "repeat")


def as_json(stream: Stream) -> dict[str, Any]:
    """The stream as values that `json.dumps` takes: header, then operations with raw register fields as stored."""
    header = {field.name: getattr(stream.header, field.name) for field in fields(stream.header)}
    return {"header": header, "operations": [_operation_json(op, stream.header) for op in stream.operations]}


def _operation_json(operation: Operation, header: Header) -> dict[str, Any]:
    values = {field.name: getattr(operation, field.name) for field in fields(operation)}
    location = values.pop("location")
    result: dict[str, Any] = {"operation": type(operation).__name__} | values
    if location is not None:
        result["location"] = str(location)
    address = values.get("address", values.get("register"))
    if address is not None and not isinstance(operation, LoadPdi):
        result |= _register_json(operation, register_at(address, header), address)
    return result


def _register_json(operation: Operation, register: Register, address: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "tile": str(register.kind), "column": register.column, "row": register.row,
        "offset": address & OFFSET_MASK, "name": register.name,
    }  # fmt: skip
    words = operation.words if isinstance(operation, BlockWrite) else (getattr(operation, "value", 0),)
    if register.layout and len(words) == register.layout.words and not isinstance(operation, Patch):
        result["fields"] = register.layout.decode(words)
    return result


def diff(first: Stream, second: Stream, names: tuple[str, str] = ("first", "second")) -> list[str]:
    """Lines of a unified diff of two listings without operation numbers; empty if the streams are equal."""
    if first == second:
        return []
    before, after = (
        [next(lines(stream)), *(describe_operation(op, stream.header) for op in stream.operations)]
        for stream in (first, second)
    )
    listing = list(difflib.unified_diff(before, after, *names, lineterm=""))
    return listing or ["the streams differ only in words that readers ignore"]
