"""MLIR operations as a small tree that templates print: a macro for each, what it is given, what stands inside."""

from dataclasses import dataclass
from typing import Any

from bdforge.design.model import Channel, Tile
from bdforge.devices import TileKind


@dataclass(frozen=True, slots=True)
class Op:
    """The macro of `ops.mlir.j2` that writes an operation, its arguments, and the operations in each of its regions."""

    macro: str
    arguments: tuple[Any, ...] = ()
    regions: tuple[tuple["Op", ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value that is no buffer; a constant knows its number."""

    name: str
    type: str
    number: float | None = None


_DMA = {TileKind.SHIM: "shim_dma", TileKind.MEMTILE: "memtile_dma", TileKind.CORE: "mem"}
_END = "end"


def dma_program(tile: Tile) -> Op:
    """The DMA program of a tile: its tasks start one after another; then come the blocks of their BDs."""
    labels = _labels(tile.channels)
    following = [f"start{number}" for number in range(1, len(labels))] + [_END]
    inside: list[Op] = []
    for number, (channel, label) in enumerate(zip(tile.channels, labels, strict=True)):
        inside += [Op("label", (f"start{number}",))] if number else []
        inside.append(Op("dma_start", (number, channel, f"{label}0", following[number])))
    for channel, label in zip(tile.channels, labels, strict=True):
        inside += _blocks(channel, label)
    return Op("dma", (_DMA[tile.kind], tile), ((*inside, Op("label", (_END,)), Op("end")),))


def _labels(channels: tuple[Channel, ...]) -> list[str]:
    """How the labels of each task's blocks begin."""
    labels: list[str] = []
    for channel in channels:
        name = f"{channel.direction.lower()}{channel.index}"
        before = sum(label.startswith(f"{name}_") for label in labels)
        labels.append(f"{name}_task{before}_bd" if before else f"{name}_bd")
    return labels


def _blocks(channel: Channel, label: str) -> list[Op]:
    ops: list[Op] = []
    last = _END if channel.back is None else f"{label}{channel.back}"
    for number, bd in enumerate(channel.bds, start=1):
        ops.append(Op("label", (f"{label}{number - 1}",)))
        ops += [Op("acquire", (bd.acquire,))] if bd.acquire else []
        ops.append(Op("dma_bd", (bd,)))
        ops += [Op("release", (bd.release,))] if bd.release else []
        ops.append(Op("next_bd", (f"{label}{number}" if number < len(channel.bds) else last,)))
    return ops
