"""Designs as text: tiles, buffers, DMA programs and raw register operations put together from short pieces."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from support import register_designs

_USE_LOCK = re.compile(r"use_lock\((%\w+), (\w+)")
KINDS = {0: "shim_dma", 1: "memtile_dma"}


@dataclass(frozen=True)
class Task:
    """A channel's chain of BD blocks, each the text of its operations without the branch; `loop` closes the chain."""

    direction: str
    channel: int
    bds: Sequence[str]
    loop: bool = False
    repeat: int = 0


def module(device: str, *parts: str) -> str:
    """A module with one device of these parts."""
    return "module {\naie.device(" + device + ") {\n" + "\n".join(parts) + "\n}\n}\n"


def tile(column: int, row: int) -> str:
    """A tile called %t<column><row>."""
    return f"%t{column}{row} = aie.tile({column}, {row})"


def buffer(
    name: str, at: str, elements: int | str, values: Iterable[int] | None = None, element: str = "i32",
    address: int | None = None,
) -> str:  # fmt: skip
    """A buffer %name of a tile such as "01", of so many elements or of a shape such as "4x16"."""
    point = ".0" if "f" in element else ""
    initial = "" if values is None else f" = dense<[{', '.join(f'{int(v)}{point}' for v in values)}]>"
    place = "" if address is None else f", address = {address} : i32"
    return f'%{name} = aie.buffer(%t{at}) {{sym_name = "{name}"{place}}} : memref<{elements}x{element}>{initial}'


def program(at: str, *tasks: Task) -> str:
    """The DMA program of a tile such as "01"; the tasks are queued in this order."""
    blocks: list[str] = []
    starts: list[str] = []
    for number, task in enumerate(tasks):
        following = f"^start{number + 1}" if number + 1 < len(tasks) else "^end"
        repeat = f", repeat_count = {task.repeat}" if task.repeat else ""
        label = "" if number == 0 else f"^start{number}:\n"
        start = f"aie.dma_start({task.direction}, {task.channel}, ^bd{number}_0, {following}{repeat})"
        starts.append(f"{label}%s{number} = {start}")
        for place, bd in enumerate(task.bds):
            next_bd = f"^bd{number}_{place + 1}" if place + 1 < len(task.bds) else "^end"
            if task.loop and place + 1 == len(task.bds):
                next_bd = f"^bd{number}_0"
            blocks.append(f"^bd{number}_{place}:\n{paired(bd)}\naie.next_bd {next_bd}")
    kind = KINDS.get(int(at[1]), "mem")
    body = "\n".join([*starts, *blocks, "^end:", "aie.end"])
    return f"%dma{at} = aie.{kind}(%t{at}) {{\n{body}\n}}"


def paired(bd: str) -> str:
    """A BD block with both locks where it has one, as mlir-aie wants it; the other one changes nothing."""
    used = _USE_LOCK.findall(bd)
    if len(used) != 1:
        return bd
    ((name, action),) = used
    if action == "Release":
        return f"aie.use_lock({name}, AcquireGreaterEqual, 1) {{acq_en = false}}\n{bd}"
    return f"{bd}\naie.use_lock({name}, Release, 0)"


def core(at: str, *lines: str, times: int = 0) -> str:
    """A core's program, which has %c0 and %c1; with `times` the lines are a loop's over %i."""
    if times:
        lines = (f"%times = arith.constant {times} : index", "scf.for %i = %c0 to %times step %c1 {", *lines, "}")
    constants = [f"%c{i} = arith.constant {i} : index" for i in range(2)]
    return "\n".join([f"%core{at} = aie.core(%t{at}) {{", *constants, *lines, "aie.end", "}"])


def packet_flow(number: int, source: str, *destinations: str, keep: bool = False) -> str:
    """Packets of one id from one end to others; an end is written "01 DMA : 0"."""
    ends = [f"aie.packet_source<{_end(source)}>", *(f"aie.packet_dest<{_end(end)}>" for end in destinations)]
    return f"aie.packet_flow({number}) {{ {' '.join(ends)} }}" + (" {keep_pkt_header = true}" if keep else "")


def flow(source: str, destination: str) -> str:
    """A circuit between two ends, written as in `packet_flow`."""
    return f"aie.flow({_end(source)}, {_end(destination)})"


def _end(end: str) -> str:
    at, port = end.split(" ", 1)
    return f"%t{at}, {port}"


def bd(name: str, elements: int | str, arguments: str = "", packet: int | None = None, element: str = "i32") -> str:
    """A BD over %name of so many elements; `arguments` are its offset, length and dimensions."""
    shown = f", {arguments}" if arguments else ""
    header = "" if packet is None else f" {{packet = #aie.packet_info<pkt_type = 0, pkt_id = {packet}>}}"
    return f"aie.dma_bd(%{name} : memref<{elements}x{element}>{shown}){header}"


def acquire(lock: str, value: int = 1) -> str:
    """Wait for a lock to be at least `value`, and take as much."""
    return f"aie.use_lock(%{lock}, AcquireGreaterEqual, {value})"


def release(lock: str, value: int = 1) -> str:
    """Raise a lock."""
    return f"aie.use_lock(%{lock}, Release, {value})"


def lock(name: str, at: str, number: int, init: int = 0) -> str:
    """A lock %name of a tile."""
    return f'%{name} = aie.lock(%t{at}, {number}) {{init = {init} : i32, sym_name = "{name}"}}'


def ring(direction: str, channel: int, first: str, block: str, last: str) -> Task:
    """A channel that runs one BD for ever, behind what it acquires and before what it releases."""
    return Task(direction, channel, [f"{first}\n{block}\n{last}"], loop=True)


def memcpy(array: str, channel: str, number: int, count: int, element: str = "i32", token: bool = False) -> str:
    """All `count` elements of a sequence's argument through the shim channel of that allocation, by a BD's number."""
    options = f"id = {number} : i64, metadata = @{channel}{', issue_token = true' * token}"
    walk = f"[0, 0, 0, 0][1, 1, 1, {count}][0, 0, 0, 1]"
    return f"aiex.npu.dma_memcpy_nd(%{array}{walk}) {{{options}}} : memref<{count}x{element}>"


MEMTILE_OWN_WORDS = 0x20000
"""Where a memtile's own memory starts for its DMA; its `buffer_offset` counts words from there."""

SUPPRESS_TLAST = 1 << 31
"""In a BD's word that holds the bit: word 2 of a memtile, 5 of a core, 7 of a shim."""


def writebd(at: str, number: int, **fields: int) -> str:
    """An aiex.npu.writebd of a tile such as "01"; fields that are not given are 0."""
    return register_designs.writebd(_place(at), number, fields.pop("buffer_length", 0), **fields)


def write_word(at: str, offset: int, value: int, mask: int = 0xFFFFFFFF) -> str:
    """A masked write of the word at an offset inside a tile."""
    return register_designs.write32(offset, value, mask, f", column = {at[0]} : i32, row = {at[1]} : i32")


def push(at: str, direction: str, channel: int, number: int, repeat: int = 0) -> str:
    """A push to a channel's task queue."""
    return register_designs.push(_place(at), f"{direction} : {channel}", number, repeat=repeat)


def _place(at: str) -> tuple[int, int]:
    return int(at[0]), int(at[1])


def visited(dims: Sequence[tuple[int, int]], offset: int = 0) -> list[int]:
    """Elements that (size, stride) loops visit, outermost first."""
    return [
        offset + sum(i * stride for i, (_, stride) in zip(index, dims, strict=True))
        for index in product(*(range(size) for size, _ in dims))
    ]


def dimensions(dims: Sequence[tuple[int, int]]) -> str:
    """Such loops as a BD has them."""
    return "[" + ", ".join(f"<size = {size}, stride = {stride}>" for size, stride in dims) + "]"


def sequence(*operations: str, arguments: str = "") -> str:
    """A runtime sequence."""
    return f"aie.runtime_sequence @sequence({arguments}) {{\n" + "\n".join(operations) + "\n}"


def header(column: int, row: int, number: int, kind: int = 0) -> int:
    """The header word of a packet as hardware facts 1.7 lay it out, as int32."""
    word = column << 21 | row << 16 | kind << 12 | number
    return word if word.bit_count() % 2 else word - (1 << 31)
