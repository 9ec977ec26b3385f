"""What a block of micro-tiles does, as dataflow: its pointers, loads, unpacking, products and stores."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from bdforge.core.codegen.pipeline.dataflow import DataflowOp, Value
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import FIELDS, VECTOR_REGISTERS, BlockRegion, MatrixProduct

GIVEN = {"a0": "p0", "b0": "p1", "c in": "p2"}
"""Pointers that are a kernel's arguments; others start as copies of them."""

A_BANK, B_BANK, C_BANK = "A", "B", "C"
CONF = "r1"
SAVED = {"a0": "r6", "b0": "r12", "c in": "r13"}
"""Where arguments are kept for regions behind the first."""
ONES_PAIR = VECTOR_REGISTERS // 2 - 1
HALVES, LANES_CONF = ("r2", "r3"), "r4"
"""Of block floats: the modes of VSHUFFLE that turn halves of tiles, and products of lanes."""
TURN_DOWN, TURN_UP, ONES = "r3", "r4", "r5"
"""Shifts that turn masks, and the bit of each field that codes of 0 have."""


def walks(region: BlockRegion) -> dict[str, PointerWalk]:
    """Pointers by operand: `a0`.. rows of A, `b0`.. columns of B, or `b` for packed ones, `c in` and `c out`."""
    p, (top, down), (left, across) = region.product, region.down, region.across
    a_row, column, group = p.steps * p.a_bytes, p.steps * p.b_bytes, region.fields
    found: dict[str, PointerWalk] = {}

    def add(name: str, offsets: Sequence[int], strides: tuple[int, int, int], start: int) -> None:
        turns = region.unrolled
        if p.blocks:
            side = int(across % turns == 0)  # along which blocks take turns
            offsets = [block * strides[side] + at for block in range(turns) for at in offsets]
            loops = [(down, strides[0]), (across, strides[1]), (1, 0)]
            loops[side] = loops[side][0] // turns, loops[side][1] * turns
        else:
            offsets = [block * strides[2] + at for block in range(turns) for at in offsets]
            loops = list(zip((down, across // group, group // turns), strides, strict=True))
        if region.downwards:
            loops = [loops[1], loops[2], loops[0]]
        pointer = GIVEN.get(name) or f"p{len(GIVEN) + sum(other not in GIVEN for other in found)}"
        found[name] = PointerWalk(pointer, tuple(offsets), tuple(loops), start)

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
    part = tile // p.c_accesses
    c_offsets = [i * row + j * tile + q * part for i, j in region.lanes for q in range(p.c_accesses)]
    width = region.columns * tile
    for name in ("c in", "c out"):
        offsets = [*c_offsets, *c_offsets[-1:] * (name == "c out" and _steps_alone(p))]
        add(name, offsets, (region.rows * row, group * width, width), top * row + left * tile)
    return found


def _along_k(p: MatrixProduct, tile_bytes: int, together: int) -> list[int]:
    """Offsets of the micro-tiles of one row of A, or column of B, or of some together, in the order of k."""
    count, step = p.accesses(tile_bytes), min(tile_bytes, p.vectors.access)
    rows = range(0, together * p.steps * tile_bytes, p.steps * tile_bytes)
    return [row + s * tile_bytes + h * step for s in range(p.steps) for row in rows for h in range(count)]


def _steps_alone(p: MatrixProduct) -> bool:
    """Whether C's pointer goes on without a store: what AIE2's stores of floats in 2D and 3D name is not told."""
    return p.floats and p.c_bytes == 2 and not p.blocks


def steppers(region: BlockRegion) -> tuple[Steppers, dict[str, list[str]]]:
    """Registers for steps, and what stands behind each access, by operand."""
    p, found = region.product, walks(region)
    made = Steppers(p.vectors.small, min(p.vectors.access, p.b_bytes))
    return made, dict(zip(found, made.walks(list(found.values())), strict=True))


def block(region: BlockRegion, takes: Sequence[int], interval: int) -> list[DataflowOp]:
    """A block, or all of a pass, in an order that is right; lane i adds what C was in its step `takes[i]`."""
    _, after = steppers(region)
    pointers = {name: walk.pointer for name, walk in walks(region).items()}
    units, ops = _units(region, interval), []
    for first in range(0, region.unrolled * region.product.steps, region.product.steps):
        ops += _masks(region, first)
        for s in range(first, first + region.product.steps):
            tiles = [_tile(region, "a", i, s, units, pointers, after) for i in range(region.rows)]
            columns = _b(region, s, units, pointers, after)
            if region.product.blocks:
                columns = [_tile(region, "b", j, s, units, pointers, after) for j in range(region.columns)]
                pairs = zip_longest(tiles, columns, fillvalue=())
                ops += chain.from_iterable(chain.from_iterable(pairs))
            else:
                ops += (*chain.from_iterable(tiles), *columns)
        for number in range(len(region.lanes)):
            ops += _lane(region, number, first, takes[number], pointers, after)
    if _steps_alone(region.product):
        dimensions, operand = _address(pointers["c out"], after["c out"][-1])
        ops.append(DataflowOp("c out on", (f"padds{dimensions} {operand}",)))
    return ops


def _address(pointer: str, step: str) -> tuple[str, str]:
    """(what follows the mnemonic's first word, the operand) of a post-increment."""
    dimensions = ".3d" if step.endswith("_3d") else ".2d" if step.startswith("d") else ""
    return dimensions, f"[{pointer}], {step}"


def _units(region: BlockRegion, interval: int) -> dict[str, str]:
    """Load units by pointer: b for as many as it has cycles, a, which C needs too, for the rest."""
    p, found, free = region.product, {}, interval
    if p.blocks:
        by_b = region.multiplied("b")
        return {"a0": "a" if by_b else "b", "b0": "b" if by_b else "a"}
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


def _tile(region: BlockRegion, side: str, i: int, s: int, units, pointers, after) -> Iterator[DataflowOp]:
    """The loads of a micro-tile, row i of A or column i of B, and its turn."""
    p = region.product
    tile_bytes, turns, bank, tiles = (
        (p.a_bytes, p.turns_a, A_BANK, region.rows) if side == "a" else (p.b_bytes, p.turns_b, B_BANK, region.columns)
    )
    walk, first = (f"{side}0", s * tiles + i) if p.joint else (f"{side}{i}", s)
    made = "packed" if side == "b" and p.weights == "i2" else f"{side}{i}"
    if p.blocks:
        places = [_address(pointers[walk], after[walk][2 * first + h]) for h in range(2)]
        yield from _block_tile(region, made, side, s, units[walk], places, bank)
        return
    parts = ("wl", "wh")[: p.accesses(tile_bytes)] if p.vectors.access < 64 else ("x",)
    for h, part in enumerate(parts):
        dimensions, operand = _address(pointers[walk], after[walk][first * len(parts) + h])
        text = f"vld{units[walk]}{dimensions} {part}{{v}}, {operand}"
        if side == "b" and p.weights == "i4" and not p.nibbles:
            text = f"vldb{dimensions}.unpack x{{v}}, {operand}, unpackSign1"
        yield DataflowOp(f"{made}{part if h else ''}", (text,), {"v": (f"raw {made}" if turns else made, s)}, s, bank)
    if turns:
        text = f"vshuffle x{{t}}, x{{v}}, x{{v}}, {p.shuffle(side)[0]}"
        yield DataflowOp(f"turn {made}", (text,), {"v": (f"raw {made}", s), "t": (made, s)}, s)


def _block_tile(
    region: BlockRegion, made: str, side: str, s: int, unit: str, places: Sequence[tuple[str, str]], bank: str
) -> Iterator[DataflowOp]:
    """A micro-tile of bfloat16 as block floats."""
    p = region.product
    before = region.rows if side == "b" and region.multiplied("a") else 0
    pair = ONES_PAIR - 1 - (int(made[1:]) + before) % 2
    wide, turns = p.vectors.accumulators - 1, p.turns_a if side == "a" else p.turns_b
    for h, (dimensions, operand) in enumerate(places):
        values: dict[str, Value] = {}
        if not region.multiplied(side):
            text = f"vlda{dimensions}.conv.fp32.bf16 cm{'lh'[h]}{wide}, {operand}"
        elif turns:
            text, values = f"vld{unit}{dimensions} x{{v}}, {operand}", {"v": (f"raw {made}.{h}", s)}
        else:
            text = f"vld{unit}{dimensions} x{2 * pair + h}, {operand}"
        yield DataflowOp(f"{made}.{h}", (text,), values, s, bank)
    for h, mode in enumerate(HALVES if turns else ()):
        values = {"v": (f"raw {made}.0", s), "w": (f"raw {made}.1", s)}
        yield DataflowOp(f"turn {made}.{h}", (f"vshuffle x{2 * pair + h}, x{{v}}, x{{w}}, {mode}",), values, s)
    if region.multiplied(side):
        text = f"vmul.f dm{wide}, y{pair}, y{ONES_PAIR}, {LANES_CONF}"
        yield DataflowOp(f"widen {made}", (text,), step=s)
    yield DataflowOp(f"block {made}", (f"vconv.bfp16ebs8.fp32 ex{{v}}, dm{wide}",), {"v": (made, s)}, s)


def _b(region: BlockRegion, s: int, units, pointers, after) -> Iterator[DataflowOp]:
    packed = region.product.weights == "i2"
    for j in range(1 if packed else region.columns):
        yield from _tile(region, "b", j, s, units, pointers, after)
    for j in range(region.columns if packed else 0):
        mask, bias = _mask_registers(j)
        values = {"p": ("packed", s), "u": (f"{'b' if region.is_top(s, j) else 'code'}{j}", s)}
        yield DataflowOp(f"mask b{j}", (f"vband x{{u}}, x{{p}}, {mask}",), values, s)
        if region.is_top(s, j):
            continue
        values = {"u": (f"code{j}", s), "b": (f"b{j}", s)}
        yield DataflowOp(f"bias b{j}", (f"vsub.8 x{{b}}, x{{u}}, {bias}",), values, s)


def _mask_registers(j: int) -> tuple[str, str]:
    return f"x{VECTOR_REGISTERS - 1 - 2 * j}", f"x{VECTOR_REGISTERS - 2 - 2 * j}"


def _masks(region: BlockRegion, first: int) -> Iterator[DataflowOp]:
    """Masks of the block's fields; scalar registers hold those of all fields, and turn by as many as a block has."""
    if region.product.weights != "i2":
        return
    for j in range(region.columns):
        (mask, bias), (codes, zeros) = _mask_registers(j), field_registers(j)
        yield DataflowOp(f"mask {j}", (f"vbcst.8 {mask}, {codes}",), shown="mask of the field", late=True)
        if not region.is_top(first, j):
            yield DataflowOp(f"bias {j}", (f"vbcst.8 {bias}, {zeros}",), shown="its 0", late=True)
        yield DataflowOp(f"turn {j} down", (f"lshl r14, {codes}, {TURN_DOWN}",))
        yield DataflowOp(f"turn {j} up", (f"lshl r15, {codes}, {TURN_UP}",))
        yield DataflowOp(f"turn {j}", (f"or {codes}, r14, r15",), shown="the next field's")
        yield DataflowOp(f"zeros {j}", (f"and {zeros}, {codes}, {ONES}",))


def field_registers(j: int) -> tuple[str, str]:
    """Scalar registers with the masks of all fields, and their zeros, the block's in the lowest byte."""
    return f"r{8 + 2 * j}", f"r{9 + 2 * j}"


def _lane(region: BlockRegion, number: int, first: int, take: int, pointers, after) -> Iterator[DataflowOp]:
    p, (i, j), count = region.product, region.lanes[number], region.product.c_accesses
    turn = first // p.steps * len(region.lanes)  # accumulators of lanes, where blocks take turns in them
    stage, result = (registers[number] + p.blocks * turn for registers in (region.stages, region.results))
    place = (turn + number) * count
    places = range(place, place + count)
    for part, at in enumerate(places):
        yield _c_access(p, "in", turn + number, stage, part, _address(pointers["c in"], after["c in"][at]))
    for s in range(p.steps):
        values: dict[str, Value] = {"a": (f"a{i}", first + s), "b": (f"b{j}", first + s)}
        yield DataflowOp(f"mac {number}", (_mac(region, number + p.blocks * turn, s, take),), values, first + s)
    for part, at in enumerate(places):
        yield _c_access(p, "out", turn + number, result, part, _address(pointers["c out"], after["c out"][at]))


def _mac(region: BlockRegion, number: int, s: int, take: int) -> str:
    """The product of a step: the first starts a sum, the last leaves it where it is stored."""
    name, dot = region.product.vectors.sums, ".f" if region.product.floats else ""
    file = "ex" if region.product.blocks else "x"
    operands = ", ".join([f"{file}{{{side}}}" for side in ("ba" if region.product.swapped else "ab")] + [CONF])
    if region.product.blocks:
        return f"vmac.f {name(number)}, {name(number)}, {operands}"
    sums, stage = name(number), name(region.stages[number])
    last = s == region.product.steps - 1
    result = name(region.results[number]) if last else sums
    if s == 0:
        return f"vmac{dot} {result}, {stage}, {operands}" if take == 0 else f"vmul{dot} {result}, {operands}"
    return f"vaddmac {sums}, {stage}, {operands}" if s == take else f"vmac{dot} {result}, {sums}, {operands}"


def _c_access(p: MatrixProduct, way: str, lane: int, register: int, part: int, address: tuple[str, str]) -> DataflowOp:
    """A load of C, `in`, as late as it may be, or a store, `out`; narrow elements are converted."""
    v, (dimensions, operand), comes = p.vectors, address, way == "in"
    mnemonic = f"vlda{dimensions}" if comes else f"vst{dimensions}"
    if p.c_bytes == 4:
        text = f"{mnemonic} {v.named(v.parts[part], register)}, {operand}"
    else:
        suffix, parts = (v.widened if comes else v.narrowed)[p.c_bytes]
        up, down, shift = v.converts
        mnemonic += f".{up if comes else down}{suffix}"
        text = f"{mnemonic} {v.named(parts[part], register)}, {shift}{operand}{v.signs[0 if comes else 1]}"
    return DataflowOp(f"c {way} {lane}.{part}", (text,), bank=C_BANK, late=comes)
