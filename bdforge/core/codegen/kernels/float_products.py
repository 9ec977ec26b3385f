"""Products of float32 on AIE2P: sums of products of three bfloat16 parts, which are all of a float, step by step as
`kernels/include/row_values.h` has them. `dequantise_i32` of such products, with the bits of the C++ kernel.

Differences of parts may be zero, which the core takes for +0. Results do not depend on it: they are added to +0.
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, Ops
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

Parts = tuple[str, str, str]
"""Vectors of bfloat16, from the uppermost part on."""

_ONES, _ROW = "x11", ("x8", "x9", "x10")
_FREE = {"x": range(8), "dm": range(5)}
_PRODUCTS = ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0))
"""Of parts, in the order in which they are added up: all but the least."""
_CONSTANTS = {"r1": 2, "r2": 3, "r3": 18, "r4": 19, "r5": 0x8000, "r6": 0x4B00, "r8": 0x4700, "r9": 0x4780}
"""VSHUFFLE's modes: even and odd lanes of 16 bits, two vectors' in turn; the sign; 2^23, 2^15, 2^16 in bfloat16."""


def three_parts(whole: str, found: Parts, ones: str = _ONES) -> Ops:
    """The parts of an accumulator's floats; `ones` are lanes of 1.0."""
    rest = whole
    for i, part in enumerate(found):
        yield named_op(f"vconv.bf16.fp32 {part}, cml{{{rest}}}")
        if i < len(found) - 1:
            before, rest = rest, f"{whole}{i}"
            yield named_op(f"vmsc.f dm{{{rest}}}, dm{{{before}}}, {part}, {ones}, r0")


def float_product(result: str, x: Parts, w: Parts) -> Ops:
    """The product of two floats."""
    last = f"{result}zero"
    yield named_op(f"vclr dm{{{last}}}")
    for i, j in _PRODUCTS:
        before, last = last, f"{result}{i}{j}" if i + j else result
        yield named_op(f"vmac.f dm{{{last}}}, dm{{{before}}}, {x[i]}, {w[j]}, r0")


def parts_of(whole: str) -> Parts:
    """Values for the parts of a float."""
    return f"x{{{whole}high}}", f"x{{{whole}middle}}", f"x{{{whole}low}}"


def loaded_floats(whole: str, pointer: str, bank: str) -> Ops:
    """A vector's floats, as an accumulator."""
    yield from (named_op(f"vlda bm{half}{{{whole}}}, [{pointer}], #{VECTOR_BYTES}", bank) for half in ("ll", "lh"))


def _halves(whole: str, halves: str) -> Ops:
    """Lanes of uint16 as floats: the lower bits of such from 2^23 on."""
    yield named_op(f"vbcst.16 x{{{whole}point}}, r6")
    for half, mode in (("ll", "r3"), ("lh", "r4")):
        yield named_op(f"vshuffle bm{half}{{{whole}above}}, x{{{halves}}}, x{{{whole}point}}, {mode}")
    yield named_op(f"vmsc.f dm{{{whole}}}, dm{{{whole}above}}, x{{{whole}point}}, {_ONES}, r0")


def _integers(whole: str) -> Ops:
    """The nearest floats of p0's int32: upper halves in two parts, the lower of which is added to lower halves without
    an error."""
    yield from (named_op(f"vlda x{{w{i}}}, [p0], #{VECTOR_BYTES}", "p0") for i in (0, 1))
    yield from (named_op(f"vshuffle x{{{half}16}}, x{{w0}}, x{{w1}}, {mode}") for half, mode in _HALVES)
    yield from (named_op("vbcst.16 x{sign}, r5"), named_op("vadd.16 x{biased}, x{upper16}, x{sign}"))
    yield from (*_halves("upper", "biased"), *_halves("lower", "lower16"), named_op("vbcst.16 x{bias}, r8"))
    yield named_op(f"vmsc.f dm{{top}}, dm{{upper}}, x{{bias}}, {_ONES}, r0")
    yield named_op("vconv.bf16.fp32 x{first}, cml{top}")
    yield named_op(f"vmsc.f dm{{rest}}, dm{{top}}, x{{first}}, {_ONES}, r0")
    yield from (named_op("vconv.bf16.fp32 x{second}, cml{rest}"), named_op("vbcst.16 x{unit}, r9"))
    yield named_op("vmac.f dm{exact}, dm{lower}, x{second}, x{unit}, r0")
    yield named_op(f"vmac.f dm{{{whole}}}, dm{{exact}}, x{{first}}, x{{unit}}, r0")


_HALVES = (("lower", "r1"), ("upper", "r2"))
_ORDER = [("vshuffle x{lower16}, x{w0}, x{w1}, r1", "vadd.16 x{biased}, x{upper16}, x{sign}")]
"""Both halves are taken of words at once, which takes fewer registers."""


def stored_floats(whole: str, pointer: str, bank: str, narrow: bool = True) -> Ops:
    """A vector's floats from an accumulator, as they are or as bfloat16."""
    if narrow:
        yield named_op(f"vst.conv.bf16.fp32 cml{{{whole}}}, [{pointer}], #{VECTOR_BYTES}", bank)
    else:
        yield from (named_op(f"vst bm{half}{{{whole}}}, [{pointer}], #{VECTOR_BYTES}", bank) for half in ("ll", "lh"))


def scaled_integers(width: int, floats: bool = False) -> Iterator[FunctionPart]:
    """p0 = a row of int32, p1 = its scale, p2 = scales of columns, p3 = bfloat16 of their products, or float32."""
    setup = [*set_control("crRnd", ROUNDINGS["conv_even"]), set_register("r0", FLOAT_CONF), set_register("r2", 0x3F80)]
    setup += [AssemblyOp(f"vbcst.16 {_ONES}, r2"), AssemblyOp("lda r1, [p1, #0]"), AssemblyOp("vbcst.32 x0, r1")]
    row = [*(named_op(f"vmov bm{half}{{s}}, x0") for half in ("ll", "lh")), *three_parts("s", _ROW)]
    yield repeated("aie2p", setup, row, 1, _FREE)
    ops = [*_integers("x"), *three_parts("x", parts_of("x")), *float_product("p", parts_of("x"), _ROW)]
    ops += loaded_floats("c", "p2", "p2")
    ops += [*three_parts("p", parts_of("p")), *three_parts("c", parts_of("c"))]
    ops += [*float_product("y", parts_of("p"), parts_of("c"))]
    ops += stored_floats("y", "p3", "p3", narrow=not floats)
    constants = [set_register(register, value) for register, value in _CONSTANTS.items()]
    yield repeated("aie2p", constants, ops, width // LANES, _FREE, _ORDER)
