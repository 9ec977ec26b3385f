"""Smooth an image in one pass: a column of cores, each core one sweep of a five-point stencil.

Lines travel up the column through the cores' memory: each core writes its lines into its own, where the next one
reads them, three at a time, without any DMA. Only the first core's lines come, and the last one's leave, by DMA.
Outside of the image is zero. The design, and a run of it on the emulated array with the kernel below:

    python examples/stencil/stencil.py > stencil.mlir
    bdforge emulate stencil.mlir --kernels examples/stencil/stencil.py --arg image.npy --arg smoothed.npy --out after

`smooth.cc` is the same kernel for the array, to be compiled with -DWIDTH=64 into smooth.o.
"""

from dataclasses import replace

import numpy as np

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Buffer,
    Call,
    Channel,
    Core,
    Design,
    Event,
    Flow,
    Load,
    Lock,
    Locks,
    LockWrite,
    Loop,
    Release,
    Rotating,
    Rotation,
    RtpWrite,
    Sequence,
    Slots,
    Task,
    TaskBd,
    Tile,
    TokenWait,
    placed,
    render,
)
from bdforge.devices import TileKind
from bdforge.devices.types import TYPES

LINES_HELD = 4  # three that a core reads, one that comes meanwhile


def smooth(above: np.ndarray, line: np.ndarray, below: np.ndarray, out: np.ndarray) -> None:
    """The kernel: half of a line, the other half from its four neighbours."""
    sides = np.pad(line, 1)
    out[:] = (4 * line + above + below + sides[:-2] + sides[2:]) >> 3


def sweep(source: Slots, target: Slots, edge: Buffer, lines: Buffer, go: Lock) -> Core:
    """Once told of how many lines, wait for each line's successor, write it smoothed, give back what is done with."""
    turn = Rotation("line", LINES_HELD)
    line, new = turn.of(source.buffers), turn.of(target.buffers)

    def write(above: Rotating | Buffer, below: Rotating | Buffer) -> tuple:
        smoothed = Call("smooth", (above, line, below, new))
        return Acquire(target.free), smoothed, Release(target.full), Advance(turn)

    image = (
        Acquire(go),
        Load("inner_lines", lines),
        Acquire(source.full, 2),
        *write(edge, line.ahead(1)),
        Loop(
            "inner_lines", (Acquire(source.full), *write(line.ahead(-1), line.ahead(1)), Release(source.free)), "inner"
        ),
        *write(line.ahead(-1), edge),
        Release(source.free, 2),
    )
    return Core((Loop(None, image, "image"),), link_with="smooth.o")


def stencil(width: int, cores: int = 4) -> Design:
    """The design for images of `width` int32 (a multiple of 16) and any number of lines from 2 on."""
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    tiles, ways = [shim], []
    for row in range(2, 2 + cores):
        locks = Locks(f"core_{row}")
        target = Slots.of(locks, "out", width, TYPES["int32"], "lines out", LINES_HELD)
        own, channels = [target], ()
        if row == 2:
            ways = [Slots.of(locks, "in", width, TYPES["int32"], "lines in", LINES_HELD)]
            own, channels = [*ways, target], (Channel("S2MM", 0, ways[0].fill()),)
        if row == 1 + cores:
            channels += (Channel("MM2S", 0, target.send()),)
        ways.append(target)
        edge = Buffer(f"{locks.tile}_edge", width, "i32", "outside of the image", values=(0,) * width)
        lines = Buffer(f"{locks.tile}_lines", 16, "i32", "run-time parameter: lines - 2")
        program = sweep(ways[-2], target, edge, lines, locks.one("go"))
        buffers = (*(buffer for each in own for buffer in each.buffers), edge, lines)
        tiles.append(Tile(locks.tile, 0, row, TileKind.CORE, buffers, tuple(locks.taken), channels, program))
    flows = (Flow(shim.dma(0), (tiles[1].dma(0),), "image in"), Flow(tiles[-1].dma(0), (shim.dma(0),), "image out"))
    names = (Allocation("image_in", shim, "MM2S", 0), Allocation("image_out", shim, "S2MM", 0))
    return placed(Design("stencil", "npu2_1col", tuple(tiles), flows, names))


def smoothing(design: Design, lines: int, images: int = 1) -> Design:
    """`design` with the sequence for so many images, one behind the other, of so many lines."""
    cores = [tile for tile in design.tiles if tile.core]
    numbers = (RtpWrite(core.buffers[-1], 0, lines - 2) for core in cores)
    told = (*numbers, *(LockWrite(core.locks[-1], 1) for core in cores))
    elements = lines * cores[0].buffers[0].elements
    source, target = (Buffer(name, images * elements, "i32") for name in ("image", "smoothed"))
    events = []
    for i in range(images):
        part = Pattern((elements,), (1,), i * elements)
        into = Task(f"in_{i}", "image_in", (TaskBd(source, part, 0),), 0, token=False)
        out = Task(f"out_{i}", "image_out", (TaskBd(target, part, 1),), 0, token=True)
        events.append(Event(f"image {i} comes and goes, and cores may begin", (into, out), told))
        events.append(Event("all is written", waits=(TokenWait(0, 0, 0, 1),), free=(into.name, out.name)))
    name = f"smooth_{images}_of_{lines}_lines"
    sequence = Sequence(name, f"{images} x {lines} lines", (source, target), tuple(events))
    return replace(design, sequences=(*design.sequences, sequence))


if __name__ == "__main__":
    print(render(smoothing(stencil(64), 64)), end="")
