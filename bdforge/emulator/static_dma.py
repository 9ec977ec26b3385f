"""Static DMA programs: the words that `bdforge.lower` makes of them, in the registers of a tile, and their tasks."""

from collections.abc import Iterator, Mapping, Sequence

from bdforge.devices.limits import GRANULE_BYTES
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


def program_of(program: DmaProgramOp) -> tuple[list[StaticTask], list[PlacedBd]]:
    """The tasks that a region starts, and its BDs with their numbers; DesignError for what the tile has not."""
    try:
        tasks = static_tasks(program)
        return tasks, placed_bds(program, tasks)
    except DmaProgramError as error:
        raise DesignError(str(error)) from None


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
