"""Register words of a static BD, as mlir-aie writes them (5ff2ab97, `AIERT.cpp`)."""

from functools import partial

from bdforge.array.mlir.allocate import AddressMap, element_bits, overrun
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import BufferOp, ExternalBufferOp, UseLockOp
from bdforge.array.txn.dma_tasks import acquire_value, burst_of, iteration_of
from bdforge.array.txn.target import Fault, Policy, fault_of, faults_of
from bdforge.array.txn.writer import Writer
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS, TILE_REGISTERS
from bdforge.devices.txn_format.bd_encoding import BdError, BdLock, encode_bd, granules, reach_words, static_dims


def write_static_bd(
    writer: Writer,
    tile: TileOp,
    bd: DmaBdOp,
    number: int,
    next_bd: int | None,
    allocation: AddressMap,
    policy: Policy,
) -> None:
    """Write a tile's BD `number`; LoweringError for what its registers cannot hold."""
    with faults_of(bd):
        words = static_words(tile, bd, next_bd, allocation, policy)
        writer.block(bd, tile.place, TILE_REGISTERS[tile.kind].bd_offset(number), words)


def static_words(tile: TileOp, bd: DmaBdOp, next_bd: int | None, allocation: AddressMap, policy: Policy) -> list[int]:
    """Words of a BD of a tile's DMA; ValueError without a place for what they cannot hold."""
    fault = fault_of(bd, policy)
    _check_locks(bd, fault, policy)
    buffer, bits = bd.buffer_op, element_bits(bd.element_type)
    if (lost := lost_pad_value(bd)) is not None:
        policy.caution("pad-value", f"{location(bd)}: {lost}")
    length, dims = granules(bd.length, bits, "length"), static_dims([(d.size, d.stride) for d in bd.dims], bits)
    offset = GRANULE_BYTES * granules(bd.offset, bits, "offset")
    iteration = iteration_of(bd, bits)
    if isinstance(buffer, BufferOp) and not bd.padding:
        end = offset + GRANULE_BYTES * reach_words(length, dims, iteration)
        if (error := overrun(allocation, buffer, offset, end)) is not None:
            fault("buffer-bounds", error)
    return encode_bd(
        tile.kind,
        length_words=length,
        dims_words=dims,
        iteration=iteration,
        address=_base(tile, buffer, allocation) + offset,
        packet=None if bd.packet is None else (bd.packet.type, bd.packet.id),
        next_bd=next_bd,
        acquire=_lock(tile, bd, bd.acquires, allocation, fault),
        release=_lock(tile, bd, bd.releases, allocation, fault),
        padding=_padding(bd, bits),
        burst=burst_of(bd, tile.kind, tile.device_op.device.generation),
        axi_cache=bd.axcache or 0,
        too_wide=partial(fault, "field-width"),
    )


def lost_pad_value(bd: DmaBdOp) -> str | None:
    """What becomes of a BD's own pad_value, if it has one."""
    if not bd.pad_value or not bd.padding:
        return None
    return (
        f"pad_value = {bd.pad_value} has no field in a BD, so mlir-aie leaves it out; pad with 0, or "
        "on npu2 with the channel's: aie.dma_start(..) {pad_value = .. : i32}, which mlir-aie takes from 1.4.1 on"
    )


def _base(tile: TileOp, buffer: BufferOp | ExternalBufferOp | None, allocation: AddressMap) -> int:
    """Byte address of a buffer as the tile's DMA sees memory."""
    if isinstance(buffer, ExternalBufferOp) and tile.kind is TileKind.SHIM:
        return buffer.address
    if not isinstance(buffer, BufferOp):
        raise BdError("a static BD needs an aie.buffer, or on a shim an aie.external_buffer")
    return window(tile, buffer.tile) * MEMTILE_WINDOW_BYTES + allocation.buffers[buffer]


def _check_locks(bd: DmaBdOp, fault: Fault, policy: Policy) -> None:
    """mlir-aie's CDO writer (`AIERT.cpp`) wants both locks or none, and takes both from the window of the last."""
    uses = [*bd.acquires, *bd.releases]
    if len(uses) == 1:
        has, lacks = ("acquires", "releases") if uses[0].is_acquire else ("releases", "acquires")
        problem = f"it {has} a lock and {lacks} none; mlir-aie writes a BD with both or neither"
        fault("bd-locks", ValueError(f"{problem}, so give it the other, of value 0 if need be, or take both away"))
    elif len({use.lock.tile.column for use in uses}) > 1:
        homes = " and ".join(str(use.lock.tile.place) for use in uses)
        policy.caution(
            "lock-windows",
            f"{location(bd)}: its locks are in tiles {homes}, but mlir-aie takes both from the window of the last "
            "aie.use_lock of the block: another lock than the text names",
        )


def _padding(bd: DmaBdOp, bits: int) -> list[tuple[int, int]]:
    pads = [(p.before, p.after) for p in bd.padding]
    if not pads:
        return []
    *outer, (before, after) = pads
    return [*outer, (granules(before, bits, "padding before"), granules(after, bits, "padding after"))]


def _lock(tile: TileOp, bd: DmaBdOp, ops: list[UseLockOp], allocation: AddressMap, fault: Fault) -> BdLock | None:
    if not ops:
        return None
    op, last = ops[0], bd.use_locks[-1]
    value = acquire_value(op, partial(fault, "acquire-zero")) if op.is_acquire else op.value
    # The window is the last lock's for both, as mlir-aie has it.
    number = window(tile, last.lock.tile) * MEMTILE_WINDOW_LOCKS + allocation.locks[op.lock]
    return BdLock(number, value, op.enabled)


def window(tile: TileOp, owner: TileOp) -> int:
    """Which of a memtile DMA's windows `owner` is in: 0 west, 1 own, 2 east; mlir.verify_array knows of no farther one.

    Other tiles see only themselves, at 0.
    """
    return owner.column - tile.column + 1 if tile.kind is TileKind.MEMTILE else 0
