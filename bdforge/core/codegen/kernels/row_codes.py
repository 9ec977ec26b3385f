"""int8 codes of normed rows on AIE2P, with the bits of `kernels/aie2p/rmsnorm_bf16.cc` with CODES.

A first pass sums squares and keeps the largest |x w| as an integer; a second one adds x w to a float whose last bit is
small beside D, and multiplies what stands in its bits with 127 / D in products of 16-bit lanes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.row_scalars import (
    bits_of,
    high_of_constant,
    inverse,
    inverse_root,
    of_bits,
    product,
    scaled,
    select,
    with_constant,
)
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF, INT16_CONF, SHIFTED_CONF, UINT16_CONF

_LANES, _BYTES = 32, 64
_FREE = {"x": range(9), "dm": range(4)}
_SHIFT = 30
_LEAST, _LEAST_SCALE = 0x3727C5AC, 0x33A917DC  # the bits of 1e-5, and of 1e-5 / 127
_CONFS = {"r0": FLOAT_CONF, "r1": INT16_CONF, "r2": SHIFTED_CONF, "r3": UINT16_CONF}
_CONTROLS = {"crRnd": ROUNDINGS["conv_even"], "crSat": 0, "crSRSMode": 1}
_MODES = {"r4": 2, "r5": 3, "r8": 0}
"""VSHUFFLE of two vectors: their even lanes of 16 bits, their odd ones, their even lanes of 8 bits."""


def largest_and_squares(vectors: int) -> FunctionPart:
    """Sums of squares in dm4, the largest |x w| in the lanes of x9 and x10. p0 = x, p1 = w, once more in p4 and p5."""
    setup = [*code_setup(), *larger_setup()]
    ops = [
        named_op(f"vlda x{{x}}, [p0], #{_BYTES}", "p0"),
        named_op(f"vldb x{{w}}, [p1], #{_BYTES}", "p1"),
        named_op("vmac.f dm4, dm4, x{x}, x{x}, r0"),
        named_op("vmul.f dm{u}, x{x}, x{w}, r0"),
    ]
    return repeated("aie2p", setup, [*ops, *larger()], vectors, _FREE)


def larger_setup() -> Iterator[AssemblyOp]:
    """What `larger` takes for granted; nothing was large so far."""
    yield from (set_register("r1", 0x7FFFFFFF), AssemblyOp("vbcst.32 x11, r1"))
    yield from (set_register("r2", 0), AssemblyOp("vbcst.32 x9, r2"), AssemblyOp("vbcst.32 x10, r2"))


def larger() -> Iterator[DataflowOp]:
    """Magnitudes of u, as integers, to the largest so far in x9 and x10; x11 masks signs."""
    for largest, half in (("x9", "l"), ("x10", "h")):
        yield named_op(f"vmov x{{{half}}}, bml{half}{{u}}")
        yield named_op(f"vband x{{{half}size}}, x{{{half}}}, x11")
        yield named_op(f"vmax_lt.32 {largest}, r16, {largest}, x{{{half}size}}, vaddSign1")


def code_setup() -> Iterator[AssemblyOp]:
    """What rows and weights come from once more, modes, and sums of 0."""
    yield from (AssemblyOp(text) for text in ("mov p4, p0", "mov p5, p1", "vclr dm4"))
    yield set_register("r0", _CONFS["r0"])
    yield from (AssemblyOp(f"vclr dm{i}") for i in _FREE["dm"])
    yield from code_modes()


def code_modes() -> Iterator[AssemblyOp]:
    """How codes are rounded."""
    yield from (op for name, value in _CONTROLS.items() for op in set_control(name, value))


def codes(vectors: int, sum_bits: Sequence[AssemblyOp], width: tuple[int, int]) -> FunctionPart:
    """Codes of products of p4 and p5 to p2, their scale to p3; arguments as of `coding`."""
    return coded(vectors, coding(sum_bits, width), _products, _FREE)


def coding(sum_bits: Sequence[AssemblyOp], width: tuple[int, int]) -> list[AssemblyOp]:
    """What `coded` needs of a normed row, and the scale to p3. `sum_bits` bring the sum of squares into r1; `width` is
    the row's inverse one."""
    return [*largest_lane(), *sum_bits, *_coding(width)]


def coded(
    vectors: int,
    setup: Sequence[AssemblyOp],
    values: Callable[[int], Iterator[DataflowOp]],
    free: Mapping[str, Sequence[int]],
    together: int = 2,
) -> FunctionPart:
    """Codes to p2 of two vectors at a time, or of one, whose `values` are added to dm4 in u0 and u1; `setup` brings
    127 / D into r17 and 1.5 * 2^k into r18."""
    ops = [op for half in range(together) for op in (*values(half), *_fixed_point(half))]
    stored, size = "x" if together == 2 else "wl", _BYTES // 2 * together
    ops.append(named_op(f"vshuffle x{{y}}, x{{q0}}, x{{q{together - 1}}}, r8"))
    ops.append(named_op(f"vst {stored}{{y}}, [p2], #{size}", "p2"))
    return replace(repeated("aie2p", [], ops, vectors // together, free), setup=[*setup, *_constants(free["dm"])])


def _op(half: int, text: str, bank: str | None = None) -> DataflowOp:
    return named_op(text, bank, f"{half}: {text}")


def _products(half: int) -> Iterator[DataflowOp]:
    yield _op(half, f"vlda x{{x{half}}}, [p4], #{_BYTES}", "p0")
    yield _op(half, f"vldb x{{w{half}}}, [p5], #{_BYTES}", "p1")
    yield _op(half, f"vmac.f dm{{u{half}}}, dm4, x{{x{half}}}, x{{w{half}}}, r0")


def _fixed_point(half: int) -> Iterator[DataflowOp]:
    def op(text: str) -> DataflowOp:
        return _op(half, text)

    yield from (op(f"vmov x{{{part}{half}}}, bml{part}{{u{half}}}") for part in "lh")
    yield op(f"vshuffle x{{below{half}}}, x{{l{half}}}, x{{h{half}}}, r4")
    yield op(f"vshuffle x{{float{half}}}, x{{l{half}}}, x{{h{half}}}, r5")
    yield op(f"vsub.16 x{{above{half}}}, x{{float{half}}}, x11")
    yield op(f"vmul dm{{first{half}}}, x{{above{half}}}, x10, r1")
    yield op(f"vmac dm{{more{half}}}, dm{{first{half}}}, x{{above{half}}}, x9, r2")
    yield op(f"vmac dm{{all{half}}}, dm{{more{half}}}, x{{below{half}}}, x10, r3")
    yield op(f"vsrs.4x x{{q{half}}}, dm{{all{half}}}, s0, srsSign1")


def largest_lane() -> Iterator[AssemblyOp]:
    """The largest lane of x9 and x10 in r22."""
    yield from (set_register("r3", 4), set_register("r4", 5), AssemblyOp("vmov x0, x9"), AssemblyOp("vmov x1, x10"))
    for _ in range(_LANES.bit_length() - 1):
        yield from (AssemblyOp("vshuffle x2, x0, x1, r3"), AssemblyOp("vshuffle x3, x0, x1, r4"))
        yield AssemblyOp("vmax_lt.32 x0, r16, x2, x3, vaddSign1", "lanes in pairs")
        yield AssemblyOp("vmov x1, x0")
    yield from (set_register("r3", 0), AssemblyOp("vextract.32 r22, x0, r3, vaddSign1"))


def _coding(width: tuple[int, int]) -> Iterator[AssemblyOp]:
    """127 / D beside 2^k in r17, 1.5 * 2^k in bfloat16's bits in r18, and the scale's bits to p3."""
    most, root, normed, found, mean = ("r20", "r21"), ("r23", "r24"), ("r25", "r26"), ("r17", "r18"), ("r28", "r29")
    yield from (*of_bits(mean, "r1"), *scaled(mean, mean, *width), *inverse_root(root, mean, ("r30", "r31")))
    yield from (*of_bits(most, "r22"), *product(normed, most, root), *inverse(found, most, "r30"))
    yield from (*bits_of("r19", normed), *with_constant("sub", "r19", "r19", _LEAST))
    yield from with_constant("ashl", "r19", "r19", -31)  # all bits where the clamp decides
    yield from (*scaled(root, root, 3276800000, 17), *select("r17", "r23", "r19"), *select("r18", "r24", "r19"))
    yield from (*scaled(normed, normed, 2164392968, -6), *bits_of("r20", normed))
    yield from (set_register("r21", _LEAST_SCALE), *select("r20", "r21", "r19"), AssemblyOp("st r20, [p3, #0]"))
    yield from beside_point()


def beside_point() -> Iterator[AssemblyOp]:
    """Of 1 / D in r17, r18."""
    yield from (*high_of_constant("r17", "r17", 0xFE000000), *with_constant("sub", "r18", "r18", 129, reverse=True))
    yield from (*with_constant("lshl", "r18", "r18", 7), *with_constant("or", "r18", "r18", 0x40))


def _constants(free: Sequence[int]) -> Iterator[AssemblyOp]:
    yield from (AssemblyOp("vbcst.16 x11, r18"), AssemblyOp("vbcst.16 x9, r17"))
    yield from with_constant("lshl", "r17", "r17", -16)
    yield from with_constant("lshl", "r18", "r18", 16)
    yield from (AssemblyOp("vbcst.16 x10, r17"), AssemblyOp("vbcst.32 x0, r18"), AssemblyOp("vclr dm4"))
    yield from (AssemblyOp("vmov bmll4, x0"), AssemblyOp("vmov bmlh4, x0"))
    yield from (AssemblyOp(f"vclr dm{i}") for i in free)
    yield from (set_register("r15", _SHIFT), AssemblyOp("mov s0, r15"))
    yield from (set_register(register, value) for register, value in (_CONFS | _MODES).items())
