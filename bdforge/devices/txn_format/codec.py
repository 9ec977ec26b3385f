"""Words of an instruction stream and the operations in them.

Version 0.1 is written and read, version 1.0 ("optimised", by aie-rt) is read. Sources of both layouts: mlir-aie
5ff2ab97, `AIETargetNPU.cpp` and `AIEToConfiguration.cpp`; aiebu 3ab802a, `transaction.cpp` (codes, packed DDR_PATCH).
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bdforge.common.messages import InputError
from bdforge.devices import Device
from bdforge.devices.txn_format.operations import (
    DIRECTIONS,
    BlockWrite,
    LoadPdi,
    MaskPoll,
    MaskPollBusy,
    MaskWrite,
    Noop,
    Operation,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)

WRITE, BLOCKWRITE, MASKWRITE, MASKPOLL, NOOP, PREEMPT, MASKPOLL_BUSY, LOADPDI = 0, 1, 3, 4, 5, 6, 7, 8
TCT, DDR_PATCH = 0x80, 0x81
FIRST_SIZED = 0x80
"""Codes from here on carry their size in the second word, so a reader can keep what it does not know."""

HEADER_WORDS = 4
VERSIONS = ((0, 1), (1, 0))
ROWS, MEMTILE_ROWS = 6, 1  # of every NPU so far (MA)
_U8, _U16, _U24, _U32, _U64 = (1 << 8) - 1, (1 << 16) - 1, (1 << 24) - 1, (1 << 32) - 1, (1 << 64) - 1
_MASKED = {MASKWRITE: MaskWrite, MASKPOLL: MaskPoll, MASKPOLL_BUSY: MaskPollBusy}


class TxnError(InputError):
    """A stream that is malformed (the message names the word), or operations that no stream can hold."""


@dataclass(frozen=True, slots=True)
class StreamHeader:
    """What a stream says about itself, sizes apart. Bytes 0 to 5 of it, in order."""

    major: int
    minor: int
    generation: int
    rows: int
    columns: int
    memtile_rows: int

    @property
    def knows_device(self) -> bool:
        """Whether the stream says which array it is for; one whose first two words are no header does not."""
        return bool(self.generation)

    @classmethod
    def of(cls, device: Device) -> "StreamHeader":
        """Header of version 0.1 for `device`."""
        memtile_rows = device.rows - device.core_rows - 1
        return cls(0, 1, device.generation.instruction_generation, device.rows, device.columns, memtile_rows)


@dataclass(frozen=True, slots=True)
class InstructionStream:
    """A decoded stream, and what is odd about its words."""

    header: StreamHeader
    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)


# Largest value of every field, operation by operation.
_LIMITS: dict[type[Operation], dict[str, int]] = {
    Write: {"address": _U32, "value": _U32},
    MaskWrite: {"address": _U32, "value": _U32, "mask": _U32},
    MaskPoll: {"address": _U32, "value": _U32, "mask": _U32},
    MaskPollBusy: {"address": _U32, "value": _U32, "mask": _U32},
    BlockWrite: {"address": _U32, "hint": _U32},
    Noop: {},
    Preempt: {"level": _U8},
    LoadPdi: {"id": _U16, "size": _U32, "address": _U64},
    Sync: {
        "direction": len(DIRECTIONS) - 1, "row": _U8, "column": _U8, "rows": _U8, "columns": _U8, "channel": _U8,
    },
    Patch: {"register": _U32, "argument": _U32, "plus": _U64},
    Unknown: {"opcode": _U8, "extra": _U24},
}  # fmt: skip


def encode(operations: Iterable[Operation], target: Device | StreamHeader) -> np.ndarray:
    """Words (uint32) of a version 0.1 stream for a device, or with the header of a decoded stream.

    TxnError names the operation, field, value and limit of what does not fit.
    """
    header = target if isinstance(target, StreamHeader) else StreamHeader.of(target)
    if (header.major, header.minor) != (0, 1):
        raise TxnError(f"version {header.major}.{header.minor} streams are only read; write version 0.1")
    body: list[int] = []
    count = 0
    for count, operation in enumerate(operations, start=1):
        _check(count - 1, operation)
        body += _WORDS[type(operation)](operation)
    first = header.major | header.minor << 8 | header.generation << 16 | header.rows << 24
    size_bytes = 4 * (HEADER_WORDS + len(body))
    return np.array([first, header.columns | header.memtile_rows << 8, count, size_bytes, *body], np.uint32)


def _check(index: int, operation: Operation) -> None:
    limits = _LIMITS.get(type(operation))
    if limits is None:
        raise TxnError(f"operation {index}: {operation!r} is not an operation of an instruction stream")
    for name, limit in limits.items():
        value = getattr(operation, name)
        if not 0 <= value <= limit:
            raise TxnError(f"operation {index} {type(operation).__name__}: {name} = {value} is outside 0 to {limit}")
    data = getattr(operation, "words", ()) or getattr(operation, "payload", ())
    if data and not (min(data) >= 0 and max(data) <= _U32):
        raise TxnError(f"operation {index} {type(operation).__name__}: a data word is outside 0 to {_U32}")
    if isinstance(operation, LoadPdi) and operation.expanded:
        raise TxnError(
            f"operation {index} LoadPdi: expand_mode = {operation.expanded} stands for what configures "
            f"@{operation.device}, machine code included, which no text holds; leave it out to load a PDI"
        )
    if isinstance(operation, Unknown) and operation.opcode in (*range(FIRST_SIZED), TCT, DDR_PATCH):
        raise TxnError(f"operation {index} Unknown: code {operation.opcode} is known or below {FIRST_SIZED}")


def _masked(code: int) -> Callable[..., list[int]]:
    return lambda op: [code, 0, op.address, 0, op.value, op.mask, 28]


_WORDS: dict[type[Operation], Callable[..., list[int]]] = {
    Write: lambda op: [WRITE, 0, op.address, 0, op.value, 24],
    MaskWrite: _masked(MASKWRITE),
    MaskPoll: _masked(MASKPOLL),
    MaskPollBusy: _masked(MASKPOLL_BUSY),
    BlockWrite: lambda op: [BLOCKWRITE, op.hint, op.address, 16 + 4 * len(op.words), *op.words],
    Noop: lambda op: [NOOP],
    Preempt: lambda op: [PREEMPT | op.level << 8],
    LoadPdi: lambda op: [LOADPDI | op.id << 16, op.size, op.address & _U32, op.address >> 32],
    Sync: lambda op: [
        TCT, 16, op.direction | op.row << 8 | op.column << 16, op.rows << 8 | op.columns << 16 | op.channel << 24,
    ],
    Patch: lambda op: [
        DDR_PATCH, 48, 0, 0, 0, 0, op.register, 0, op.argument, 0, op.plus & _U32, op.plus >> 32,
    ],
    Unknown: lambda op: [op.opcode | op.extra << 8, 8 + 4 * len(op.payload), *op.payload],
}  # fmt: skip


def decode(words: np.ndarray | Sequence[int] | bytes) -> InstructionStream:
    """Header and operations of a stream of version 0.1 or 1.0, given as words or as little-endian bytes.

    Unknown operations of code 128 and more are kept. Where the first two words are no header, but all others are a
    whole stream (fused ones are written so), the stream is read and has a note. TxnError names the index of the first
    word that is wrong.
    """
    data = _as_words(words)
    try:
        header, count = _header(data)
    except TxnError as error:
        if (stream := _headless(data)) is None:
            raise error from None
        return stream
    return InstructionStream(header, _operations(data, count, optimised=header.major == 1))


def decode_all(content: bytes) -> list[InstructionStream]:
    """Streams with a header that stand one behind the other in little-endian bytes; TxnError as `decode`."""
    words, found, at = _as_words(content), [], 0
    while at < len(words):
        size_bytes = words[at + HEADER_WORDS - 1] if at + HEADER_WORDS <= len(words) else 0
        end = at + size_bytes // 4
        if not at + HEADER_WORDS <= end <= len(words):
            raise TxnError(f"word {at}: no stream starts here that ends within the {len(words)} words")
        found.append(decode(words[at:end]))
        at = end
    return found


def _operations(data: list[int], count: int, *, optimised: bool) -> tuple[Operation, ...]:
    operations = tuple(_Reader(data, optimised).operations())
    if len(operations) != count:
        raise TxnError(f"word 2: the header announces {count} operations, the stream holds {len(operations)}")
    return operations


def _headless(data: list[int]) -> InstructionStream | None:
    """The stream of words whose number of operations and size are right, whatever stands before them."""
    if len(data) <= HEADER_WORDS or data[3] != 4 * len(data):
        return None
    for major, minor in VERSIONS:
        try:
            operations = _operations(data, data[2], optimised=major == 1)
        except TxnError:
            continue
        note = (
            f"words 0 and 1 ({data[0]:08x} {data[1]:08x}) are no header, so version and device are not known; read as "
            f"version {major}.{minor} for {ROWS} rows"
        )
        return InstructionStream(StreamHeader(major, minor, 0, ROWS, 0, MEMTILE_ROWS), operations, (note,))
    return None


def _as_words(words: np.ndarray | Sequence[int] | bytes) -> list[int]:
    if isinstance(words, (bytes, bytearray, memoryview)):
        if len(words) % 4:
            raise TxnError(f"word {len(words) // 4}: {len(words)} bytes are not a whole number of 32-bit words")
        return np.frombuffer(words, "<u4").tolist()
    try:
        data = [operator.index(word) for word in words]
    except TypeError:
        raise TxnError("words are bytes, or a vector of integers") from None
    for index, word in enumerate(data):
        if not 0 <= word <= _U32:
            raise TxnError(f"word {index}: {word} does not fit 32 bits")
    return data


def _header(data: list[int]) -> tuple[StreamHeader, int]:
    if len(data) < HEADER_WORDS:
        raise TxnError(f"word {len(data)}: the stream ends inside its header of {HEADER_WORDS} words")
    header = StreamHeader(*((data[byte // 4] >> 8 * (byte % 4)) & _U8 for byte in range(6)))
    if (header.major, header.minor) not in VERSIONS:
        raise TxnError(f"word 0: version {header.major}.{header.minor} is unknown; 0.1 and 1.0 are")
    if data[1] > _U16:
        raise TxnError(f"word 1: bits [31:16] are {data[1] >> 16:#x}, not 0")
    if data[3] != 4 * len(data):
        raise TxnError(f"word 3: the header announces {data[3]} bytes, the stream has {4 * len(data)}")
    return header, data[2]


class _Reader:
    """Walks the operations of a stream."""

    def __init__(self, data: list[int], optimised: bool):
        self.data, self.optimised, self.at = data, optimised, HEADER_WORDS

    def operations(self) -> Iterable[Operation]:
        while self.at < len(self.data):
            start = self.at
            yield self._operation(self.data[start])
            assert self.at > start

    def _operation(self, first: int) -> Operation:
        code = first & _U8
        if code >= FIRST_SIZED:
            return self._sized(code, first >> 8)
        if code == NOOP:
            self._take(1, "NOOP")
            return Noop()
        if code == PREEMPT:
            return Preempt(self._take(1, "PREEMPT")[0] >> 8 & _U8)
        if code == LOADPDI:
            _, size, low, high = self._take(4, "LOADPDI")
            return LoadPdi(first >> 16, size, low | high << 32)
        if code == BLOCKWRITE:
            return self._block_write()
        if code == WRITE or code in _MASKED:
            return self._register(code)
        raise TxnError(f"word {self.at}: operation code {code} is unknown (word {first:#010x})")

    def _take(self, count: int, name: str) -> list[int]:
        """The next `count` words."""
        words = self.data[self.at : self.at + count]
        if len(words) < count:
            missing = f"needs {count} words, the stream ends after {len(words)}"
            raise TxnError(f"word {self.at}: {name} {missing}")
        self.at += count
        return words

    def _expect(self, offset: int, value: int, wanted: int, what: str) -> None:
        if value != wanted:
            raise TxnError(f"word {offset}: {what} is {value:#x}, expected {wanted:#x}")

    def _register(self, code: int) -> Operation:
        """WRITE and the masked operations."""
        make = Write if code == WRITE else _MASKED[code]
        values = 1 if code == WRITE else 2
        start = self.at
        if self.optimised:
            _, register, *rest = self._take(2 + values, make.__name__)
            return make(register, *rest)
        _, _, register, high, *rest, size = self._take(5 + values, make.__name__)
        self._expect(start + 3, high, 0, f"{make.__name__}: high half of the address")
        self._expect(start + 4 + values, size, 4 * (5 + values), f"{make.__name__}: size in bytes")
        return make(register, *rest)

    def _block_write(self) -> BlockWrite:
        start = self.at
        fixed = 3 if self.optimised else 4
        *_, register, size = head = self._take(fixed, "BLOCKWRITE")
        hint = 0 if self.optimised else head[1]
        if size % 4 or size < 4 * fixed:
            raise TxnError(
                f"word {start + fixed - 1}: BLOCKWRITE: {size} bytes are not {4 * fixed} and a whole number of words"
            )
        return BlockWrite(register, tuple(self._take(size // 4 - fixed, "BLOCKWRITE data")), hint)

    def _sized(self, code: int, extra: int) -> Operation:
        """Operations that carry their size."""
        start = self.at
        _, size = self._take(2, f"operation {code}")
        if size % 4 or size < 8:
            raise TxnError(f"word {start + 1}: operation {code}: {size} bytes are not 8 and a whole number of words")
        payload = self._take(size // 4 - 2, f"operation {code}")
        if code == TCT:
            return self._sync(start, payload)
        if code == DDR_PATCH:
            return self._patch(start, payload)
        return Unknown(code, tuple(payload), extra)

    def _sync(self, start: int, payload: list[int]) -> Sync:
        self._expect(start + 1, 8 + 4 * len(payload), 16, "TCT: size in bytes")
        first, second = payload
        if first & _U8 >= len(DIRECTIONS) or first > _U24:
            raise TxnError(f"word {start + 2}: TCT: direction is 0 or 1 and bits [31:24] are 0, got {first:#010x}")
        self._expect(start + 3, second & _U8, 0, "TCT: bits [7:0]")
        rows, columns, channel = second >> 8 & _U8, second >> 16 & _U8, second >> 24
        return Sync(first & _U8, first >> 8 & _U8, first >> 16, rows, columns, channel)

    def _patch(self, start: int, payload: list[int]) -> Patch:
        if self.optimised and len(payload) == 4:  # aiebu's packed form
            register, argument, low, high = payload
            return Patch(register, argument & _U8, low | high << 32)
        if len(payload) < 9:
            raise TxnError(f"word {start + 1}: DDR_PATCH has 44 bytes or more, got {8 + 4 * len(payload)}")
        action, register, register_high, argument, argument_high, low = payload[3:9]
        self._expect(start + 5, action, 0, "DDR_PATCH: action")
        self._expect(start + 7, register_high, 0, "DDR_PATCH: high half of the register's address")
        self._expect(start + 9, argument_high, 0, "DDR_PATCH: high half of the argument index")
        return Patch(register, argument, low | (payload[9] if len(payload) > 9 else 0) << 32)
