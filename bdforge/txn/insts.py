"""Instruction files: `insts.bin`, the words of a stream in little-endian order."""

from pathlib import Path

import numpy as np

from bdforge.mlir import parse
from bdforge.txn.codec import Stream, TxnError, decode, encode
from bdforge.txn.lower import lower_module


def encode_mlir(text: str, file: str = "<string>", sequence: str | None = None) -> np.ndarray:
    """Words of a runtime sequence in MLIR text; MlirError names the place of what is wrong in it."""
    device, operations = lower_module(parse(text, file), sequence)
    return encode(operations, device)


def read(path: Path) -> Stream:
    """The stream in a file; TxnError names the file and the word. OSError if it cannot be read."""
    try:
        return decode(path.read_bytes())
    except TxnError as error:
        raise TxnError(f"{path}: {error}") from error


def write(path: Path, words: np.ndarray) -> None:
    """Write words to a file; OSError if it cannot be written."""
    path.write_bytes(np.asarray(words, dtype="<u4").tobytes())
