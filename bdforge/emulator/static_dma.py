"""Static DMA programs: `aie.mem`, `memtile_dma` and `shim_dma` regions become BD words and queued tasks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir import Block

from bdforge.devices import TileKind, TileLimits
from bdforge.devices.limits import GRANULE_BYTES, TASK_REPEAT_MAX
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS
from bdforge.emulator.array import Array
from bdforge.emulator.bd import decode_bd
from bdforge.emulator.errors import DesignError, EmulationError
from bdforge.emulator.strictness import Strictness
from bdforge.emulator.tile import Tile
from bdforge.mlir import location
from bdforge.mlir.allocate import Allocation, element_bits
from bdforge.mlir.array_ops import BufferOp, TileOp, UseLockOp
from bdforge.mlir.dma_ops import DmaBdOp, DmaProgramOp, bd_chain_from, bd_of
from bdforge.txn.bd import BdError, BdLock, encode_bd, granules, reach_words, static_dims
from bdforge.txn.overrun import overrun
from bdforge.txn.tasks import acquire_value, iteration_of

Fault = Callable[[str, ValueError], None]
"""Decides about a fault by the name of its check."""


@dataclass(frozen=True, slots=True)
class StaticTask:
    """A chain of BDs that a channel is to run; `loops_to` is the index of the BD that follows the last, if any."""

    direction: str
    channel: int
    bds: tuple[DmaBdOp, ...]
    loops_to: int | None
    runs: int
    where: str
    pad_value: int


@dataclass(frozen=True, slots=True)
class PlacedBd:
    """A BD with its number and that of the one that follows."""

    op: DmaBdOp
    id: int
    next: int | None


def load_dma(array: Array, program: DmaProgramOp, allocation: Allocation) -> None:
    """Write a region's BDs and queue its tasks; DesignError or DmaError with the place in the text."""
    tile = array.tile(program.tile.column, program.tile.row)
    tasks = static_tasks(tile, program)
    bds = {bd.op: bd for bd in placed_bds(tile, tasks)}
    for bd in bds.values():
        write_static(tile, bd, allocation)
    for task in tasks:
        tile.map.start(tile.channels[task.direction, task.channel])
        if task.pad_value:
            tile.channels[task.direction, task.channel].pad_value = task.pad_value % (1 << 32)
        if task.bds:
            token = tile.kind is TileKind.SHIM and task.direction == "S2MM"
            tile.channels[task.direction, task.channel].push(bds[task.bds[0]].id, task.runs, token, f" ({task.where})")


def static_tasks(tile: Tile, program: DmaProgramOp) -> list[StaticTask]:
    """The tasks that a region starts, in order; DesignError for a channel that the tile has not."""
    tasks = list(_tasks(program, tile.array.strictness))
    for task in tasks:
        if not 0 <= task.channel < tile.limits.channels:
            raise DesignError(
                f"{task.where}: {tile.name} has {task.direction} channels 0 to {tile.limits.channels - 1}, "
                f"not {task.channel}"
            )
    return tasks


def placed_bds(tile: Tile, tasks: Sequence[StaticTask]) -> list[PlacedBd]:
    """Every BD once, with its number: explicit ones first, then the lowest free one that the channel may use."""
    ids: dict[DmaBdOp, int] = {}
    following: dict[DmaBdOp, DmaBdOp | None] = {}
    for bd in dict.fromkeys(bd for task in tasks for bd in task.bds):
        if bd.bd_id is not None:
            ids[bd] = _explicit_id(bd, tile.limits, ids.values())
    for task in tasks:
        for place, bd in enumerate(task.bds):
            if bd not in ids:
                ids[bd] = _free_id(bd, tile.limits, task.channel, ids.values())
            after = place + 1 if place + 1 < len(task.bds) else task.loops_to
            following[bd] = None if after is None else task.bds[after]
    return [PlacedBd(bd, ids[bd], None if after is None else ids[after]) for bd, after in following.items()]


def _tasks(program: DmaProgramOp, strictness: Strictness) -> Iterator[StaticTask]:
    for start in program.starts:
        blocks, back = bd_chain_from(start.first_block)
        bds = [bd_of(block) for block in blocks]
        loops_to = None if back is None else _first_bd(blocks, blocks.index(back))
        yield StaticTask(
            start.direction, start.channel, tuple(bd for bd in bds if bd is not None), loops_to,
            _runs(start.repeat_count, str(location(start)), strictness), str(location(start)), start.pad_value,
        )  # fmt: skip
    for dma in program.region_dmas:
        bds = tuple(bd for block in dma.blocks if (bd := bd_of(block)) is not None)
        where = str(location(dma))
        yield StaticTask(
            dma.direction, dma.channel, bds, 0 if dma.loop else None, _runs(dma.repeat_count, where, strictness), where,
            dma.pad_value,
        )  # fmt: skip


def _first_bd(blocks: list[Block], start: int) -> int:
    """Index among the BDs of the first block from `start` on that holds one."""
    return sum(bd_of(block) is not None for block in blocks[:start])


def _runs(repeat_count: int, where: str, strictness: Strictness) -> int:
    if not 0 <= repeat_count < TASK_REPEAT_MAX:
        error = DesignError(f"{where}: repeat_count = {repeat_count} is outside 0 to {TASK_REPEAT_MAX - 1}")
        strictness.fault("field-width", error)
    return repeat_count % TASK_REPEAT_MAX + 1


def _explicit_id(bd: DmaBdOp, limits: TileLimits, used: Collection[int]) -> int:
    assert bd.bd_id is not None
    if bd.bd_id in used:
        raise DesignError(f"{location(bd)}: bd_id = {bd.bd_id} is used twice in this tile")
    if bd.bd_id not in range(limits.bds):
        raise DesignError(f"{location(bd)}: bd_id = {bd.bd_id} is outside 0 to {limits.bds - 1}")
    return bd.bd_id


def _free_id(bd: DmaBdOp, limits: TileLimits, channel: int, used: Collection[int]) -> int:
    allowed = limits.bds_of_channel(channel)
    free = next((i for i in allowed if i not in used), None)
    if free is None:
        raise DesignError(
            f"{location(bd)}: no BD is left for channel {channel}, which may use {allowed.start} to {allowed.stop - 1}"
        )
    return free


def write_static(tile: Tile, bd: PlacedBd, allocation: Allocation) -> None:
    """Write a BD's registers; DesignError with its place for what they cannot hold."""
    words = static_words(tile, bd, allocation)
    source = f" ({location(bd.op)})"
    base = tile.registers.bd_offset(bd.id)
    for i, word in enumerate(words):
        tile.write(base + GRANULE_BYTES * i, word, source)


def check_reach(tile: Tile, tasks: Sequence[StaticTask], ids: Mapping[DmaBdOp, int]) -> Iterator[EmulationError]:
    """What each channel would find wrong with its BDs, which are written, before it moves a word.

    Memory outside of every window, a BD of the other half; all faults that have a switch go to the tile's strictness.
    """
    for task in tasks:
        channel = tile.channels[task.direction, task.channel]
        for bd in (bd for bd in task.bds if bd in ids):
            decoded = decode_bd(tile.kind, tile.bd_words(ids[bd]))
            channel.bd = ids[bd]
            try:
                channel.check_half([ids[bd]], f" ({location(bd)})")
                tile.dma_memory(decoded.address, decoded.order, channel)
            except EmulationError as error:
                yield error


def static_words(tile: Tile, bd: PlacedBd, allocation: Allocation) -> list[int]:
    """Register words of a BD; DesignError with its place for what registers cannot hold."""

    def fault(check: str, error: ValueError) -> None:
        tile.array.strictness.fault(check, DesignError(f"{location(bd.op)}: {error}"))

    _check_locks(tile, bd.op, fault)
    try:
        return _encoded(tile, bd.op, bd.next, allocation, fault)
    except BdError as error:
        raise DesignError(f"{location(bd.op)}: {error}") from None


def _check_locks(tile: Tile, bd: DmaBdOp, fault: Fault) -> None:
    """mlir-aie's CDO writer (`AIERT.cpp`) wants both locks or none, and takes both from the window of the last."""
    uses = [*bd.acquires, *bd.releases]
    if len(uses) == 1:
        has, lacks = ("acquires", "releases") if uses[0].is_acquire else ("releases", "acquires")
        problem = f"it {has} a lock and {lacks} none; mlir-aie writes a BD with both or neither"
        fault("bd-locks", ValueError(f"{problem}, so give it the other, of value 0 if need be, or take both away"))
    elif len({use.lock.tile.column for use in uses}) > 1:
        homes = " and ".join(f"({use.lock.tile.column}, {use.lock.tile.row})" for use in uses)
        tile.array.strictness.caution(
            "lock-windows",
            f"{location(bd)}: its locks are in tiles {homes}, but mlir-aie takes both from the window of the last "
            "aie.use_lock of the block: another lock than the text names",
        )


def _encoded(tile: Tile, bd: DmaBdOp, next_bd: int | None, allocation: Allocation, fault: Fault) -> list[int]:
    buffer = bd.buffer_op
    if not isinstance(buffer, BufferOp):
        raise BdError("a static BD needs an aie.buffer; host memory has no address here")
    if bd.pad_value and bd.padding:
        raise BdError(
            f"pad_value = {bd.pad_value} has no field in a BD, so mlir-aie leaves it out; pad with 0, or "
            "on npu2 with the channel's: aie.dma_start(..) {pad_value = .. : i32}, which mlir-aie takes from 1.4.1 on"
        )
    bits = element_bits(bd.element_type)
    address = _window(tile, buffer.tile, "buffer") * MEMTILE_WINDOW_BYTES + allocation.buffers[buffer]
    length, dims = granules(bd.length, bits, "length"), static_dims([(d.size, d.stride) for d in bd.dims], bits)
    iteration = iteration_of(bd, bits)
    if not bd.padding:
        start = GRANULE_BYTES * granules(bd.offset, bits, "offset")
        end = start + GRANULE_BYTES * reach_words(length, dims, iteration)
        if (error := overrun(allocation, buffer, start, end)) is not None:
            fault("buffer-bounds", error)
    return encode_bd(
        tile.kind,
        length_words=length,
        dims_words=dims,
        iteration=iteration,
        address=address + granules(bd.offset, bits, "offset") * GRANULE_BYTES,
        packet=None if bd.packet is None else (bd.packet.type, bd.packet.id),
        next_bd=next_bd,
        acquire=_lock(tile, bd.acquires, allocation, fault),
        release=_lock(tile, bd.releases, allocation, fault),
        padding=_padding(bd, bits),
        too_wide=partial(fault, "field-width"),
    )


def _padding(bd: DmaBdOp, bits: int) -> list[tuple[int, int]]:
    pads = [(p.before, p.after) for p in bd.padding]
    if not pads:
        return []
    *outer, (before, after) = pads
    return [*outer, (granules(before, bits, "padding before"), granules(after, bits, "padding after"))]


def _lock(tile: Tile, ops: list[UseLockOp], allocation: Allocation, fault: Fault) -> BdLock | None:
    if not ops or not ops[0].enabled:
        return None
    op = ops[0]
    value = acquire_value(op, partial(fault, "acquire-zero")) if op.is_acquire else op.value
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
