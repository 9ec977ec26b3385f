"""DMA programs as register writes: tasks of a region, numbers and words of their BDs, then the starts of its channels.

Source: mlir-aie 5ff2ab97, `AIEAssignBufferDescriptorIDs.cpp` (ids), `AIERT.cpp` (order and fields).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bdforge.array.mlir.allocate import AddressMap
from bdforge.array.mlir.bd_ops import DmaBdOp, NextBdOp, bd_chain_from, bd_of
from bdforge.array.mlir.dma_ops import DmaOp, DmaProgramOp, DmaStartOp
from bdforge.array.txn.static_bd import write_static_bd
from bdforge.array.txn.target import Policy, fault_of, faults_of, lowering_error
from bdforge.array.txn.writer import WORD_MASK, Writer
from bdforge.devices import AIE2, TileKind, TileLimits
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import CORE_ENABLE, TILE_REGISTERS
from bdforge.devices.rules import outside


@dataclass(frozen=True, slots=True)
class StaticTask:
    """A chain of BDs that a channel is to run; `loops_to` is the index of the BD that follows the last, if any."""

    op: DmaStartOp | DmaOp
    bds: tuple[DmaBdOp, ...]
    loops_to: int | None


@dataclass(frozen=True, slots=True)
class PlacedBd:
    """A BD with its number and that of the one that follows."""

    op: DmaBdOp
    id: int
    next: int | None


def static_tasks(program: DmaProgramOp) -> list[StaticTask]:
    """The tasks that a region starts, in order; LoweringError for a channel that the tile has not."""
    tasks = list(_tasks(program))
    for task in tasks:
        if (problem := outside("channel", task.op.channel, program.tile.limits)) is not None:
            raise lowering_error(task.op, f"{task.op.direction}: {problem}")
    return tasks


def _tasks(program: DmaProgramOp) -> Iterator[StaticTask]:
    for start in program.starts:
        blocks, back = bd_chain_from(start.first_block)
        bds = [bd for block in blocks if (bd := bd_of(block)) is not None]
        before = () if back is None else blocks[: blocks.index(back)]
        yield StaticTask(start, tuple(bds), None if back is None else sum(bd_of(b) is not None for b in before))
    for dma in program.region_dmas:
        found = [bd for block in dma.blocks if (bd := bd_of(block)) is not None]
        yield StaticTask(dma, tuple(found), 0 if dma.loop else None)


def placed_bds(program: DmaProgramOp, tasks: Sequence[StaticTask]) -> list[PlacedBd]:
    """Every BD once in the order in which mlir-aie writes them; LoweringError for numbers that are not to be had.

    Explicit numbers come first; then the text's order takes the lowest free one that the first channel to run it may
    use.
    """
    limits = program.tile.limits
    ids: dict[DmaBdOp, int] = {}
    following: dict[DmaBdOp, DmaBdOp | None] = {}
    channels: dict[DmaBdOp, int] = {}
    for task in tasks:
        for place, bd in enumerate(task.bds):
            after = place + 1 if place + 1 < len(task.bds) else task.loops_to
            following[bd] = None if after is None else task.bds[after]
            channels.setdefault(bd, task.op.channel)
    in_text = [bd for bd in program.bds if bd in channels]
    for bd in in_text:
        if bd.bd_id is not None:
            ids[bd] = _explicit_id(bd, ids.values())
    for bd in in_text:
        if bd not in ids:
            ids[bd] = _free_id(bd, limits, channels[bd], ids.values())
    return [PlacedBd(bd, ids[bd], _next(bd, following[bd], ids)) for bd in _write_order(program) if bd in ids]


def _next(bd: DmaBdOp, following: DmaBdOp | None, ids: Mapping[DmaBdOp, int]) -> int | None:
    """mlir-aie follows aie.next_bd; only where a block has none does the attribute count."""
    if following is not None:
        return ids[following]
    block = bd.parent_block()
    goes_on = block is not None and isinstance(block.last_op, NextBdOp)
    return None if goes_on else bd.next_bd_id


def _write_order(program: DmaProgramOp) -> Iterator[DmaBdOp]:
    """Blocks as they are found from the entry on, those found last followed first; regions in the text's order."""
    yield from (bd for dma in program.region_dmas for block in dma.blocks if (bd := bd_of(block)) is not None)
    entry = program.body.blocks.first
    assert entry is not None
    found, open_ends = {entry: None}, [entry]
    while open_ends:
        last = open_ends.pop().last_op
        for block in () if last is None else last.successors:
            if block not in found:
                found[block] = None
                open_ends.append(block)
    yield from (bd for block in found if (bd := bd_of(block)) is not None)


def _explicit_id(bd: DmaBdOp, used: Collection[int]) -> int:
    assert bd.bd_id is not None
    if bd.bd_id in used:
        raise lowering_error(bd, f"bd_id = {bd.bd_id} is used twice in this tile")
    return bd.bd_id


def _free_id(bd: DmaBdOp, limits: TileLimits, channel: int, used: Collection[int]) -> int:
    allowed = limits.bds_of_channel(channel)
    free = next((i for i in allowed if i not in used), None)
    if free is None:
        raise lowering_error(
            bd, f"no BD is left for channel {channel}, which may use {allowed.start} to {allowed.stop - 1}"
        )
    return free


def set_dma(writer: Writer, program: DmaProgramOp, allocation: AddressMap, policy: Policy) -> None:
    """Write the BDs of a DMA program and start its channels; LoweringError for what registers cannot hold."""
    tasks = static_tasks(program)
    bds = placed_bds(program, tasks)
    for bd in bds:
        write_static_bd(writer, program.tile, bd.op, bd.id, bd.next, allocation, policy)
    ids = {bd.op: bd.id for bd in bds}
    _check_queues(tasks, policy)
    for task in tasks:
        with faults_of(task.op):
            _start(writer, program, task, ids, policy)


def _check_queues(tasks: Sequence[StaticTask], policy: Policy) -> None:
    """No more tasks for a channel than its queue holds: nothing has run when they are pushed."""
    queued = Counter[tuple[str, int]]()
    for task in (task for task in tasks if task.bds):
        queued[task.op.direction, task.op.channel] += 1
        if queued[task.op.direction, task.op.channel] == TASK_QUEUE_ENTRIES + 1:
            channel = f"{task.op.direction} {task.op.channel}"
            problem = f"{channel} gets more than {TASK_QUEUE_ENTRIES} tasks; its queue holds no more, the next is lost"
            with faults_of(task.op):
                fault_of(task.op, policy)("queue-overflow", ValueError(problem))


def _start(writer: Writer, program: DmaProgramOp, task: StaticTask, ids: dict[DmaBdOp, int], policy: Policy) -> None:
    """Push a task. The masked write of no bit is mlir-aie's: channels need no enabling but for a bit that is set so."""
    tile, op = program.tile, task.op
    registers, place = TILE_REGISTERS[tile.kind], program.tile.place
    if op.pad_value:
        if registers.pad_value_base is None or tile.device_op.device.generation is AIE2 or op.direction != "MM2S":
            raise ValueError(f"pad_value {op.pad_value}: only memtiles' MM2S channels of npu2 have a register for it")
        writer.write(op, place, registers.pad_value_base + GRANULE_BYTES * op.channel, op.pad_value & WORD_MASK)
    if not task.bds:
        return
    if (problem := outside("repeat_count", op.repeat_count, tile.limits)) is not None:
        fault_of(op, policy)("field-width", ValueError(problem))
    token = int(tile.kind is TileKind.SHIM and op.direction == "S2MM")
    values = {"token": token, "repeat": op.repeat_count % TASK_REPEAT_MAX, "bd": ids[task.bds[0]]}
    word = registers.queue.encode(values)[0]
    writer.write(op, place, registers.queue_offset(op.direction, op.channel), word)
    writer.mask(op, place, registers.control_offset(op.direction, op.channel), 0, CORE_ENABLE)
