"""int8 codes of LayerNorm's rows on AIE2P, with the bits of `kernels/include/layernorm.h` with CODES.

Behind the mean come squares of x - mean in three parts; then u = (x - mean) w + b deviation, of which a pass keeps the
largest magnitude and another one makes codes. It is added to 1.5 * 2^k by way of dm2, whose upper lanes are 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.float_codes import ones, squared, squared_setup
from bdforge.core.codegen.kernels.float_products import three_parts
from bdforge.core.codegen.kernels.lane_block import VECTOR_BYTES, Ops, behind, saved
from bdforge.core.codegen.kernels.row_codes import code_modes, coded, coding, larger, larger_setup
from bdforge.core.codegen.kernels.row_floats import NormRow, mean_bits
from bdforge.core.codegen.kernels.row_scalars import bits_of, inverse_root, of_bits, product, scaled
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_register

_ONES, _DEVIATION = "x8", ("x5", "x6", "x7")
_SUM_BITS, _SPARE = "r9", "2"
_SQUARES_FREE = {"x": range(6), "dm": (0, 1)}
_FREE = {"x": range(5), "dm": (0, 1)}


def begun() -> Iterator[AssemblyOp]:
    """What rows of codes take for granted beside what other rows do."""
    yield from (*code_modes(), *ones())


def squares(row: NormRow) -> FunctionPart:
    """Squares of x - mean of p0's elements, added to dm4."""
    ops = [*_centred("exact", row.floats), *squared("exact", _SPARE)]
    return repeated("aie2p", [set_register("r2", 0), *squared_setup()], ops, row.vectors, _SQUARES_FREE)


def deviation(row: NormRow, setup: Sequence[AssemblyOp] = ()) -> FunctionPart:
    """The deviation's three parts, of the sum of squares in dm4, whose bits are kept, after `setup`."""
    mean, root, found = ("r28", "r29"), ("r23", "r24"), ("r17", "r18")
    setup = [*setup, *mean_bits(row.added), AssemblyOp(f"mov {_SUM_BITS}, r1")]
    setup += [*of_bits(mean, "r1"), *scaled(mean, mean, *row.inverse_width), *inverse_root(root, mean, ("r30", "r31"))]
    setup += [*product(found, mean, root), *bits_of("r19", found), AssemblyOp("vbcst.32 x4, r19")]
    ops = [*(named_op(f"vmov bm{half}{{s}}, x4") for half in ("ll", "lh")), *three_parts("s", _DEVIATION, _ONES)]
    return repeated("aie2p", setup, ops, 1, _FREE)


def largest(row: NormRow, setup: Sequence[AssemblyOp] = ()) -> FunctionPart:
    """The largest |u| in the lanes of x9 and x10, of p0's, p1's and p5's elements; `setup` may bring earlier ones."""
    return repeated("aie2p", [*larger_setup(), *setup], [*_scaled("u", row.floats), *larger()], row.vectors, _FREE)


def codes(row: NormRow) -> FunctionPart:
    """Codes of p0's, p1's and p5's elements to p2, their scale to p3; a vector at a time, for registers are few."""

    def values(half: int) -> Ops:
        yield from (*_scaled("u", row.floats), named_op(f"vmov cml{_SPARE}, cml{{u}}"))
        yield named_op(f"vadd.f dm{{u{half}}}, dm4, dm{_SPARE}, r0")

    return coded(row.vectors, coding([AssemblyOp(f"mov r1, {_SUM_BITS}")], row.inverse_width), values, _FREE, 1)


def parts(row: NormRow, first: FunctionPart, less_mean: FunctionPart) -> list[FunctionPart]:
    """Of a whole row: `first` adds p0's elements up; p1 = w, p5 = b, p2 = codes, p3 = their scale."""
    again = [AssemblyOp("padda [p0], m1")]
    weights = [AssemblyOp(f"padda [{pointer}], m2") for pointer in ("p1", "p5")]
    return [
        first, less_mean, _after([*begun(), AssemblyOp("vclr dm4"), *again], squares(row)),
        deviation(row, again), largest(row), _after([*again, *weights], codes(row)),
    ]  # fmt: skip


def pointers(row: NormRow) -> Iterator[AssemblyOp]:
    """As `parts` take them: of a row of its own, or behind sums, whose w and b wait in p6 and p7 and whose room for
    codes is where p2 is; what leads to the start of a row in m1, to that of weights in m2."""
    for register, size in (("m1", row.bytes), ("m2", 2 * row.elements)):
        yield from (set_register("r6", -size), AssemblyOp(f"mov {register}, r6"))
    if not row.residual:
        yield from saved()
        yield from (AssemblyOp(f"mov {to}") for to in ("p5, p2", "p2, p3", "p3, p4"))
        return
    yield from (AssemblyOp(f"mov {to}") for to in ("p0, p4", "p1, p6", "p5, p7"))
    yield from behind("p3", "p2", row.elements)


def _after(setup: Sequence[AssemblyOp], part: FunctionPart) -> FunctionPart:
    return replace(part, setup=[*setup, *part.setup])


def _centred(name: str, floats: bool) -> Ops:
    """x - mean."""
    if floats:
        yield from (named_op(f"vlda bm{half}{_SPARE}, [p0], #{VECTOR_BYTES}", "p0") for half in ("ll", "lh"))
        yield named_op(f"vadd.f dm{{{name}}}, dm3, dm{_SPARE}, r0")
    else:
        yield named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0")
        yield named_op(f"vmac.f dm{{{name}}}, dm3, x{{x}}, {_ONES}, r0")


def _scaled(name: str, floats: bool) -> Ops:
    """b deviation, then (x - mean) w, each from its least part on."""
    yield named_op(f"vldb x{{b}}, [p5], #{VECTOR_BYTES}", "p2")
    high, middle, low = _DEVIATION
    yield named_op(f"vmul.f dm{{b0}}, {low}, x{{b}}, r0")
    yield named_op(f"vmac.f dm{{b1}}, dm{{b0}}, {middle}, x{{b}}, r0")
    yield named_op(f"vmac.f dm{{b2}}, dm{{b1}}, {high}, x{{b}}, r0")
    found = "x{high}", "x{middle}", "x{low}"
    yield from (*_centred("exact", floats), *three_parts("exact", found, _ONES))
    yield named_op(f"vldb x{{w}}, [p1], #{VECTOR_BYTES}", "p1")
    before = "b2"
    for part, after in zip(reversed(found), ("w0", "w1", name), strict=True):
        yield named_op(f"vmac.f dm{{{after}}}, dm{{{before}}}, {part}, x{{w}}, r0")
        before = after
