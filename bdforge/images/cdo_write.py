"""CDO files as aie-translate writes them, and their join as bootgen puts it into a PDI.

Source: mlir-aie 5ff2ab97 (`AIETargetCDODirect.cpp`), bootgen aa3b7259; rebuilt word for word from files of both.
"""

import struct
from collections.abc import Iterable, Sequence

from bdforge.images.cdo import BLOCK, LONG, MAGIC, MASK, MASK_64, NOP, WRITE, WRITE_64, Command, commands
from bdforge.images.errors import ImageError
from bdforge.txn.operations import BlockWrite, MaskWrite, Operation, Write

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
                words += _command(WRITE_64, [0, operation.address, operation.value])
            case MaskWrite():
                words += _command(MASK_64, [0, operation.address, operation.mask, operation.value])
            case BlockWrite():
                words += _aligned(len(words) + _HEADER_WORDS, len(operation.words) + 2)
                words += _command(BLOCK, [0, operation.address, *operation.words])
            case _:
                raise ImageError(f"an image cannot hold a {type(operation).__name__}; it holds register writes")
    return _file(words)


def _command(code: int, payload: Sequence[int]) -> list[int]:
    count = len(payload)
    head = [count << 16 | code] if count <= _LONGEST_SHORT else [LONG << 16 | code, count]
    return [*head, *payload]


def _nop(words: int) -> list[int]:
    """A nop that takes so many words, none for 0."""
    return _command(NOP, [0] * (words - 1)) if words else []


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
        return _command(WRITE, words[1:])
    if code == MASK_64 and narrow:
        return _command(MASK, words[1:])
    if code != BLOCK:
        return _command(code, words)
    if len(words) == 3 and narrow:
        return _command(WRITE, words[1:])
    head = len(_command(BLOCK, words)) - len(words) + 2
    return [*_nop((words[1] // 4 - position - head) % _ALIGN_WORDS), *_command(BLOCK, words)]
