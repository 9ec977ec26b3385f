"""Tasks of shim channels that repeat a chain of BDs: legal, but nowhere seen on silicon but for memtiles."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from bdforge.devices import TileKind
from bdforge.mlir.device_ops import DeviceOp
from bdforge.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.mlir.task_ops import ConfigureTaskOp


class Chain(NamedTuple):
    """What tasks have in common: where they run, how many BDs they chain, how often the chain runs."""

    sequence: str
    channel: str
    bds: int
    runs: int


def repeated_chains(device: DeviceOp) -> dict[Chain, list[tuple[int, int]]]:
    """The shims of every task that repeats a chain, one entry for a task, by what the tasks have in common."""
    found: dict[Chain, list[tuple[int, int]]] = defaultdict(list)
    for sequence in (op for op in device.walk() if isinstance(op, RuntimeSequenceOp)):
        for chain, place in _chains(sequence):
            found[chain].append(place)
    return found


def _chains(sequence: RuntimeSequenceOp) -> Iterator[tuple[Chain, tuple[int, int]]]:
    for task in (op for op in sequence.walk() if isinstance(op, ConfigureTaskOp)):
        bds = len(task.bds)
        if bds < 2 or not task.repeat_count:
            continue
        with suppress(ValueError):  # a name of nothing is left to the verifier
            if task.tile.kind is TileKind.SHIM:
                channel = f"{task.direction.value} {task.channel}"
                place = task.tile.column, task.tile.row
                yield Chain(sequence.symbol, channel, bds, task.repeat_count + 1), place
