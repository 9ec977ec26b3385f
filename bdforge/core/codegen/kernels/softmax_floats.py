"""Softmax of rows of bfloat16 on AIE2P: `softmax_bf16`, with the bits of `kernels/aie2p/softmax_bf16.cc`.

Three passes over the row: its largest number; powers of two, stored and summed; their scaling by the sum's inverse. The
second pass loads the row twice, for what tells the largest numbers is wanted at a block's start and at its end.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import e, frexp, log2

import numpy as np

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, LaneBlock, Ops, lane_setup, restored
from bdforge.core.codegen.kernels.row_floats import first_lane, row_elements, sum_of_lanes, two_parts
from bdforge.core.codegen.kernels.row_scalars import with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_register

NAME = "softmax_bf16"
_WIDEST, _FACTORS = 32768, (1e-6, 1e6)
_LARGEST, _MAXIMA, _START, _WIDE_LARGEST, _SUMS = "x10", "x9", "dm4", "dm3", "dm2"
_HIGH, _LOW, _NONE, _LIMIT = "x8", "x9", "x10", "x11"  # of the last pass
_FREE = {"x": range(10), "dm": range(2)}
_LAST_FREE = {"x": range(8), "dm": range(5)}
_CONSTANTS = {
    "r4": 0xF180, "r5": 0xF200, "r10": 0x3F80, "r18": 0x7F00, "r21": 0x8000, "r23": 0x2000, "r24": 0x45A, "r28": 0,
}  # fmt: skip
"""-2^100, -2^101, 1.0, 127 times 256, -0, the least that is kept, products of uint16 after a shift, and 0. r6, r8, r9,
r19 depend on the factor: 2^point, the most of an upper half, the multiplier, the upper half of 2^point."""


def softmax(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation, a width or a factor without one."""
    width, factor = softmax_row(name, generation, options)
    return partial(_written, width, factor, options.hardware_loops)


def softmax_row(name: str, generation: str, options: Options) -> tuple[int, float]:
    """Elements of a call, and the factor; CodegenError as of `softmax`."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    _, elements = row_elements(name, options, _WIDEST)
    text = options.given.get("FACTOR", "").rstrip("fF")
    try:
        factor = float(np.float32(text))
    except ValueError:
        raise CodegenError(f"{name}: FACTOR={text!r} is no number; give one such as 0.125F") from None
    least, most = _FACTORS
    if not np.float32(least) <= factor <= np.float32(most):
        raise CodegenError(f"{name}: FACTOR={text} is not from {least} to {most}")
    return elements, factor


def _written(width: int, factor: float, hardware: bool) -> AssemblyKernel:
    vectors = width // LANES
    parts = [largest(vectors, factor), powers(vectors), over_sum(vectors), restored()]
    about = f"{NAME}: a row of {width} elements; p0 = x, p1 = y: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", parts, about, hardware=hardware)


def begun(factor: float) -> Iterator[AssemblyOp]:
    """What every function begins with: pointers for later passes, modes and constants."""
    yield from (AssemblyOp("mov p3, p0", "x for the second pass"), AssemblyOp("mov p4, p0", "and once more"))
    yield AssemblyOp("mov p5, p1", "y for the last pass")
    yield from lane_setup(_CONSTANTS | _exponent(factor))


def _exponent(factor: float) -> dict[str, int]:
    """What the factor makes of constants, as the C++ kernel does."""
    mantissa, exponent = frexp(factor * log2(e))
    multiplier, point = min(int(mantissa * 2**16 + 0.5), 2**16 - 1), 7 - exponent
    base = (127 + point) << 7
    most = base + min(100 * 2**16 // multiplier - 1, 127)
    return {"r6": base, "r8": most, "r9": multiplier, "r19": base}


def largest(vectors: int, factor: float) -> FunctionPart:
    """The largest numbers in the lanes of x9."""
    setup = [*begun(factor), AssemblyOp(f"vbcst.16 {_MAXIMA}, r4")]
    ops = [
        named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0"),
        named_op(f"vmax_lt.bf16 {_MAXIMA}, r16, {_MAXIMA}, x{{x}}"),
    ]
    return repeated("aie2p", setup, ops, vectors, {"x": range(9)})


def powers(vectors: int) -> FunctionPart:
    """e to p1, of p3 and p4, whose largest numbers are in x9, and their sums in the lanes of dm2."""
    block = LaneBlock()
    return repeated("aie2p", list(_row()), list(_power(block)), vectors, _FREE)


def _row() -> Iterator[AssemblyOp]:
    """The largest number in all lanes, as bfloat16 and as float, and 127 and the upper half of 2^point as started."""
    for _ in range(LANES.bit_length() - 1):
        yield from (AssemblyOp(f"vshuffle x{i}, {_MAXIMA}, {_MAXIMA}, {mode}") for i, mode in enumerate(("r27", "r29")))
        yield AssemblyOp(f"vmax_lt.bf16 {_MAXIMA}, r16, x0, x1")
    yield from (AssemblyOp("vbcst.16 x0, r21"), AssemblyOp("vbcst.16 x1, r28"))
    yield from (AssemblyOp(f"vsub.16 x2, {_MAXIMA}, x0"), AssemblyOp("veqz.16 r16, x2"))
    yield AssemblyOp(f"vsel.16 {_LARGEST}, {_MAXIMA}, x1, r16", "+0 for -0")
    yield AssemblyOp(f"vconv.fp32.bf16 cml{_WIDE_LARGEST[2:]}, {_LARGEST}")
    yield from (AssemblyOp(f"vbcst.16 x{i}, {register}") for i, register in enumerate(("r18", "r17", "r19", "r9")))
    yield AssemblyOp(f"vmul {_START}, x0, x1, r2")
    yield AssemblyOp(f"vmac {_START}, {_START}, x2, x3, r2")


def _power(b: LaneBlock) -> Ops:
    yield b.op(f"vlda x{{x}}, [p3], #{VECTOR_BYTES}", "p0")
    yield from (b.constant("low", "r4"), b.constant("lower", "r5"), b.constant("one", "r10"))
    yield b.op("vmax_lt.bf16 x{cut}, r16, x{x}, x{low}")
    yield from (b.op(f"vsub.16 x{{apart}}, x{{cut}}, {_LARGEST}"), b.op("veqz.16 r16, x{apart}"))
    yield b.op("vsel.16 x{less}, x{cut}, x{lower}, r16")
    yield b.op(f"vmsc.f dm{{below}}, {_WIDE_LARGEST}, x{{less}}, x{{one}}, r0")
    yield from (b.constant("point", "r6"), b.constant("one2", "r10"))
    yield b.op("vmac.f dm{fixed}, dm{below}, x{point}, x{one2}, r0")
    yield from b.words("fixed", "fixed")
    yield from b.halves("small", "upper", "fixed")
    yield from (b.constant("most", "r8"), b.op("vmin_ge.16 x{high}, r16, x{upper}, x{most}, vaddSign1"))
    yield b.constant("factor", "r9")
    yield b.op(f"vmsc dm{{first}}, {_START}, x{{high}}, x{{factor}}, r2")
    yield b.op("vmsc dm{rest}, dm{first}, x{small}, x{factor}, r24")
    yield from b.lanes32("rest", "rest", "s0")
    yield from b.halves("fraction", "exponent", "rest")
    yield from b.power("power", "fraction")
    yield from b.exponent("scale", "exponent")
    yield from b.mantissa("number", "scale", "power")
    yield b.op("vsrs.4x x{found}, dm{number}, s0, srsSign1")
    yield from (b.op(f"vldb x{{again}}, [p4], #{VECTOR_BYTES}", "p0"), b.constant("one3", "r10"))
    yield from (b.constant("low2", "r4"), b.op("vmax_lt.bf16 x{cut2}, r16, x{again}, x{low2}"))
    yield from (b.op(f"vsub.16 x{{apart2}}, x{{cut2}}, {_LARGEST}"), b.op("veqz.16 r22, x{apart2}"))
    yield b.op("vsel.16 x{e}, x{found}, x{one3}, r22")
    yield b.op(f"vst x{{e}}, [p1], #{VECTOR_BYTES}", "p1")
    yield b.op(f"vmac.f {_SUMS}, {_SUMS}, x{{e}}, x{{one3}}, r0")


def _inverse() -> Iterator[AssemblyOp]:
    """r9 / 2^15 and r5: mantissa and power of the inverse of the sum whose bits are in r1."""
    yield from with_constant("lshl", "r2", "r1", -8)
    yield from with_constant("and", "r2", "r2", 0x7FFF)
    yield from with_constant("or", "r2", "r2", 0x8000)
    yield from with_constant("mul", "r9", "r2", 10592)
    yield from with_constant("lshl", "r9", "r9", -16)
    yield from with_constant("sub", "r9", "r9", 23831, reverse=True)
    yield AssemblyOp("mul r9, r9, r2")
    yield from with_constant("lshl", "r9", "r9", -14)
    yield from with_constant("sub", "r9", "r9", 69508, reverse=True)
    for _ in range(2):
        yield AssemblyOp("mul r10, r9, r2")
        yield from with_constant("lshl", "r10", "r10", -15)
        yield from with_constant("sub", "r10", "r10", 65536, reverse=True)
        yield AssemblyOp("mul r9, r9, r10")
        yield from with_constant("lshl", "r9", "r9", -15)
    yield from with_constant("lshl", "r5", "r1", -23)
    yield from with_constant("add", "r5", "r5", -127)


def over_sum(vectors: int) -> FunctionPart:
    """What stands at p5 over the sum of the lanes of dm2, in place."""
    setup = [
        set_register("r1", 4), set_register("r2", 5), *sum_of_lanes(_SUMS), *first_lane(), *_inverse(), *two_parts(),
        AssemblyOp(f"vbcst.16 {_HIGH}, r13"), AssemblyOp(f"vbcst.16 {_LOW}, r15"),
        AssemblyOp(f"vbcst.16 {_NONE}, r28"), AssemblyOp(f"vbcst.16 {_LIMIT}, r23"), AssemblyOp("mov p6, p5"),
    ]  # fmt: skip
    ops = [
        named_op(f"vlda x{{e}}, [p5], #{VECTOR_BYTES}", "p1"),
        named_op(f"vlt.16 r22, x{{e}}, {_LIMIT}, vaddSign1"),
        named_op(f"vsel.16 x{{kept}}, x{{e}}, {_NONE}, r22"),
        named_op(f"vmul.f dm{{first}}, x{{kept}}, {_HIGH}, r0"),
        named_op(f"vmac.f dm{{y}}, dm{{first}}, x{{kept}}, {_LOW}, r0"),
        named_op(f"vst.conv.bf16.fp32 cml{{y}}, [p6], #{VECTOR_BYTES}", "p1"),
    ]
    return replace(repeated("aie2p", [], ops, vectors, _LAST_FREE), setup=setup)
