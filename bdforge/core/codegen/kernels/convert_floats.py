"""Rows in another type on AIE2P, with the bits of kernels/aie2p/: `quantise_*`, `dequantise_*`, `cast_*`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.float_codes import float_codes
from bdforge.core.codegen.kernels.float_products import scaled_integers
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, LaneBlock, Ops
from bdforge.core.codegen.kernels.row_floats import two_parts
from bdforge.core.codegen.kernels.row_scalars import with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

Parts = Iterator[FunctionPart]
_BYTES_EVEN, _EVEN, _ODD, _ZIP = 0, 2, 3, (18, 19)  # VSHUFFLE modes
_SIGN, _KEPT, _HIGH, _LOW, _OVER = "x7", "x8", "x9", "x10", "x11"  # of codes
_FACTORS, LARGEST, _SIZE = ("x8", "x9", "x10"), "x10", "x11"  # of numbers
_LEAST = 27 << 7  # bits of 2^-100 in bfloat16


def convert(name: str, generation: str, options: Options) -> Maker:
    """What writes a kernel; CodegenError for a name, a generation or a width without one."""
    known = _FLOAT_PARTS if options.number("Y_F32", 0) else _PARTS
    if generation != "aie2p" or name not in known:
        raise CodegenError(f"{name} is not assembled for {generation}; for aie2p there is {', '.join(known)}")
    return partial(_written, name, known[name], elements_of(name, options), options.hardware_loops)


def elements_of(name: str, options: Options) -> int:
    """Of a row, or of a chunk of one; CodegenError for what are no whole vectors of codes."""
    width = options.number("TILE_ELEMENTS", 0)
    if width < 1 or width % (2 * LANES):
        raise CodegenError(f"{name}: {width} elements are no multiple of {2 * LANES}")
    return width


def _written(name: str, parts: Callable[[int], Parts], width: int, hardware: bool) -> AssemblyKernel:
    about = f"{name}: a row of {width} elements; operands in p0 and on: {{cycles}} cycles (exact)."
    return function(name, "aie2p", list(parts(width)), about, hardware=hardware)


def rounded() -> list[AssemblyOp]:
    """How products and codes are rounded, and r0 of floats."""
    return [*set_control("crRnd", ROUNDINGS["conv_even"]), set_register("r0", FLOAT_CONF)]


def _widened(width: int) -> Parts:
    """Lanes of 16 bits above as many of 0."""
    setup = [set_register(f"r{1 + i}", mode) for i, mode in enumerate(_ZIP)]
    setup += [set_register("r3", 0), AssemblyOp("vbcst.16 x11, r3")]
    ops = [named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0")]
    for i in range(2):
        ops += [
            named_op(f"vshuffle x{{y{i}}}, x11, x{{x}}, r{1 + i}"),
            named_op(f"vst x{{y{i}}}, [p1], #{VECTOR_BYTES}", "p1"),
        ]
    yield repeated("aie2p", setup, ops, width // LANES, {"x": range(11)})


def _narrowed(width: int) -> Parts:
    ops = [named_op(f"vlda bm{half}{{x}}, [p0], #{VECTOR_BYTES}", "p0", half) for half in ("ll", "lh")]
    ops += [named_op(f"vst.conv.bf16.fp32 cml{{x}}, [p1], #{VECTOR_BYTES}", "p1")]
    yield repeated("aie2p", rounded(), ops, width // LANES, {"dm": range(5)})


def _codes_setup(pointer: str) -> Iterator[AssemblyOp]:
    """1, the bits of 128, and of signs, in registers, and 128 in lanes."""
    yield from (*rounded(), *set_control("crUnpackSize", 1))
    yield from (set_register(r, value) for r, value in {"r1": 1, "r2": 0x4300, "r3": 0x8000, "r4": 0}.items())
    yield AssemblyOp(f"vbcst.16 {_OVER}, r2")
    yield AssemblyOp(f"mov p4, {pointer}")


def _number(b: LaneBlock, factors: tuple[str, ...]) -> Ops:
    """128 + max(|c|, 1) times factors, less 128 times them; with the sign of c, or 0 where it is."""
    yield b.op("vldb.unpack x{c}, [p0], #32, unpackSign1", "p0")
    yield b.op("vabs_gtz.16 x{size}, r16, x{c}, vaddSign1")
    yield from (b.constant("one", "r1"), b.op("vmax_lt.16 x{least}, r16, x{size}, x{one}, vaddSign1"))
    yield b.op(f"vadd.16 x{{above}}, x{{least}}, {_OVER}")
    last = ""
    for i, (value, start) in enumerate((v, s) for v in ("x{above}", _OVER) for s in factors):
        way = "vmul.f" if not i else "vmac.f" if value != _OVER else "vmsc.f"
        yield b.op(f"{way} dm{{t{i}}}, {last}{value}, {start}, r0")
        last = f"dm{{t{i}}}, "
    yield b.op(f"vconv.bf16.fp32 x{{found}}, cml{{t{2 * len(factors) - 1}}}")
    yield from (b.constant("top", "r3"), b.op("vband x{sign}, x{c}, x{top}"), b.op("vbor x{y}, x{found}, x{sign}"))
    yield from (b.constant("none", "r4"), b.op("veqz.16 r27, x{c}"), b.op("vsel.16 x{kept}, x{y}, x{none}, r27"))


def _cast_codes(width: int) -> Parts:
    b = LaneBlock()
    setup = [*kept_mask(), *_codes_setup("p1"), set_register("r5", 0x3F80), AssemblyOp(f"vbcst.16 {_HIGH}, r5")]
    ops = [*_number(b, (_HIGH,)), b.op(f"vst x{{kept}}, [p4], #{VECTOR_BYTES}", "p1")]
    yield repeated("aie2p", setup, ops, width // LANES, {"x": range(9), "dm": range(5)})
    yield mask_back()


def kept_mask() -> list[AssemblyOp]:
    """Puts away r16, which callers want kept."""
    return [AssemblyOp("mov el0, r16", "kept for the caller")]


def mask_back() -> FunctionPart:
    """Gives it back."""
    return repeated("aie2p", [], [named_op("mov r16, el0")], 1)


def _scaled_codes(width: int) -> Parts:
    b = LaneBlock()
    setup = [*kept_mask(), AssemblyOp("lda r1, [p1, #0]"), *_scale_parts(), *_codes_setup("p2")]
    ops = [*_number(b, (_HIGH, _LOW)), b.op(f"vadd.16 x{{signed}}, x{{kept}}, {_SIGN}")]
    ops += [b.op(f"vband x{{stored}}, x{{signed}}, {_KEPT}")]
    ops += [b.op(f"vst x{{stored}}, [p4], #{VECTOR_BYTES}", "p2")]
    yield repeated("aie2p", setup, ops, width // LANES, {"x": range(7), "dm": range(5)})
    yield mask_back()


def _scale_parts() -> Iterator[AssemblyOp]:
    """The two parts of the scale whose bits are in r1, its sign, and a mask of nothing where it counts as 0."""
    yield from (*with_constant("lshl", "r2", "r1", -31), *with_constant("lshl", "r2", "r2", 15))
    yield from (AssemblyOp(f"vbcst.16 {_SIGN}, r2"), *with_constant("and", "r1", "r1", 0x7FFFFFFF))
    yield from with_constant("lshl", "r9", "r1", -9)
    yield from with_constant("and", "r9", "r9", 0x3FFF)
    yield from with_constant("or", "r9", "r9", 0x4000)
    yield from (*with_constant("ltu", "r2", "r1", _LEAST << 16), *with_constant("mul", "r3", "r2", 100))
    yield from (*with_constant("add", "r2", "r2", -1), AssemblyOp(f"vbcst.16 {_KEPT}, r2"))
    yield from (*with_constant("lshl", "r5", "r1", -23), AssemblyOp("and r5, r5, r2"), AssemblyOp("add r5, r5, r3"))
    yield from (*with_constant("sub", "r5", "r5", 126, reverse=True), *two_parts())
    yield from (AssemblyOp(f"vbcst.16 {_HIGH}, r13"), AssemblyOp(f"vbcst.16 {_LOW}, r15"))


def _quantised(width: int) -> Parts:
    yield largest_numbers(width)
    yield codes_of_numbers(width)
    yield mask_back()


def largest_numbers(width: int, setup: Iterable[AssemblyOp] = (), kept: Iterable[AssemblyOp] = ()) -> FunctionPart:
    """The largest magnitudes of p0's numbers in x10, p0 once more in p3; `kept` may bring earlier ones."""
    setup = [
        *setup, *kept_mask(), AssemblyOp("mov p3, p0", "x once more"),
        set_register("r1", 0x7FFF), set_register("r2", 0), AssemblyOp(f"vbcst.16 {_SIZE}, r1"),
        AssemblyOp(f"vbcst.16 {LARGEST}, r2"), *rounded(), *kept,
    ]  # fmt: skip
    ops = [
        named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0"),
        named_op(f"vband x{{size}}, x{{x}}, {_SIZE}"),
        named_op(f"vmax_lt.16 {LARGEST}, r16, {LARGEST}, x{{size}}, vaddSign1"),
    ]
    return repeated("aie2p", setup, ops, width // LANES, {"x": range(10)})


def codes_of_numbers(width: int, setup: Iterable[AssemblyOp] = ()) -> FunctionPart:
    """Codes of p3's numbers to p1, their scale to p2, of the largest magnitudes in x10, which `setup` may bring."""
    b = LaneBlock()
    codes = [op for half in "ab" for op in _code(b, half)]
    codes += [b.op("vshuffle x{codes}, x{qa}, x{qb}, r9"), b.op("vband x{y}, x{codes}, x7")]
    codes += [b.op(f"vst x{{y}}, [p1], #{VECTOR_BYTES}", "p1")]
    before = [*setup, *_largest_lane(), *_scale(), *_factor(), *_code_constants()]
    return repeated("aie2p", before, codes, width // LANES // 2, {"x": range(5), "dm": range(4)})


def _code(b: LaneBlock, half: str) -> Ops:
    """Codes in the lower 16 bits of floats from 1.5 * 2^23 on."""
    yield b.op(f"vlda x{{x{half}}}, [p3], #{VECTOR_BYTES}", "p0")
    last = "dm4"
    for i, factor in enumerate(reversed(_FACTORS)):
        yield b.op(f"vmac.f dm{{t{i}{half}}}, {last}, x{{x{half}}}, {factor}, r0")
        last = f"dm{{t{i}{half}}}"
    yield b.op(f"vmac.f dm{{r{half}}}, {last}, x11, x6, r0")
    yield from b.words(f"w{half}", f"r{half}")
    yield b.op(f"vshuffle x{{q{half}}}, x{{w{half}0}}, x{{w{half}1}}, r10")


def _largest_lane() -> Iterator[AssemblyOp]:
    """r1: the largest lane; r2: all bits where it is 2^-100 at least, r3: it, or 2^-100."""
    yield from (set_register("r2", _EVEN), set_register("r3", _ODD))
    for _ in range(LANES.bit_length() - 1):
        yield from (AssemblyOp(f"vshuffle x{i}, {LARGEST}, {LARGEST}, r{2 + i}") for i in range(2))
        yield AssemblyOp(f"vmax_lt.16 {LARGEST}, r16, x0, x1, vaddSign1")
    yield AssemblyOp(f"vextract.16 r1, {LARGEST}, #0, vaddSign1")
    yield from (*with_constant("ltu", "r2", "r1", _LEAST), *with_constant("add", "r2", "r2", -1))
    yield from (*with_constant("sub", "r3", "r1", _LEAST), AssemblyOp("and r3, r3, r2"))
    yield from with_constant("add", "r3", "r3", _LEAST)


def _scale() -> Iterator[AssemblyOp]:
    """The scale to p2; r4, r5 stay the mantissa and the exponent of r3."""
    yield from (*with_constant("and", "r4", "r3", 127), *with_constant("or", "r4", "r4", 128))
    yield from with_constant("lshl", "r5", "r3", -7)
    yield from (*with_constant("mul", "r8", "r4", 0x204081), *with_constant("add", "r8", "r8", 1))
    yield from (*with_constant("lshl", "r9", "r8", -29), *with_constant("sub", "r10", "r9", -4, reverse=True))
    yield from (AssemblyOp("lshl r11, r8, r10"), *with_constant("and", "r11", "r11", 1))
    yield from (
        *with_constant("add", "r10", "r10", -1),
        AssemblyOp("lshl r12, r8, r10"),
        AssemblyOp("add r11, r11, r12"),
    )
    yield from (
        *with_constant("add", "r9", "r9", -8),
        AssemblyOp("add r9, r9, r5"),
        *with_constant("lshl", "r9", "r9", 23),
    )
    yield from (AssemblyOp("add r9, r9, r11"), AssemblyOp("and r9, r9, r2"), AssemblyOp("st r9, [p2, #0]"))


def _factor() -> Iterator[AssemblyOp]:
    """127 over the mantissa in 22 bits, bit by bit, and its three parts in lanes."""
    yield from (set_register("r8", 0), set_register("r9", 127), set_register("r6", -1))
    for _ in range(22):
        yield from (AssemblyOp("add r9, r9, r9"), AssemblyOp("add r8, r8, r8"), AssemblyOp("ltu r10, r9, r4"))
        yield from (AssemblyOp("add r10, r10, r6"), AssemblyOp("and r11, r4, r10"))
        yield from (AssemblyOp("sub r9, r9, r11"), AssemblyOp("sub r8, r8, r10"))
    for x, shift, mask, more, exponent in zip(
        _FACTORS, (-14, -7, 0), (0x3FFF, 127, 127), (-1, 127, 128), (260, 253, 246), strict=True
    ):
        yield from (*with_constant("lshl", "r10", "r8", shift), *with_constant("and", "r10", "r10", mask))
        yield from (*with_constant("add", "r10", "r10", more), *with_constant("ltu", "r11", "r10", 128))
        yield from (*with_constant("sub", "r12", "r5", exponent, reverse=True), AssemblyOp("sub r12, r12, r11"))
        yield from (AssemblyOp("lshl r10, r10, r11"), *with_constant("and", "r10", "r10", 127))
        yield from (*with_constant("lshl", "r12", "r12", 7), AssemblyOp("or r12, r12, r10"))
        yield AssemblyOp(f"vbcst.16 {x}, r12")


def _code_constants() -> Iterator[AssemblyOp]:
    """Sums' start, 1.5 * 2^23, 1.0, and what is kept of codes."""
    yield AssemblyOp("vbcst.8 x7, r2")
    yield from (set_register("r3", _LEAST << 16), AssemblyOp("vbcst.32 x0, r3"))
    yield from (AssemblyOp(f"vmov bml{half}4, x0") for half in "lh")
    yield from (set_register("r3", 0x4B40), AssemblyOp("vbcst.16 x11, r3"))
    yield from (set_register("r3", 0x3F80), AssemblyOp("vbcst.16 x6, r3"))
    yield from (set_register("r9", _BYTES_EVEN), set_register("r10", _EVEN))


_PARTS: Mapping[str, Callable[[int], Parts]] = {
    "quantise_bf16": _quantised, "quantise_f32": float_codes,
    "dequantise_i8": _scaled_codes, "dequantise_i32": scaled_integers,
    "cast_i8_bf16": _cast_codes, "cast_bf16_f32": _widened, "cast_f32_bf16": _narrowed,
}  # fmt: skip
_FLOAT_PARTS = {"dequantise_i32": partial(scaled_integers, floats=True)}
"""Those whose results may be float32."""
CONVERSIONS = tuple(_PARTS)
"""Names of kernels."""
