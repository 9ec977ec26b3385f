"""The controller: runs the operations of a runtime sequence or instruction stream on an array, in order."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.diagnose import AwaitedToken, deadlock
from bdforge.array.emulator.errors import ArgumentError, LoadError, RegisterAccessError
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.silicon_rules import TokenKey, check_argument, check_wide_wait
from bdforge.array.emulator.tokens import lost_token
from bdforge.devices import AIE2, DeviceError, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES
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
    Write,
)

Load = Callable[[LoadPdi, str], None]
"""Loads another configuration; the string says where, as a suffix of messages."""


def execute(array: Array, operations: Iterable[Operation], load: Load) -> None:
    """Run every operation; the array moves as far as it can between any two of them.

    Cores run until they block before the first operation and after each reconfiguration, as on silicon. Faults carry
    the operation's line, or its number in an instruction stream.
    """
    notify = array.scheduler.notify
    notify("start")
    array.scheduler.run()
    notify("dispatch")
    array.dram.running = True
    for index, operation in enumerate(operations):
        place = operation.location
        source = f" (operation {index} of the instruction stream)" if place is None else f" ({place})"
        notify("operation", type(operation).__name__, len(operation.words) if isinstance(operation, BlockWrite) else 1)
        _run(array, operation, load, source)
    notify("finish")


def _run(array: Array, operation: Operation, load: Load, source: str) -> None:
    match operation:
        case Write(address, value):
            array.write(address, value, source)
            array.scheduler.between_operations()
        case MaskWrite(address, value, mask):
            array.write(address, array.read(address, source) & ~mask | value & mask, source)
            _flag_window(array, operation, source)
            array.scheduler.between_operations()
        case BlockWrite(address, words):
            tile, offset = array.at(address, source)
            tile.write_block(offset, words, source)
            array.scheduler.between_operations()
        case Patch():
            _patch(array, operation, source)
        case Sync():
            _sync(array, operation, source)
        case MaskPoll() | MaskPollBusy():
            _poll(array, operation, source)
        case LoadPdi():
            load(operation, source)
            array.scheduler.notify("start")
            array.scheduler.run()
            array.dram.running = True
        case Noop() | Preempt():
            pass
        case _:
            raise LoadError(f"{type(operation).__name__} cannot be emulated{source}")


def _flag_window(array: Array, write: MaskWrite, source: str) -> None:
    """On AIE2, mlir-aie points memtile BDs of the runtime sequence at the window of the western neighbour.

    Whether silicon reads that as the own memory is open (hardware facts 3, no. 4): emulated as written, with a warning.
    """
    tile, offset = array.at(write.address)
    if array.device.generation is not AIE2 or tile.kind is not TileKind.MEMTILE:
        return
    field, place = tile.registers.bd.fields["address"], tile.map.bd_place(offset)
    if place is None or place[1] != field.word or write.mask != field.mask:
        return
    if write.value & field.mask < (MEMTILE_WINDOW_BYTES // GRANULE_BYTES) << field.low:
        array.strictness.caution(
            "npu1-window",
            f"{tile.name}: BD {place[0]} points into the window of the western neighbour's memory, as mlir-aie writes "
            f"it for npu1; sources differ on whether silicon then reaches the own memory. Emulated as written{source}",
        )


def _patch(array: Array, patch: Patch, source: str) -> None:
    """Bits 31:0 and 47:32 of a host address go to words 1 and 2 of a shim BD; the other bits of word 2 stay."""
    check_argument(array.strictness, patch, source)
    tile, offset = array.at(patch.register, source)
    place = tile.map.bd_place(offset)
    if tile.kind is not TileKind.SHIM or place is None or place[1] != tile.registers.bd.fields["address_low"].word:
        raise RegisterAccessError(
            f"the address of argument {patch.argument} is patched into {tile.map.name(offset)} of {tile.name}; "
            f"only word 1 of a shim's BD takes one{source}"
        )
    try:
        address = array.host.address_of(patch.argument) + patch.plus
    except ArgumentError as error:
        raise ArgumentError(f"{error}{source}") from None
    array.write(patch.register, address & 0xFFFFFFFF, source)
    second = patch.register + GRANULE_BYTES
    high = tile.registers.bd.fields["address_high"]
    array.write(second, array.read(second) & ~high.mask | (address >> 32) << high.low & high.mask, source)


def _sync(array: Array, sync: Sync, source: str) -> None:
    keys = [
        (column, row, DIRECTIONS[sync.direction], sync.channel)
        for column in range(sync.column, sync.column + sync.columns)
        for row in range(sync.row, sync.row + sync.rows)
    ]
    check_wide_wait(sync, keys, array.tokens, source, array.strictness)
    for key in keys:
        _await_token(array, key, source)


def _await_token(array: Array, key: TokenKey, source: str) -> None:
    column, row, direction, channel = key
    what = f"a token of {direction} {channel} of tile ({column}, {row}) is awaited"
    try:
        channels = array.tile(column, row).channels
    except DeviceError as error:
        raise RegisterAccessError(f"{what}: {error}{source}") from None
    if (direction, channel) not in channels:
        raise RegisterAccessError(f"{what}, which has no such channel{source}")
    array.settle()
    array.scheduler.run()
    wait = AwaitedToken(array, key, source)
    if not array.tokens[key]:
        if not wait.possible():
            array.strictness.fault("missing-token", deadlock(wait))
            return
        raise deadlock(wait)
    if _token_is_lost(array, key, source):
        return
    array.tokens[key] -= 1
    array.dram.awaited(key)
    array.scheduler.notify("token", wait.channel)


def _token_is_lost(array: Array, key: TokenKey, source: str) -> bool:
    """Whether the switches lead tokens of a channel nowhere (a fault, "missing-token"): data moves, the wait stays."""
    column, row, direction, channel = key
    if array.token_ways is None:
        return False
    controller_id = array.tile(column, row).map.controller_id(direction, channel)
    problem = array.token_ways(column, row, controller_id)
    if problem is None:
        return False
    message = f"{lost_token(direction, channel, column, row, problem)}{source}"
    array.strictness.fault("missing-token", LoadError(message))
    return True


@dataclass(slots=True)
class PollWait:
    """The controller polls a register."""

    array: Array
    poll: MaskPoll | MaskPollBusy
    source: str

    def met(self) -> bool:
        return self.array.read(self.poll.address, self.source) & self.poll.mask == self.poll.value

    def sentence(self) -> str:
        tile, offset = self.array.at(self.poll.address)
        return (
            f"polls {tile.map.name(offset)} of {tile.name} until it is {self.poll.value:#x} under mask "
            f"{self.poll.mask:#x}, but it is {tile.read(offset):#x}{self.source}"
        )

    def providers(self) -> Iterator[Agent]:
        tile, offset = self.array.at(self.poll.address)
        if (lock := tile.map.lock_at(offset)) is not None:
            yield from lock.releasers()
        if (channel := tile.map.channel_at(offset)) is not None:
            yield channel


def _poll(array: Array, poll: MaskPoll | MaskPollBusy, source: str) -> None:
    """Wait until a register has a value, looked at after every step: values that pass by count."""
    wait = PollWait(array, poll, source)
    array.scheduler.last = None  # who ran last ended the wait: replays let others wait for that party
    while not wait.met():
        if not array.scheduler.step():
            raise deadlock(wait)
    if array.scheduler.observers:
        _notify_poll(array.scheduler, wait)


def _notify_poll(scheduler: Scheduler, wait: PollWait) -> None:
    """A poll of a lock or of a task queue is replayed as such; any other by what the party that ran last had done."""
    poll = wait.poll
    tile, offset = wait.array.at(poll.address)
    lock, channel = tile.map.lock_at(offset), tile.map.channel_at(offset)
    if lock is not None:
        values = [v for v in range(lock.highest + 1) if v & poll.mask == poll.value]
        scheduler.notify("poll lock", lock, frozenset(values))
    elif channel is not None and (counts := tile.map.task_counts(poll.mask, poll.value)):
        scheduler.notify("poll tasks", channel, counts)
    else:
        scheduler.notify("satisfied", scheduler.last)
