"""Norms of rows of bfloat16 on AIE2P: `rmsnorm_bf16`, with the bits of `kernels/aie2p/rmsnorm_bf16.cc`.

A pass over the row sums squares in the lanes of one accumulator, in their order; then lanes are added in pairs, and the
root is made in scalar integers, step by step as the C++ kernel tells; a second pass scales, or makes codes. Where rows
are sums, a pass before them adds as element-wise operators do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.element_floats import sums
from bdforge.core.codegen.kernels.float_codes import (
    float_squares,
    float_sums,
    normed_float_codes,
    scaled_floats,
    scaled_weights,
)
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.lane_block import restored, saved
from bdforge.core.codegen.kernels.row_codes import codes, largest_and_squares
from bdforge.core.codegen.kernels.row_scalars import short_root, with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "rmsnorm_bf16"
_LANES, _BYTES, _WIDEST = 32, 64, 32768
_EVEN, _ODD = 4, 5  # VSHUFFLE modes: every other lane of 32 bits of two vectors
_SUMS, _HIGH, _LOW = "dm4", "x10", "x11"
_FREE = {"x": range(10), "dm": range(4)}


def row_norm(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation, a width or an epsilon without one."""
    return partial(_written, NormRow.of(name, generation, options), options.hardware_loops)


@dataclass(frozen=True, slots=True)
class NormRow:
    """Elements of a row and of what a call gets, what is added to the sum of squares (bits of a float), and what the
    kernel does beside the norm."""

    width: int
    elements: int
    added: int
    residual: bool
    codes: bool
    floats: bool
    residual_floats: bool

    @classmethod
    def of(cls, name: str, generation: str, options: Options) -> "NormRow":
        """From a kernel's options; CodegenError as of `row_norm`."""
        if generation != "aie2p":
            raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
        width, elements = row_elements(name, options, _WIDEST)
        epsilon = options.given.get("EPSILON", "").rstrip("fF")
        try:
            added = np.float32(np.float32(epsilon) * np.float32(width))
        except ValueError:
            raise CodegenError(f"{name}: EPSILON={epsilon!r} is no number; give one above 0, such as 1e-6F") from None
        if not added > 0:
            raise CodegenError(f"{name}: EPSILON={epsilon} is not above 0")
        given = ("RESIDUAL", "CODES", "X_F32", "RESIDUAL_F32")
        residual, codes, floats, residual_floats = (options.number(key, 0) == 1 for key in given)
        if codes and elements % (2 * _LANES):
            raise CodegenError(f"{name}: {elements} codes are no multiple of {2 * _LANES}")
        return cls(width, elements, int(added.view(np.int32)), residual, codes, floats, residual_floats)

    @property
    def vectors(self) -> int:
        """Of a call."""
        return self.elements // _LANES

    @property
    def bytes(self) -> int:
        """Of x, and of a sum, of a call."""
        return (4 if self.floats else 2) * self.elements

    @property
    def inverse_width(self) -> tuple[int, int]:
        """As `row_scalars` has it: mantissa / 2^32 and exponent."""
        mantissa, exponent = _inverse(self.width, 32)
        return mantissa, exponent + 1

    @property
    def pointers(self) -> str:
        """What the function of whole rows is called with, for a comment."""
        names = ["x", *(["residual"] if self.residual else []), "w", *(["sum"] if self.residual else [])]
        names += ["codes", "scale"] if self.codes else ["y"]
        return ", ".join(f"p{i} = {name}" for i, name in enumerate(names))


def row_elements(name: str, options: Options, widest: int) -> tuple[int, int]:
    """Elements of a row, and those of a call, all or a chunk of it; CodegenError for what is no such thing."""
    elements = options.number("TILE_ELEMENTS", 0)
    if not 0 < elements <= widest or elements % _LANES:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {_LANES} up to {widest}")
    width = options.number("ROW_ELEMENTS", elements)
    if not 0 < width <= widest or width % elements:
        raise CodegenError(f"{name}: a row of {width} elements is no multiple of {elements} up to {widest}")
    return width, elements


def row_sums(row: NormRow, setup: list[AssemblyOp]) -> FunctionPart:
    """x + residual of p0 and p1 to p2, after `setup`."""
    if row.floats or row.residual_floats:
        return float_sums(row.vectors, setup, row.floats, row.residual_floats)
    return sums(row.vectors, setup)


def statistics(row: NormRow, again: str = "p3") -> FunctionPart:
    """What `results` are made of, in dm4, and of codes in x9 and x10; else p0 once more in `again`."""
    if row.floats:
        return float_squares(row.vectors, row.codes, again)
    return largest_and_squares(row.vectors) if row.codes else squares(row.vectors, again)


def results(row: NormRow) -> FunctionPart:
    """y or codes of what the lanes of dm4, and of codes x9 and x10, hold of a row."""
    mean = list(mean_bits(row.added))
    if not row.codes:
        made = scaled_floats if row.floats else _scaled
        return made(row.vectors, (_HIGH, _LOW), [*mean, *root_parts(row.width, _HIGH, _LOW)])
    return (normed_float_codes if row.floats else codes)(row.vectors, mean, row.inverse_width)


def _written(row: NormRow, hardware: bool) -> AssemblyKernel:
    parts = [statistics(row), results(row)]
    if row.residual:
        waiting = [AssemblyOp("mov p6, p2"), AssemblyOp("mov p2, p3")]
        parts = [row_sums(row, waiting), replace(parts[0], setup=[*_moved(), *parts[0].setup]), parts[1], restored()]
    elif row.codes:  # they work with registers that callers keep
        parts = [replace(parts[0], setup=[*saved(), *parts[0].setup]), parts[1], restored()]
    about = f"{NAME}: a row of {row.width} elements; {row.pointers}: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", parts, about, hardware=hardware)


def _moved() -> Iterator[AssemblyOp]:
    """Pointers as of a row that is no sum."""
    for to, source in (("p0", "p3"), ("p1", "p6"), ("p2", "p4"), ("p3", "p5")):
        yield AssemblyOp(f"mov {to}, {source}")


def squares(vectors: int, again: str = "p3") -> FunctionPart:
    """Sums of squares of p0's elements in dm4; p0 once more in `again`."""
    setup = [
        AssemblyOp(f"mov {again}, p0", "x once more"), set_register("r0", FLOAT_CONF), AssemblyOp(f"vclr {_SUMS}"),
        *set_control("crRnd", ROUNDINGS["conv_even"]),
    ]  # fmt: skip
    ops = [
        named_op(f"vlda x{{x}}, [p0], #{_BYTES}", "p0"),
        named_op(f"vmac.f {_SUMS}, {_SUMS}, x{{x}}, x{{x}}, r0"),
    ]
    return repeated("aie2p", setup, ops, vectors, _FREE)


def mean_bits(added: int) -> Iterator[AssemblyOp]:
    """The bits of the sum of all lanes of dm4 and of what is added, in r1."""
    yield from lanes_sum(_SUMS)
    yield from (set_register("r3", added), AssemblyOp("vbcst.32 x3, r3"), AssemblyOp("vmov bmll1, x3"))
    yield AssemblyOp("vadd.f dm0, dm0, dm1, r0", "epsilon times the width")
    yield from first_lane()


def lanes_sum(sums: str) -> Iterator[AssemblyOp]:
    """As `sum_of_lanes`, with VSHUFFLE's modes."""
    yield from (set_register("r1", _EVEN), set_register("r2", _ODD), *sum_of_lanes(sums))


def sum_of_lanes(sums: str) -> Iterator[AssemblyOp]:
    """The sum of an accumulator's 32 lanes in each lane of bmll0; r1, r2 are VSHUFFLE's modes, r0 the conf."""
    yield from (AssemblyOp(f"vmov x0, bmll{sums[2:]}"), AssemblyOp(f"vmov x1, bmlh{sums[2:]}"))
    yield from (AssemblyOp(f"vclr dm{i}") for i in (0, 1))
    for _ in range(_LANES.bit_length() - 1):
        yield from (AssemblyOp("vshuffle x2, x0, x1, r1"), AssemblyOp("vshuffle x3, x0, x1, r2"))
        yield from (AssemblyOp("vmov bmll0, x2"), AssemblyOp("vmov bmll1, x3"))
        yield AssemblyOp("vadd.f dm0, dm0, dm1, r0", "lanes in pairs")
        yield from (AssemblyOp("vmov x0, bmll0"), AssemblyOp("vmov x1, bmll0"))


def first_lane() -> Iterator[AssemblyOp]:
    """r1: the bits of bmll0's first lane."""
    yield from (AssemblyOp("vmov x0, bmll0"), set_register("r2", 0), AssemblyOp("vextract.32 r1, x0, r2, vaddSign1"))


def root_parts(width: int, high: str, low: str) -> Iterator[AssemblyOp]:
    """The root's two parts, in all lanes of two registers, of the sum whose bits are in r1."""
    yield from _scalar(*_inverse(width))
    yield from (AssemblyOp(f"vbcst.16 {high}, r13"), AssemblyOp(f"vbcst.16 {low}, r15"))


def _inverse(width: int, bits: int = 16) -> tuple[int, int]:
    """1 / width = mantissa / 2^(bits - 1) * 2^exponent, the mantissa of so many bits."""
    exponent = -(width - 1).bit_length()
    scaled = (1 << bits - exponent) // width
    return min((scaled + 1) // 2 if scaled > 1 << bits else 1 << bits - 1, (1 << bits) - 1), exponent


def _scalar(mantissa: int, exponent: int) -> Iterator[AssemblyOp]:
    """r13, r15: bfloat16 bits of both parts of 1 / sqrt of the mean, whose sum's bits are in r1."""
    yield from with_constant("lshl", "r2", "r1", -8)
    yield from with_constant("and", "r2", "r2", 0x7FFF)
    yield from with_constant("or", "r2", "r2", 0x8000)
    yield from with_constant("mul", "r2", "r2", mantissa)
    yield from with_constant("lshl", "r3", "r2", -31)
    yield from with_constant("sub", "r4", "r3", 1, reverse=True)
    yield AssemblyOp("lshl r2, r2, r4", "from 1 to 2")
    yield from with_constant("lshl", "r5", "r1", -23)
    yield from with_constant("add", "r5", "r5", exponent - 127)
    yield AssemblyOp("add r5, r5, r3", "exponent")
    yield from with_constant("and", "r4", "r5", 1)
    yield from with_constant("add", "r4", "r4", -17)
    yield AssemblyOp("lshl r8, r2, r4", "from 1 to 4")
    yield from short_root("r9", "r8", "r10")
    yield from with_constant("ashl", "r5", "r5", -1)
    yield from two_parts()


def two_parts() -> Iterator[AssemblyOp]:
    """r13, r15: bfloat16 bits of both parts of r9 / 2^15 * 2^-r5 (`kernels/include/row_factor.h`)."""
    yield from with_constant("lshl", "r10", "r9", -7)
    yield from with_constant("add", "r10", "r10", -1)
    yield from with_constant("and", "r11", "r9", 127)
    yield from with_constant("lshl", "r12", "r10", -7)
    yield from with_constant("sub", "r12", "r12", 1, reverse=True)
    yield AssemblyOp("lshl r13, r10, r12")
    yield from with_constant("and", "r13", "r13", 127)
    yield from with_constant("sub", "r14", "r5", 126, reverse=True)
    yield AssemblyOp("sub r14, r14, r12")
    yield from with_constant("sub", "r15", "r5", 119, reverse=True)
    yield from with_constant("lshl", "r14", "r14", 7)
    yield from with_constant("lshl", "r15", "r15", 7)
    yield from (AssemblyOp("or r13, r13, r14"), AssemblyOp("or r15, r15, r11"))


def _scaled(vectors: int, root: tuple[str, str], setup: list[AssemblyOp]) -> FunctionPart:
    ops = [
        *scaled_weights(root),
        named_op(f"vldb x{{x}}, [p3], #{_BYTES}", "p0"),
        named_op("vmul.f dm{y}, x{x}, x{s}, r0"),
        named_op(f"vst.conv.bf16.fp32 cml{{y}}, [p2], #{_BYTES}", "p2"),
    ]
    return replace(repeated("aie2p", [], ops, vectors, _FREE), setup=setup)
