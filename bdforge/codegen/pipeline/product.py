"""Products of integer matrices as dataflow: a block of micro-tiles of C, its loads, unpacking, products and stores.

Each micro-tile of a block has an accumulator, its lane. A block's lanes run one after the other by some steps of k, so
that one lane stores its sums while the others multiply. Lanes of the next block begin with a product alone; what C was
comes into an accumulator of its own, a micro-tile at a time, and is added to one of the products later on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bdforge.codegen.pipeline.dataflow import Op, Value
from bdforge.codegen.pipeline.vectors import VECTORS, Vectors
from bdforge.codegen.pipeline.walks import Steppers, Walk

DEPTH = COLUMNS = 8  # of a micro-tile
FIELDS = 4  # ternary weights in a byte
LOAD_UNITS = 2
_VECTORS = 12  # x registers
GIVEN = {"a0": "p0", "b0": "p1", "c in": "p2"}
"""Pointers that are a kernel's arguments; others start as copies of them."""

A_BANK, B_BANK, C_BANK = "A", "B", "C"
CONF, SHUFFLE, PART = "r1", "r2", "r0"
SAVED = {"a0": "r6", "b0": "r12", "c in": "r13"}
"""Where arguments are kept for regions behind the first."""


@dataclass(frozen=True)
class Product:
    """Kinds of operands, and the tile of a call: rows, k, columns. `parts` calls make all of C's rows.

    `turns_a` and `turns_b` tell whether micro-tiles lie otherwise than they are multiplied. C column by column is the
    product of what is turned, in the other order: `swapped`. Narrow sums are shifted up by `shift` when they are loaded
    and down when they are stored, with a code of crRnd.
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

    @property
    def vectors(self) -> Vectors:
        """Registers and accesses of the generation."""
        return VECTORS[self.generation]

    @property
    def steps(self) -> int:
        """Micro-tiles along k."""
        return self.k // DEPTH

    @property
    def a_bytes(self) -> int:
        """Of a micro-tile of A."""
        return self.vectors.rows * DEPTH

    @property
    def b_bytes(self) -> int:
        """Of a micro-tile of B; ternary ones come four in one."""
        return DEPTH * COLUMNS // (2 if self.weights == "i4" else 1)

    @property
    def c_tile_bytes(self) -> int:
        """Of a micro-tile of C."""
        return self.vectors.rows * COLUMNS * self.c_bytes


@dataclass(frozen=True)
class Region:
    """A part of C that blocks of `rows` x `columns` micro-tiles cover: (first, blocks) of both.

    `lanes` are its micro-tiles in the order in which they end, `skew` the steps of k by which each lane is behind the
    one before: with 1/2 every other one is.
    """

    product: Product
    rows: int
    columns: int
    down: tuple[int, int] = (0, 1)
    across: tuple[int, int] = (0, 1)
    skew: float = 1

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
    def blocks(self) -> int:
        """All of the region."""
        return self.down[1] * self.across[1]

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Accumulators that last products write, by lane: where there are so many, others, which leaves stores time."""
        lanes = len(self.lanes)
        free = range(lanes, self.product.vectors.accumulators)
        return tuple(free[:lanes]) if len(free) > lanes else tuple(range(lanes))

    @property
    def stage(self) -> int:
        """The accumulator into which C comes."""
        return max(*self.results, len(self.lanes) - 1) + 1

    @property
    def loads(self) -> int:
        """Of a step of k."""
        p = self.product
        return self.rows + (1 if p.weights == "i2" else self.columns * max(1, p.b_bytes // p.vectors.access))

    @property
    def step_cycles(self) -> int:
        """The least that a step of k takes: its busiest slot, and two cycles for a sum to come back."""
        p = self.product
        packed = p.weights == "i2"
        moves = self.rows * p.turns_a + (1 if packed else self.columns) * p.turns_b + 2 * self.columns * packed
        return max(2, self.rows * self.columns, -(-self.loads // LOAD_UNITS), moves)

    @property
    def constants(self) -> int:
        """Vector registers that hold masks."""
        return 2 * self.columns if self.product.weights == "i2" else 0

    @property
    def registers(self) -> range:
        """Vector registers for values."""
        return range(_VECTORS - self.constants)


def walks(region: Region) -> dict[str, Walk]:
    """Pointers by operand: `a0`.. rows of A, `b0`.. columns of B, or `b` for packed ones, `c in` and `c out`."""
    p, (top, down), (left, across) = region.product, region.down, region.across
    b_step, column = p.vectors.access, p.steps * p.b_bytes
    a_row, group = p.steps * p.a_bytes, region.fields
    nest = ((down, 0), (across // group, 0), (group, 0))
    found: dict[str, Walk] = {}

    def add(name: str, offsets: Sequence[int], strides: tuple[int, int, int], start: int) -> None:
        loops = tuple((passes, stride) for (passes, _), stride in zip(nest, strides, strict=True))
        pointer = GIVEN.get(name) or f"p{len(GIVEN) + sum(other not in GIVEN for other in found)}"
        found[name] = Walk(pointer, tuple(offsets), loops, start)

    a_offsets = [s * p.a_bytes for s in range(p.steps)]
    for i in range(region.rows):
        add(f"a{i}", a_offsets, (region.rows * a_row, 0, 0), (top + i) * a_row)
    accesses = max(1, p.b_bytes // b_step)
    b_offsets = [s * p.b_bytes + h * b_step for s in range(p.steps) for h in range(accesses)]
    if p.weights == "i2":
        add("b0", b_offsets, (0, column, 0), left // FIELDS * column)
    else:
        for j in range(region.columns):
            add(f"b{j}", b_offsets, (0, region.columns * column, 0), (left + j) * column)
    tile, row = p.c_tile_bytes, p.n // COLUMNS * p.c_tile_bytes
    part = tile // parts_of(p)
    c_offsets = [i * row + j * tile + q * part for i, j in region.lanes for q in range(parts_of(p))]
    width = region.columns * tile
    for name in ("c in", "c out"):
        add(name, c_offsets, (region.rows * row, group * width, width), top * row + left * tile)
    return found


def parts_of(p: Product) -> int:
    """Accesses that move a micro-tile of C."""
    return len(p.vectors.parts) if p.c_bytes == 4 else len(p.vectors.widened[p.c_bytes][1])


def steppers(region: Region) -> tuple[Steppers, dict[str, list[str]]]:
    """Registers for steps, and what stands behind each access, by operand."""
    p, found = region.product, walks(region)
    made = Steppers(p.vectors.small, p.vectors.access if p.weights != "i4" else p.b_bytes)
    return made, dict(zip(found, made.walks(list(found.values())), strict=True))


def block(region: Region, takes: Sequence[int], interval: int) -> list[Op]:
    """A block in an order that is right; lane i adds what C was in its step `takes[i]`."""
    _, after = steppers(region)
    pointers = {name: walk.pointer for name, walk in walks(region).items()}
    units = _units(region, interval)
    ops = list(_masks(region))
    for s in range(region.product.steps):
        for i in range(region.rows):
            ops += _a(region, i, s, units[f"a{i}"], _address(pointers[f"a{i}"], after[f"a{i}"][s]))
        ops += _b(region, s, units, pointers, after)
    for number, lane in enumerate(region.lanes):
        ops += _lane(region, number, lane, takes[number], pointers, after)
    return ops


def _address(pointer: str, step: str) -> tuple[str, str]:
    """(what follows the mnemonic's first word, the operand) of a post-increment."""
    dimensions = ".3d" if step.endswith("_3d") else ".2d" if step.startswith("d") else ""
    return dimensions, f"[{pointer}], {step}"


def _units(region: Region, interval: int) -> dict[str, str]:
    """Load units: b for as many as it has cycles, a, which C needs too, for the rest."""
    p, found, free = region.product, {}, interval
    columns = 1 if p.weights == "i2" else region.columns
    accesses = max(1, p.b_bytes // p.vectors.access)
    a, b = [(f"a{i}", 1) for i in range(region.rows)], [(f"b{j}", accesses) for j in range(columns)]
    for name, count in (*b, *a) if p.weights == "i4" else (*a, *b):
        found[name] = "b" if free >= count else "a"
        free -= count if free >= count else 0
    return found


def _a(region: Region, i: int, s: int, unit: str, address: tuple[str, str]) -> Iterator[Op]:
    p = region.product
    whole = "x" if p.vectors.access == 64 else "wl"
    made = "raw a" if p.turns_a else "a"
    text = f"vld{unit}{address[0]} {whole}{{v}}, {address[1]}"
    yield Op(f"a{i}", (text,), {"v": (f"{made}{i}", s)}, s, A_BANK)
    if p.turns_a:
        yield _turned(f"a{i}", s)


def _turned(name: str, s: int) -> Op:
    text = f"vshuffle x{{t}}, x{{v}}, x{{v}}, {SHUFFLE}"
    return Op(f"turn {name}", (text,), {"v": (f"raw {name}", s), "t": (name, s)}, s)


def _b(region: Region, s: int, units, pointers, after) -> Iterator[Op]:
    p = region.product
    if p.weights == "i2":
        address = _address(pointers["b0"], after["b0"][s])
        text = f"vld{units['b0']}{address[0]} x{{v}}, {address[1]}"
        yield Op("b", (text,), {"v": ("raw packed" if p.turns_b else "packed", s)}, s, B_BANK)
        if p.turns_b:
            yield _turned("packed", s)
        for j in range(region.columns):
            mask, bias = _mask_registers(j)
            values = {"p": ("packed", s), "u": (f"code{j}", s)}
            yield Op(f"mask b{j}", (f"vband x{{u}}, x{{p}}, {mask}",), values, s)
            values = {"u": (f"code{j}", s), "b": (f"b{j}", s)}
            yield Op(f"bias b{j}", (f"vsub.8 x{{b}}, x{{u}}, {bias}",), values, s)
        return
    for j in range(region.columns):
        yield from _loaded_b(region, j, s, units[f"b{j}"], pointers[f"b{j}"], after[f"b{j}"])


def _loaded_b(region: Region, j: int, s: int, unit: str, pointer: str, after: list[str]) -> Iterator[Op]:
    p = region.product
    name = f"raw b{j}" if p.turns_b else f"b{j}"
    if p.weights == "i4":
        dimensions, operand = _address(pointer, after[s])
        text = f"vldb{dimensions}.unpack x{{v}}, {operand}, unpackSign1"
        yield Op(f"b{j}", (text,), {"v": (name, s)}, s, B_BANK)
    else:
        parts = ("x",) if p.vectors.access == 64 else ("wl", "wh")
        for h, part in enumerate(parts):
            dimensions, operand = _address(pointer, after[s * len(parts) + h])
            text = f"vld{unit}{dimensions} {part}{{v}}, {operand}"
            yield Op(f"b{j}{part if h else ''}", (text,), {"v": (name, s)}, s, B_BANK)
    if p.turns_b:
        yield _turned(f"b{j}", s)


def _mask_registers(j: int) -> tuple[str, str]:
    return f"x{_VECTORS - 1 - 2 * j}", f"x{_VECTORS - 2 - 2 * j}"


def _masks(region: Region) -> Iterator[Op]:
    """Masks of the block's fields; scalar registers hold those of all fields, and turn by as many as a block has."""
    if region.product.weights != "i2":
        return
    for j in range(region.columns):
        (mask, bias), (codes, zeros) = _mask_registers(j), field_registers(j)
        yield Op(f"mask {j}", (f"vbcst.8 {mask}, {codes}",), shown="mask of the field", late=True)
        yield Op(f"bias {j}", (f"vbcst.8 {bias}, {zeros}",), shown="its 0", late=True)
        yield Op(f"turn {j} down", (f"lshl r14, {codes}, {TURN_DOWN}",))
        yield Op(f"turn {j} up", (f"lshl r15, {codes}, {TURN_UP}",))
        yield Op(f"turn {j}", (f"or {codes}, r14, r15",), shown="the next field's")
        yield Op(f"zeros {j}", (f"and {zeros}, {codes}, {ONES}",))


TURN_DOWN, TURN_UP, ONES = "r3", "r4", "r5"


def field_registers(j: int) -> tuple[str, str]:
    """Scalar registers with the masks of all fields, and their zeros, the block's in the lowest byte."""
    return f"r{8 + 2 * j}", f"r{9 + 2 * j}"


def _lane(region: Region, number: int, lane: tuple[int, int], take: int, pointers, after) -> Iterator[Op]:
    p, (i, j), count = region.product, lane, parts_of(region.product)
    places = range(number * count, number * count + count)
    for part, at in enumerate(places):
        yield _c_in(p, region.stage, part, _address(pointers["c in"], after["c in"][at]), number)
    for s in range(p.steps):
        values: dict[str, Value] = {"a": (f"a{i}", s), "b": (f"b{j}", s)}
        yield Op(f"mac {number}", (_mac(region, number, s, take),), values, s)
    for part, at in enumerate(places):
        yield _c_out(p, number, region.results[number], part, _address(pointers["c out"], after["c out"][at]))


def _mac(region: Region, number: int, s: int, take: int) -> str:
    """The product of a step: the first starts a sum, the last leaves it where it is stored."""
    name = region.product.vectors.sums
    sums, stage = name(number), name(region.stage)
    operands = f"{'x{b}, x{a}' if region.product.swapped else 'x{a}, x{b}'}, {CONF}"
    last = s == region.product.steps - 1
    result = name(region.results[number]) if last else sums
    if s == 0:
        return f"vmac {result}, {stage}, {operands}" if take == 0 else f"vmul {result}, {operands}"
    return f"vaddmac {sums}, {stage}, {operands}" if s == take else f"vmac {result}, {sums}, {operands}"


def _c_in(p: Product, register: int, part: int, address: tuple[str, str], lane: int) -> Op:
    if p.c_bytes == 4:
        text = f"vlda{address[0]} {p.vectors.parts[part]}{register}, {address[1]}"
    else:
        suffix, parts = p.vectors.widened[p.c_bytes]
        text = f"vlda{address[0]}.ups{suffix} {parts[part]}{register}, s0, {address[1]}{p.vectors.signs[0]}"
    return Op(f"c in {lane}.{part}", (text,), bank=C_BANK, late=True)


def _c_out(p: Product, lane: int, number: int, part: int, address: tuple[str, str]) -> Op:
    if p.c_bytes == 4:
        text = f"vst{address[0]} {p.vectors.parts[part]}{number}, {address[1]}"
    else:
        suffix, parts = p.vectors.narrowed[p.c_bytes]
        text = f"vst{address[0]}.srs{suffix} {parts[part]}{number}, s0, {address[1]}{p.vectors.signs[1]}"
    return Op(f"c out {lane}.{part}", (text,), bank=C_BANK)
