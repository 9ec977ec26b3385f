"""Tasks of a runtime sequence: BD ids, BD chains, starts and waits.

Source: mlir-aie 5ff2ab97, `AIEAssignRuntimeSequenceBDIDs.cpp` (ids) and `AIEDMATasksToNPU.cpp` (registers).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.ir import Block, Operation, Region, SSAValue

from bdforge.array.mlir.allocate import name_of
from bdforge.array.mlir.attributes import PacketInfo
from bdforge.array.mlir.bd_ops import DmaBdOp, NextBdOp
from bdforge.array.mlir.enums import LockAction
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import BufferOp, UseLockOp
from bdforge.array.mlir.task_ops import TaskOp
from bdforge.array.txn.argument_values import ArgumentMemory, Values, bits_of
from bdforge.array.txn.target import LoweringTarget, TileChannel, faults_of, lowering_error
from bdforge.array.txn.writer import Tile
from bdforge.devices import Generation, TileKind, TileLimits
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES
from bdforge.devices.registers import MEMTILE_WINDOW_LOCKS, RUNTIME_AXI_CACHE
from bdforge.devices.rules import outside
from bdforge.devices.txn_format.bd_encoding import (
    BdError,
    BdLock,
    BdTransfer,
    burst_code,
    drops_stride,
    encode_bd,
    granules,
    reach_words,
    task_transfer,
)

DIMENSIONS = 4
"""Dimensions of a runtime transfer; the outermost is the BD's iteration."""


@dataclass(eq=False, slots=True)
class ConfiguredTask:
    """A configured task; `bds` are its BD ids in text order, `first` starts its chain."""

    op: TaskOp
    channel: TileChannel
    bds: tuple[int, ...]
    first: int
    freed: bool = False


@dataclass(slots=True)
class BdIds:
    """BD ids of every tile: who holds them, and whose BD was written last."""

    holders: dict[tuple[int, int, int], Operation] = field(default_factory=dict)
    written: dict[tuple[int, int, int], Operation] = field(default_factory=dict)

    def take(self, tile: Tile, limits: TileLimits, bds: Sequence[DmaBdOp], task: Operation) -> list[int]:
        """Ids of a chain's BDs: explicit ones first, then the lowest free ones in text order."""
        given = {bd: self._reserved(tile, limits, bd, task) for bd in bds if bd.bd_id is not None}
        return [given[bd] if bd in given else self._lowest(tile, limits, bd, task) for bd in bds]

    def _reserved(self, tile: Tile, limits: TileLimits, bd: DmaBdOp, task: Operation) -> int:
        assert bd.bd_id is not None
        if (problem := outside("bd_id", bd.bd_id, limits)) is not None:
            raise lowering_error(bd, problem)
        if (holder := self.holders.get((*tile, bd.bd_id))) is not None:
            raise lowering_error(
                bd, f"bd_id {bd.bd_id} of {limits.kind} {tile} is in use by the task at {location(holder)}; "
                "await or free that task first",
            )  # fmt: skip
        self.holders[*tile, bd.bd_id] = task
        return bd.bd_id

    def _lowest(self, tile: Tile, limits: TileLimits, bd: DmaBdOp, task: Operation) -> int:
        free = next((i for i in range(limits.bds) if (*tile, i) not in self.holders), None)
        if free is None:
            raise lowering_error(
                bd, f"all {limits.bds} BDs of {limits.kind} {tile} are in use; await or free a task first"
            )
        self.holders[*tile, free] = task
        return free

    def free(self, task: ConfiguredTask) -> None:
        """Give a task's ids back."""
        task.freed = True
        for bd in task.bds:
            del self.holders[*task.channel.tile, bd]


class TaskLowering:
    """The tasks of one sequence."""

    def __init__(self, values: Values):
        self.values, self.ids = values, BdIds()
        self.tasks: dict[SSAValue, ConfiguredTask] = {}

    def configure(self, target: LoweringTarget, op: TaskOp, body: Region) -> ConfiguredTask:
        """Write the BDs of a chain."""
        channel = TileChannel.of(op)
        target.check_channel(channel)
        entry, blocks = _chain_blocks(op, body)
        bds = [_bd_of_block(op, block) for block in blocks]
        for block in body.blocks:
            for bd in (o for o in block.ops if isinstance(o, DmaBdOp) and o not in bds):
                target.place = bd
                target.caution("dropped-bd", "nothing leads to its block, so it is dropped, as mlir-aie does")
        ids = self.ids.take(channel.tile, target.limits(*channel.tile), bds, op)
        id_of = dict(zip(blocks, ids, strict=True))
        task = ConfiguredTask(op, channel, tuple(ids), id_of[entry])
        packet = op.packet or (op.allocation_of("alloc").packet if "alloc" in op.properties else None)
        for bd, block in zip(bds, blocks, strict=True):
            following = _next_id(block, bd, entry, id_of)
            target.place = bd
            with faults_of(bd):
                self._write(target, bd, channel, id_of[block], following, bd.packet or packet)
            self.ids.written[*channel.tile, id_of[block]] = op
        self.tasks[op.result] = task
        return task

    def start(
        self,
        target: LoweringTarget,
        task: ConfiguredTask,
        repeat_count: int | None = None,
        no_token: bool = False,
    ) -> None:
        """Push a task to its channel's queue, with a repeat count and a token other than the task's own if asked to."""
        for bd in task.bds:
            writer = self.ids.written[*task.channel.tile, bd]
            if writer is not task.op:
                place = f"BD {bd} of {target.describe(*task.channel.tile)}"
                raise ValueError(
                    f"{place} was freed and then rewritten at {location(writer)}; start the task before that"
                )
        repeats = task.op.repeat_count if repeat_count is None else repeat_count
        target.push(task.channel, task.first, repeats, task.op.issue_token and not no_token)

    def wait(self, target: LoweringTarget, task: ConfiguredTask) -> None:
        """Wait for a task's token, then free its BDs."""
        if not task.op.issue_token:
            raise ValueError(f"the task at {location(task.op)} issues no token to wait for; give it issue_token = true")
        target.sync(task.channel)
        if not task.freed:
            self.ids.free(task)

    def free(self, task: ConfiguredTask) -> None:
        """Free a task's BDs without waiting."""
        if task.freed:
            raise ValueError(f"the BDs of the task at {location(task.op)} are free already")
        self.ids.free(task)

    def of(self, op: Operation) -> ConfiguredTask:
        """The task that an operation names: mlir.verify_sequence sees to it that it was configured before."""
        return self.tasks[op.operands[0]]

    def _write(
        self,
        target: LoweringTarget,
        bd: DmaBdOp,
        channel: TileChannel,
        bd_id: int,
        following: int | None,
        packet: PacketInfo | None,
    ) -> None:
        """Words of one BD, then where its memory is."""
        limits = target.limits(*channel.tile)
        _check_parity(target, channel, bd_id)
        memory, bits = self.values.memory(bd.buffer), bits_of(bd.buffer)
        _check_memory(memory, bd, limits, channel.tile)
        transfer, padding = _transfer(target, bd, channel, bits)
        if transfer.length_words < 1:
            raise ValueError("a transfer moves at least one 32-bit word; give its length")
        offset_bytes = GRANULE_BYTES * granules(bd.offset, bits, "offset")
        acquire, release = self._locks(target, bd, channel.tile)
        words = encode_bd(
            limits.kind,
            length_words=transfer.length_words,
            dims_words=transfer.dims_words,
            iteration=_iteration(bd, transfer, bits),
            # mlir-aie puts bytes into a memtile's field of words here; the masked write that follows replaces them.
            address=offset_bytes * (GRANULE_BYTES if limits.kind is TileKind.MEMTILE else 1),
            packet=packet,
            next_bd=following,
            acquire=acquire,
            release=release,
            padding=padding,
            burst=burst_of(bd, limits.kind, target.device.generation),
            axi_cache=RUNTIME_AXI_CACHE if bd.axcache is None else bd.axcache,
            too_wide=target.too_wide,
        )
        target.write_bd(*channel.tile, bd_id, words)
        if isinstance(memory, ArgumentMemory):
            target.patch(*channel.tile, bd_id, memory.argument, memory.offset_bytes + offset_bytes)
        else:
            target.point_bd_at(*channel.tile, bd_id, target.buffer_address(memory) + offset_bytes)
            if not padding:
                reach = reach_words(transfer.length_words, transfer.dims_words, transfer.iteration)
                target.check_extent(memory, offset_bytes, offset_bytes + GRANULE_BYTES * reach)

    def _locks(self, target: LoweringTarget, bd: DmaBdOp, tile: Tile) -> tuple[BdLock | None, BdLock | None]:
        """What a BD acquires and releases; a memtile's DMA counts its own locks from MEMTILE_WINDOW_LOCKS on."""
        if not bd.use_locks:
            return None, None
        if len(bd.acquires) != 1 or len(bd.releases) != 1:
            raise ValueError("a task's BD uses no lock, or acquires one and releases one")
        base = MEMTILE_WINDOW_LOCKS if target.device.kind(*tile) is TileKind.MEMTILE else 0
        acquire, release = bd.acquires[0], bd.releases[0]
        ids = [base + self._lock_id(target, use, tile) for use in (acquire, release)]
        value = acquire_value(acquire, partial(target.fault, "acquire-zero")) if acquire.enabled else None
        return None if value is None else BdLock(ids[0], value), BdLock(ids[1], release.value)

    def _lock_id(self, target: LoweringTarget, use: UseLockOp, tile: Tile) -> int:
        lock = self.values.lock(use.lock_value)
        if (place := lock.tile.place) != tile:
            raise ValueError(f"the lock is in tile {place}; a task's BD uses the locks of its own tile {tile}")
        return target.lock_id(lock)


def _chain_blocks(op: TaskOp, body: Region) -> tuple[Block, list[Block]]:
    """First BD block and all that follow it, in text order; an entry block without a BD only points there."""
    first = body.blocks.first
    if first is None:
        raise lowering_error(op, "the task has no buffer descriptor; write at least one aie.dma_bd")
    points = not any(isinstance(o, DmaBdOp | UseLockOp) for o in first.ops) and isinstance(first.last_op, NextBdOp)
    entry = first.last_op.dest if points and isinstance(first.last_op, NextBdOp) else first
    reached, block = [], entry
    while block not in reached:
        reached.append(block)
        if not isinstance(block.last_op, NextBdOp):
            break
        block = block.last_op.dest
    return entry, [block for block in body.blocks if block in reached and (block is entry or block is not first)]


def _bd_of_block(op: TaskOp, block: Block) -> DmaBdOp:
    bds = [o for o in block.ops if isinstance(o, DmaBdOp)]
    if len(bds) != 1:
        raise lowering_error(
            block.last_op or op, f"its block holds {len(bds)} aie.dma_bd; a BD block holds exactly one"
        )
    return bds[0]


def _next_id(block: Block, bd: DmaBdOp, entry: Block, id_of: dict[Block, int]) -> int | None:
    last = block.last_op
    if not isinstance(last, NextBdOp):
        return bd.next_bd_id
    # Only the entry block may lack a BD, and it leads to the first one.
    return id_of.get(last.dest, id_of[entry])


def _check_parity(target: LoweringTarget, channel: TileChannel, bd_id: int) -> None:
    limits = target.limits(*channel.tile)
    usable = limits.bds_of_channel(channel.number)
    if bd_id not in usable:
        error = ValueError(
            f"{channel.direction} {channel.number} of {limits.kind} {channel.tile} cannot use BD "
            f"{bd_id}: the channel reaches BDs {usable.start} to {usable.stop - 1}"
        )
        target.fault("bd-half", error)


def _check_memory(memory: ArgumentMemory | BufferOp, bd: DmaBdOp, limits: TileLimits, tile: Tile) -> None:
    if isinstance(memory, ArgumentMemory):
        if limits.kind is not TileKind.SHIM:
            raise ValueError(f"host memory is reached from shims only, not from {limits.kind} {tile}")
        if not bd.dims and not memory.contiguous:
            raise ValueError("the view's elements do not follow one another; give the transfer sizes and strides")
        return
    if (place := memory.tile.place) != tile:
        raise ValueError(
            f"{name_of(memory)} is in tile {place}; a task's BD reaches only the memory of its own tile {tile}"
        )


def _transfer(
    target: LoweringTarget, bd: DmaBdOp, channel: TileChannel, bits: int
) -> tuple[BdTransfer, list[tuple[int, int]]]:
    """Length, dimensions and padding of a task's BD, in words."""
    limits = target.limits(*channel.tile)
    length_words = granules(bd.length, bits, "length")
    if not bd.dims:
        if bd.padding:
            raise ValueError("padding needs dimensions")
        return BdTransfer(length_words, (), None), []
    if len(bd.dims) > DIMENSIONS:
        raise ValueError(f"{len(bd.dims)} dimensions; a transfer has at most {DIMENSIONS}")
    missing = DIMENSIONS - len(bd.dims)
    sizes = [1] * missing + [dim.size for dim in bd.dims]
    strides = [0] * missing + [dim.stride for dim in bd.dims]
    transfer = task_transfer(limits, sizes, strides, bits, target.too_wide)
    if drops_stride(sizes, strides):
        target.caution("dropped-stride", _dropped(sizes[-1], strides[-1], bits))
    padding = _padding(bd, limits, channel, bits)
    in_words = [*sizes[1:3], granules(sizes[3], bits, "size of dimension 0")]
    moved = math.prod(size + sum(pad) for size, pad in zip(in_words, padding or [(0, 0)] * 3, strict=True))
    if moved != length_words:
        raise ValueError(
            f"length is {length_words} words, but the three inner dimensions move {moved}; a fourth dimension only "
            "sets the step between runs, whose number is repeat_count + 1"
        )
    return BdTransfer(length_words, transfer.dims_words, transfer.iteration), padding


def _dropped(size: int, stride: int, bits: int) -> str:
    """What becomes of an innermost stride that mlir-aie does not see, and the form that it does."""
    kept = f"[<size = {size}, stride = {stride}>, <size = 1, stride = 1>, <size = 1, stride = 1>]"
    way = f"write {kept}" if bits == GRANULE_BITS else f"move elements of {GRANULE_BITS} bits and write {kept} of them"
    return (
        f"the stride {stride} of its innermost dimension is dropped and {size} contiguous elements are moved, as "
        f"mlir-aie does: a task's BD is linear to it when both dimensions around have size 1; {way}"
    )


def _iteration(bd: DmaBdOp, transfer: BdTransfer, bits: int) -> tuple[int, int] | None:
    given = iteration_of(bd, bits)
    if given and transfer.iteration:
        raise ValueError("a BD has one iteration: give the attribute or a fourth dimension")
    return given or transfer.iteration


def iteration_of(bd: DmaBdOp, bits: int) -> tuple[int, int] | None:
    """(count, stride in words) of a BD's iteration attribute (mlir-aie #3538), if any; it has to start at 0."""
    if (iteration := bd.iteration) is None:
        return None
    if iteration.current:
        raise BdError(f"iteration starts at current = {iteration.current}; here it starts at 0")
    return iteration.size, granules(iteration.stride, bits, "stride of the iteration")


def _padding(bd: DmaBdOp, limits: TileLimits, channel: TileChannel, bits: int) -> list[tuple[int, int]]:
    """(before, after) of the three inner dimensions in words, or nothing."""
    if not any(pad.before or pad.after for pad in bd.padding):
        return []
    if limits.kind is not TileKind.MEMTILE or channel.direction != "MM2S":
        raise ValueError("only a memtile's MM2S channels pad")
    if len(bd.padding) > len(bd.dims) or len(bd.dims) >= DIMENSIONS:
        raise ValueError(f"{len(bd.padding)} paddings for {len(bd.dims)} dimensions; at most one each, of at most 3")
    pads = [(0, 0)] * (DIMENSIONS - 1 - len(bd.padding)) + [(pad.before, pad.after) for pad in bd.padding]
    *outer, (before, after) = pads
    if outer[0][1]:
        raise ValueError(
            f"padding of {outer[0][1]} after dimension 2 cannot work at run time: mlir-aie never writes the size of "
            "that dimension"
        )
    inner = granules(before, bits, "padding before dimension 0"), granules(after, bits, "padding after dimension 0")
    return [*outer, inner]


def burst_of(bd: DmaBdOp, kind: TileKind, generation: Generation) -> int:
    """Register code of a BD's bursts, which only shims have; ValueError for a length that there is not."""
    if kind is TileKind.SHIM:
        return burst_code(generation, bd.burst_length)
    if bd.burst_length:
        raise ValueError(f"burst_length is for shims, not for a {kind}")
    return 0


def acquire_value(use: UseLockOp, zero: Callable[[ValueError], None]) -> int:
    """The acquire value of a BD or core: +v waits for v, -v for at least v. `zero` gets AcquireGreaterEqual 0's error.

    Negative zero does not exist, so hardware would read AcquireGreaterEqual 0 as Acquire 0.
    """
    if use.action is LockAction.ACQUIRE:
        return use.value
    if use.value == 0:
        zero(ValueError(
            "AcquireGreaterEqual of 0 would be read as Acquire of 0; leave the acquire out or take 1 or more"
        ))  # fmt: skip
    return -use.value
