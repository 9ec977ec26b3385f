"""int8 codes of rows of float32 on AIE2P: `quantise_f32`, with the bits of `kernels/aie2p/quantise_f32.cc`.

A first pass keeps the largest magnitude as an integer; a second one adds the three parts of a float to one whose last
bit is small beside the largest, and goes on as codes of normed rows do (`row_codes`).
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.float_products import loaded_floats, parts_of, three_parts
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, Ops, restored, saved
from bdforge.core.codegen.kernels.row_codes import beside_point, code_setup, coded, largest_lane
from bdforge.core.codegen.kernels.row_scalars import bits_of, inverse, of_bits, scaled, with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_register

_ONES = "x8"
_FREE = {"x": range(8), "dm": range(4)}
_LEAST = 27 << 23  # the bits of 2^-100
_OVER_127 = 2164392968, -6  # 1 / 127: mantissa / 2^32 and exponent


def float_codes(width: int) -> Iterator[FunctionPart]:
    """p0 = a row of float32, p1 = its codes, p2 = its scale."""
    yield _largest(width // LANES)
    ones = [set_register("r23", 0x3F80), AssemblyOp(f"vbcst.16 {_ONES}, r23")]
    yield coded(width // LANES, [*largest_lane(), *_coding(), *ones], _added, _FREE)
    yield restored()


def _largest(vectors: int) -> FunctionPart:
    """The largest magnitudes, as integers, in the lanes of x9 and x10."""
    setup = [*saved(), *code_setup(), AssemblyOp("mov p3, p2"), AssemblyOp("mov p2, p1")]
    setup += [set_register("r1", 0x7FFFFFFF), AssemblyOp("vbcst.32 x11, r1"), set_register("r2", 0)]
    ops = []
    for i, largest in enumerate(("x9", "x10")):
        setup.append(AssemblyOp(f"vbcst.32 {largest}, r2"))
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


def _added(half: int) -> Ops:
    """A vector's floats, added to dm4 part by part."""
    whole, last = f"x{half}", "dm4"
    yield from (*loaded_floats(whole, "p4", "p0"), *three_parts(whole, parts_of(whole), _ONES))
    for i, part in enumerate(reversed(parts_of(whole))):
        before, last = last, f"dm{{u{half}{i}}}" if i < 2 else f"dm{{u{half}}}"
        yield named_op(f"vmac.f {last}, {before}, {part}, {_ONES}, r0")
