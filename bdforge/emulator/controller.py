"""The controller: runs the operations of a runtime sequence or instruction stream on an array, in order."""

from collections.abc import Iterable

from bdforge.emulator.array import Array, TokenKey
from bdforge.emulator.diagnose import TokenWait, deadlock
from bdforge.emulator.errors import DesignError, EmulationError
from bdforge.txn.operations import BlockWrite, MaskWrite, Noop, Operation, Patch, Preempt, Sync, Write

DIRECTION_NAMES = ("S2MM", "MM2S")
_WORD_BYTES = 4


def execute(array: Array, operations: Iterable[Operation]) -> None:
    """Run every operation; the array moves as far as it can between any two of them.

    Cores run until they block before the first operation, as on silicon. Faults carry the operation's line.
    """
    array.scheduler.run()
    for operation in operations:
        source = "" if operation.location is None else f" ({operation.location})"
        match operation:
            case Write(address, value):
                array.write(address, value, source)
                array.scheduler.between_operations()
            case MaskWrite(address, value, mask):
                array.write(address, array.read(address) & ~mask | value & mask, source)
                array.scheduler.between_operations()
            case BlockWrite(address, words):
                for i, word in enumerate(words):
                    array.write(address + _WORD_BYTES * i, word, source)
            case Patch():
                _patch(array, operation, source)
            case Sync():
                _sync(array, operation, source)
            case Noop() | Preempt():
                pass
            case _:
                raise DesignError(f"{type(operation).__name__} cannot be emulated{source}")


def _patch(array: Array, patch: Patch, source: str) -> None:
    """Bits 31:0 and 47:32 of a host address go to words 1 and 2 of a shim BD; the other bits of word 2 stay."""
    address = array.host.address_of(patch.argument) + patch.plus
    array.write(patch.register, address & 0xFFFFFFFF, source)
    second = patch.register + _WORD_BYTES
    array.write(second, array.read(second) & 0xFFFF0000 | address >> 32, source)


def _sync(array: Array, sync: Sync, source: str) -> None:
    for column in range(sync.column, sync.column + sync.columns):
        for row in range(sync.row, sync.row + sync.rows):
            _await_token(array, (column, row, DIRECTION_NAMES[sync.direction], sync.channel), source)


def _await_token(array: Array, key: TokenKey, source: str) -> None:
    column, row, direction, channel = key
    if (direction, channel) not in array.tile(column, row).channels:
        raise EmulationError(f"a token of {direction} {channel} of tile ({column}, {row}) is awaited, which has none{source}")
    array.scheduler.run()
    wait = TokenWait(array, key, source)
    if not array.tokens[key]:
        if not wait.possible():
            array.strictness.fault("missing-token", deadlock(array, wait))
            return
        raise deadlock(array, wait)
    array.tokens[key] -= 1
