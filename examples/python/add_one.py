"""b = a + 1 on one core, in pieces of 16 words: bdforge render examples/python/add_one.py --shape 96."""

from dataclasses import replace

from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Release,
    Rotation,
    Slots,
    Tile,
    placed,
)
from bdforge.design.sequences import Axis, Builder
from bdforge.devices.types import TYPES

PIECE, INT32 = 16, TYPES["int32"]

locks, turn = Locks("core"), Rotation("turn")
a = Slots.of(locks, "in", PIECE, INT32, "a piece of a")
b = Slots.of(locks, "out", PIECE, INT32, "a piece of b")
add_one = Call("add_one", (turn.of(a.buffers), turn.of(b.buffers)))
body = Acquire(a.full), Acquire(b.free), add_one, Release(a.free), Release(b.full), Advance(turn)
channels = Channel("S2MM", 0, a.fill()), Channel("MM2S", 0, b.send())
shim, core = Tile.shim(0), Tile.holding(locks, 0, 2, (a, b), channels, Core((Loop(None, body),)))
flows = Flow(shim.dma(0), (core.dma(0),)), Flow(core.dma(0), (shim.dma(0),))
names = Allocation("from_host", shim, "MM2S", 0), Allocation("to_host", shim, "S2MM", 0)

build = Builder(["n"])
n = build.parameter("n")
build.require((n >= PIECE) * (n % PIECE < 1), f"n = {{}} is no multiple of {PIECE}", n)
x, y = (build.argument(name, "i32", INT32.bits, n) for name in "ab")
for name, argument, direction in (("a", x, "in"), ("b", y, "out")):
    build.operand(name, argument, direction, "int32", INT32.bits, [Axis(n)])
with build.step([("S2MM", 0, 0, 1)], "{} words", [n]):
    build.task("MM2S", 0, 0, build.bd(x, 0, [n], [1]))
    build.task("S2MM", 0, 0, build.bd(y, 0, [n], [1]), token=True)

DESIGN = replace(
    placed(Design("add_one", "npu2_1col", (shim, core), flows, names)),
    program=build.program,
    reference="references.py:add_one",
)
