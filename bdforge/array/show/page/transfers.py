"""The transfers of a design as data: each BD's pattern in elements, its locks, its line of the text."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from xdsl.dialects.builtin import MemRefType, ShapedType
from xdsl.ir import SSAValue

from bdforge.array.lower.dma_programs import placed_bds, static_tasks
from bdforge.array.mlir import MlirError, location
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import BufferOp, UseLockOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.task_ops import ConfigureTaskOp
from bdforge.array.txn.target import LoweringError

Data = dict[str, Any]


def transfers(device: DeviceOp) -> list[Data]:
    """Every BD of a device's DMA programs and runtime sequences that the text gives constants for, in its order.

    `sizes` and `strides` are in elements, outermost first, and empty for a linear walk of `length` elements from
    `offset` on; `shape` is the memref's. `number` is None where lowering chooses it.
    """
    found = [bd for op in device.walk() if isinstance(op, DmaProgramOp) for bd in _static(op)]
    return found + [bd for op in device.walk() if isinstance(op, RuntimeSequenceOp) for bd in _runtime(op)]


def _static(program: DmaProgramOp) -> Iterator[Data]:
    numbers: dict[DmaBdOp, int] = {}
    with suppress(LoweringError):  # told by the checks; the walks need no numbers
        numbers = {placed.op: placed.id for placed in placed_bds(program, static_tasks(program))}
    for task in (*program.starts, *program.region_dmas):
        blocks = (op for block in task.blocks for op in block.ops)
        for bd in (op for op in blocks if isinstance(op, DmaBdOp)):
            yield _transfer(bd, program.tile, f"{task.direction} {task.channel}", numbers.get(bd), "")


def _runtime(sequence: RuntimeSequenceOp) -> Iterator[Data]:
    for op in sequence.walk():
        with suppress(ValueError, MlirError):  # names of nothing and values that only the host knows
            if isinstance(op, ConfigureTaskOp):
                for bd in op.bds:
                    yield _transfer(bd, op.tile, f"{op.direction} {op.channel}", bd.bd_id, sequence.symbol)
            elif isinstance(op, NpuDmaMemcpyNdOp):
                yield _memcpy(op, sequence.symbol)


def _transfer(bd: DmaBdOp, tile: TileOp, channel: str, number: int | None, sequence: str) -> Data:
    dims, packet = bd.dims or (), bd.packet
    return {
        "line": location(bd).line, "tile": tile.place, "channel": channel, "number": number, "sequence": sequence,
        **_memory(bd.buffer), "offset": bd.offset, "length": bd.length,
        "sizes": [size for size, _ in dims], "strides": [stride for _, stride in dims],
        "pads": [list(pad) for pad in bd.padding or ()],
        "packet": None if packet is None else list(packet),
        "acquire": _locks(bd.acquires), "release": _locks(bd.releases),
    }  # fmt: skip


def _memcpy(op: NpuDmaMemcpyNdOp, sequence: str) -> Data:
    channel, length = op.allocation, 1
    for size in op.sizes:
        length *= size
    return {
        "line": location(op).line, "tile": channel.tile.place, "channel": f"{channel.direction} {channel.channel}",
        "number": op.id, "sequence": sequence, **_memory(op.buffer), "offset": op.offset, "length": length,
        "sizes": list(op.sizes), "strides": list(op.strides), "pads": [],
        "packet": None if op.packet is None else list(op.packet), "acquire": [], "release": [],
    }  # fmt: skip


def _memory(value: SSAValue) -> Data:
    """What a BD walks: its name, whether a tile holds it, its shape and type."""
    type_, owner = value.type, value.owner
    held = isinstance(owner, BufferOp)
    shape = list(type_.get_shape()) if isinstance(type_, ShapedType) else []
    element = str(type_.element_type) if isinstance(type_, MemRefType) else str(type_)
    name = (owner.symbol if held else None) or value_name(value) or "?"
    return {"buffer": name, "host": not held, "shape": shape, "element": element}


def _locks(uses: Sequence[UseLockOp]) -> list[str]:
    return [f"{use.lock.symbol or 'lock'} {use.action} {use.value}" for use in uses]
