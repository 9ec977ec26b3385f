"""CDO v2: register writes as commands (aie-translate, bootgen)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.images.errors import ImageError, piece, word
from bdforge.txn.operations import BlockWrite, MaskPoll, MaskWrite, Operation, Write

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
