"""Static DMA programs: the words that `bdforge.lower` makes of them, in the registers of a tile, and their tasks."""

from collections.abc import Iterator, Mapping, Sequence

from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES, TASK_REPEAT_MAX
from bdforge.emulator.array import Array
from bdforge.emulator.bd import decode_bd
from bdforge.emulator.errors import DesignError, EmulationError
from bdforge.emulator.tile import Tile
from bdforge.lower.static_bd import lost_pad_value, static_words
from bdforge.lower.static_dma import DmaProgramError, PlacedBd, StaticTask, placed_bds, static_tasks
from bdforge.mlir import location
from bdforge.mlir.allocate import Allocation
from bdforge.mlir.array_ops import BufferOp
from bdforge.mlir.dma_ops import DmaBdOp, DmaProgramOp
from bdforge.txn.bd import BdError


def load_dma(array: Array, program: DmaProgramOp, allocation: Allocation) -> None:
    """Write a region's BDs and queue its tasks; DesignError or DmaError with the place in the text."""
    tile = array.tile(program.tile.column, program.tile.row)
    tasks, bds = program_of(program)
    for bd in bds:
        write_static(tile, program, bd, allocation)
    ids = {bd.op: bd.id for bd in bds}
    for task in tasks:
        channel = tile.channels[task.op.direction, task.op.channel]
        tile.map.start(channel)
        if task.op.pad_value:
            channel.pad_value = task.op.pad_value % (1 << 32)
        runs = _runs(tile, task)
        if task.bds:
            token = tile.kind is TileKind.SHIM and task.op.direction == "S2MM"
            channel.push(ids[task.bds[0]], runs, token, f" ({task.where})")


def program_of(program: DmaProgramOp) -> tuple[list[StaticTask], list[PlacedBd]]:
    """The tasks that a region starts, and its BDs with their numbers; DesignError for what the tile has not."""
    try:
        tasks = static_tasks(program)
        return tasks, placed_bds(program, tasks)
    except DmaProgramError as error:
        raise DesignError(str(error)) from None


def _runs(tile: Tile, task: StaticTask) -> int:
    repeat_count = task.op.repeat_count
    if not 0 <= repeat_count < TASK_REPEAT_MAX:
        error = DesignError(f"{task.where}: repeat_count = {repeat_count} is outside 0 to {TASK_REPEAT_MAX - 1}")
        tile.array.strictness.fault("field-width", error)
    return repeat_count % TASK_REPEAT_MAX + 1


def write_static(tile: Tile, program: DmaProgramOp, bd: PlacedBd, allocation: Allocation) -> None:
    """Write a BD's registers; DesignError with its place for what they cannot hold."""
    words = _words(tile, program, bd, allocation)
    source = f" ({location(bd.op)})"
    base = tile.registers.bd_offset(bd.id)
    for i, word in enumerate(words):
        tile.write(base + GRANULE_BYTES * i, word, source)


def check_reach(tile: Tile, tasks: Sequence[StaticTask], ids: Mapping[DmaBdOp, int]) -> Iterator[EmulationError]:
    """What each channel would find wrong with its BDs, which are written, before it moves a word.

    Memory outside of every window, a BD of the other half; all faults that have a switch go to the tile's strictness.
    """
    for task in tasks:
        channel = tile.channels[task.op.direction, task.op.channel]
        for bd in (bd for bd in task.bds if bd in ids):
            decoded = decode_bd(tile.kind, tile.bd_words(ids[bd]))
            channel.bd = ids[bd]
            try:
                channel.check_half([ids[bd]], f" ({location(bd)})")
                tile.dma_memory(decoded.address, decoded.order, channel)
            except EmulationError as error:
                yield error


def _words(tile: Tile, program: DmaProgramOp, bd: PlacedBd, allocation: Allocation) -> list[int]:
    strictness = tile.array.strictness
    if not isinstance(bd.op.buffer_op, BufferOp):
        raise DesignError(f"{location(bd.op)}: a static BD needs an aie.buffer; host memory has no address here")
    if (lost := lost_pad_value(bd.op)) is not None:
        raise DesignError(f"{location(bd.op)}: {lost}")

    def fault(check: str, error: ValueError) -> None:
        strictness.fault(check, DesignError(f"{location(bd.op)}: {error}"))

    try:
        return static_words(program.tile, bd.op, bd.next, allocation, fault, strictness)
    except BdError as error:
        raise DesignError(f"{location(bd.op)}: {error}") from None
