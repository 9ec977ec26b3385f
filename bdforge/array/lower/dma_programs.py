"""DMA programs as register writes: all BDs of a region, then the starts of its channels."""

from collections import Counter
from collections.abc import Sequence

from bdforge.array.lower.static_dma import DmaProgramError, StaticTask, placed_bds, static_tasks
from bdforge.array.mlir.allocate import AddressMap
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.txn.static_bd import write_static_bd
from bdforge.array.txn.target import Policy, fault_of, faults_of, lowering_error
from bdforge.array.txn.writer import WORD_MASK, Writer, place_of
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import CORE_ENABLE, TILE_REGISTERS
from bdforge.devices.rules import outside


def set_dma(writer: Writer, program: DmaProgramOp, allocation: AddressMap, policy: Policy | None) -> None:
    """Write the BDs of a DMA program and start its channels; LoweringError for what registers cannot hold."""
    try:
        tasks = static_tasks(program)
        bds = placed_bds(program, tasks)
    except DmaProgramError as error:
        raise lowering_error(program, str(error)) from None
    for bd in bds:
        write_static_bd(writer, program.tile, bd.op, bd.id, bd.next, allocation, policy)
    ids = {bd.op: bd.id for bd in bds}
    _check_queues(tasks, policy)
    for task in tasks:
        with faults_of(task.op):
            _start(writer, program, task, ids, policy)


def _check_queues(tasks: Sequence[StaticTask], policy: Policy | None) -> None:
    """No more tasks for a channel than its queue holds: nothing has run when they are pushed."""
    queued = Counter[tuple[str, int]]()
    for task in (task for task in tasks if task.bds):
        queued[task.op.direction, task.op.channel] += 1
        if queued[task.op.direction, task.op.channel] == TASK_QUEUE_ENTRIES + 1:
            channel = f"{task.op.direction} {task.op.channel}"
            problem = f"{channel} gets more than {TASK_QUEUE_ENTRIES} tasks; its queue holds no more, the next is lost"
            with faults_of(task.op):
                fault_of(task.op, policy)("queue-overflow", ValueError(problem))


def _start(
    writer: Writer, program: DmaProgramOp, task: StaticTask, ids: dict[DmaBdOp, int], policy: Policy | None
) -> None:
    """Push a task. The masked write of no bit is mlir-aie's: channels need no enabling but for a bit that is set so."""
    tile, op = program.tile, task.op
    registers, place = TILE_REGISTERS[tile.kind], place_of(program.tile)
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
