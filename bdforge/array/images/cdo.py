"""CDO v2: register writes as commands; files as aie-translate writes them, and their join as bootgen puts it in a PDI.

Source: mlir-aie 5ff2ab97 (`AIETargetCDODirect.cpp`), bootgen aa3b7259; rebuilt word for word from files of both.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bdforge.common.binary import ImageError, piece, word
from bdforge.devices.txn_format.operations import BlockWrite, MaskPoll, MaskWrite, Operation, Write

MAGIC = 0x004F4443
LONG = 0xFF  # a length that says: the next word has it
END, NOP = 0x100, 0x111
MASK, WRITE, BLOCK, MASK_64, WRITE_64, SET = 0x102, 0x103, 0x105, 0x107, 0x108, 0x10C
_POLL, _DELAY, _POLL_64 = 0x101, 0x104, 0x106
_OPERATIONS = {_POLL: 3, MASK: 3, WRITE: 2, BLOCK: 2, _POLL_64: 4, MASK_64: 4, WRITE_64: 3, SET: 4}
"""Commands that are read as operations, with the words that each needs."""
_MOST_REPEATS = 1 << 20


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its code, its payload in words, its byte offset in the CDO."""

    code: int
    words: tuple[int, ...]
    offset: int


def commands(data: bytes) -> Iterator[Command]:
    """Commands of a CDO; ImageError for a wrong magic, checksum or length."""
    header = [word(data, 4 * i, "CDO header") for i in range(5)]
    if header[1] != MAGIC:
        raise ImageError(f"word 1 is {header[1]:#x}, not the CDO magic {MAGIC:#x}")
    if header[0] != 4:
        raise ImageError(f"the CDO header says that {header[0]} words follow, not 4")
    if (sum(header) & 0xFFFFFFFF) != 0xFFFFFFFF:
        raise ImageError(f"the CDO header's checksum {header[4]:#x} is not {~sum(header[:4]) & 0xFFFFFFFF:#x}")
    end = 20 + 4 * header[3]
    piece(data, 20, end - 20, "the CDO's commands")
    offset = 20
    while offset < end:
        command, offset = _command(data, offset, end)
        yield command
        if command.code == END:
            return


def _command(data: bytes, offset: int, end: int) -> tuple[Command, int]:
    start, first = offset, word(data, offset, "CDO command")
    count, offset = first >> 16 & 0xFF, offset + 4
    if count == LONG:
        count, offset = word(data, offset, "CDO command length"), offset + 4
    if offset + 4 * count > end:
        raise ImageError(f"CDO command {first:#x} at {start:#x} has {count} words, beyond the end at {end:#x}")
    words = struct.unpack_from(f"<{count}I", data, offset)
    return Command(first & 0xFFFF, words, start), offset + 4 * count


def operations(data: bytes) -> Iterator[Operation]:
    """The register writes and polls of a CDO in order; ImageError for commands of other kinds, by code and offset."""
    for command in commands(data):
        if command.code in _OPERATIONS:
            yield _decoded(command)
        elif command.code not in (NOP, END, _DELAY):
            raise ImageError(
                f"CDO command {command.code:#x} at {command.offset:#x} is none that a configuration of an array needs: "
                "masked and plain writes, blocks, sets, polls, delays and nops are read"
            )


def writes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(address, bytes) of each unmasked write, in order; all other commands are left out."""
    for command in commands(data):
        if command.code not in _OPERATIONS:
            continue
        operation = _decoded(command)
        if isinstance(operation, Write):
            yield operation.address, struct.pack("<I", operation.value)
        elif isinstance(operation, BlockWrite):
            yield operation.address, struct.pack(f"<{len(operation.words)}I", *operation.words)


def _decoded(command: Command) -> Operation:
    words, code = command.words, command.code
    needed = _OPERATIONS[code]
    if len(words) < needed:
        raise ImageError(f"CDO command {code:#x} at {command.offset:#x} has {len(words)} words, not {needed}")
    if code in (WRITE, MASK, _POLL):
        words = (0, *words)
    address = words[0] << 32 | words[1]
    if code in (WRITE, WRITE_64):
        return Write(address, words[2])
    if code in (MASK, MASK_64):
        return MaskWrite(address, mask=words[2], value=words[3])
    if code in (_POLL, _POLL_64):
        return MaskPoll(address, mask=words[2], value=words[3])
    if code == BLOCK:
        return BlockWrite(address, words[2:])
    if words[2] > _MOST_REPEATS:
        raise ImageError(f"CDO set at {command.offset:#x} repeats a word {words[2]} times; no memory has as many")
    return BlockWrite(address, (words[3],) * words[2])


_HEADER_WORDS, _VERSION = 5, 0x200
_ALIGN_WORDS = 4  # block data starts at such a multiple of the file
_LONGEST_SHORT = 254
_WORD_MASK = 0xFFFFFFFF


def cdo(operations: Iterable[Operation]) -> bytes:
    """A CDO file of register writes, in 64-bit forms and with block data aligned by nops.

    ImageError for operations of other kinds: an image has no room for what a sequence waits for.
    """
    words = [NOP]
    for operation in operations:
        match operation:
            case Write():
                words += _encoded(WRITE_64, [0, operation.address, operation.value])
            case MaskWrite():
                words += _encoded(MASK_64, [0, operation.address, operation.mask, operation.value])
            case BlockWrite():
                words += _aligned(len(words) + _HEADER_WORDS, len(operation.words) + 2)
                words += _encoded(BLOCK, [0, operation.address, *operation.words])
            case _:
                raise ImageError(f"an image cannot hold a {type(operation).__name__}; it holds register writes")
    return _file(words)


def _encoded(code: int, payload: Sequence[int]) -> list[int]:
    count = len(payload)
    head = [count << 16 | code] if count <= _LONGEST_SHORT else [LONG << 16 | code, count]
    return [*head, *payload]


def _nop(words: int) -> list[int]:
    """A nop that takes so many words, none for 0."""
    return _encoded(NOP, [0] * (words - 1)) if words else []


def _aligned(position: int, count: int) -> list[int]:
    """What aie-translate puts before a block write: it takes a payload of 255 words for one with a short head."""
    head = 3 if count <= LONG else 4
    return _nop(-(position + head) % _ALIGN_WORDS)


def _file(words: Sequence[int]) -> bytes:
    header = [_HEADER_WORDS - 1, MAGIC, _VERSION, len(words)]
    header.append(~sum(header) & _WORD_MASK)
    return struct.pack(f"<{len(header) + len(words)}I", *header, *words)


def joined(files: Iterable[bytes]) -> bytes:
    """One CDO of several, in 32-bit forms, block data aligned as its addresses are; ImageError for a broken file."""
    return _file([word for file in files for word in _short(file)])


def _short(file: bytes) -> list[int]:
    words: list[int] = []
    for command in commands(file):
        words += _shortened(command, _HEADER_WORDS + len(words))
    return words


def _shortened(command: Command, position: int) -> list[int]:
    code, words = command.code, list(command.words)
    narrow = len(words) > 2 and words[0] == 0
    if code == WRITE_64 and narrow:
        return _encoded(WRITE, words[1:])
    if code == MASK_64 and narrow:
        return _encoded(MASK, words[1:])
    if code != BLOCK:
        return _encoded(code, words)
    if len(words) == 3 and narrow:
        return _encoded(WRITE, words[1:])
    head = len(_encoded(BLOCK, words)) - len(words) + 2
    return [*_nop((words[1] // 4 - position - head) % _ALIGN_WORDS), *_encoded(BLOCK, words)]
