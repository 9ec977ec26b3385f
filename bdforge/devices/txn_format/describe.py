"""Instruction streams for reading: one line per operation, registers by name, fields spelt out by the kind of tile."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from textwrap import wrap
from typing import Any

from bdforge.common.messages import clip_path
from bdforge.devices.register_names import Register, What, register_at
from bdforge.devices.registers import OFFSET_MASK
from bdforge.devices.switch_registers import CIRCUIT_MASTER, PACKET_MASTER
from bdforge.devices.switches import slaves_of
from bdforge.devices.txn_format.codec import InstructionStream
from bdforge.devices.txn_format.operations import (
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


def describe(stream: InstructionStream) -> str:
    """A listing: a line for the header, then one per operation with its index and, when known, its MLIR line."""
    return "\n".join(lines(stream))


def lines(stream: InstructionStream) -> Iterator[str]:
    """The lines of `describe`."""
    header = stream.header
    device = f"generation {header.generation}, {header.columns} columns x {header.rows} rows"
    device = device if header.knows_device else "unknown device"
    yield f"version {header.major}.{header.minor}, {device}, {len(stream.operations)} operations"
    width = len(str(len(stream.operations)))
    for index, operation in enumerate(stream.operations):
        place = f"  ; {operation.location}" if operation.location else ""
        yield f"{index:>{width}}  {describe_operation(operation, header.memtile_rows)}{place}"


def listing(operations: Iterable[Operation], width: int = 80) -> Iterator[str]:
    """Register writes under the operations of the text that they come from, in lines of at most `width` characters."""
    for (place, origin), group in groupby(operations, lambda operation: (operation.location, operation.origin)):
        where = "" if place is None else f"{clip_path(place.file)}:{place.line}"
        yield from wrap(f"{where} {origin or ''}".strip(), width, break_on_hyphens=False)
        for operation in group:
            line = describe_operation(operation)
            yield from wrap(line, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def describe_operation(operation: Operation, memtile_rows: int = 1) -> str:
    """One operation in one line."""
    name = type(operation).__name__
    match operation:
        case BlockWrite():
            return f"{name} {_block(operation, memtile_rows)}"
        case Write():
            register = register_at(operation.address, memtile_rows)
            return f"{name} {register} = {fields_text(register, (operation.value,))}"
        case Preempt():
            level = operation.level
            return f"{name} {PREEMPT_LEVELS[level] if level < len(PREEMPT_LEVELS) else f'level {level}'}"
        case LoadPdi():
            device = f" @{operation.device}" if operation.device else ""
            device += f" by {operation.expanded}" if operation.expanded else ""
            return f"{name} {operation.id}{device}: {operation.size} bytes at {operation.address:#x}"
        case Sync():
            return f"{name} {_sync(operation, memtile_rows)}"
        case Patch():
            register = register_at(operation.register, memtile_rows)
            return f"{name} {register} = argument {operation.argument} + {operation.plus} bytes"
        case Unknown():
            return f"{name} code {operation.opcode}: {_hex(operation.payload)}"
    if (mask := getattr(operation, "mask", None)) is None:
        return name
    address, value = getattr(operation, "address", 0), getattr(operation, "value", 0)
    register = register_at(address, memtile_rows)
    return f"{name} {register} = {fields_text(register, (value,), mask)} (mask {mask:#010x})"


def _sync(operation: Sync, memtile_rows: int) -> str:
    kind = register_at(operation.row << 20, memtile_rows).kind
    channel = f"{DIRECTIONS[operation.direction]} {operation.channel}"
    tiles = f"{kind} ({operation.column}, {operation.row})"
    if (operation.columns, operation.rows) != (1, 1):
        tiles += f" and on, {operation.columns} columns x {operation.rows} rows"
    return f"token of {tiles} {channel}"


def _block(operation: BlockWrite, memtile_rows: int) -> str:
    register = register_at(operation.address, memtile_rows)
    if register.layout and len(operation.words) == register.layout.words:
        return f"{register}: {fields_text(register, operation.words)}"
    return f"{register}: {len(operation.words)} words {_hex(operation.words)}"


def _hex(words: Sequence[int]) -> str:
    return " ".join(f"{word:08x}" for word in words)


def fields_text(register: Register, words: Sequence[int], mask: int | None = None) -> str:
    """Fields that are not 0; steps, iteration counts and repeats as they act, one more than stored."""
    if register.layout is None or len(words) != register.layout.words:
        return f"{words[0]} ({words[0]:#x})"
    layout = register.layout
    if register.what is What.MASTER:
        if not CIRCUIT_MASTER.decode(words)["packet"]:
            return _circuit(register, words[0])
        layout = PACKET_MASTER
    values = layout.decode(words)
    shown = [
        f"{name} {value + name.endswith(_STORED_LESS_ONE)}"
        for name, value in values.items()
        if _in_use(name, values) and (mask is None or layout.fields[name].mask & mask)
    ]
    return ", ".join(shown) or "0"


def _circuit(register: Register, word: int) -> str:
    """Where a master port of circuits takes its words from."""
    values, slaves = CIRCUIT_MASTER.decode([word]), slaves_of(register.kind)
    if not values["enable"] or values["slave"] >= len(slaves):
        return f"{word} ({word:#x})"
    bundle, channel = slaves[values["slave"]]
    return f"from {bundle} : {channel}"


def _in_use(name: str, values: dict[str, int]) -> bool:
    """Whether a field says something: it is not 0, or the dimension that it belongs to is used."""
    if name.endswith(("_step", "_wrap")):
        dimension = name.rsplit("_", 1)[0]
        return bool(values.get(f"{dimension}_wrap") or values.get(f"{dimension}_step"))
    return bool(values[name]) or name in ("bd", "repeat")


def as_json(stream: InstructionStream) -> dict[str, Any]:
    """The stream as values that `json.dumps` takes: header, then operations with raw register fields as stored."""
    header = {field.name: getattr(stream.header, field.name) for field in fields(stream.header)}
    rows = stream.header.memtile_rows
    return {"header": header, "operations": [_operation_json(op, rows) for op in stream.operations]}


def _operation_json(operation: Operation, memtile_rows: int) -> dict[str, Any]:
    values = {field.name: getattr(operation, field.name) for field in fields(operation)}
    location, _ = values.pop("location"), values.pop("origin")
    result: dict[str, Any] = {"operation": type(operation).__name__} | values
    if location is not None:
        result["location"] = str(location)
    address = values.get("address", values.get("register"))
    if address is not None and not isinstance(operation, LoadPdi):
        result |= _register_json(operation, register_at(address, memtile_rows), address)
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


def diff(
    first: InstructionStream, second: InstructionStream, names: tuple[str, str] = ("first", "second")
) -> list[str]:
    """Lines of a unified diff of two listings without operation numbers; empty if the streams are equal."""
    if first == second:
        return []
    before, after = (
        [next(lines(stream)), *(describe_operation(op, stream.header.memtile_rows) for op in stream.operations)]
        for stream in (first, second)
    )
    listing = list(difflib.unified_diff(before, after, *names, lineterm=""))
    return listing or ["the streams differ only in words that readers ignore"]
