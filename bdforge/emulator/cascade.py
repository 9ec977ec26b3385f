"""Which cores a design joins by cascades."""

from collections.abc import Iterable

from xdsl.ir import Operation

from bdforge.emulator.array import Array
from bdforge.emulator.cores.ports import Cascade
from bdforge.emulator.errors import DesignError
from bdforge.mlir import location
from bdforge.mlir.device_ops import TileOp
from bdforge.mlir.stream_ops import CascadeFlowOp, ConfigureCascadeOp
from bdforge.mlir.words import CascadeDirection

_STEPS = {
    CascadeDirection.SOUTH: (0, -1), CascadeDirection.EAST: (1, 0),
    CascadeDirection.NORTH: (0, 1), CascadeDirection.WEST: (-1, 0),
}  # fmt: skip
_OPPOSITE = {CascadeDirection.SOUTH: CascadeDirection.NORTH, CascadeDirection.EAST: CascadeDirection.WEST}


def connect_cascades(operations: Iterable[Operation], array: Array) -> None:
    """Join cores by `aie.cascade_flow` and `aie.configure_cascade`; DesignError for what no array can do.

    An output of `configure_cascade` is a cascade where the neighbour on that side takes its input from this one.
    """
    operations = list(operations)
    configured = {(op.tile.column, op.tile.row): op for op in operations if isinstance(op, ConfigureCascadeOp)}
    for op in operations:
        if isinstance(op, CascadeFlowOp):
            _check_direction(op)
            _connect(op, _place(op.source), _place(op.destination), array)
    for place, op in configured.items():
        step = _STEPS[op.output]
        neighbour = configured.get((place[0] + step[0], place[1] + step[1]))
        if neighbour is not None and neighbour.input is _OPPOSITE[op.output]:
            _connect(op, place, _place(neighbour.tile), array)


def _place(tile: TileOp) -> tuple[int, int]:
    return tile.column, tile.row


def _check_direction(op: CascadeFlowOp) -> None:
    source, target = _place(op.source), _place(op.destination)
    step = target[0] - source[0], target[1] - source[1]
    if step not in (_STEPS[CascadeDirection.SOUTH], _STEPS[CascadeDirection.EAST]):
        raise DesignError(
            f"{location(op)}: a cascade runs to the core south or east of its source; {source} to {target} is "
            f"{'north' if step[1] else 'west'}"
        )


def _connect(op: Operation, source: tuple[int, int], target: tuple[int, int], array: Array) -> None:
    sender, receiver = array.core(*source), array.core(*target)
    if sender.cascade_out is not None and sender.cascade_out is receiver.cascade_in:
        return
    if sender.cascade_out is not None:
        other = sender.cascade_out.target.name
        raise DesignError(f"{location(op)}: {sender.name} has one cascade output, which leads to {other} already")
    if receiver.cascade_in is not None:
        other = receiver.cascade_in.source.name
        raise DesignError(f"{location(op)}: {receiver.name} has one cascade input, which comes from {other} already")
    assert sender.scheduler is not None
    sender.cascade_out = receiver.cascade_in = Cascade(sender, receiver, sender.scheduler.wake)
