"""CDO v2: register writes as commands (aie-translate, bootgen)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.images.errors import ImageError, piece, word

MAGIC = 0x004F4443
LONG = 0xFF  # a length that says: the next word has it
END, NOP = 0x100, 0x111
MASK, WRITE, BLOCK, MASK_64, WRITE_64, SET = 0x102, 0x103, 0x105, 0x107, 0x108, 0x10C


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


def writes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(address, bytes) of each unmasked write, in order; masked writes, polls and delays are left out."""
    for command in commands(data):
        words = command.words
        needed = {WRITE: 2, WRITE_64: 3, BLOCK: 2, SET: 4}.get(command.code, 0)
        if len(words) < needed:
            raise ImageError(
                f"CDO command {command.code:#x} at {command.offset:#x} has {len(words)} words, not {needed}"
            )
        if command.code == WRITE:
            yield words[0], struct.pack("<I", words[1])
        elif command.code == WRITE_64:
            yield words[0] << 32 | words[1], struct.pack("<I", words[2])
        elif command.code == BLOCK:
            yield words[0] << 32 | words[1], struct.pack(f"<{len(words) - 2}I", *words[2:])
        elif command.code == SET:
            if words[2] > 1 << 20:
                raise ImageError(
                    f"CDO set at {command.offset:#x} repeats a word {words[2]} times; no memory has as many"
                )
            yield words[0] << 32 | words[1], struct.pack("<I", words[3]) * words[2]
