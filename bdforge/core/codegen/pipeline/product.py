"""Products of matrices, and the blocks of micro-tiles of C that they are made of (`block_dataflow` has what these do).

Each micro-tile of a block has an accumulator, its lane. A block's lanes run one after the other by some steps of k, so
that one lane stores its sums while the others multiply. Lanes of the next block begin with a product alone; what C was
comes into an accumulator of its own, a micro-tile at a time, and is added to one of the products later on. Sums of
floats begin with what C was, for their order matters, and so do those whose operands take all loads of a step: there
each lane has an accumulator for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bdforge.devices.limits import CORE

FLOAT_CONF, BLOCK_CONF = 0x3C, 0x30C
"""Confs of AIE2P's products: of bfloat16 lane by lane, of 8 x 8 x 8 block floats."""
UINT16_CONF, INT16_CONF, SHIFTED_CONF = 0x5A, 0x25A, 0x65A
"""Lane by lane, of uint16, of int16 with uint16, and that after the accumulator's shift by 16 bits."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Micro-tiles of C are `rows` x `columns`. An access moves `access` bytes; `parts` name those of an accumulator of
    32 bits an element.

    `widened` and `narrowed`, by bytes of an element: suffixes of loads and stores with conversion, and the parts that
    one of them fills; `converts` are the words before the suffixes, and what stands before the address. `accumulators`
    hold a micro-tile each, `small` are the steps that all accesses take as immediates. A `?` in the name of a part is
    l or h: such accumulators are halves, two to a number. `chain` are the cycles from a product of a sum to the next.
    """

    generation: str
    rows: int
    access: int
    accumulator: str
    parts: tuple[str, ...]
    widened: Mapping[int, tuple[str, tuple[str, ...]]]
    narrowed: Mapping[int, tuple[str, tuple[str, ...]]]
    signs: tuple[str, str]
    accumulators: int
    small: range
    columns: int = 8
    converts: tuple[str, str, str] = ("ups", "srs", "s0, ")
    chain: int = 2

    def sums(self, number: int) -> str:
        """The accumulator of a number."""
        return self.named(self.accumulator, number)

    def named(self, part: str, number: int) -> str:
        """A part of the accumulator of a number."""
        return f"{part.replace('?', 'lh'[number % 2])}{number // 2}" if "?" in part else f"{part}{number}"


AIE2P = Vectors(
    "aie2p", 8, 64, "dm", ("bmll", "bmlh", "bmhl", "bmhh"),
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    (", upsSign1", ", srsSign1"), 5, range(-512, 449),
)  # fmt: skip
AIE2 = Vectors(
    "aie2", 4, 32, "cm", ("amll", "amlh", "amhl", "amhh"),
    {1: (".s32.s8", ("cm",)), 2: (".s32.s16", ("bml", "bmh"))},
    {1: (".s8.s32", ("cm",)), 2: (".s16.s32", ("bml", "bmh"))},
    ("", ""), 9, range(-256, 225),
)  # fmt: skip
AIE2_FLOATS = Vectors(
    "aie2", 4, 32, "bm?", ("am?l", "am?h"), {2: (".fp32.bf16", ("bm?",))}, {2: (".bf16.fp32", ("bm?",))},
    ("", ""), 18, range(-256, 225), 4, ("conv", "conv", ""), 4,
)  # fmt: skip
AIE2P_FLOATS = Vectors(
    "aie2p", 8, 64, "dm", ("bmll", "bmlh", "bmhl", "bmhh"), {2: (".fp32.bf16", ("cml", "cmh"))},
    {2: (".bf16.fp32", ("cml", "cmh"))}, ("", ""), 5, range(-512, 449), converts=("conv", "conv", ""), chain=3,
)  # fmt: skip
FLOAT_VECTORS = {vectors.generation: vectors for vectors in (AIE2P_FLOATS, AIE2_FLOATS)}
VECTORS = {vectors.generation: vectors for vectors in (AIE2P, AIE2)}


DEPTH = COLUMNS = 8  # of a micro-tile of integers
FIELDS = 4  # ternary weights in a byte
LOAD_UNITS = 2
VECTOR_REGISTERS = 12
BLOCK_FLOATS = 6  # registers of these, beside two tiles that are to be widened, and ones
_SQUARES, _TALL_BYTES, _TALLER_BYTES = 35, 46, 36  # modes that transpose 8 x 8, 8 x 4, 16 x 4 bytes
_TALL, _WIDE = 28, 29  # and 8 x 4, 4 x 8 elements of 16 bits
SQUARE_HALVES = 52, 53  # that make the upper and the lower half of 8 x 8 elements of 16 bits transposed

Met = tuple[int, int, int]
"""Which share of C's accesses lies in a bank with A, and in one with B, and of A's in one with B, in percent."""

PART = "r0"
"""Which of its parts a call makes; read before all else."""


@dataclass(frozen=True)
class MatrixProduct:
    """Kinds of operands, and the tile of a call: rows, k, columns. `parts` calls make all of C's rows.

    `turns_a` and `turns_b` tell whether micro-tiles lie otherwise than they are multiplied. C column by column is the
    product of what is turned, in the other order: `swapped`. Narrow sums are shifted up by `shift` when they are loaded
    and down when they are stored, with a code of crRnd. `hardware_loops` need no slot for a branch.

    Ternary codes are biased by 1, those of a byte's top field in two's complement if `top_signed`: then a mask alone
    unpacks them. `shape` is the only one that blocks may have but at edges, if there is one. Operands that are `met` in
    a bank wait for each other.
    """

    generation: str
    weights: str
    c_bytes: int
    m: int
    k: int
    n: int
    turns_a: bool = False
    turns_b: bool = False
    swapped: bool = False
    parts: int = 1
    shift: int = 0
    rounding: int = 0
    hardware_loops: bool = False  # a choice, as none of ours was seen on silicon
    top_signed: bool = False
    shape: tuple[int, int] | None = None
    met: Met = (0, 0, 0)

    @property
    def vectors(self) -> Vectors:
        """Registers and accesses of the generation."""
        return (FLOAT_VECTORS if self.floats else VECTORS)[self.generation]

    @property
    def free(self) -> "MatrixProduct":
        """The same with blocks of any shape."""
        return replace(self, shape=None)

    @property
    def floats(self) -> bool:
        """Whether A and B are bfloat16, C float32 or bfloat16."""
        return self.weights == "bf16"

    @property
    def blocks(self) -> bool:
        """Whether operands become block floats, eight along k, as they are loaded (kernels/include/block_floats.h).

        By way of the last accumulator, for only wide floats are converted.
        """
        return self.floats and self.generation == "aie2p"

    @property
    def steps(self) -> int:
        """Micro-tiles along k."""
        return self.k // self.depth

    @property
    def nibbles(self) -> bool:
        """Whether int4 is multiplied as it is."""
        return self.generation == "aie2" and self.weights == "i4"

    @property
    def joint(self) -> bool:
        """Whether micro-tiles of A and of B fill registers: then a pointer walks over all of a block's, and sums begin
        with what C was."""
        return self.floats or self.nibbles

    @property
    def depth(self) -> int:
        """Columns of a micro-tile of A."""
        return 2 * DEPTH if self.nibbles else DEPTH

    @property
    def a_bytes(self) -> int:
        """Of a micro-tile of A."""
        return self.vectors.rows * self.depth * (1 + self.floats)

    @property
    def b_bytes(self) -> int:
        """Of a micro-tile of B; ternary ones come four in one."""
        return self.depth * self.vectors.columns * (1 + self.floats) // (2 if self.weights == "i4" else 1)

    @property
    def c_tile_bytes(self) -> int:
        """Of a micro-tile of C."""
        return self.vectors.rows * self.vectors.columns * self.c_bytes

    @property
    def c_accesses(self) -> int:
        """Accesses that move a micro-tile of C."""
        v = self.vectors
        return len(v.parts) if self.c_bytes == 4 else len(v.widened[self.c_bytes][1])

    def shuffle(self, side: str) -> tuple[str, int]:
        """The register with the mode of VSHUFFLE that turns micro-tiles of A or B, and the mode."""
        if self.vectors.rows == DEPTH:
            return "r2", _SQUARES
        register = "r2" if side == "a" else PART  # which is read before
        if self.floats:
            return register, _TALL if self.swapped == (side == "b") else _WIDE
        tall = _TALLER_BYTES if self.nibbles else _TALL_BYTES
        return register, tall if side == "a" else _SQUARES

    def accesses(self, tile_bytes: int) -> int:
        """Loads of a micro-tile."""
        return max(1, tile_bytes // self.vectors.access)


@dataclass(frozen=True)
class BlockRegion:
    """A part of C that blocks of `rows` x `columns` micro-tiles cover: (first, blocks) of both.

    `lanes` are its micro-tiles in the order in which they end, `skew` the steps of k by which each lane is behind the
    one before: with 1/2 every other one is. Blocks go across, or `downwards`, and then what one block loads of C lies
    further from what the one before stores.
    """

    product: MatrixProduct
    rows: int
    columns: int
    down: tuple[int, int] = (0, 1)
    across: tuple[int, int] = (0, 1)
    skew: float = 1
    downwards: bool = False

    @property
    def lanes(self) -> tuple[tuple[int, int], ...]:
        """(row, column) of the block, boustrophedon: a tile of A or B is held for the next lane only."""
        rows = [[(i, j) for j in range(self.columns)] for i in range(self.rows)]
        return tuple(lane for i, row in enumerate(rows) for lane in (row[::-1] if i % 2 else row))

    def behind(self, lane: int, interval: int) -> int:
        """Cycles by which a lane is behind the first, if a step takes `interval` of them."""
        return lane + interval * int(lane * self.skew)

    @property
    def fields(self) -> int:
        """Blocks that take their B from the same bytes."""
        return FIELDS // self.columns if self.product.weights == "i2" else 1

    @property
    def unrolled(self) -> int:
        """Blocks of a loop's pass: one, or those of all fields of a byte, if the top one is unpacked in another way; or
        as many as take turns in accumulators."""
        if self.product.blocks:
            return 1 if self.down[1] % 2 and self.across[1] % 2 else 2
        return self.fields if self.product.top_signed else 1

    @property
    def blocks(self) -> int:
        """All of the region, by passes of its loop."""
        return self.down[1] * self.across[1] // self.unrolled

    def is_top(self, step: int, column: int) -> bool:
        """Whether a column of B needs no bias in a step, counted over all blocks of a pass."""
        last = step // self.product.steps == self.unrolled - 1 and column == self.columns - 1
        return self.product.top_signed and last

    @property
    def same_bank(self) -> float:
        """In how much of the time C's loads and the stores of the block before are in one bank of a core's memory."""
        if not self.downwards:
            return 1
        apart = self.rows * self.product.n // self.product.vectors.columns * self.product.c_tile_bytes
        again = max(0, 1 - (self.down[1] - 1) * apart / CORE.bank_bytes)
        return (max(0, 1 - apart / CORE.bank_bytes) * (self.down[1] - 1) + again) / self.down[1]

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Accumulators that last products write, by lane: where there are so many, others, which leaves stores time."""
        lanes = len(self.lanes)
        if self.product.blocks:
            return tuple(range(lanes))
        free = range(lanes * (1 + self.product.joint), self.product.vectors.accumulators)
        if self.product.joint:
            return (*range(lanes - len(free)), *free[:lanes])
        return tuple(free[:lanes]) if len(free) > lanes else tuple(range(lanes))

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The accumulators into which C comes, by lane."""
        lanes = len(self.lanes)
        if self.product.blocks:
            return self.results
        if self.product.joint:
            return tuple(range(lanes, 2 * lanes))
        return (max(*self.results, lanes - 1) + 1,) * lanes

    def multiplied(self, side: str) -> bool:
        """Whether micro-tiles of A or B are widened by products with ones, not by loads, which move half a tile a
        cycle: what is turned, or else the side with more of them."""
        turns_a, turns_b = self.product.turns_a, self.product.turns_b
        if turns_a or turns_b:
            return turns_a if side == "a" else turns_b
        return (side == "b") == (self.columns >= self.rows)

    @property
    def a_loads(self) -> int:
        """Of a step of k."""
        return self.rows * self.product.accesses(self.product.a_bytes)

    @property
    def b_loads(self) -> int:
        """Of a step of k; ternary columns come together."""
        return (1 if self.product.weights == "i2" else self.columns) * self.product.accesses(self.product.b_bytes)

    @property
    def loads(self) -> int:
        """Of a step of k."""
        return self.a_loads + self.b_loads

    @cached_property
    def step_cycles(self) -> int:
        """The least that a step of k takes: its busiest slot, and the cycles for a sum to come back."""
        p = self.product
        if p.blocks:
            sides = (("a", self.rows, p.turns_a), ("b", self.columns, p.turns_b))
            widened = sum(count for side, count, _ in sides if self.multiplied(side))
            accumulated = 2 * (self.rows + self.columns) - widened
            moves = max(2 * count for _, count, _ in sides), sum(2 * count for _, count, turns in sides if turns)
            return max(p.vectors.chain, self.rows * self.columns + widened, accumulated, *moves)
        packed = p.weights == "i2"
        moves = self.rows * p.turns_a + (1 if packed else self.columns) * p.turns_b + 2 * self.columns * packed
        loads = max(self.a_loads, self.b_loads) if p.joint else -(-self.loads // LOAD_UNITS)
        return max(p.vectors.chain, self.rows * self.columns, loads, moves)

    @property
    def constants(self) -> int:
        """Vector registers that hold masks."""
        return 2 * self.columns if self.product.weights == "i2" else 0

    @property
    def registers(self) -> range:
        """Vector registers for values."""
        return range(BLOCK_FLOATS if self.product.blocks else VECTOR_REGISTERS - self.constants)
