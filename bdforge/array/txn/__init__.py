"""Instruction streams (`insts.bin`): operations, their words, their lowering from runtime sequences."""

from bdforge.devices.txn_format.codec import InstructionStream, StreamHeader, TxnError, decode, encode
from bdforge.devices.txn_format.operations import (
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

__all__ = [
    "BlockWrite",
    "InstructionStream",
    "LoadPdi",
    "MaskPoll",
    "MaskPollBusy",
    "MaskWrite",
    "Noop",
    "Operation",
    "Patch",
    "Preempt",
    "StreamHeader",
    "Sync",
    "TxnError",
    "Unknown",
    "Write",
    "decode",
    "encode",
]  # fmt: skip
