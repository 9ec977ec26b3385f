"""Instruction files: `insts.bin`, the words of a stream in little-endian order, and the other forms of it."""

from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.txn.lower import lower_module
from bdforge.array.txn.target import REFUSING, ControllerIds, Policy
from bdforge.common.files import TEXT_BYTES_MAX, read_bytes
from bdforge.devices.txn_format.codec import InstructionStream, TxnError, decode, encode
from bdforge.devices.txn_format.containers import stream_bytes


def encode_module(
    module: ModuleOp,
    sequence: str | None = None,
    policy: Policy = REFUSING,
    controller_ids: ControllerIds = ControllerIds.AIECC,
) -> np.ndarray:
    """Words of a runtime sequence of a parsed module; arguments and errors as for `lower_module`."""
    device, operations = lower_module(module, sequence, policy, controller_ids)
    return encode(operations, device)


def read_words(path: Path, section: str | None = None) -> bytes:
    """Raw words of the stream in a file: binary, hexadecimal text or ELF (`bdforge.devices.txn_format.containers`).

    `section` names one of several in an ELF. TxnError names the file and says what it is where it holds no stream.
    FileError if it cannot be read.
    """
    try:
        return stream_bytes(read_bytes(path, most=TEXT_BYTES_MAX), section)
    except TxnError as error:
        raise TxnError(f"{path}: {error}") from error


def read(path: Path, section: str | None = None) -> InstructionStream:
    """The stream in a file, in any form; TxnError names the file and the word. FileError if it cannot be read."""
    words = read_words(path, section)
    try:
        return decode(words)
    except TxnError as error:
        raise TxnError(f"{path}: {error}") from error
