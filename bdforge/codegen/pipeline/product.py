"""Products of matrices as dataflow: a block of micro-tiles of C, its loads, unpacking, products and stores.

Each micro-tile of a block has an accumulator, its lane. A block's lanes run one after the other by some steps of k, so
that one lane stores its sums while the others multiply. Lanes of the next block begin with a product alone; what C was
comes into an accumulator of its own, a micro-tile at a time, and is added to one of the products later on. Sums of
floats begin with what C was, for their order matters, and so do those whose operands take all loads of a step: there
each lane has an accumulator for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bdforge.codegen.pipeline.dataflow import Op, Value
from bdforge.codegen.pipeline.vectors import AIE2_FLOATS, VECTORS, Vectors
from bdforge.codegen.pipeline.walks import Steppers, Walk
from bdforge.devices.limits import CORE

DEPTH = COLUMNS = 8  # of a micro-tile of integers
FIELDS = 4  # ternary weights in a byte
LOAD_UNITS = 2
_VECTORS = 12  # x registers
_SQUARES, _TALL_BYTES, _TALLER_BYTES = 35, 46, 36  # modes that transpose 8 x 8, 8 x 4, 16 x 4 bytes
_TALL, _WIDE = 28, 29  # and 8 x 4, 4 x 8 elements of 16 bits
GIVEN = {"a0": "p0", "b0": "p1", "c in": "p2"}
"""Pointers that are a kernel's arguments; others start as copies of them."""

A_BANK, B_BANK, C_BANK = "A", "B", "C"
CONF, PART = "r1", "r0"
SAVED = {"a0": "r6", "b0": "r12", "c in": "r13"}
"""Where arguments are kept for regions behind the first."""


@dataclass(frozen=True)
class Product:
    """Kinds of operands, and the tile of a call: rows, k, columns. `parts` calls make all of C's rows.

    `turns_a` and `turns_b` tell whether micro-tiles lie otherwise than they are multiplied. C column by column is the
    product of what is turned, in the other order: `swapped`. Narrow sums are shifted up by `shift` when they are loaded
    and down when they are stored, with a code of crRnd. `hardware_loops` need no slot for a branch.

    Ternary codes are biased by 1, those of a byte's top field in two's complement if `top_signed`: then a mask alone
    unpacks them. `shape` is the only one that blocks may have but at edges, if there is one.
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
    hardware_loops: bool = False
    top_signed: bool = False
    shape: tuple[int, int] | None = None

    @property
    def vectors(self) -> Vectors:
        """Registers and accesses of the generation."""
        return AIE2_FLOATS if self.floats else VECTORS[self.generation]

    @property
    def free(self) -> "Product":
        """The same with blocks of any shape."""
        return replace(self, shape=None)

    @property
    def floats(self) -> bool:
        """Whether A and B are bfloat16, C float32 or bfloat16."""
        return self.weights == "bf16"

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
class Region:
    """A part of C that blocks of `rows` x `columns` micro-tiles cover: (first, blocks) of both.

    `lanes` are its micro-tiles in the order in which they end, `skew` the steps of k by which each lane is behind the
    one before: with 1/2 every other one is. Blocks go across, or `downwards`, and then what one block loads of C lies
    further from what the one before stores.
    """

    product: Product
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
        """Blocks of a loop's pass: one, or those of all fields of a byte, if the top one is unpacked in another way."""
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
        free = range(lanes * (1 + self.product.joint), self.product.vectors.accumulators)
        if self.product.joint:
            return (*range(lanes - len(free)), *free[:lanes])
        return tuple(free[:lanes]) if len(free) > lanes else tuple(range(lanes))

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The accumulators into which C comes, by lane."""
        lanes = len(self.lanes)
        if self.product.joint:
            return tuple(range(lanes, 2 * lanes))
        return (max(*self.results, lanes - 1) + 1,) * lanes

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
        return range(_VECTORS - self.constants)


def walks(region: Region) -> dict[str, Walk]:
    """Pointers by operand: `a0`.. rows of A, `b0`.. columns of B, or `b` for packed ones, `c in` and `c out`."""
    p, (top, down), (left, across) = region.product, region.down, region.across
    a_row, column, group = p.steps * p.a_bytes, p.steps * p.b_bytes, region.fields
    found: dict[str, Walk] = {}

    def add(name: str, offsets: Sequence[int], strides: tuple[int, int, int], start: int) -> None:
        offsets = [block * strides[2] + at for block in range(region.unrolled) for at in offsets]
        loops = list(zip((down, across // group, group // region.unrolled), strides, strict=True))
        if region.downwards:
            loops = [loops[1], loops[2], loops[0]]
        pointer = GIVEN.get(name) or f"p{len(GIVEN) + sum(other not in GIVEN for other in found)}"
        found[name] = Walk(pointer, tuple(offsets), tuple(loops), start)

    together = region.rows if p.joint else 1
    for i in range(0, region.rows, together):
        add(f"a{i}", _along_k(p, p.a_bytes, together), (region.rows * a_row, 0, 0), (top + i) * a_row)
    if p.weights == "i2":
        add("b0", _along_k(p, p.b_bytes, 1), (0, column, 0), left // FIELDS * column)
    else:
        together = region.columns if p.joint else 1
        for j in range(0, region.columns, together):
            strides = 0, region.columns * column, 0
            add(f"b{j}", _along_k(p, p.b_bytes, together), strides, (left + j) * column)
    tile, row = p.c_tile_bytes, p.n // p.vectors.columns * p.c_tile_bytes
    part = tile // parts_of(p)
    c_offsets = [i * row + j * tile + q * part for i, j in region.lanes for q in range(parts_of(p))]
    width = region.columns * tile
    for name in ("c in", "c out"):
        offsets = [*c_offsets, *c_offsets[-1:] * (name == "c out" and _steps_alone(p))]
        add(name, offsets, (region.rows * row, group * width, width), top * row + left * tile)
    return found


def _along_k(p: Product, tile_bytes: int, together: int) -> list[int]:
    """Offsets of the micro-tiles of one row of A, or column of B, or of some together, in the order of k."""
    count, step = p.accesses(tile_bytes), min(tile_bytes, p.vectors.access)
    rows = range(0, together * p.steps * tile_bytes, p.steps * tile_bytes)
    return [row + s * tile_bytes + h * step for s in range(p.steps) for row in rows for h in range(count)]


def _steps_alone(p: Product) -> bool:
    """Whether C's pointer goes on without a store: what AIE2's stores of floats in 2D and 3D name is not told."""
    return p.floats and p.c_bytes == 2


def parts_of(p: Product) -> int:
    """Accesses that move a micro-tile of C."""
    return len(p.vectors.parts) if p.c_bytes == 4 else len(p.vectors.widened[p.c_bytes][1])


def steppers(region: Region) -> tuple[Steppers, dict[str, list[str]]]:
    """Registers for steps, and what stands behind each access, by operand."""
    p, found = region.product, walks(region)
    made = Steppers(p.vectors.small, min(p.vectors.access, p.b_bytes))
    return made, dict(zip(found, made.walks(list(found.values())), strict=True))


def block(region: Region, takes: Sequence[int], interval: int) -> list[Op]:
    """A block, or all of a pass, in an order that is right; lane i adds what C was in its step `takes[i]`."""
    _, after = steppers(region)
    pointers = {name: walk.pointer for name, walk in walks(region).items()}
    units, ops = _units(region, interval), []
    for first in range(0, region.unrolled * region.product.steps, region.product.steps):
        ops += _masks(region, first)
        for s in range(first, first + region.product.steps):
            for i in range(region.rows):
                ops += _tile(region, "a", i, s, units, pointers, after)
            ops += _b(region, s, units, pointers, after)
        for number in range(len(region.lanes)):
            ops += _lane(region, number, first, takes[number], pointers, after)
    if _steps_alone(region.product):
        dimensions, operand = _address(pointers["c out"], after["c out"][-1])
        ops.append(Op("c out on", (f"padds{dimensions} {operand}",)))
    return ops


def _address(pointer: str, step: str) -> tuple[str, str]:
    """(what follows the mnemonic's first word, the operand) of a post-increment."""
    dimensions = ".3d" if step.endswith("_3d") else ".2d" if step.startswith("d") else ""
    return dimensions, f"[{pointer}], {step}"


def _units(region: Region, interval: int) -> dict[str, str]:
    """Load units by pointer: b for as many as it has cycles, a, which C needs too, for the rest."""
    p, found, free = region.product, {}, interval
    if p.joint:
        order = sorted([("a0", region.a_loads), ("b0", region.b_loads)], key=lambda pair: -pair[1])
    else:
        accesses, columns = p.accesses(p.b_bytes), 1 if p.weights == "i2" else region.columns
        a, b = [(f"a{i}", 1) for i in range(region.rows)], [(f"b{j}", accesses) for j in range(columns)]
        order = (*b, *a) if p.weights == "i4" else (*a, *b)
    for name, count in order:
        found[name] = "b" if free >= count else "a"
        free -= count if free >= count else 0
    return found


def _tile(region: Region, side: str, i: int, s: int, units, pointers, after) -> Iterator[Op]:
    """The loads of a micro-tile, row i of A or column i of B, and its turn."""
    p = region.product
    tile_bytes, turns, bank, tiles = (
        (p.a_bytes, p.turns_a, A_BANK, region.rows) if side == "a" else (p.b_bytes, p.turns_b, B_BANK, region.columns)
    )
    walk, first = (f"{side}0", s * tiles + i) if p.joint else (f"{side}{i}", s)
    made = "packed" if side == "b" and p.weights == "i2" else f"{side}{i}"
    parts = ("wl", "wh")[: p.accesses(tile_bytes)] if p.vectors.access < 64 else ("x",)
    for h, part in enumerate(parts):
        dimensions, operand = _address(pointers[walk], after[walk][first * len(parts) + h])
        text = f"vld{units[walk]}{dimensions} {part}{{v}}, {operand}"
        if side == "b" and p.weights == "i4" and not p.nibbles:
            text = f"vldb{dimensions}.unpack x{{v}}, {operand}, unpackSign1"
        yield Op(f"{made}{part if h else ''}", (text,), {"v": (f"raw {made}" if turns else made, s)}, s, bank)
    if turns:
        yield _turned(p, made, s, side)


def _turned(p: Product, name: str, s: int, side: str) -> Op:
    text = f"vshuffle x{{t}}, x{{v}}, x{{v}}, {p.shuffle(side)[0]}"
    return Op(f"turn {name}", (text,), {"v": (f"raw {name}", s), "t": (name, s)}, s)


def _b(region: Region, s: int, units, pointers, after) -> Iterator[Op]:
    packed = region.product.weights == "i2"
    for j in range(1 if packed else region.columns):
        yield from _tile(region, "b", j, s, units, pointers, after)
    for j in range(region.columns if packed else 0):
        mask, bias = _mask_registers(j)
        values = {"p": ("packed", s), "u": (f"{'b' if region.is_top(s, j) else 'code'}{j}", s)}
        yield Op(f"mask b{j}", (f"vband x{{u}}, x{{p}}, {mask}",), values, s)
        if region.is_top(s, j):
            continue
        values = {"u": (f"code{j}", s), "b": (f"b{j}", s)}
        yield Op(f"bias b{j}", (f"vsub.8 x{{b}}, x{{u}}, {bias}",), values, s)


def _mask_registers(j: int) -> tuple[str, str]:
    return f"x{_VECTORS - 1 - 2 * j}", f"x{_VECTORS - 2 - 2 * j}"


def _masks(region: Region, first: int) -> Iterator[Op]:
    """Masks of the block's fields; scalar registers hold those of all fields, and turn by as many as a block has."""
    if region.product.weights != "i2":
        return
    for j in range(region.columns):
        (mask, bias), (codes, zeros) = _mask_registers(j), field_registers(j)
        yield Op(f"mask {j}", (f"vbcst.8 {mask}, {codes}",), shown="mask of the field", late=True)
        if not region.is_top(first, j):
            yield Op(f"bias {j}", (f"vbcst.8 {bias}, {zeros}",), shown="its 0", late=True)
        yield Op(f"turn {j} down", (f"lshl r14, {codes}, {TURN_DOWN}",))
        yield Op(f"turn {j} up", (f"lshl r15, {codes}, {TURN_UP}",))
        yield Op(f"turn {j}", (f"or {codes}, r14, r15",), shown="the next field's")
        yield Op(f"zeros {j}", (f"and {zeros}, {codes}, {ONES}",))


TURN_DOWN, TURN_UP, ONES = "r3", "r4", "r5"


def field_registers(j: int) -> tuple[str, str]:
    """Scalar registers with the masks of all fields, and their zeros, the block's in the lowest byte."""
    return f"r{8 + 2 * j}", f"r{9 + 2 * j}"


def _lane(region: Region, number: int, first: int, take: int, pointers, after) -> Iterator[Op]:
    p, (i, j), count = region.product, region.lanes[number], parts_of(region.product)
    place = (first // p.steps * len(region.lanes) + number) * count
    places = range(place, place + count)
    for part, at in enumerate(places):
        yield _c_in(p, region.stages[number], part, _address(pointers["c in"], after["c in"][at]), number)
    for s in range(p.steps):
        values: dict[str, Value] = {"a": (f"a{i}", first + s), "b": (f"b{j}", first + s)}
        yield Op(f"mac {number}", (_mac(region, number, s, take),), values, first + s)
    for part, at in enumerate(places):
        yield _c_out(p, number, region.results[number], part, _address(pointers["c out"], after["c out"][at]))


def _mac(region: Region, number: int, s: int, take: int) -> str:
    """The product of a step: the first starts a sum, the last leaves it where it is stored."""
    name, dot = region.product.vectors.sums, ".f" if region.product.floats else ""
    sums, stage = name(number), name(region.stages[number])
    operands = f"{'x{b}, x{a}' if region.product.swapped else 'x{a}, x{b}'}, {CONF}"
    last = s == region.product.steps - 1
    result = name(region.results[number]) if last else sums
    if s == 0:
        return f"vmac{dot} {result}, {stage}, {operands}" if take == 0 else f"vmul{dot} {result}, {operands}"
    return f"vaddmac {sums}, {stage}, {operands}" if s == take else f"vmac{dot} {result}, {sums}, {operands}"


def _c_in(p: Product, register: int, part: int, address: tuple[str, str], lane: int) -> Op:
    v = p.vectors
    if p.c_bytes == 4:
        text = f"vlda{address[0]} {v.named(v.parts[part], register)}, {address[1]}"
    else:
        (suffix, parts), (up, _, shift) = v.widened[p.c_bytes], v.converts
        text = f"vlda{address[0]}.{up}{suffix} {v.named(parts[part], register)}, {shift}{address[1]}{v.signs[0]}"
    return Op(f"c in {lane}.{part}", (text,), bank=C_BANK, late=True)


def _c_out(p: Product, lane: int, number: int, part: int, address: tuple[str, str]) -> Op:
    v = p.vectors
    if p.c_bytes == 4:
        text = f"vst{address[0]} {v.named(v.parts[part], number)}, {address[1]}"
    else:
        (suffix, parts), (_, down, shift) = v.narrowed[p.c_bytes], v.converts
        text = f"vst{address[0]}.{down}{suffix} {v.named(parts[part], number)}, {shift}{address[1]}{v.signs[1]}"
    return Op(f"c out {lane}.{part}", (text,), bank=C_BANK)
