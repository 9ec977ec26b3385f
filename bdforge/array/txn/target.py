"""Where the operations of a lowering go: register writes of one array configuration, with the places they came from."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

from xdsl.ir import Operation as MlirOperation

from bdforge.array.mlir.allocate import BASIC_SEQUENTIAL, AddressMap, allocate, buffer_bytes, name_of, overrun
from bdforge.array.mlir.array_ops import ShimDmaAllocationOp
from bdforge.array.mlir.device_ops import DeviceOp, NamedT, TileOp, named
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.errors import MlirError
from bdforge.array.mlir.locations import fault_at, location
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.register_ops import AddressedOp
from bdforge.array.mlir.task_ops import TaskOp
from bdforge.array.txn.writer import WORD_MASK
from bdforge.devices import AIE2P, Device, TileKind, TileLimits
from bdforge.devices.limits import CONTROLLER_IDS, GRANULE_BYTES
from bdforge.devices.registers import (
    CONTROLLER_ID_MASK,
    MEMTILE_WINDOW_BYTES,
    MEMTILE_WINDOWS,
    OFFSET_MASK,
    QUEUE,
    TILE_REGISTERS,
    TileRegisters,
    address,
)
from bdforge.devices.rules import outside
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Patch, Sync, Write

_NAMED = 4  # buffers in a message about all of them


class LoweringError(MlirError):
    """A runtime sequence that no instruction stream can express, or that mlir-aie would not lower."""


def lowering_error(op: MlirOperation, message: str) -> LoweringError:
    """The error at an operation of the MLIR text."""
    return fault_at(LoweringError, op, f"{op.name}: {message}")


@contextmanager
def faults_of(op: MlirOperation) -> Iterator[None]:
    """Give errors about values (fields, names, allocation) the place of the operation that holds them."""
    try:
        yield
    except LoweringError:
        raise
    except ValueError as error:
        raise lowering_error(op, str(error)) from error


class Policy(Protocol):
    """What a caller makes of faults and warnings (`bdforge.array.emulator.strictness.Strictness` is one)."""

    def fault(self, name: str, error: Exception) -> None:
        """Raise `error`, or let it pass where the check called `name` is switched off."""
        raise error

    def caution(self, name: str, warning: str) -> None:
        """Remember a warning, unless the one called `name` is switched off."""
        return


class RefusingPolicy(Policy):
    """Raises every fault and remembers no warning."""


REFUSING = RefusingPolicy()
Fault = Callable[[str, ValueError], None]
"""Decides about a fault by the name of its check: raises it, or lets it pass."""


def fault_of(op: MlirOperation, policy: Policy) -> Fault:
    """What decides about faults of an operation as a policy does."""
    return lambda check, error: policy.fault(check, lowering_error(op, str(error)))


class ControllerIds(StrEnum):
    """Which tiles have a controller id, and so a masked write of it before every push that asks for a token.

    `AIECC`: every `aie.tile` of the text; those without one get their row's, as aiecc's pass
    `aie-assign-tile-controller-ids` does before it lowers. `TEXT`: only those that the text gives, as `aie-opt` lowers
    a text without that pass.
    """

    AIECC = "aiecc"
    TEXT = "text"

    def of(self, device_op: DeviceOp) -> dict[tuple[int, int], int]:
        """Controller id by (column, row) of a device's tiles."""
        tiles = [op for op in device_op.walk() if isinstance(op, TileOp)]
        given = {op.place: op.controller_id.id for op in tiles if op.controller_id is not None}
        if self is ControllerIds.TEXT:
            return given
        return {op.place: CONTROLLER_IDS[op.row] for op in tiles} | given


class TileChannel(NamedTuple):
    """A DMA channel of a tile."""

    column: int
    row: int
    direction: Direction
    number: int

    @classmethod
    def of(cls, op: ShimDmaAllocationOp | TaskOp) -> "TileChannel":
        """The channel that an operation names."""
        return cls(*op.tile.place, op.direction, op.channel)

    @property
    def tile(self) -> tuple[int, int]:
        """Column and row."""
        return self.column, self.row


class LoweringTarget:
    """One `aie.device`, and the operations emitted for it so far.

    `place` is the operation being lowered; `policy` decides about faults that a caller may let pass.
    """

    def __init__(
        self,
        device_op: DeviceOp,
        operations: list[Operation],
        allocation: AddressMap | None = None,
        policy: Policy = REFUSING,
        controller_ids: ControllerIds = ControllerIds.AIECC,
    ):
        self.device_op, self.policy = device_op, policy
        self.place: MlirOperation = device_op
        self.device: Device = device_op.device
        self.operations = operations
        overflow = partial(policy.fault, "memory-overflow")
        self.allocation = allocate(device_op, overflow) if allocation is None else allocation
        self._symbols = {
            symbol: op for op in device_op.body.block.ops if isinstance(symbol := getattr(op, "symbol", None), str)
        }
        self.controller_ids = controller_ids
        self._controllers = controller_ids.of(device_op)
        self._placed_as_said = {
            op.place
            for op in device_op.walk()
            if isinstance(op, TileOp) and op.text("allocation_scheme") == BASIC_SEQUENTIAL
        }
        self._open: dict[BufferOp, MlirOperation] = {}  # and the first operation that relies on where each lies

    def fault(self, check: str, error: ValueError) -> None:
        """Raise `error`, unless the policy lets faults of this check pass."""
        fault_of(self.place, self.policy)(check, error)

    def caution(self, name: str, message: str) -> None:
        """Tell the policy what the operation being lowered does otherwise than it reads."""
        self.policy.caution(name, f"{location(self.place)}: {self.place.name}: {message}")

    def check_extent(self, buffer: BufferOp, start_bytes: int, end_bytes: int) -> None:
        """Tell the policy of a BD that leaves its buffer."""
        if (error := overrun(self.allocation, buffer, start_bytes, end_bytes)) is not None:
            self.fault("buffer-bounds", error)

    def too_wide(self, error: ValueError) -> None:
        """A value that its register field cannot hold."""
        self.fault("field-width", error)

    def limits(self, column: int, row: int) -> TileLimits:
        """What the tile offers; DeviceError outside the device."""
        return self.device.limits(column, row)

    def registers(self, column: int, row: int) -> TileRegisters:
        """Registers of the tile; DeviceError outside the device."""
        return TILE_REGISTERS[self.device.kind(column, row)]

    def describe(self, column: int, row: int) -> str:
        """The tile in words."""
        return f"{self.device.kind(column, row)} ({column}, {row})"

    def check_channel(self, channel: TileChannel) -> None:
        """ValueError for a channel that the tile has not."""
        if (problem := outside("channel", channel.number, self.limits(channel.column, channel.row))) is not None:
            raise ValueError(f"{channel.direction} of {self.describe(channel.column, channel.row)}: {problem}")

    def buffer_address(self, buffer: BufferOp) -> int:
        """Byte address of a buffer in its tile; ValueError for one of another device."""
        if buffer not in self.allocation.buffers:
            raise ValueError(f"{name_of(buffer)} is not part of device @{self.device_op.symbol}")
        if buffer.address is None and buffer.tile.place not in self._placed_as_said:
            self._open.setdefault(buffer, self.place)
        return self.allocation.buffers[buffer]

    def report_open_addresses(self) -> None:
        """Tell the policy once of all addresses on which the operations so far rely unsaid."""
        if not self._open:
            return
        names = [f"{name_of(buffer)} of {self.describe(*buffer.tile.place)}" for buffer in self._open]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        self.place = next(iter(self._open.values()))
        self.caution(
            "open-address",
            f"the text gives no address to {', '.join(names[:_NAMED])}{more}; these words are for aiecc's scheme "
            f"{BASIC_SEQUENTIAL}, but its default is bank-aware and puts them elsewhere: give each an address and "
            f'its aie.tile allocation_scheme = "{BASIC_SEQUENTIAL}", or take the text that aiecc leaves, '
            "input_with_addresses.mlir",
        )

    def lock_id(self, lock: LockOp) -> int:
        """Id of a lock in its tile; ValueError for one of another device."""
        if lock not in self.allocation.locks:
            raise ValueError(f"the lock is not part of device @{self.device_op.symbol}")
        return self.allocation.locks[lock]

    def named(self, kind: type[NamedT], symbol: str) -> NamedT:
        """The device's operation of a kind by its symbol; ValueError tells which there are."""
        found = self._symbols.get(symbol)
        return found if isinstance(found, kind) else named(self.device_op, kind, symbol)

    def shim_channel(self, symbol: str) -> ShimDmaAllocationOp:
        """The aie.shim_dma_allocation called `symbol`; ValueError if there is none."""
        return self.named(ShimDmaAllocationOp, symbol)

    def register_address(self, op: AddressedOp) -> int:
        """Address that `address` and `buffer` or `column` and `row` of a raw write give.

        With a buffer, `address` counts words from its start; with column and row, its low 20 bits are the offset in
        that tile; else it is a full address.
        """
        if op.buffer is not None:
            return self.word_of_buffer(op.buffer, op.address)
        if op.column is None:
            return op.address
        assert op.row is not None  # as mlir.verify_sequence sees to
        self.device.kind(op.column, op.row)  # DeviceError for no tile of it
        return address(op.column, op.row, op.address & OFFSET_MASK)

    def word_of_buffer(self, symbol: str, index: int) -> int:
        """Full address of 32-bit word `index` of a named buffer; ValueError outside of it."""
        buffer = self.named(BufferOp, symbol)
        words = buffer_bytes(buffer) // GRANULE_BYTES
        if not 0 <= index < words:
            raise ValueError(f"word {index} is outside buffer @{symbol}, which has words 0 to {words - 1}")
        byte = self.buffer_address(buffer) + GRANULE_BYTES * index
        if byte % GRANULE_BYTES:
            raise ValueError(f"buffer @{symbol} starts at {byte:#x}, which is no multiple of {GRANULE_BYTES} bytes")
        return address(*buffer.tile.place, byte)

    def emit(self, kind: type[Operation], *values: Any, **named_values: Any) -> None:
        """Append an operation that the one being lowered becomes."""
        self.operations.append(kind(*values, **named_values, location=location(self.place)))

    def write(self, full_address: int, value: int) -> None:
        """WRITE; negative values become their 32-bit pattern."""
        self.emit(Write, full_address, value & WORD_MASK)

    def write_bd(self, column: int, row: int, bd: int, words: Sequence[int]) -> None:
        """BLOCKWRITE of a whole BD; ValueError for a BD that the tile has not."""
        if (problem := outside("bd_id", bd, self.limits(column, row))) is not None:
            raise ValueError(f"{self.describe(column, row)}: {problem}")
        self.emit(BlockWrite, address(column, row, self.registers(column, row).bd_offset(bd)), tuple(words))

    def patch(self, column: int, row: int, bd: int, argument: int, plus_bytes: int) -> None:
        """DDR_PATCH of a shim BD's address."""
        if plus_bytes < 0:
            raise ValueError(f"the transfer starts {-plus_bytes} bytes before argument {argument}")
        self.emit(Patch, self._word_of_bd(column, row, bd, "address_low"), argument, plus_bytes)

    def _word_of_bd(self, column: int, row: int, bd: int, field: str) -> int:
        """Address of the word of a BD that holds a field."""
        registers = self.registers(column, row)
        return address(column, row, registers.bd_offset(bd) + GRANULE_BYTES * registers.bd.fields[field].word)

    def point_bd_at(self, column: int, row: int, bd: int, byte: int) -> None:
        """MASKWRITE of the address field of a memtile's or core tile's BD to byte `byte` of the tile's own memory.

        As in mlir-aie (`AIEDMATasksToNPU.cpp`) a memtile's address moves to its own window on AIE2P only; what AIE2
        then reaches, its own memory or its western neighbour's, the sources leave open.
        """
        if byte % GRANULE_BYTES:
            raise ValueError(
                f"the transfer starts at byte {byte:#x} of its tile, which is no multiple of {GRANULE_BYTES}"
            )
        reach = self.limits(column, row).memory_bytes
        if self.device.kind(column, row) is TileKind.MEMTILE:
            byte += MEMTILE_WINDOW_BYTES if self.device.generation is AIE2P else 0
            reach = MEMTILE_WINDOWS * MEMTILE_WINDOW_BYTES
        if not 0 <= byte < reach:
            start = f"the transfer starts at byte {byte:#x} as its DMA counts"
            self.fault("dma-bounds", ValueError(f"{start}, which reaches {reach:#x} bytes"))
            byte %= reach
        field = self.registers(column, row).bd.fields["address"]
        value = (byte // GRANULE_BYTES) << field.low
        self.emit(MaskWrite, self._word_of_bd(column, row, bd, "address"), value, field.mask)

    def push(self, channel: TileChannel, bd: int, repeat_count: int, token: bool) -> None:
        """WRITE of a channel's task queue for `repeat_count` + 1 runs, after the tile's controller id if it has one."""
        self.check_channel(channel)
        column, row, direction, number = channel
        registers = self.registers(column, row)
        limit = QUEUE.fields["bd"].bounds[1]
        if bd > limit:
            error = ValueError(
                f"BD {bd} of {self.describe(column, row)} cannot be started at run time: mlir-aie's queue word keeps "
                f"4 bits of the BD number, 0 to {limit}"
            )
            self.too_wide(error)
            bd &= limit  # as mlir-aie's word cuts it, where that is permitted
        controller = self._controllers.get((column, row))
        if token and controller is not None:
            at = address(column, row, registers.control_offset(direction, number))
            value = registers.control.encode({"controller_id": controller})[0]
            self.emit(MaskWrite, at, value, CONTROLLER_ID_MASK)
        word = registers.queue.encode({"token": int(token), "repeat": repeat_count, "bd": bd}, self.too_wide)[0]
        self.write(address(column, row, registers.queue_offset(direction, number)), word)

    def sync(self, channel: TileChannel, columns: int = 1, rows: int = 1) -> None:
        """TCT: wait for a token of the channel, in each tile of the rectangle."""
        self.check_channel(channel)
        column, row, direction, number = channel
        if columns < 1 or rows < 1:
            raise ValueError(f"{columns} columns x {rows} rows; both are at least 1")
        self.device.kind(column + columns - 1, row + rows - 1)  # DeviceError beyond the array
        self.emit(Sync, direction.code, row, column, rows, columns, number)
