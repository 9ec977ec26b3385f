"""b (N x M) = a (M x N) transposed, in blocks of 16 x 16 words: the memtile's BD does the work.

bdforge render examples/python/transpose.py --shape 32x48
"""

from dataclasses import replace

from bd_patterns import Pattern
from bdforge.design import Allocation, Channel, Design, Flow, Locks, Slots, Tile, placed
from bdforge.design.sequences import Axis, Builder, all_of
from bdforge.devices.types import TYPES

SIDE, INT32 = 16, TYPES["int32"]

locks = Locks("mem")
block = Slots.of(locks, "block", SIDE * SIDE, INT32, "a block of a, row by row")
turned = Pattern.of_shape((SIDE, SIDE)).permuted((1, 0))
channels = Channel("S2MM", 0, block.fill(), "blocks of a"), Channel("MM2S", 0, block.send(turned), "columns of a")
shim, memtile = Tile.shim(0), Tile.holding(locks, 0, 1, (block,), channels)
flows = Flow(shim.dma(0), (memtile.dma(0),)), Flow(memtile.dma(0), (shim.dma(0),))
names = Allocation("from_host", shim, "MM2S", 0), Allocation("to_host", shim, "S2MM", 0)

build = Builder(["M", "N"])
M, N = map(build.parameter, "MN")
blocks = all_of(M > 0, N > 0, M % SIDE < 1, N % SIDE < 1)
build.require(blocks, "{} x {} is no number of blocks", M, N)
a, b = (build.argument(name, "i32", INT32.bits, M * N) for name in "ab")
build.operand("a", a, "in", "int32", INT32.bits, [Axis(M), Axis(N)])
build.operand("b", b, "out", "int32", INT32.bits, [Axis(N), Axis(M)])
with build.loop(N // SIDE) as j, build.step([("S2MM", 0, 0, 1)], "columns {} on of a", [j * SIDE]):
    build.task("MM2S", 0, 0, build.bd(a, j * SIDE, [M, SIDE], [N, 1]))
    build.task("S2MM", 0, 0, build.bd(b, j * SIDE * M, [M // SIDE, SIDE, SIDE], [SIDE, M, 1]), token=True)

DESIGN = replace(
    placed(Design("transpose", "npu2_1col", (shim, memtile), flows, names)),
    program=build.program,
    reference="references.py:transpose",
)
