"""Rotary position embedding on AIE2P: `rope_bf16`, with the bits of `kernels/aie2p/rope_bf16.cc`.

A part for each group of heads and vector of angles, whose cosines and sines stay in registers; its block is a head.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.float_products import float_product, parts_of, three_parts
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.row_scale import FACTOR, ONES, factor, scale_setup
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "rope_bf16"
_LANES, _BYTES = 32, 64
_START, _LEAST, _LEAST_KEPT, _MORE = "dm4", 0x0D800001, 0x0D81, 0x3700  # the last is 2^-17 in bf16
_COSINES, _SINES, _FURTHER, _NONE, _SIZE, _LIMIT = "x6", "x7", "x8", "x9", "x10", "x11"
_UNZIP, _ZIP = (2, 3), (18, 19)  # VSHUFFLE modes of lanes of 16 bits
_FREE = {"x": range(6), "dm": range(4)}


@dataclass(frozen=True, slots=True)
class _Rope:
    """Elements of a head, heads of each group and whether angles turn it, the form of pairs, and scales."""

    dim: int
    groups: tuple[tuple[int, bool], ...]
    neighbours: bool
    scaled: bool

    @classmethod
    def of(cls, name: str, options: Options) -> "_Rope":
        """From a kernel's options; CodegenError for sizes without one."""
        dim, elements = options.number("HEAD_DIM", 0), options.number("TILE_ELEMENTS", 0)
        if dim < 1 or dim % (2 * _LANES):
            raise CodegenError(f"{name}: HEAD_DIM={dim} is no multiple of {2 * _LANES}")
        if elements < 1 or elements % dim:
            raise CodegenError(f"{name}: {elements} elements are no whole heads of {dim}")
        heads = [int(one) for one in options.given.get("OUTPUT_HEADS", str(elements // dim)).split(",")]
        turned = options.given.get("TURNED", "1").split(",")
        if sum(heads) * dim != elements or len(turned) != len(heads):
            raise CodegenError(f"{name}: OUTPUT_HEADS and TURNED are of {heads} and {turned}, {elements // dim} in all")
        groups = tuple((count, word == "1") for count, word in zip(heads, turned, strict=True))
        return cls(dim, groups, options.has("NEIGHBOURS"), options.has("SCALED"))


def rope(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a size without one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    return partial(_written, _Rope.of(name, options), options.hardware_loops)


def _written(wanted: _Rope, hardware: bool) -> AssemblyKernel:
    pairs = "neighbours" if wanted.neighbours else "halves"
    heads = ", ".join(str(count) for count, _ in wanted.groups)
    pointers = "x, t, s, c, y" if wanted.scaled else "x, t, y"
    about = f"{NAME}: {heads} heads of {wanted.dim}, pairs of {pairs}; pointers {pointers}: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", list(_parts(wanted)), about, hardware=hardware)


def _parts(wanted: _Rope) -> Iterator[FunctionPart]:
    ops, setup = list(_head(wanted)), [*_constants(wanted)]
    starts, first, back = range(0, wanted.dim // 2, _LANES), 0, False
    for number, (heads, turned) in enumerate(wanted.groups):
        if wanted.scaled:
            yield factor([*setup, AssemblyOp("mov p4, m2"), AssemblyOp(f"lda r13, [p4, #{4 * number}]")])
            setup = [AssemblyOp(f"vclr {_START}")]
        if turned and back:
            setup += [set_register("r2", -wanted.dim), AssemblyOp("mov m1, r2"), AssemblyOp("padda [p1], m1")]
        for at in starts:
            angles = _angles(wanted.dim, wanted.scaled) if turned else _no_angles(wanted.scaled)
            setup += [*_pointers(wanted, at, first), *angles]
            yield repeated("aie2p", setup, ops, heads, _FREE)
            setup = []
        first, back = first + 2 * wanted.dim * heads, back or turned


def _constants(wanted: _Rope) -> Iterator[AssemblyOp]:
    """What all parts keep; m0 is a head further, m2 points at scales of groups, r12 has a token's."""
    if wanted.scaled:
        yield from (*scale_setup(), AssemblyOp("lda r12, [p2, #0]"), AssemblyOp("mov m2, p3"), AssemblyOp("mov p2, p4"))
        registers = {"r6": 2 * wanted.dim}
    else:
        yield from set_control("crRnd", ROUNDINGS["conv_even"])
        registers = {"r0": FLOAT_CONF, "r1": _MORE, "r2": _LEAST, "r3": 0x7FFF, "r4": _LEAST_KEPT, "r5": 0}
        registers["r6"] = 2 * wanted.dim
    yield from (set_register(register, value) for register, value in registers.items())
    yield from (set_register(f"r{8 + i}", mode) for i, mode in enumerate((*_UNZIP, *_ZIP)))
    if wanted.scaled:
        yield AssemblyOp("mov m0, r6")
        return
    yield from (AssemblyOp("vbcst.32 x0, r2"), AssemblyOp("mov m0, r6"))
    yield from (AssemblyOp(f"vmov bml{half}4, x0") for half in "lh")
    yield from (AssemblyOp(f"vbcst.16 {x}, {r}") for x, r in ((_NONE, "r5"), (_SIZE, "r3"), (_LIMIT, "r4")))


def _pointers(wanted: _Rope, at: int, before: int) -> Iterator[AssemblyOp]:
    """p3 at a part's sines, p4 and p5 at its vectors of the first head, p6 and p7 at those of y."""
    dim = wanted.dim
    first, apart = (4 * at, _BYTES) if wanted.neighbours else (2 * at, dim)
    first += before
    for register, pointer, offset in (("p3", "p1", dim), ("p4", "p0", first), ("p5", "p0", first + apart),
                                      ("p6", "p2", first), ("p7", "p2", first + apart)):  # fmt: skip
        yield from (AssemblyOp(f"mov {register}, {pointer}"), set_register("r2", offset))
        yield from (AssemblyOp("mov m1, r2"), AssemblyOp(f"padda [{register}], m1"))


def _angles(dim: int, scaled: bool) -> Iterator[AssemblyOp]:
    """A part's cosines and sines, and where p1 is that of the next one."""
    yield from (AssemblyOp(f"vlda {_COSINES}, [p1], #{_BYTES}"), AssemblyOp(f"vlda {_SINES}, [p3], #0"))
    if not scaled:
        yield from _further()


def _no_angles(scaled: bool) -> Iterator[AssemblyOp]:
    for vector, value in ((_COSINES, 0x3F80), (_SINES, 0)):
        yield from (set_register("r2", value), AssemblyOp(f"vbcst.16 {vector}, r2"))
    if not scaled:
        yield from _further()


def _further() -> Iterator[AssemblyOp]:
    yield from (AssemblyOp("vbcst.16 x0, r1"), AssemblyOp(f"vmul.f dm0, {_COSINES}, x0, r0"))
    yield AssemblyOp(f"vconv.bf16.fp32 {_FURTHER}, cml0")


def _head(wanted: _Rope) -> Iterator[DataflowOp]:
    """A vector of pairs of a head."""
    neighbours, turned = wanted.neighbours, _scaled if wanted.scaled else _rounded
    yield from (named_op("vlda x{first}, [p4], m0", "p0"), named_op("vldb x{second}, [p5], m0", "p0"))
    a, b, y, z = ("a", "b", "y", "z") if neighbours else ("first", "second", "third", "fourth")
    if neighbours:
        yield from (named_op(f"vshuffle x{{{x}}}, x{{first}}, x{{second}}, r{8 + i}") for i, x in enumerate((a, b)))
    for one, other, way, found in ((a, b, "vmsc.f", y), (b, a, "vmac.f", z)):
        yield named_op(f"vmac.f dm{{{found}0}}, {_START}, x{{{one}}}, {_COSINES}, r0")
        yield from turned(one, other, way, found)
    if neighbours:
        yield from (
            named_op(f"vshuffle x{{{x}}}, x{{{y}}}, x{{{z}}}, r{10 + i}") for i, x in enumerate(("third", "fourth"))
        )
    yield from (named_op(f"vst x{{{x}}}, [{p}], m0", "p2") for x, p in (("third", "p6"), ("fourth", "p7")))


def _rounded(one: str, other: str, way: str, found: str) -> Iterator[DataflowOp]:
    yield named_op(f"vmac.f dm{{{found}1}}, dm{{{found}0}}, x{{{one}}}, {_FURTHER}, r0")
    yield named_op(f"{way} dm{{{found}2}}, dm{{{found}1}}, x{{{other}}}, {_SINES}, r0")
    yield named_op(f"vconv.bf16.fp32 x{{{found}3}}, cml{{{found}2}}")
    yield named_op(f"vband x{{{found}4}}, x{{{found}3}}, {_SIZE}")
    yield named_op(f"vlt.16 r27, x{{{found}4}}, {_LIMIT}, vaddSign1")
    yield named_op(f"vsel.16 x{{{found}}}, x{{{found}3}}, {_NONE}, r27")


def _scaled(one: str, other: str, way: str, found: str) -> Iterator[DataflowOp]:
    whole, product = f"{found}whole", f"{found}product"
    yield named_op(f"{way} dm{{{whole}}}, dm{{{found}0}}, x{{{other}}}, {_SINES}, r0")
    yield from (*three_parts(whole, parts_of(whole), ONES), *float_product(product, parts_of(whole), FACTOR))
    yield named_op(f"vconv.bf16.fp32 x{{{found}}}, cml{{{product}}}")
