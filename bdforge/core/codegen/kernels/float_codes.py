"""Rows of float32 on AIE2P: sums, RMSNorm, and int8 codes of rows as they are and normed, with the bits of
`kernels/aie2p/quantise_f32.cc` and of `rmsnorm_bf16.cc` with X_F32.

A first pass keeps the largest magnitude as an integer; a second one adds the three parts of a float to one whose last
bit is small beside the largest, and goes on as codes of normed rows do (`row_codes`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.float_products import Parts, loaded_floats, parts_of, stored_floats, three_parts
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, Ops, restored, saved
from bdforge.core.codegen.kernels.row_codes import (
    beside_point,
    code_setup,
    coded,
    coding,
    larger,
    larger_setup,
    largest_lane,
)
from bdforge.core.codegen.kernels.row_scalars import bits_of, inverse, of_bits, scaled, with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

_ONES = "x8"
_FREE = {"x": range(8), "dm": range(4)}
_HIGHEST, _ZEROS, _PAIR = "x6", "x7", "y3"
_SQUARED: Parts = (_HIGHEST, "x{middle}", "x{low}")
_LEAST = 27 << 23  # the bits of 2^-100
_OVER_127 = 2164392968, -6  # 1 / 127: mantissa / 2^32 and exponent


def float_codes(width: int) -> Iterator[FunctionPart]:
    """p0 = a row of float32, p1 = its codes, p2 = its scale."""
    yield largest_floats(width // LANES, codes_begun())
    yield codes_of_floats(width // LANES)
    yield restored()


def ones(spare: str = "r23") -> Iterator[AssemblyOp]:
    """Lanes of 1.0, by way of a register."""
    yield from (set_register(spare, 0x3F80), AssemblyOp(f"vbcst.16 {_ONES}, {spare}"))


def codes_begun() -> Iterator[AssemblyOp]:
    """Modes, and pointers as codes take them: p0's row once more in p4, codes in p2, what p2 was in p3."""
    yield from (*saved(), *code_setup(), AssemblyOp("mov p3, p2"), AssemblyOp("mov p2, p1"))


def codes_of_floats(vectors: int, setup: Iterable[AssemblyOp] = ()) -> FunctionPart:
    """Codes of p4's row to p2, their scale to p3, of the largest magnitudes in x9 and x10, which `setup` may bring."""
    before = [*setup, *largest_lane(), *_coding(), *ones()]
    return coded(vectors, before, partial(_added, False), _FREE)


def largest_floats(vectors: int, setup: Iterable[AssemblyOp], kept: Iterable[AssemblyOp] = ()) -> FunctionPart:
    """The largest magnitudes of p0's floats, as integers, in the lanes of x9 and x10; `kept` may bring earlier ones."""
    setup = [*setup, *larger_setup(), *kept]
    ops = []
    for i, largest in enumerate(("x9", "x10")):
        ops += [
            named_op(f"vlda x{{x{i}}}, [p0], #{VECTOR_BYTES}", "p0"),
            named_op(f"vband x{{size{i}}}, x{{x{i}}}, x11"),
            named_op(f"vmax_lt.32 {largest}, r16, {largest}, x{{size{i}}}, vaddSign1"),
        ]
    return repeated("aie2p", setup, ops, vectors, _FREE)


def _coding() -> Iterator[AssemblyOp]:
    """127 over the largest, in r22, and 1.5 * 2^k to r17, r18; the scale to p3. Nothing where it counts as 0."""
    yield from (*with_constant("ltu", "r19", "r22", _LEAST), *with_constant("add", "r19", "r19", -1))
    yield from (*with_constant("sub", "r22", "r22", _LEAST), AssemblyOp("and r22, r22, r19"))
    yield from with_constant("add", "r22", "r22", _LEAST)
    most = ("r20", "r21")
    yield from (*of_bits(most, "r22"), *inverse(("r17", "r18"), most, "r30"), *scaled(most, most, *_OVER_127))
    yield from (*bits_of("r23", most), AssemblyOp("and r23, r23, r19"), AssemblyOp("st r23, [p3, #0]"))
    yield from (*beside_point(), AssemblyOp("and r17, r17, r19"))


def _added(weighted: bool, half: int) -> Ops:
    """A vector's floats, times weights where they are `weighted`, added to dm4 part by part."""
    whole, w, last = f"x{half}", _ONES, "dm4"
    yield from (*loaded_floats(whole, "p4", "p0"), *three_parts(whole, parts_of(whole), _ONES))
    if weighted:
        w = f"x{{w{half}}}"
        yield named_op(f"vldb {w}, [p5], #{VECTOR_BYTES}", "p1")
    for i, part in enumerate(reversed(parts_of(whole))):
        before, last = last, f"dm{{u{half}{i}}}" if i < 2 else f"dm{{u{half}}}"
        yield named_op(f"vmac.f {last}, {before}, {part}, {w}, r0")


def float_sums(vectors: int, setup: Sequence[AssemblyOp], x_floats: bool, residual_floats: bool) -> FunctionPart:
    """Sums of p0's and p1's rows, one of floats at least, to p2 in the first one's type, after `setup`."""
    setup = [*setup, *saved(), *ones(), set_register("r0", FLOAT_CONF), *(AssemblyOp(f"vclr dm{i}") for i in range(4))]
    setup += set_control("crRnd", ROUNDINGS["conv_even"])
    if x_floats and residual_floats:
        ops = [*loaded_floats("x", "p0", "p0"), *loaded_floats("r", "p1", "p1")]
        ops.append(named_op("vadd.f dm{sum}, dm{x}, dm{r}, r0"))
    else:
        pointers = ("p0", "p1") if x_floats else ("p1", "p0")
        ops = [
            *loaded_floats("x", *pointers[:1] * 2),
            named_op(f"vldb x{{r}}, [{pointers[1]}], #{VECTOR_BYTES}", pointers[1]),
        ]
        ops.append(named_op(f"vmac.f dm{{sum}}, dm{{x}}, x{{r}}, {_ONES}, r0"))
    ops += stored_floats("sum", "p2", "p2", narrow=not x_floats)
    return repeated("aie2p", setup, ops, vectors, _FREE)


def float_squares(vectors: int, largest: bool, again: str) -> FunctionPart:
    """As `row_codes.largest_and_squares`, of floats, or without the `largest`; p0 once more in `again` then.

    Accumulators are added up in 64 lanes, of which a product of 32 leaves the upper ones unknown. There zeros are kept:
    in dm3, where small products are copied to, and in dm4, to which squares of a pair with zeros are added.
    """
    setup = [*code_setup(), *ones("r14"), *larger_setup(), *squared_setup()]
    setup += [] if largest else [AssemblyOp(f"mov {again}, p0")]
    ops = [*loaded_floats("x", "p0", "p0"), *squared("x", "3"), *(_largest_product() if largest else ())]
    return repeated("aie2p", setup, ops, vectors, {"x": range(6), "dm": range(3)})


def squared_setup() -> Iterator[AssemblyOp]:
    """What `squared` takes for granted beside `ones`; r2 is 0."""
    yield from (set_register("r3", 0x80), AssemblyOp(f"vbcst.32 {_ZEROS}, r2"))


def squared(x: str, spare: str) -> Ops:
    """x x, added to dm4; what is below 2^-25 of it is left out. Twice a number has an exponent of one more.

    `spare` is the number of the accumulator whose upper lanes are 0.
    """
    yield from three_parts(x, _SQUARED, _ONES)
    yield named_op("vbcst.16 x{exponent}, r3")
    yield named_op(f"vadd.16 x{{twice}}, {_HIGHEST}, x{{exponent}}")
    yield named_op("vmul.f dm{least}, x{low}, x{twice}, r0")
    yield named_op("vmac.f dm{less}, dm{least}, x{middle}, x{middle}, r0")
    yield named_op("vmac.f dm{small}, dm{less}, x{middle}, x{twice}, r0")
    yield from (named_op(f"vmov cml{spare}, cml{{small}}"), named_op(f"vadd.f dm4, dm4, dm{spare}, r0"))
    yield named_op(f"vmac.f dm4, dm4, {_PAIR}, {_PAIR}, r0")


def _largest_product() -> Ops:
    yield named_op(f"vldb x{{w}}, [p1], #{VECTOR_BYTES}", "p1")
    yield named_op("vmul.f dm{p0}, x{low}, x{w}, r0")
    yield named_op("vmac.f dm{p1}, dm{p0}, x{middle}, x{w}, r0")
    yield named_op(f"vmac.f dm{{u}}, dm{{p1}}, {_HIGHEST}, x{{w}}, r0")
    yield from larger()


def scaled_weights(root: tuple[str, str]) -> Ops:
    """p1's vector times a factor in two parts, rounded."""
    yield named_op(f"vlda x{{w}}, [p1], #{VECTOR_BYTES}", "p1")
    yield named_op(f"vmul.f dm{{first}}, x{{w}}, {root[0]}, r0")
    yield named_op(f"vmac.f dm{{scale}}, dm{{first}}, x{{w}}, {root[1]}, r0")
    yield named_op("vconv.bf16.fp32 x{s}, cml{scale}")


def scaled_floats(vectors: int, root: tuple[str, str], setup: Sequence[AssemblyOp]) -> FunctionPart:
    """bfloat16 of p3's floats times such weights, to p2, after `setup`."""
    high, middle, low = parts_of("x")
    ops = [
        *scaled_weights(root), *loaded_floats("x", "p3", "p0"), *three_parts("x", (high, middle, low), _ONES),
        named_op(f"vmul.f dm{{y0}}, {low}, x{{s}}, r0"),
        named_op(f"vmac.f dm{{y1}}, dm{{y0}}, {middle}, x{{s}}, r0"),
        named_op(f"vmac.f dm{{y}}, dm{{y1}}, {high}, x{{s}}, r0"),
        named_op(f"vst.conv.bf16.fp32 cml{{y}}, [p2], #{VECTOR_BYTES}", "p2"),
    ]  # fmt: skip
    return replace(repeated("aie2p", [], ops, vectors, _FREE), setup=[*setup, *ones("r14")])


def normed_float_codes(vectors: int, sum_bits: Sequence[AssemblyOp], width: tuple[int, int]) -> FunctionPart:
    """As `row_codes.codes`, of floats."""
    return coded(vectors, [*coding(sum_bits, width), *ones()], partial(_added, True), _FREE)
