"""Random DMA programs of lowered texts, with the writes that must follow.

The writes come from a second description of BDs, chains and queues (AM025's registers, the order of mlir-aie's
`AIERT.cpp`), which shares nothing with the code under test.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write

BYTES = {"i8": 1, "i16": 2, "i32": 4, "bf16": 2}
CHANNELS = {"core": 2, "mem": 6, "shim": 2}
PROGRAMS = {"core": "mem", "mem": "memtile_dma", "shim": "shim_dma"}
BDS = {"core": 0x1D000, "mem": 0xA0000, "shim": 0x1D000}
QUEUES = {"core": (0x1DE04, 0x1DE14), "mem": (0xA0604, 0xA0634), "shim": (0x1D204, 0x1D214)}
WINDOWS = {-1: (0, 0), 0: (0x80000, 64), 1: (0x100000, 128)}
"""Where a memtile sees the memory and the locks of its neighbours and its own, by columns to the east."""
MEMTILES = (0, 1, 2)
BUFFER_WORDS = 600


Blocks = dict[str, tuple[list[str], Operation | None]]
"""Labels that a block leads to, and its BD, by its own label."""


@dataclass
class Bd:
    """A BD in words, and the text of its block: what stands before it, itself, its attributes, what follows."""

    before: list[str]
    text: str
    attributes: list[str]
    behind: list[str]
    length: int
    address: int
    steps: list[int]
    wraps: list[int]
    pads: list[tuple[int, int]]
    packet: tuple[int, int] | None
    locks: tuple[int, int, int, int] | None  # acquire: number, value; release: number, value
    burst: int


class Draw:
    """A design of one DMA program; `text` and `operations` once it is drawn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choice(("core", "mem", "mem", "shim"))
        self.row = {"core": 3, "mem": 1, "shim": 0}[self.kind]
        self.device = self.random.choice(("npu1", "npu2"))
        columns = MEMTILES if self.kind == "mem" else (1,)
        self.head = [f"%t{c} = aie.tile({c}, {self.row})" for c in columns]
        self.buffers = {}  # by name: column, byte address, type, elements
        for c in columns:
            for i in range(2):
                self._buffer(c, i)
            self.head += [f"%l{c}_{i} = aie.lock(%t{c}, {i})" for i in range(4)]
        if self.kind == "shim":
            self.head.append("aie.switchbox(%t1) {}")  # whose tokens have no way, which is nothing to write
        self.text, self.operations = self._program()

    def _buffer(self, column: int, i: int) -> None:
        name, kind = f"b{column}_{i}", self.random.choice(list(BYTES))
        elements = BUFFER_WORDS * 4 // BYTES[kind]
        address = 4 * self.random.randrange(1 << 40) if self.kind == "shim" else 0x2000 + 0x1000 * i
        self.buffers[name] = (column, address, kind, elements)
        if self.kind == "shim":
            made = f'aie.external_buffer {{address = {address} : i64, sym_name = "{name}"}}'
        else:
            made = f'aie.buffer(%t{column}) {{address = {address} : i32, sym_name = "{name}"}}'
        self.head.append(f"%{name} = {made} : memref<{elements}x{kind}>")

    def _program(self) -> tuple[str, list[Operation]]:
        """All tasks of a region: its text, and its BDs in mlir-aie's order before its starts."""
        every = [(d, c) for d in range(2) for c in range(CHANNELS[self.kind])]
        channels = self.random.sample(every, self.random.randint(1, min(4, len(every))))
        numbers = [list(range(24 * half, 24 * half + 24)) for half in range(2)]
        free = numbers if self.kind == "mem" else [list(range(8)), list(range(8, 16))]  # a memtile's by odd and even
        for half in free:
            self.random.shuffle(half)
        lines, blocks, starts = [f"aie.{PROGRAMS[self.kind]}(%t1) {{"], {}, []
        for i, (direction, channel) in enumerate(channels):
            onward = f"s{i + 1}" if i + 1 < len(channels) else "end"
            lines += self._task(i, direction, channel, free[channel % 2], onward, blocks, starts)
        text = "\n".join([f"module {{ aie.device({self.device}) {{", *self.head, *lines, "^end:", "aie.end", "} } }"])
        return text, [*_in_order(blocks), *starts]

    def _task(
        self, i: int, direction: int, channel: int, free: list[int], onward: str, blocks: Blocks,
        starts: list[Operation],
    ) -> Iterator[str]:  # fmt: skip
        """The text of a channel's chain; its blocks with their BDs, and its start, are added."""
        numbers = [free.pop() for _ in range(self.random.randint(1, 3))]
        repeat = self.random.choice((0, 0, 1, 255))
        loop = self.random.choice((None, 0, len(numbers) - 1)) if repeat == 0 else None
        if i:
            yield f"^s{i}:"
        word = ("S2MM", "MM2S")[direction]
        yield f"%s{i} = aie.dma_start({word}, {channel}, ^s{i}b0, ^{onward}, repeat_count = {repeat})"
        blocks[f"s{i}"] = ([f"s{i}b0", onward], None)
        for j, number in enumerate(numbers):
            after = j + 1 if j + 1 < len(numbers) else loop
            bd, following = self._bd(direction, channel), None if after is None else numbers[after]
            label = "end" if after is None else f"s{i}b{after}"
            at = self._address(BDS[self.kind] + 32 * number)
            blocks[f"s{i}b{j}"] = ([label], BlockWrite(at, tuple(self._words(bd, following))))
            attributes = ", ".join([*bd.attributes, f"bd_id = {number} : i32"])
            yield from (f"^s{i}b{j}:", *bd.before, f"{bd.text} {{{attributes}}}", *bd.behind, f"aie.next_bd ^{label}")
        queue = self._address(QUEUES[self.kind][direction] + 8 * channel)
        token = 1 << 31 if self.kind == "shim" and not direction else 0
        starts += [Write(queue, token | repeat << 16 | numbers[0]), MaskWrite(queue - 4, mask=0, value=1)]

    def _address(self, offset: int) -> int:
        return 1 << 25 | self.row << 20 | offset

    def _bd(self, direction: int, channel: int) -> Bd:
        drawn = self.random
        near = [name for name, (column, *_) in self.buffers.items() if column == 1 or channel < 4]
        name = drawn.choice(near)
        column, address, kind, elements = self.buffers[name]
        per = 4 // BYTES[kind]  # elements in a word
        first = drawn.randrange(BUFFER_WORDS // 2)
        room = BUFFER_WORDS - first
        dims, pads = self._dims(room, direction, 512 // per)
        length = drawn.randint(1, room)
        if dims:
            length = 1
            for i, (size, _) in enumerate(dims):
                length *= size + (sum(pads[i]) if pads else 0)
        shown = [(size * (1 if i else per), step * per if i else 1) for i, (size, step) in enumerate(dims)]
        text = f"aie.dma_bd(%{name} : memref<{elements}x{kind}>, {first * per}, {length * per}"
        if dims:
            text += f", [{', '.join(f'<size = {a}, stride = {b}>' for a, b in reversed(shown))}]"
        if pads:
            told = [(a * per, b * per) if i == 0 else (a, b) for i, (a, b) in enumerate(pads)]
            text += f", [{', '.join(f'<const_pad_before = {a}, const_pad_after = {b}>' for a, b in reversed(told))}]"
        window, lock_base = WINDOWS[column - 1] if self.kind == "mem" else (0, 0)
        packet = (drawn.randrange(8), drawn.randrange(32)) if direction and drawn.random() < 0.3 else None
        before, behind, locks = self._locks(column, lock_base)
        before += [f"aie.dma_bd_packet({packet[0]}, {packet[1]})"] if packet else []
        burst = drawn.choice((64, 128, 256)) if self.kind == "shim" else 0
        attributes = [f"burst_length = {burst} : i32"] if burst else []
        steps = [step - 1 for _, step in dims] + [0] * (4 - len(dims))
        wraps = ([size for size, _ in dims] + [0] * 4)[:3]
        at = address + window + 4 * first
        return Bd(before, f"{text})", attributes, behind, length, at, steps, wraps, pads, packet, locks, burst)

    def _dims(self, room: int, direction: int, most: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """(size, step) in words from the innermost on, within a buffer, and padding of a memtile's MM2S."""
        drawn = self.random
        dims: list[tuple[int, int]] = []
        if drawn.random() < 0.6:
            dims, span = [(drawn.randint(1, min(room // 4, most, 100)), 1)], 0
            for _ in range(drawn.randrange(4 if self.kind == "mem" else 3)):
                step = drawn.randint(1, 60)
                size = drawn.randint(1, min(8, 1 + (room // 4 - span // 2) // step))
                dims.append((size, step))
                span += step * (size - 1)
            while sum((size - 1) * step for size, step in dims) >= room:
                dims.pop()
        pads = []
        if dims and len(dims) < 4 and self.kind == "mem" and direction and drawn.random() < 0.4:
            pads = [(drawn.randrange(4), drawn.randrange(4)) for _ in dims]
        return dims, pads

    def _locks(self, column: int, base: int) -> tuple[list[str], list[str], tuple[int, int, int, int] | None]:
        """Text before and behind a BD, and what its registers hold; locks are where the buffer is."""
        if self.random.random() < 0.4:
            return [], [], None
        taken, given = self.random.randrange(4), self.random.randrange(4)
        value, back = self.random.randint(1, 63), self.random.randint(0, 63)
        equal = self.random.random() < 0.3
        action = "Acquire" if equal else "AcquireGreaterEqual"
        acquire = f"aie.use_lock(%l{column}_{taken}, {action}, {value})"
        release = f"aie.use_lock(%l{column}_{given}, Release, {back})"
        return [acquire], [release], (base + taken, value if equal else -value, base + given, back)

    def _words(self, bd: Bd, following: int | None) -> Iterator[int]:
        """The registers of a BD, by the tables of AM025."""
        chained, number = int(following is not None), following or 0
        kind, packet_id = bd.packet or (0, 0)
        packed = int(bd.packet is not None)
        acquire, value, release, back = bd.locks or (0, 0, 0, 0)
        locked, (s, w) = int(bd.locks is not None), (bd.steps, bd.wraps)
        last = number << 27 | chained << 26 | 1 << 25 | back << 18 | release << 13
        last |= locked << 12 | (value & 127) << 5 | acquire
        if self.kind == "core":
            yield from (bd.address // 4 << 14 | bd.length, packed << 30 | packet_id << 19 | kind << 16)
            yield from (s[1] << 13 | s[0], w[1] << 21 | w[0] << 13 | s[2], 0, last)
        elif self.kind == "shim":
            code = {64: 0, 128: 1, 256: 2}[bd.burst]
            high = packed << 30 | packet_id << 19 | kind << 16 | bd.address >> 32
            yield from (bd.length, bd.address & 0xFFFFFFFF, high, w[0] << 20 | s[0])
            yield from (code << 30 | w[1] << 20 | s[1], s[2], 0, last)
        else:
            (b0, a0), (b1, a1), (b2, a2) = (*bd.pads, *[(0, 0)] * 3)[:3]
            yield packed << 31 | kind << 28 | packet_id << 23 | bd.length
            yield b0 << 26 | number << 20 | chained << 19 | bd.address // 4
            yield from (w[0] << 17 | s[0], b1 << 27 | w[1] << 17 | s[1], b2 << 27 | w[2] << 17 | s[2])
            yield from (a2 << 28 | a1 << 23 | a0 << 17 | s[3], 0)
            yield 1 << 31 | back << 24 | release << 16 | locked << 15 | (value & 127) << 8 | acquire


def _in_order(blocks: Blocks) -> Iterator[Operation]:
    """BDs as blocks are found from the first on, those found last followed first."""
    found, waiting = ["s0"], ["s0"]
    while waiting:
        for label in blocks.get(waiting.pop(), ([], None))[0]:
            if label not in found:
                found.append(label)
                waiting.append(label)
    for label in found:
        operation = blocks.get(label, ([], None))[1]
        if operation is not None:
            yield operation
