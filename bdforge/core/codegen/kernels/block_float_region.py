"""Blocks of products of block floats that lie in memory, on AIE2P, as dataflow.

A block is 2 x 2 tiles of C, a step two tiles of the depth: four sequences of tiles of A and B, of two load FIFOs. So
streams are opened for two tiles of a sequence, one after the other. Shuffles cannot take blocks of nine bytes apart, so
plain loads would not do.

bfloat16 A is widened by loads into the last accumulator and leaves it as block floats, two cycles a tile: with four
lanes of sums beside it that takes all cycles of its load unit. A that lies column by column is turned in registers and
widened from there, four cycles of the move slot a tile. C of floats comes by registers, from where it is widened
or moved in the move slot, which nobody else needs; so lanes wait for the stores of the block before, but not for
memory. C of block floats comes by both FIFOs between blocks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.block_float_streams import (
    BLOCK_TILE_BYTES,
    LINE_BYTES,
    Ops,
    converted,
    empty_fifos,
    loaded,
    popped,
    pushed,
    stepped_pointer,
    tile_bytes,
    tile_parts,
    turned,
    with_conversion,
)
from bdforge.core.codegen.kernels.digit_products import IDENTITY, access
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P_FLOATS, VECTOR_REGISTERS
from bdforge.core.codegen.pipeline.steps_in_blocks import BlockOfSteps, stepped

SIDE = 2  # tiles of a block
CONF, SCRATCH = "r1", "m7"
ARGUMENTS = {"p3": "r12", "p4": "r13", "p2": "r6"}
"""Where blocks find A, B and C, and where these wait for the next region."""
_BLOCKS_OF_C = ("ex8", "ex9", "ex10")
_FREE = {("bfp16", "bfp16"): 8, ("bf16", "bfp16"): 8, ("bfp16", ""): 6, ("bf16", ""): 4}
"""Registers for values of steps, by A and block floats of C: others hold C on its way. With fewer there is no step of
the same cycles, with more C waits longer."""
Steps = Mapping[str, list[str]]
"""What stands behind each access, by walk."""


@dataclass(frozen=True)
class BlockFloatProduct:
    """Elements of A and C; tiles of rows, depth and columns of a call, which makes one of `parts` of C's rows.

    Tiles of C are `turned` where they lie column by column; of A where it `turns_a`.
    """

    a: str
    c: str
    rows: int
    depth: int
    columns: int
    parts: int = 1
    turned: bool = False
    turns_a: bool = False

    @property
    def run(self) -> int:
        """Tiles for which a stream is opened: two, where all begin at multiples of 16 bytes, so that a line reaches."""
        return 2 - self.depth % 2

    @property
    def steps(self) -> int:
        """Of a block."""
        return self.depth // self.run


@dataclass(frozen=True)
class StoredBlockRegion:
    """Blocks of `rows` x `columns` tiles of C: (first, blocks) of both sides; they go across."""

    product: BlockFloatProduct
    rows: int
    columns: int
    down: tuple[int, int]
    across: tuple[int, int]

    def part(self, setup: list[AssemblyOp]) -> FunctionPart:
        """All blocks."""
        made, walks = Steppers(AIE2P_FLOATS.small, AIE2P_FLOATS.access), self._walks()
        after = dict(zip(walks, made.walks(list(walks.values())), strict=True))
        if self._by_both:
            after["in"] = [made.register(self.product.columns * BLOCK_TILE_BYTES)]
        elif "in base" in after:  # streams go on as those of stores; where the last one ends is no matter
            after["in"] = [*after["out"][:-1], (*after["out"][:-1], made.register(0))[0]]
        before = [replace(op, late=True) for op in (*self._begin(after), *self._opened(after))]
        step, free = list(self._step(after)), {"x": range(self._free)}
        end, fixed = list(self._end(after)), dict(self._fixed())
        block = BlockOfSteps(before, lambda _: step, end, self.product.steps, free, fixed, 0, self.interval)
        constants = (set_register(register, value) for register, value in made.constants.items())
        ops = [*setup, *self._starts(walks), *constants]
        return stepped("aie2p", ops, block, self.down[1] * self.across[1])

    @property
    def interval(self) -> int:
        """Cycles of a step at least: of its products, loads, and of the accumulator in which bfloat16 is widened."""
        run, pops = self.product.run, 1 + self.product.run
        products = max(self.rows * self.columns, AIE2P_FLOATS.chain) * run
        if self.product.a == "bfp16":
            return max(products, pops * max(self.rows, self.columns))
        if self.product.turns_a:  # moves, one of a branch among them
            return max(products, 4 * self.rows * run + 1, (pops * self.columns + 2 * self.rows * run) // 2)
        return max(products, 2 * self.rows * run, pops * self.columns)

    def _walks(self) -> dict[str, PointerWalk]:
        """By operand: of A's and B's streams and of where they begin, of C as it was, and of C."""
        p, (top, down), (left, across) = self.product, self.down, self.across
        c, row, column = tile_bytes(p.c), p.depth * tile_bytes(p.a), p.depth * BLOCK_TILE_BYTES
        loops = (down, self.rows * p.columns * c), (across, self.columns * c)
        start, moved = (top * p.columns + left) * c, self._together * c * (p.c == "bfp16")
        found = {
            "a": self._stream(self._a_pointer, p.a, self.rows),
            "b": self._stream("p1", "bfp16", self.columns),
            "a base": PointerWalk("p3", (0,), ((down, self.rows * row), (across, 0)), top * row),
            "b base": PointerWalk("p4", (0,), ((down, 0), (across, self.columns * column)), left * column),
            "out": PointerWalk("p2", self._places, loops, start, 0, moved),
        }  # fmt: skip
        if p.c == p.a == "bfp16":  # by the FIFOs of A and B
            return found | {"in base": PointerWalk("p5", (0,), loops, start)}
        return found | {"in": replace(found["out"], pointer="p0" if p.c == "bfp16" else "p5")}

    @property
    def _a_pointer(self) -> str:
        return "p0" if self.product.a == "bfp16" else "p6"

    def _stream(self, pointer: str, code: str, count: int) -> PointerWalk:
        """A run of tiles of a sequence, one of bfloat16; so many sequences take turns."""
        p, size = self.product, tile_bytes(code)
        run, blocks = (p.run, True) if code == "bfp16" else (1, False)
        offsets = (0,) if blocks else tuple(range(0, size, LINE_BYTES))
        loops = (p.depth // run, run * size), (count, p.depth * size)
        return PointerWalk(pointer, offsets, loops, 0, 0, run * size * blocks)

    @property
    def _together(self) -> int:
        """Tiles of C in a row of a block that are one stream, as `BlockFloatProduct.run`."""
        return self.columns if self.product.columns % 2 == 0 else 1

    @property
    def _places(self) -> tuple[int, ...]:
        """Of C's accesses in a block, from its first tile on: of streams, or of parts of accumulators."""
        c, blocks = self.product.c, self.product.c == "bfp16"
        size, columns = tile_bytes(c), range(0, self.columns, self._together if blocks else 1)
        tiles = [(i * self.product.columns + j) * size for i in range(self.rows) for j in columns]
        parts = 1 if blocks else len(tile_parts(c))
        return tuple(tile + part * size // parts for tile in tiles for part in range(parts))

    def _starts(self, walks: Mapping[str, PointerWalk]) -> Iterator[AssemblyOp]:
        c_in = walks["in base" if "in base" in walks else "in"].pointer
        moves = ARGUMENTS | {c_in: ARGUMENTS["p2"]}
        yield from (AssemblyOp(f"mov {pointer}, {kept}") for pointer, kept in moves.items())
        for pointer, start in {walk.pointer: walk.start for walk in walks.values() if walk.start}.items():
            yield from (set_register(SCRATCH, start), AssemblyOp(f"padda [{pointer}], {SCRATCH}"))
        yield from empty_fifos()

    @property
    def _lanes(self) -> range:
        return range(self.rows * self.columns)

    @property
    def _free(self) -> int:
        p = self.product
        return _FREE["bfp16", "bfp16"] if p.turns_a else _FREE[p.a, p.c if p.c == "bfp16" else ""]

    @property
    def _parts(self) -> list[str]:
        """Of accumulators, in the order of C's accesses."""
        return [f"{part}{lane}" for lane in self._lanes for part in tile_parts(self.product.c)]

    def _begin(self, after: Steps) -> Ops:
        """C as it was, in accumulators."""
        return self._blocks_begin(after) if self.product.c == "bfp16" else self._floats_begin(after)

    def _floats_begin(self, after: Steps) -> Ops:
        widen, waiting = "vconv.fp32.bf16" if self.product.c == "bf16" else "vmov", range(self._free, VECTOR_REGISTERS)
        for number, (part, step) in enumerate(zip(self._parts, after["in"], strict=True)):
            x = f"x{waiting[number % len(waiting)]}"
            yield loaded("ba", access(x, "p5", step), "C", f"in {number}")
            yield named_op(f"{widen} {part}, {x}")

    def _blocks_begin(self, after: Steps) -> Ops:
        """Times the identity: so block floats come into accumulators."""
        if "in base" not in after:
            yield from self._multiplied("p0", self._lanes, after["in"])
            return
        yield named_op("mov p0, p5", key="to C")
        if not self._by_both:
            yield from stepped_pointer("p5", *after["in base"])
            yield from self._multiplied("p0", self._lanes, after["in"])
            return
        yield from (named_op("mov p6, p5"), *stepped_pointer("p6", *after["in"]))
        yield from stepped_pointer("p5", *after["in base"])
        yield from self._multiplied("p0", self._lanes[: self.columns], after["in"])
        yield named_op("mov p1, p6", key="to C's second row")
        yield from self._multiplied("p1", self._lanes[self.columns :], after["in"])

    @property
    def _by_both(self) -> bool:
        """Whether a row of C comes by A's FIFO, the other one by B's."""
        return self.product.a == self.product.c == "bfp16" and self.rows == self._together == SIDE

    def _multiplied(self, pointer: str, lanes: range, steps: list[str]) -> Ops:
        registers = [_BLOCKS_OF_C[lane % len(_BLOCKS_OF_C)] for lane in lanes]
        left = zip(lanes, registers, strict=True)
        for op in popped(pointer, self._units, registers, steps, f"C {pointer}"):
            yield replace(op, bank="C")
            if op.key.startswith("pop"):
                lane, register = next(left)
                yield named_op(f"vnegmul.f dm{lane}, {register}, {IDENTITY}, {CONF}")

    @property
    def _units(self) -> str:
        """Load units for streams; A as bfloat16 needs all of one."""
        return "ba" if self.product.a == "bfp16" else "b"

    def _opened(self, after: Steps) -> Ops:
        """Where the streams of a block begin, and those of the next one."""
        for pointer, base, walk in ((self._a_pointer, "p3", "a base"), ("p1", "p4", "b base")):
            yield named_op(f"mov {pointer}, {base}", key=f"to {walk}")
            yield from stepped_pointer(base, *after[walk])

    def _tiles(self) -> list[tuple[int, int]]:
        """(row, place along the depth) of A's tiles of bfloat16 in a step."""
        return [(i, t) for t in range(self.product.run) for i in range(self.rows)]

    def _step(self, after: Steps) -> Ops:
        run = self.product.run
        if self.product.a == "bfp16":
            names = [f"ex{{a{i}of{t}}}" for i in range(self.rows) for t in range(run)]
            units = "ab" if self._tight else self._units
            yield from popped("p0", units, names, after["a"] * self.rows, "A")
        elif self.product.turns_a:
            yield from turned("p6", "ab", [f"a{i}of{t}" for i, t in self._tiles()], after["a"], "A")
        else:
            yield from converted("p6", [f"a{i}of{t}" for i, t in self._tiles()], after["a"], "A")
        names = [f"ex{{b{j}of{t}}}" for j in range(self.columns) for t in range(run)]
        yield from popped("p1", self._units, names, after["b"] * self.columns, "B")
        for t in range(run):
            for lane in self._lanes:
                i, j = divmod(lane, self.columns)
                rows, columns = f"ex{{a{i}of{t}}}", f"ex{{b{j}of{t}}}"  # each of lines along the depth
                factors = (columns, rows) if self.product.turned else (rows, columns)
                yield named_op(f"vmac.f dm{lane}, dm{lane}, {', '.join(factors)}, {CONF}", key=f"mac {lane} {t}")

    @property
    def _tight(self) -> bool:
        """Whether streams of A and B leave each FIFO and each load unit two cycles of a step, which C needs."""
        whole = self.rows == self.columns == self.product.run == SIDE
        return self.product.a == self.product.c == "bfp16" and whole

    def _fixed(self) -> Iterator[tuple[str, int]]:
        """Cycles of what leaves no other choice, by keys.

        What makes block floats of bfloat16, none of which waits, with products right behind; or streams of A and B, as
        near to each other as they may be, so that C finds room in their FIFOs between blocks.
        """
        run = self.product.run
        if self.product.turns_a:
            return
        if self.product.a == "bf16":
            tiles = self._tiles()
            for number, (i, t) in enumerate(tiles):
                at = number * self.interval // len(tiles)
                yield from ((f"a{i}of{t}.{h}", at + h) for h in (0, 1))
                yield f"block a{i}of{t}", at + 8
                yield from ((f"mac {i * self.columns + j} {t}", at + 12 + j) for j in range(self.columns))
        elif self._tight:
            for at, (side, i) in product(range(run), product("AB", range(SIDE))):
                first = (1 + run) * i + (side == "B")
                yield f"fill {side} {i}", first
                yield f"pop {side} {run * i + at}", first + 1 + at
            for number, (t, j, i) in enumerate(product(range(run), range(self.columns), range(self.rows))):
                yield f"mac {i * self.columns + j} {t}", 11 + number

    def _end(self, after: Steps) -> Ops:
        """C, from accumulators."""
        if self.product.c == "bfp16":
            for number, step in enumerate(after["out"]):
                lanes = self._lanes[number * self._together : (number + 1) * self._together]
                yield from pushed(lanes, step, "C")
            return
        for part, step in zip(self._parts, after["out"], strict=True):
            stored = access(part, "p2", step)
            down = self.product.c == "bf16"
            yield named_op(with_conversion("vst", "conv.bf16.fp32", stored) if down else f"vst{stored}", "C")
