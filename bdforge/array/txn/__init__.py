"""Instruction streams (`insts.bin`): operations, their words, their lowering from runtime sequences."""

from bdforge.devices.txn_format.codec import Header, Stream, TxnError, decode, encode
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
    "BlockWrite", "Header", "LoadPdi", "MaskPoll", "MaskPollBusy", "MaskWrite", "Noop", "Operation", "Patch", "Preempt",
    "Stream", "Sync", "TxnError", "Unknown", "Write", "decode", "encode",
]  # fmt: skip
