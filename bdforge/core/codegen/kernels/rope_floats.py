"""Rotary position embedding on AIE2P: `rope_bf16`, with the bits of `kernels/aie2p/rope_bf16.cc`.

A part for each vector of angles, whose cosines and sines stay in registers; its block is a head.
"""

from collections.abc import Iterator
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "rope_bf16"
_LANES, _BYTES = 32, 64
_START, _LEAST, _LEAST_KEPT, _MORE = "dm4", 0x0D800001, 0x0D81, 0x3700  # the last is 2^-17 in bf16
_COSINES, _SINES, _FURTHER, _NONE, _SIZE, _LIMIT = "x6", "x7", "x8", "x9", "x10", "x11"
_UNZIP, _ZIP = (2, 3), (18, 19)  # VSHUFFLE modes of lanes of 16 bits
_FREE = {"x": range(6), "dm": range(4)}


def rope(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a size without one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    dim, elements = options.number("HEAD_DIM", 0), options.number("TILE_ELEMENTS", 0)
    if dim < 1 or dim % (2 * _LANES):
        raise CodegenError(f"{name}: HEAD_DIM={dim} is no multiple of {2 * _LANES}")
    if elements < 1 or elements % dim:
        raise CodegenError(f"{name}: {elements} elements are no whole heads of {dim}")
    return partial(_written, dim, elements // dim, options.has("NEIGHBOURS"), options.hardware_loops)


def _written(dim: int, heads: int, neighbours: bool, hardware: bool) -> AssemblyKernel:
    ops, starts = list(_head(neighbours)), range(0, dim // 2, _LANES)
    setups = [[*([] if at else _constants(dim)), *_angles(dim, at, neighbours)] for at in starts]
    parts = [repeated("aie2p", setup, ops, heads, _FREE) for setup in setups]
    pairs = "neighbours" if neighbours else "halves"
    about = f"{NAME}: {heads} heads of {dim}, pairs of {pairs}; p0 = x, p1 = t, p2 = y: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", parts, about, hardware=hardware)


def _constants(dim: int) -> Iterator[AssemblyOp]:
    """What all parts keep; m0 is a head further."""
    yield from set_control("crRnd", ROUNDINGS["conv_even"])
    registers = {"r0": FLOAT_CONF, "r1": _MORE, "r2": _LEAST, "r3": 0x7FFF, "r4": _LEAST_KEPT, "r5": 0, "r6": 2 * dim}
    yield from (set_register(register, value) for register, value in registers.items())
    yield from (set_register(f"r{8 + i}", mode) for i, mode in enumerate((*_UNZIP, *_ZIP)))
    yield from (AssemblyOp("vbcst.32 x0, r2"), AssemblyOp("mov m0, r6"))
    yield from (AssemblyOp(f"vmov bml{half}4, x0") for half in "lh")
    yield from (AssemblyOp(f"vbcst.16 {x}, {r}") for x, r in ((_NONE, "r5"), (_SIZE, "r3"), (_LIMIT, "r4")))


def _angles(dim: int, at: int, neighbours: bool) -> Iterator[AssemblyOp]:
    """A part's cosines and sines; p4 and p5 at its vectors of the first head, p6 and p7 at those of y."""
    first, apart = (4 * at, _BYTES) if neighbours else (2 * at, dim)
    for register, pointer, offset in (("p3", "p1", dim), ("p4", "p0", first), ("p5", "p0", first + apart),
                                      ("p6", "p2", first), ("p7", "p2", first + apart)):  # fmt: skip
        yield from (AssemblyOp(f"mov {register}, {pointer}"), set_register("r2", offset))
        yield from (AssemblyOp("mov m1, r2"), AssemblyOp(f"padda [{register}], m1"))
    yield from (AssemblyOp(f"vlda {_COSINES}, [p1], #{_BYTES}"), AssemblyOp(f"vlda {_SINES}, [p3], #0"))
    yield from (AssemblyOp("vbcst.16 x0, r1"), AssemblyOp(f"vmul.f dm0, {_COSINES}, x0, r0"))
    yield AssemblyOp(f"vconv.bf16.fp32 {_FURTHER}, cml0")


def _head(neighbours: bool) -> Iterator[DataflowOp]:
    """A vector of pairs of a head."""
    yield from (named_op("vlda x{first}, [p4], m0", "p0"), named_op("vldb x{second}, [p5], m0", "p0"))
    a, b, y, z = ("a", "b", "y", "z") if neighbours else ("first", "second", "third", "fourth")
    if neighbours:
        yield from (named_op(f"vshuffle x{{{x}}}, x{{first}}, x{{second}}, r{8 + i}") for i, x in enumerate((a, b)))
    for one, other, way, found in ((a, b, "vmsc.f", y), (b, a, "vmac.f", z)):
        yield named_op(f"vmac.f dm{{{found}0}}, {_START}, x{{{one}}}, {_COSINES}, r0")
        yield named_op(f"vmac.f dm{{{found}1}}, dm{{{found}0}}, x{{{one}}}, {_FURTHER}, r0")
        yield named_op(f"{way} dm{{{found}2}}, dm{{{found}1}}, x{{{other}}}, {_SINES}, r0")
        yield named_op(f"vconv.bf16.fp32 x{{{found}3}}, cml{{{found}2}}")
        yield named_op(f"vband x{{{found}4}}, x{{{found}3}}, {_SIZE}")
        yield named_op(f"vlt.16 r27, x{{{found}4}}, {_LIMIT}, vaddSign1")
        yield named_op(f"vsel.16 x{{{found}}}, x{{{found}3}}, {_NONE}, r27")
    if neighbours:
        yield from (
            named_op(f"vshuffle x{{{x}}}, x{{{y}}}, x{{{z}}}, r{10 + i}") for i, x in enumerate(("third", "fourth"))
        )
    yield from (named_op(f"vst x{{{x}}}, [{p}], m0", "p2") for x, p in (("third", "p6"), ("fourth", "p7")))
