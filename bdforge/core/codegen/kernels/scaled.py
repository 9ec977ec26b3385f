"""bfloat16 results of int32 sums, scaled by row and column: the kernel `finish_i32_bf16` of AIE2P.

Three passes over the tile, in place, for a core has one rounding mode at a time:

1. Sums are taken apart into digits of 7 bits, which products of block floats with the identity add up as float32.
2. Two products of float32, in bfloat16 parts: an operand is cut into three of 8 bits, which are all of it.
3. Biases, and rounding to bfloat16.

Parts are below 1, 2^-7 and 2^-15 of their operand, so the two products of parts that are left out are below 2^-22 and
2^-30 of the result; the largest is summed apart from the others, so that three roundings of 2^-24 count in all. Where a
bias makes results much smaller than that, it is as large as the product, and the contract's bound twice that of each.

Whether a sum that cancels is +0 or -0 on silicon is not known, so no sum here is ever zero. A part is cut from a number
that was made 2 units of its last place smaller, so that the rest never vanishes and has its sign. Scales that are 0
become 1, sums that are 0 become 2^-30, and their results 0 at the end.

Slots bound the passes over 8 x 8 sums: 9 cycles by stores in the first, 47 by moves in the second, where the multiplier
has 32 (four cuts of 4, two products of 8), 6 by the bank of C in the third. Registers, not slots, make the second
longer: a product holds up to four pairs of vectors for as long as the parts of its operands take, one after the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.digits import (
    BLOCKS,
    BYTES,
    IDENTITIES,
    PARTS,
    SHIFTS,
    SIDE,
    cut,
    digits_setup,
    whole_tiles,
)
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

_INTEGERS = 0x318
"""Confs: bf16 lane by lane, int16 of which two products make 32 bits."""
_ONE, _TINY = 127 << 23, 97 << 23  # 1.0, and 2^-30: nothing beside a sum that is not 0
_SAVED = {f"r{16 + i}": f"e{'lh'[i % 2]}{5 + i // 2}" for i in range(6)}
"""What callers keep, and where it waits: r16 to r21 become masks of results that are 0."""
_LOW, _HIGH = 16, 17  # VSHUFFLE modes T32_2x16: two vectors' lanes in turn, lower and upper halves of it
_FREE = {"x": (1, 2, 3), "y": (2, 3, 4, 5), "dm": (0, 1, 2, 3, 4)}
GIVEN = "p0 = scales, p1 = C, r0 = row of the core, r1 = part."
"""Arguments of a kernel that scales."""
_C, _SCALES = "C", "scales"


@dataclass(frozen=True, slots=True)
class Scaled:
    """A pass over `rows` x `columns` sums; `scales` rows of all the array's cores come before those of columns."""

    rows: int
    columns: int
    core_rows: int
    scales: int
    fields: int
    transposed: bool
    bias: bool
    relu: bool

    @property
    def tiles(self) -> int:
        """Micro-tiles of a call."""
        return self.rows * self.columns // SIDE**2


def scaled(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a tile without an assembled one."""
    return partial(_written, scaled_pass(name, generation, options))


def scaled_pass(name: str, generation: str, options: Options) -> Scaled:
    """The pass that a kernel's options mean; CodegenError as of `scaled`."""
    rows, columns, fields = whole_tiles(name, generation, options)
    m, scales = options.number("DIM_M"), options.number("ARRAY_ROWS") * options.number("DIM_M")
    turned, bias, relu = (options.has(option) for option in ("C_TRANSPOSED", "BIAS", "RELU"))
    return Scaled(rows, columns, m, scales, fields, turned, bias, relu)


def _written(wanted: Scaled) -> AssemblyKernel:
    about = f"finish_i32_bf16: {wanted.rows} x {wanted.columns} sums a call become scaled bfloat16"
    return function("finish_i32_bf16", "aie2p", scaled_parts(wanted), f"{about}: {{cycles}} cycles (exact).", GIVEN)


def scaled_parts(wanted: Scaled) -> list[FunctionPart]:
    """The three passes, as a function with arguments as `GIVEN`; p7 points at the results then."""
    floats = _to_floats(wanted.tiles, wanted.fields, [*_arguments(wanted), AssemblyOp("mov p1, p7")])
    restored = [named_op(f"mov {register}, {place}") for register, place in _SAVED.items()]
    return [floats, _scaled(wanted), _rounded(wanted), repeated("aie2p", [], restored, 1)]


def _arguments(wanted: Scaled) -> Iterator[AssemblyOp]:
    """p7 = sums of this part, p6 = scales of its rows."""
    yield from (AssemblyOp(f"mov {place}, {register}", "kept for the caller") for register, place in _SAVED.items())
    yield set_register("r2", 4 * wanted.core_rows)
    yield AssemblyOp("mul r0, r0, r2", "scales of the core's rows")
    yield AssemblyOp("mov p7, p1")
    if wanted.rows < wanted.core_rows:
        yield set_register("r2", 4 * wanted.rows)
        yield AssemblyOp("mul r2, r1, r2")
        yield AssemblyOp("add r0, r0, r2", "of this part")
        yield set_register("r2", 4 * wanted.rows * wanted.columns)
        yield AssemblyOp("mul r1, r1, r2")
        yield AssemblyOp("mov m1, r1")
        yield AssemblyOp("padda [p7], m1")
    yield AssemblyOp("mov p6, p0")
    yield AssemblyOp("mov m0, r0")
    yield AssemblyOp("padda [p6], m0", "scales of rows")


def _to_floats(tiles: int, fields: int, setup: list[AssemblyOp]) -> FunctionPart:
    """A first pass: sums in p1, which `setup` sets, become floats in their places, and those that are 0 2^-30."""
    setup = [*setup, AssemblyOp("mov p2, p1")]
    setup += [*set_control("crRnd", ROUNDINGS["floor"]), *digits_setup(fields)]
    setup += [set_register("r10", _TINY), AssemblyOp("vbcst.32 x6, r10")]
    setup += [AssemblyOp(f"vmov {part}4, x6") for part in PARTS]
    group = next(group for group in (4, 2, 1) if tiles % group == 0)
    ops = [op for tile in range(group) for op in _digits(tile, IDENTITIES + tile % fields)]
    return repeated("aie2p", setup, ops, tiles // group, {"dm": (0, 1, 2, 3)})


def _digits(tile: int, identity: int) -> Iterator[DataflowOp]:
    """A micro-tile's floats: digits summed from the uppermost on, so that no sum of some is 0."""
    sums, floats = f"{{sums{tile}}}", "4"
    for part in PARTS:
        yield named_op(f"vlda {part}{sums}, [p1], #64", _C)
    yield from (named_op(text) for i in range(len(SHIFTS)) for text in cut(i, sums, i, i))
    for i in range(len(SHIFTS)):
        before, floats = floats, f"{{floats{tile}{i}}}"
        yield named_op(f"vmac.f dm{floats}, dm{before}, ex{i}, ex{identity}, {BLOCKS}")
    for part in PARTS:
        yield named_op(f"vst {part}{floats}, [p2], #64", _C)


def _scaled(wanted: Scaled) -> FunctionPart:
    """The second pass: floats in p1, again in p5, times scales become floats in p2."""
    across = wanted.columns // SIDE - 1
    setup = [AssemblyOp(f"mov {pointer}, p7") for pointer in ("p1", "p2", "p5")]
    setup += [
        AssemblyOp("mov p3, p0"),
        set_register("m2", 4 * wanted.scales),
        AssemblyOp("padda [p3], m2", "scales of columns"),
    ]
    setup += [AssemblyOp("mov p4, p6"), *set_control("crRnd", ROUNDINGS["symmetric_floor"], "cut")]
    setup += [*_walk(0, across, 4 * SIDE, -4 * SIDE * across), *_walk(1, across, 0, 4 * SIDE)]
    setup += [set_register("r0", FLOAT_CONF), set_register("r4", _INTEGERS), set_register("r10", 1)]
    setup += [AssemblyOp("vbcst.16 x0, r10"), set_register("r5", _LOW), set_register("r6", _HIGH)]
    setup += [set_register("r13", _ONE), set_register("r14", 0)]
    masks = {"r1": 15, "r2": 0x204081, "r3": BYTES, "r8": 0xFF, "r9": -4, "r10": -16}
    setup += [set_register(register, value) for register, value in masks.items()]
    return replace(_products(wanted.transposed), setup=setup, times=wanted.tiles)


@cache
def _products(transposed: bool) -> FunctionPart:
    """The second pass over one micro-tile: what it does is the same for all sizes."""
    columns, rows = ("p3", "d0"), ("p4", "d1")
    minor, major = (rows, columns) if transposed else (columns, rows)
    ops = [named_op(f"vlda {part}{{t}}, [p1], #64", _C) for part in PARTS]
    ops += [*_minor("c", *minor), *_cut("t"), *_cut("c"), *_product("t", "c", "s")]
    ops += [*_major("r", *major), *_cut("s"), *_cut("r"), *_product("s", "r", "u"), *_zeroed()]
    return repeated("aie2p", [], ops, 1, _FREE, list(_order()))


def _walk(unit: int, count: int, step: int, last: int) -> list[AssemblyOp]:
    """A pointer's steps: `count` times one, then another."""
    values = {"m": last, "dj": step, "dn": count, "dc": 0}
    return [set_register(f"{register}{unit}", value) for register, value in values.items()]


def _eight(name: str, pointer: str, step: str) -> Iterator[DataflowOp]:
    """Eight numbers, twice."""
    yield named_op(f"vlda wl{{{name}}}, [{pointer}, #0]", _SCALES)
    yield named_op(f"vldb.2d wh{{{name}}}, [{pointer}], {step}", _SCALES)


def _minor(name: str, pointer: str, step: str) -> Iterator[DataflowOp]:
    """Factors of lanes in turn, 1 where they are 0; r12 = lanes of 16 where they are."""
    yield from _fixed(name, pointer, step, "r20")
    yield named_op("or r12, r20, r20")
    yield from (named_op(f"vmov {part}{{{name}}}, x{{{name}not}}") for part in PARTS)


def _major(name: str, pointer: str, step: str) -> Iterator[DataflowOp]:
    """Factors of lines of eight lanes, 1 where they are 0; r21 and r11 = lanes of each half where they are."""
    yield from _fixed(name, pointer, step, "r27")
    yield named_op("lshl r11, r27, r9")
    for half in ("r21", "r11"):
        for text in (
            f"and {half}, {'r27' if half == 'r21' else half}, r1",
            f"mul {half}, {half}, r2",
            f"and {half}, {half}, r3",
            f"mul {half}, {half}, r8",
        ):
            yield named_op(text)
    yield from _lines(name, f"{name}not")


def _fixed(name: str, pointer: str, step: str, mask: str) -> Iterator[DataflowOp]:
    """Eight numbers, twice, 1 where they are 0, and a mask of these."""
    yield from _eight(f"{name}raw", pointer, step)
    yield named_op(f"veqz.32 {mask}, x{{{name}raw}}")
    yield named_op(f"vbcst.32 x{{{name}one}}, r13")
    yield named_op(f"vsel.32 x{{{name}not}}, x{{{name}raw}}, x{{{name}one}}, {mask}")


def _lines(name: str, eight: str) -> Iterator[DataflowOp]:
    """Each of eight numbers in eight lanes."""
    yield named_op(f"vshuffle x{{{name}pair}}, x{{{eight}}}, x{{{eight}}}, r5")
    for i, part in enumerate(PARTS):
        four = f"x{{{name}four{i // 2}}}"
        if i % 2 == 0:
            yield named_op(f"vshuffle {four}, x{{{name}pair}}, x{{{name}pair}}, r{5 + i // 2}")
        yield named_op(f"vshuffle {part}{{{name}}}, {four}, {four}, r{5 + i % 2}")


def _cut(name: str) -> Iterator[DataflowOp]:
    """An accumulator's three parts of bfloat16, {name}1 to {name}3."""
    rest = name
    for i in (1, 2):
        less, part, wide, left = f"{name}less{i}", f"{name}{i}", f"{name}wide{i}", f"{name}left{i}"
        yield named_op(f"vmsc dm{{{less}}}, dm{{{rest}}}, x0, x0, r4")
        for half in (0, 1):
            yield named_op(f"vconv.bf16.fp32 x{{{part}.{half}}}, cm{'lh'[half]}{{{less}}}")
        for half in (0, 1):
            yield named_op(f"vconv.fp32.bf16 cm{'lh'[half]}{{{wide}}}, x{{{part}.{half}}}")
        yield named_op(f"vsub.f dm{{{left}}}, dm{{{rest}}}, dm{{{wide}}}, r0")
        rest = left
    for half in (0, 1):
        yield named_op(f"vconv.bf16.fp32 x{{{name}3.{half}}}, cm{'lh'[half]}{{{rest}}}")


def _product(one: str, other: str, result: str) -> Iterator[DataflowOp]:
    """result = one x other: the product of the greatest parts, and all the others but the least."""
    yield named_op(f"vmul.f dm{{{result}most}}, y{{{one}1}}, y{{{other}1}}, r0")
    sums = ""
    for i, j in ((1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 1)):
        following = f"{result}sum{i}{j}"
        operands = f"y{{{one}{i}}}, y{{{other}{j}}}, r0"
        start = f"vmac.f dm{{{following}}}, dm{{{sums}}}" if sums else f"vmul.f dm{{{following}}}"
        yield named_op(f"{start}, {operands}")
        sums = following
    yield named_op(f"vadd.f dm{{{result}}}, dm{{{result}most}}, dm{{{sums}}}, r0")


def _zeroed() -> Iterator[DataflowOp]:
    """Results, 0 where a sum was below 1 or a scale 0."""
    yield named_op("vbcst.32 x{one}, r13")
    for i in range(len(PARTS)):
        mask = f"r{16 + i}"
        yield named_op(f"vldb x{{sum{i}}}, [p5], #64", _C)
        yield named_op(f"vlt.32 {mask}, x{{sum{i}}}, x{{one}}, vaddSign0")
        yield named_op(f"or {mask}, {mask}, r12")
        half = ("r21", "r11")[i // 2]
        if i % 2:
            yield named_op(f"lshl r15, {half}, r10")
        yield named_op(f"or {mask}, {mask}, {'r15' if i % 2 else half}")
    yield named_op("vbcst.32 x{zero}, r14")
    for i, part in enumerate(PARTS):
        yield named_op(f"vmov x{{u{i}}}, {part}{{u}}")
        yield named_op(f"vsel.32 x{{done{i}}}, x{{u{i}}}, x{{zero}}, r{16 + i}")
        yield named_op(f"vst x{{done{i}}}, [p2], #64", _C)


def _order() -> Iterator[tuple[str, str]]:
    """Values that come one after the other, as there are registers for few."""
    yield "vlt.32 r19, x{sum3}, x{one}, vaddSign0", "vbcst.32 x{zero}, r14"
    for i in range(3):
        yield (
            f"vlt.32 r{16 + i}, x{{sum{i}}}, x{{one}}, vaddSign0",
            f"vlt.32 r{17 + i}, x{{sum{i + 1}}}, x{{one}}, vaddSign0",
        )
        yield f"vst x{{done{i}}}, [p2], #64", f"vmov x{{u{i + 1}}}, {PARTS[i + 1]}{{u}}"


def _rounded(wanted: Scaled) -> FunctionPart:
    """The third pass: floats in p1 become bfloat16 in p2."""
    across = wanted.columns // SIDE - 1
    setup = [
        AssemblyOp("mov p1, p7"),
        AssemblyOp("mov p2, p7"),
        *set_control("crRnd", ROUNDINGS["conv_even"], "rounding"),
    ]
    ops = [named_op(f"vlda {part}{{f}}, [p1], #64", _C) for part in PARTS]
    if wanted.bias:
        setup += [
            AssemblyOp("mov p3, p0"),
            set_register("m2", 4 * (wanted.scales + wanted.columns)),
            AssemblyOp("padda [p3], m2"),
        ]
        setup += _walk(0, across, 4 * SIDE, -4 * SIDE * across)
        ops += [*_eight("raw", "p3", "d0"), *_biases(wanted)]
        ops.append(named_op("vadd.f dm{sum}, dm{f}, dm{bias}, r0"))
    result = "sum" if wanted.bias else "f"
    for half in "lh":
        if wanted.relu:
            ops.append(named_op(f"vconv.bf16.fp32 x{{{half}}}, cm{half}{{{result}}}"))
            ops.append(named_op(f"vmax_lt.16 x{{{half}max}}, r16, x{{{half}}}, x0, vaddSign1"))
            ops.append(named_op(f"vst x{{{half}max}}, [p2], #64", _C))
        else:
            ops.append(named_op(f"vst.conv.bf16.fp32 cm{half}{{{result}}}, [p2], #64", _C))
    setup.append(AssemblyOp("vbcst.32 x0, r14"))
    return repeated("aie2p", setup, ops, wanted.tiles, _FREE)


def _biases(wanted: Scaled) -> Iterator[DataflowOp]:
    if wanted.transposed:
        return _lines("bias", "raw")
    return (named_op(f"vmov {part}{{bias}}, x{{raw}}") for part in PARTS)
