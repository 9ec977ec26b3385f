"""bfloat16 results of int32 sums, scaled by row and column: the kernel `finish_i32_bf16` of AIE2P.

Sums are taken apart into digits of 7 bits, which the product of block floats with the identity adds up as float32. A
product of float32 is made of bfloat16 parts: each operand is cut into three of 8 bits, and of their nine products all
but the least are summed, the largest apart, so that roundings stay below 2^-22 of the result. Whether a sum that
cancels is +0 or -0 on silicon is not known, so no sum here is ever zero: operands that are 0 become 1 and their results
0 at the end, and a bit far below the last that counts keeps every rest that is cut from being 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bdforge.codegen.errors import CodegenError
from bdforge.codegen.kernels.function import ROUNDINGS, Function, Options

_SIDE = 8  # of a micro-tile
_FIELDS = 4
_PARTS = ("bmll", "bmlh", "bmhl", "bmhh")
_DIGITS = (26, 19, 12, 5, 0)  # shifts of a sum's digits
_FLOATS, _BLOCKS = 0x3C, 0x30C  # confs: bf16 lane by lane, 8 x 8 x 8 of block floats
_BYTES = 0x01010101
_ONE, _DIGIT_ONE = 127, 133  # exponents of blocks whose mantissas 64, or 1, are worth 1
_IDENTITY = tuple((0x40 << 8 * (i // 2 % 4)) if i in (0, 2, 4, 6) else 0 for i in range(8)) + tuple(
    (0x40 << 8 * (i // 2)) if i % 2 else 0 for i in range(8)
)
_SAVED = {f"r{16 + i}": f"dj{i}" for i in range(5)}
"""What callers keep, and where it waits: r16 to r19 become masks of results that are 0, r20 chooses upper halves."""
_UPPER = 0xFF00  # of 16 lanes


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A pass over `rows` x `columns` sums; `scales` rows of all the array's cores come before those of columns."""

    rows: int
    columns: int
    core_rows: int
    scales: int
    fields: int
    transposed: bool
    bias: bool
    relu: bool


def scaled(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes the kernel; CodegenError for a generation or a tile without an assembled one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    fields = _FIELDS if options.has("FIELD_SCALED") else 1
    m, n = options.number("DIM_M"), options.number("DIM_N")
    rows = m // options.parts
    if rows % _SIDE or n % (_SIDE * fields):
        raise CodegenError(f"{name}: rows of a pass, n = {rows}, {n} are no multiples of {_SIDE}, {_SIDE * fields}")
    turned, bias, relu = (options.has(option) for option in ("C_TRANSPOSED", "BIAS", "RELU"))
    return partial(_written, _Scaled(rows, n, m, options.number("ARRAY_ROWS") * m, fields, turned, bias, relu))


def _written(wanted: _Scaled) -> str:
    about = f"finish_i32_bf16: {wanted.rows} x {wanted.columns} sums a call become scaled bfloat16."
    f = Function("finish_i32_bf16", "aie2p", f"{about}\np0 = scales, p1 = C, r0 = row of the core, r1 = part.")
    for register, place in _SAVED.items():
        f.add(f"mov {place}, {register}", "kept for the caller")
    _pointers(f, wanted)
    _constants(f)
    f.loop("r5", wanted.rows // _SIDE, lambda: _row_of_blocks(f, wanted), "rows")
    for register, place in _SAVED.items():
        f.add(f"mov {register}, {place}")
    return f.text()


def _pointers(f: Function, wanted: _Scaled) -> None:
    """p1 sums, p2 results, p3 scales of columns, p4 those of rows, p5 biases; r8 and r9 keep where columns begin."""
    f.set("r2", 4 * wanted.core_rows)
    f.add("mul r0, r0, r2", "scales of the core's rows")
    if wanted.rows < wanted.core_rows:
        f.set("r2", 4 * wanted.rows)
        f.add("mul r2, r1, r2")
        f.add("add r0, r0, r2", "of this part")
        f.set("r2", 4 * wanted.rows * wanted.columns)
        f.add("mul r1, r1, r2")
        f.add("mov m1, r1")
        f.add("padda [p1], m1")
    f.add("mov p4, p0")
    f.add("mov m0, r0")
    f.add("padda [p4], m0", "scales of rows")
    f.add("mov p2, p1", "results")
    f.add("mov p3, p0")
    f.set("m2", 4 * wanted.scales)
    f.add("padda [p3], m2", "scales of columns")
    f.add("mov p5, p3")
    f.set("m3", 4 * wanted.columns)
    f.add("padda [p5], m3", "biases")
    f.add("mov r8, p3")
    f.add("mov r9, p5")


def _constants(f: Function) -> None:
    f.control("crSat", 0)
    f.control("crSRSMode", 0, "lanes of 32 bits")
    f.control("crUPSMode", 0)
    f.set("r0", _FLOATS, "products of floats")
    f.set("r3", _BLOCKS, "products of blocks")
    f.set("r4", 0, "sums of integers")
    f.set("r20", _UPPER)
    f.set("m4", 4 * _SIDE, "eight numbers")
    f.set("r10", 1)
    f.add("vbcst.32 x8, r10", "the last bit")
    f.set("r10", _ONE << 23)
    f.add("vbcst.32 x9, r10", "1.0")
    f.add("vbcst.32 x11, r4")
    for word in _IDENTITY:
        f.set("r10", word)
        f.add("vpush.hi.32 x11, x11, r10", "the identity")
    f.set("r10", _ONE * _BYTES)
    f.add("mov el11, r10")
    f.add("mov eh11, r10")


def _row_of_blocks(f: Function, wanted: _Scaled) -> None:
    f.add("mov p3, r8")
    f.add("mov p5, r9")

    def block() -> None:
        f.set("r12", 0, "exponents of field 0")
        f.loop("r7", wanted.fields, lambda: _micro_tile(f, wanted), "fields")

    f.loop("r6", wanted.columns // _SIDE // wanted.fields, block, "columns")
    f.add("padda [p4], m4", "next rows")


def _micro_tile(f: Function, wanted: _Scaled) -> None:
    f.control("crRnd", ROUNDINGS["positive_inf"], "digits from -64 to 63")
    for i in range(len(_PARTS)):
        f.add(f"vlda x{i}, [p1], #64", "sums", "c")
    for i, part in enumerate(_PARTS):
        f.add(f"veqz.32 r{16 + i}, x{i}", "sums that are 0")
        f.add(f"vsel.32 x{i}, x{i}, x8, r{16 + i}")
        f.add(f"vmov {part}0, x{i}")
    _to_floats(f)
    f.control("crRnd", ROUNDINGS["symmetric_zero"], "cut")
    for pointer, along in (("p3", wanted.transposed), ("p4", not wanted.transposed)):
        _factor(f, pointer, along)
        _times(f)
    _biased(f, wanted)
    f.control("crRnd", ROUNDINGS["conv_even"], "rounding")
    for x, half in (("x6", "cml2"), ("x7", "cmh2")):
        f.add(f"vconv.bf16.fp32 {x}, {half}")
        if wanted.relu:
            f.add(f"vmax_lt.16 {x}, r16, {x}, x0, vaddSign1", "what is below 0, by its bits")
        f.add(f"vst {x}, [p2], #64", "", "c")
    f.set("r10", 2 * _BYTES)
    f.add("add r12, r12, r10", "the next field is scaled by 4 more")
    f.add("padda [p3], m4", "next columns")
    f.add("padda [p5], m4")


def _to_floats(f: Function) -> None:
    """dm2 = dm0 as floats, whose exponents are r12 lower, by digits from the uppermost on."""
    for shift in _DIGITS:
        f.set("r10", shift)
        f.add("mov s0, r10", f"the digit from bit {shift} on")
        f.add("vsrs.4x x10, dm0, s0, srsSign1")
        f.set("r11", (_DIGIT_ONE + shift) * _BYTES)
        f.add("sub r11, r11, r12")
        f.add("mov el10, r11")
        f.add("mov eh10, r11")
        first = shift == _DIGITS[0]
        f.add("vmul.f dm2, ex10, ex11, r3" if first else "vmac.f dm2, dm2, ex10, ex11, r3")
        if shift:
            f.add("vups.4x dm1, x10, s0, upsSign1")
            f.add("vsub dm0, dm0, dm1, r4", "what is left")


def _factor(f: Function, pointer: str, along: bool) -> None:
    """dm3 = eight numbers for every lane, 1 where they are 0."""
    _eight(f, pointer)
    for i, part in enumerate(_PARTS):
        x = _lanes(f, i, along)
        if along or i == 0:
            f.add(f"veqz.32 r27, {x}")
            f.add(f"vsel.32 {x}, {x}, x9, r27")
        f.add(f"or r{16 + i}, r{16 + i}, r27")
        f.add(f"vmov {part}3, {x}")


def _eight(f: Function, pointer: str) -> None:
    f.add(f"vlda wl10, [{pointer}, #0]", "", "scales")
    f.add(f"vlda wh10, [{pointer}, #0]", "", "scales")


def _lanes(f: Function, i: int, along: bool) -> str:
    """The i-th 16 lanes of the eight numbers in x10: each in turn, or `along` lines, one for eight lanes."""
    if not along:
        return "x10"
    f.add(f"vextbcst.32 x0, x10, #{2 * i}")
    f.add(f"vextbcst.32 x1, x10, #{2 * i + 1}")
    f.add("vsel.32 x2, x0, x1, r20")
    return "x2"


def _times(f: Function) -> None:
    """dm2 = dm2 dm3, neither of which is 0."""
    for y in (0, 1, 2):
        _cut(f, 3, y, last=y == 2)
    for part in (0, 1, 2):
        _cut(f, 2, 3, last=part == 2)
        for y in range(3 if part < 2 else 2):
            sums = "dm0" if part == y == 0 else "dm1"
            begun = (part, y) in ((0, 0), (0, 1))
            f.add(f"vmul.f {sums}, y3, y{y}, r0" if begun else f"vmac.f {sums}, {sums}, y3, y{y}, r0")
    f.add("vadd.f dm2, dm0, dm1, r0")


def _cut(f: Function, dm: int, y: int, last: bool) -> None:
    """Take the upper 8 bits of what is left in an accumulator into a register of bfloat16; a rest is never 0."""
    if not last:
        for part in _PARTS:
            f.add(f"vmov x10, {part}{dm}")
            f.add("vbor x10, x10, x8")
            f.add(f"vmov {part}{dm}, x10")
    for x, half in ((2 * y, "cml"), (2 * y + 1, "cmh")):
        f.add(f"vconv.bf16.fp32 x{x}, {half}{dm}")
        if not last:
            f.add(f"vconv.fp32.bf16 {half}4, x{x}")
    if not last:
        f.add(f"vsub.f dm{dm}, dm{dm}, dm4, r0")


def _biased(f: Function, wanted: _Scaled) -> None:
    """Results that are 0, then biases."""
    f.add("vbcst.32 x3, r4")
    for i, part in enumerate(_PARTS):
        f.add(f"vmov x10, {part}2")
        f.add(f"vsel.32 x10, x10, x3, r{16 + i}")
        f.add(f"vmov {part}2, x10")
    if wanted.bias:
        _eight(f, "p5")
        for i, part in enumerate(_PARTS):
            f.add(f"vmov {part}3, {_lanes(f, i, wanted.transposed)}")
        f.add("vadd.f dm2, dm2, dm3, r0")
    f.add("vbcst.32 x0, r4")
