"""Rules of static DMA programs and their BDs. A rule yields (operation at fault, message).

Source of the rules on `aie.dma_bd`: mlir-aie 5ff2ab97, `DMABDOp::verify` and `MemTileDMAOp::verify`; for texts in the
form of 1.4, what #3398 and #3548 made of them.
"""

import math
from collections.abc import Iterator

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation

from bdforge.array.mlir.allocate import element_bits
from bdforge.array.mlir.bd_ops import DmaBdOp, DmaBdPacketOp, NextBdOp, bd_of
from bdforge.array.mlir.device_ops import EndOp, TileOp
from bdforge.array.mlir.dialect_forms import Era, era_of
from bdforge.array.mlir.dma_ops import (
    BdChainOp,
    DmaOp,
    DmaProgramOp,
    DmaStartOp,
    MemOp,
    MemtileDmaOp,
    PaddingOp,
    ShimDmaOp,
)
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.memory_ops import BufferOp, ExternalBufferOp, LockOp, UseLockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.task_ops import ConfigureTaskOp
from bdforge.array.mlir.verify_array import Faults, block_floats, burst, must_stand_in, number, packet, rule
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES, MEMTILE, MEMTILE_NEIGHBOUR_CHANNELS
from bdforge.devices.rules import exceeded

_KINDS: dict[type, TileKind] = {MemOp: TileKind.CORE, MemtileDmaOp: TileKind.MEMTILE, ShimDmaOp: TileKind.SHIM}


@rule
def program(op: DmaProgramOp) -> Faults:
    """On its kind of tile, with well-formed blocks and no more channels and BDs than the tile has."""
    kind = _KINDS[type(op)]
    at = op.tile
    if at.kind is not kind:
        yield op, f"programs a {kind}'s DMA, but tile {at.place} is a {at.kind}"
        return
    if not op.body.blocks:
        yield op, "needs a body, at least { aie.end }"
    blocks = [b for b in op.body.blocks if any(isinstance(inner, DmaBdOp | UseLockOp) for inner in b.ops)]
    for block in blocks:
        yield from _bd_block(op, block)
    bds = len(blocks) + sum(len(dma.blocks) for dma in op.region_dmas)
    if bds > at.limits.bds:
        yield op, f"has {bds} BDs, but {kind} {at.place} has {at.limits.bds}"
    yield from _ends(op)
    yield from _reached(op, blocks)
    yield from _channels(op)


def _bd_block(program: Operation, block: Block) -> Faults:
    bds = [op for op in block.ops if isinstance(op, DmaBdOp)]
    if len(bds) != 1:
        yield program, f"a BD block holds exactly one aie.dma_bd, this one {len(bds)}"
    uses = [op for op in block.ops if isinstance(op, UseLockOp)]
    for what, count in (("acquires", _acquires(uses)), ("releases", len(uses) - _acquires(uses))):
        if count > 1:
            yield program, f"a BD block has at most one lock that it {what}, this one {count}"


def _acquires(uses: list[UseLockOp]) -> int:
    return sum(op.is_acquire for op in uses)


def _ends(op: DmaProgramOp) -> Faults:
    for block in op.body.blocks:
        if not isinstance(block.last_op, DmaStartOp | NextBdOp | EndOp):
            last = op if block.last_op is None else block.last_op
            yield last, "a block of a DMA program ends with aie.dma_start, aie.next_bd or aie.end"
    if op.region_dmas and (op.starts or len(op.body.blocks) > 1):
        yield op.region_dmas[0], "the region form aie.dma cannot be mixed with aie.dma_start in one program"


def _reached(op: DmaProgramOp, blocks: list[Block]) -> Faults:
    """Every start stands on the way from the first block, every BD in a chain that is started."""
    starts = op.starts
    chained = {block for start in starts for block in start.blocks}
    for start in (block.last_op for block in op.body.blocks):
        if isinstance(start, DmaStartOp) and start not in starts:
            yield start, "no way leads here from the first block of its program, so it starts nothing"
    for lost in (block for block in blocks if block not in chained):
        yield bd_of(lost) or op, "no aie.dma_start leads to its block, so no channel ever runs it"


def _channels(op: DmaProgramOp) -> Faults:
    limit = op.tile.limits.channels
    used = [dma for block in op.body.blocks for dma in block.ops if isinstance(dma, DmaStartOp | DmaOp)]
    for direction in Direction:
        channels = {dma.channel for dma in used if dma.direction is direction}
        if len(channels) > limit:
            where = f"{op.tile.kind} {op.tile.place}"
            yield op, f"uses {len(channels)} {direction} channels, but {where} has {limit}"


@rule
def memtile_reach(op: MemtileDmaOp) -> Faults:
    """The upper channels of a memtile reach only their own tile."""
    for dma in [dma for block in op.body.blocks for dma in block.ops if isinstance(dma, DmaStartOp | DmaOp)]:
        if dma.channel < MEMTILE_NEIGHBOUR_CHANNELS:
            continue
        for used, home in (found for block in dma.blocks for found in _homes(block)):
            if home.place != op.tile.place:
                problem = (
                    f"belongs to channel {dma.channel}, which reaches only its own memtile {op.tile.place}, not "
                    f"{home.place}; channels 0 to {MEMTILE_NEIGHBOUR_CHANNELS - 1} reach neighbours"
                )
                yield used, problem


def _homes(block: Block) -> Iterator[tuple[Operation, TileOp]]:
    for op in block.ops:
        if isinstance(op, DmaBdOp) and isinstance(op.buffer_op, BufferOp):
            yield op, op.buffer_op.tile
        elif isinstance(op, UseLockOp) and isinstance(op.lock_value.owner, LockOp):
            yield op, op.lock.tile


@rule
def pad_value(op: PaddingOp) -> Faults:
    """Where a register holds it: a memtile's MM2S channels of AIE2P (mlir-aie #3512)."""
    holder = enclosing(op, DmaProgramOp)
    if not op.pad_value or holder is None:
        return
    at, array = holder.tile, holder.tile.device_op.device
    if at.kind is not TileKind.MEMTILE or op.direction is not Direction.MM2S:
        yield op, f"pad_value = {op.pad_value}: only a memtile's MM2S channels pad"
    elif array.generation is AIE2:
        yield op, f"pad_value = {op.pad_value}: {array.generation.name} pads with 0; a register for it came with AIE2P"


must_stand_in((DmaProgramOp,), DmaOp, DmaStartOp, problem="must stand in aie.mem, aie.memtile_dma or aie.shim_dma")
must_stand_in(
    (DmaProgramOp, ConfigureTaskOp, BdChainOp), NextBdOp,
    problem="must stand in a DMA program, a task or an aie.bd_chain",
)  # fmt: skip


@rule
def region_form(op: DmaOp) -> Faults:
    """Per BD one transfer and two lock operations."""
    for block in op.blocks:
        locks = sum(isinstance(o, UseLockOp) for o in block.ops)
        if locks != 2:
            yield op, f"every BD of the region form needs exactly two aie.use_lock, this one has {locks}"
        yield from _bd_block(op, block)


@rule
def start(op: DmaStartOp) -> Faults:
    """On a channel."""
    if op.channel < 0:
        yield op, f"channel {op.channel} is negative"


@rule
def static_bd(op: DmaBdOp) -> Faults:
    """A BD anywhere; one in a static program also against its tile."""
    yield from packet(op, op.packet)
    yield from block_floats(op, op.element_type)
    holder = enclosing(op, DmaProgramOp)
    if holder is None or not isinstance(op.parent_op(), DmaProgramOp | DmaOp):
        return
    if not isinstance(op.buffer.owner, BufferOp | ExternalBufferOp):
        yield op, "its buffer must come from aie.buffer or aie.external_buffer"
        return
    bits = element_bits(op.element_type)
    yield from _length(op, bits)
    for name, value in (("bd_id", op.bd_id), ("next_bd_id", op.next_bd_id)):
        if value is not None:
            yield from number(op, name, value, holder.tile.limits)
    yield from _dimensions(op, holder.tile, bits)
    yield from _padding(op, holder.tile, bits)
    yield from _address(op, holder.tile, bits)
    if op.burst_length and holder.tile.kind is not TileKind.SHIM:
        yield op, f"burst_length = {op.burst_length} is for shims; a {holder.tile.kind}'s DMA has no bursts"
    yield from burst(op)


def _length(op: DmaBdOp, bits: int) -> Faults:
    if op.length * bits % GRANULE_BITS:
        problem = (
            f"{op.length} elements of {bits} bits are {op.length * bits / 8:g} bytes; "
            f"a transfer must be a multiple of {GRANULE_BYTES} bytes"
        )
        yield op, problem


def _fields(op: DmaBdOp, at: TileOp, bits: int) -> Faults:
    """The tile's own widths, which mlir-aie checks since #3548 and #3398, in words."""
    given = list(reversed(op.dims))
    named = [f"<size = {size}, stride = {stride}>" for size, stride in given]
    counted = [
        (size * (bits if place == 0 else GRANULE_BITS) // GRANULE_BITS, stride * bits // GRANULE_BITS)
        for place, (size, stride) in enumerate(given)
    ]
    alike = at.limits.wraps[:1] * len(given)  # mlir-aie limits the outermost size too
    for field, place, _, most in exceeded(at.limits, dims=counted[::-1], wraps=alike):
        what, hint = ("sizes", "; split the dimension") if field == "size" else ("strides", "")
        yield op, f"{named[place]}: a {at.kind}'s BD holds {what} up to {most} words{hint}"
    for place, (size, stride) in enumerate(given):
        if place and stride * bits % GRANULE_BITS and size > 1:
            yield op, f"{named[place]}: {stride} elements of {bits} bits are no whole number of words"


def _extent(op: DmaBdOp, at: TileOp, bits: int) -> Faults:
    """What mlir-aie checks from 1.4 on: the length's field, and that a transfer stays in its buffer."""
    for _, _, length, most in exceeded(at.limits, length=op.length * bits // GRANULE_BITS):
        yield op, f"its length is {length} words; a {at.kind}'s BD holds at most {most}"
    if op.buffer_op is None or not isinstance(op.buffer_type, MemRefType):
        return
    elements = math.prod(op.buffer_type.get_shape())
    last = sum((size - 1) * stride for size, stride in op.dims) if op.dims else op.length - 1
    if op.offset + last >= elements:
        yield op, f"it reaches element {op.offset + last}, but the buffer has {elements} elements"


def _dimensions(op: DmaBdOp, at: TileOp, bits: int) -> Faults:
    dims, modern = op.dims, era_of(op) is Era.MODERN
    if modern:
        yield from _extent(op, at, bits)
    if not dims:
        return
    if len(dims) > at.limits.dims:
        yield op, f"has {len(dims)} dimensions, but a {at.kind}'s BD has at most {at.limits.dims}"
    elements = math.prod(op.buffer_type.get_shape()) if isinstance(op.buffer_type, MemRefType) else 0
    for size, stride in dims:
        what = f"<size = {size}, stride = {stride}>"
        if size < 1:
            yield op, f"{what}: a size must be positive"
        if stride < 1 and not (modern and size == 1):
            yield op, f"{what}: a stride must be positive"
        if stride > elements:
            yield op, f"{what}: the stride exceeds the {elements} elements of the buffer"
        if size > MEMTILE.static_size and not modern:
            yield op, f"{what}: a static BD's size may not exceed {MEMTILE.static_size}; split the dimension"
    if modern:
        yield from _fields(op, at, bits)
    last = sum((size - 1) * stride for size, stride in dims)
    if last >= elements:
        yield op, f"its dimensions reach element {last}, but the buffer has {elements} elements"
    if bits != GRANULE_BITS and dims[-1].stride != 1:
        problem = (
            f"the innermost stride is {dims[-1].stride}, but for elements of {bits} bits it must be 1: "
            f"DMAs address {GRANULE_BITS}-bit words"
        )
        yield op, problem


def _padding(op: DmaBdOp, at: TileOp, bits: int) -> Faults:
    pads, dims = op.padding, op.dims
    if "pad_dimensions" not in op.properties:
        return
    if at.kind is not TileKind.MEMTILE:
        yield op, f"pads, which only a memtile's DMA can, not a {at.kind}'s"
    if len(pads) > len(dims):
        yield op, f"pads {len(pads)} dimensions but walks {len(dims)}; give at most one padding per dimension"
        return
    if not op.has_length:
        yield op, "pads, so it needs a length, which counts the padding"
    if any(pad.before < 0 or pad.after < 0 for pad in pads):
        yield op, "padding cannot be negative"
    product = 1
    for pad, dim in zip(pads, dims[len(dims) - len(pads) :], strict=True):  # the inner ones
        product *= pad.before + dim.size + pad.after
        if product > op.length:
            yield op, f"its padded dimensions hold at least {product} elements, more than its length {op.length}"
            return
    for name, count in zip(("before", "after"), pads[-1] if pads else (), strict=False):
        if count * bits % GRANULE_BITS:
            yield op, f"pads {count} elements of {bits} bits {name} a row, which is no whole number of words"


def _address(op: DmaBdOp, at: TileOp, bits: int) -> Faults:
    buffer = op.buffer_op
    if not isinstance(buffer, BufferOp) or buffer.address is None:
        return
    first_bits = 8 * buffer.address + op.offset * bits
    if first_bits % GRANULE_BITS:
        problem = (
            f"starts at byte {first_bits / 8:g} (buffer at {buffer.address}, offset {op.offset} elements of {bits} "
            f"bits), which is no multiple of {GRANULE_BYTES}"
        )
        yield op, problem


@rule
def bd_packet(op: DmaBdPacketOp) -> Faults:
    """A header that fits, beside a BD."""
    yield from packet(op, op.packet)
    block = op.parent_block()
    if block is None or bd_of(block) is None:
        yield op, "must stand in a block with an aie.dma_bd"
