"""Static DMA programs: `aie.mem`, `memtile_dma` and `shim_dma` regions become BD words and queued tasks."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block

from bdforge.devices import TileKind, TileLimits
from bdforge.devices.limits import TASK_REPEAT_MAX
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS
from bdforge.emulator.array import Array
from bdforge.emulator.errors import DesignError
from bdforge.emulator.tile import Tile
from bdforge.mlir import location
from bdforge.mlir.allocate import Allocation, element_bits
from bdforge.mlir.array_ops import BufferOp, TileOp, UseLockOp
from bdforge.mlir.dma_ops import DmaBdOp, DmaProgramOp, bd_chain_from, bd_of
from bdforge.mlir.words import LockAction
from bdforge.txn.bd import BdError, BdLock, dims_in_words, encode_bd, granules


@dataclass(frozen=True, slots=True)
class StaticTask:
    """A chain of BDs that a channel is to run; `loops_to` is the index of the BD that follows the last, if any."""

    direction: str
    channel: int
    bds: tuple[DmaBdOp, ...]
    loops_to: int | None
    runs: int
    where: str


def load_dma(array: Array, program: DmaProgramOp, allocation: Allocation) -> None:
    """Write a region's BDs and queue its tasks; DesignError or DmaError with the place in the text."""
    tile = array.tile(program.tile.column, program.tile.row)
    ids: dict[DmaBdOp, int] = {}
    tasks = list(_tasks(program))
    for task in tasks:
        if not 0 <= task.channel < tile.limits.channels:
            raise DesignError(
                f"{task.where}: {tile.name} has {task.direction} channels 0 to {tile.limits.channels - 1}, not {task.channel}"
            )
        for bd in task.bds:
            if bd not in ids:
                ids[bd] = _choose_id(bd, tile.limits, task.channel, set(ids.values()))
    for task in tasks:
        for place, bd in enumerate(task.bds):
            following = place + 1 if place + 1 < len(task.bds) else task.loops_to
            _write(tile, ids[bd], bd, None if following is None else ids[task.bds[following]], allocation)
    for task in tasks:
        if task.bds:
            token = tile.kind is TileKind.SHIM and task.direction == "S2MM"
            tile.channels[task.direction, task.channel].push(ids[task.bds[0]], task.runs, token)


def _tasks(program: DmaProgramOp) -> Iterator[StaticTask]:
    for start in program.starts:
        blocks, back = bd_chain_from(start.first_block)
        bds = [bd_of(block) for block in blocks]
        loops_to = None if back is None else _first_bd(blocks, blocks.index(back))
        yield StaticTask(
            start.direction, start.channel, tuple(bd for bd in bds if bd is not None), loops_to,
            _runs(start.repeat_count, str(location(start))), str(location(start)),
        )  # fmt: skip
    for dma in program.region_dmas:
        bds = tuple(bd for block in dma.blocks if (bd := bd_of(block)) is not None)
        where = str(location(dma))
        yield StaticTask(dma.direction, dma.channel, bds, 0 if dma.loop else None, _runs(dma.repeat_count, where), where)


def _first_bd(blocks: list[Block], start: int) -> int:
    """Index among the BDs of the first block from `start` on that holds one."""
    return sum(bd_of(block) is not None for block in blocks[:start])


def _runs(repeat_count: int, where: str) -> int:
    if not 0 <= repeat_count < TASK_REPEAT_MAX:
        raise DesignError(f"{where}: repeat_count = {repeat_count} is outside 0 to {TASK_REPEAT_MAX - 1}")
    return repeat_count + 1


def _choose_id(bd: DmaBdOp, limits: TileLimits, channel: int, used: set[int]) -> int:
    allowed = limits.bds_of_channel(channel)
    if bd.bd_id is not None:
        if bd.bd_id in used:
            raise DesignError(f"{location(bd)}: bd_id = {bd.bd_id} is used twice in this tile")
        if bd.bd_id not in range(limits.bds):
            raise DesignError(f"{location(bd)}: bd_id = {bd.bd_id} is outside 0 to {limits.bds - 1}")
        return bd.bd_id
    free = next((i for i in allowed if i not in used), None)
    if free is None:
        raise DesignError(
            f"{location(bd)}: no BD is left for channel {channel}, which may use {allowed.start} to {allowed.stop - 1}"
        )
    return free


def _write(tile: Tile, bd_id: int, bd: DmaBdOp, next_bd: int | None, allocation: Allocation) -> None:
    try:
        words = _words(tile, bd, next_bd, allocation)
    except BdError as error:
        raise DesignError(f"{location(bd)}: {error}") from None
    source = f" ({location(bd)})"
    base = tile.registers.bd_offset(bd_id)
    for i, word in enumerate(words):
        tile.write(base + 4 * i, word, source)


def _words(tile: Tile, bd: DmaBdOp, next_bd: int | None, allocation: Allocation) -> list[int]:
    buffer = bd.buffer_op
    if not isinstance(buffer, BufferOp):
        raise BdError("a static BD needs an aie.buffer; host memory has no address here")
    bits = element_bits(bd.element_type)
    address = _window(tile, buffer.tile, "buffer") * MEMTILE_WINDOW_BYTES + allocation.buffers[buffer]
    return encode_bd(
        tile.kind,
        length_words=granules(bd.length, bits, "length"),
        dims_words=dims_in_words([(d.size, d.stride) for d in bd.dims], bits),
        address=address + granules(bd.offset, bits, "offset") * 4,
        packet=None if bd.packet is None else (bd.packet.type, bd.packet.id),
        next_bd=next_bd,
        acquire=_lock(tile, bd.acquires, allocation),
        release=_lock(tile, bd.releases, allocation),
        padding=_padding(bd, bits),
    )


def _padding(bd: DmaBdOp, bits: int) -> list[tuple[int, int]]:
    pads = [(p.before, p.after) for p in bd.padding]
    if not pads:
        return []
    *outer, (before, after) = pads
    return [*outer, (granules(before, bits, "padding before"), granules(after, bits, "padding after"))]


def _lock(tile: Tile, ops: list[UseLockOp], allocation: Allocation) -> BdLock | None:
    if not ops:
        return None
    op = ops[0]
    value = op.value
    if op.is_acquire:
        if not op.enabled:
            return None
        if op.action is LockAction.ACQUIRE_GREATER_EQUAL:
            if value == 0:
                raise BdError("AcquireGreaterEqual 0 is encoded as 0, which hardware reads as 'wait for exactly 0'")
            value = -value
    return BdLock(_window(tile, op.lock.tile, "lock") * MEMTILE_WINDOW_LOCKS + allocation.locks[op.lock], value)


def _window(tile: Tile, owner: TileOp, what: str) -> int:
    """Which of a memtile DMA's windows `owner` is in: 0 west, 1 own, 2 east. Other tiles see only themselves, at 0."""
    if tile.kind is TileKind.MEMTILE:
        window = owner.column - tile.column + 1
        if owner.row == tile.row and window in (0, 1, 2):
            return window
    elif (owner.column, owner.row) == (tile.column, tile.row):
        return 0
    raise BdError(f"the DMA of {tile.name} cannot reach a {what} of tile ({owner.column}, {owner.row})")
