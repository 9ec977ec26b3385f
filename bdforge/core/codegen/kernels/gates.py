"""A gate's function times up on AIE2P: `gate_i32_bf16` of FUNCTION=relu2 or silu, with the bits of the C++ kernel.

SiLU: `scaled` leaves gate and up as bfloat16, in micro-tiles in turn. Two passes of a gate's SiLU (`element_floats`)
follow, one over their first vectors and one over the others. Result i goes where a vector of pair i / 2 was read.

The square: two passes over the tile, in place, for a core has one rounding mode at a time. Sums become float32 as
`scaled` has it, those that are 0 a tiny number, since no sum of floats here may be zero. Then pairs of micro-tiles are
multiplied, in two parts of bfloat16 each, which conversions cut towards 0; what is of a gate below 1, or an up that is
0, becomes 0.

Slots bound the second pass by 16 cycles for a pair: of stores, for 14 conversions. Registers make it longer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.digits import PARTS, SIDE, whole_tiles
from bdforge.core.codegen.kernels.element_floats import silu_gates, silu_setup
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options, to_part
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, restored
from bdforge.core.codegen.kernels.scaled import (
    GIVEN,
    INTEGERS,
    SAVED,
    Scaled,
    scaled_parts,
    scaled_pass,
    to_floats,
)
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "gate_i32_bf16"
_FREE = {"x": (3, 4, 5), "y": (3, 4, 5), "dm": (0, 1, 2, 3, 4)}
_CONSTANTS = {"x0": 0x3F80, "x1": 0x3F80, "x2": 1}
"""1.0 in a pair of registers, whose bits are twice near half of bfloat16's last place; an integer."""
_BELOW = {"r5": 0x3F00, "r6": 0x7E00, "r8": 0}  # bits of 1/2, where signs count and where they are shifted out; zero
_C = "C"
_PAIR_VECTORS = SIDE**2 // LANES  # of a micro-tile of bfloat16


@dataclass(frozen=True, slots=True)
class _Gated:
    """A call's micro-tiles of sums, in so many fields, in one of so many parts of a tile."""

    tiles: int
    fields: int
    parts: int
    hardware: bool


def gate(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation, a function or a tile without an assembled one."""
    rows, columns, fields = whole_tiles(name, generation, options)
    wanted = options.given.get("FUNCTION", "none")
    if wanted not in ("relu2", "silu"):
        raise CodegenError(f"{name} is assembled for FUNCTION=relu2 and silu, not for {wanted}")
    if columns % (2 * SIDE):
        raise CodegenError(f"{name}: n = {columns} is no multiple of {2 * SIDE}: gate's and up's columns take turns")
    if wanted == "silu":
        return partial(_silu, scaled_pass(name, generation, options), options.hardware_loops)
    return partial(_written, _Gated(rows * columns // SIDE**2, fields, options.parts, options.hardware_loops))


def _silu(wanted: Scaled, hardware: bool) -> AssemblyKernel:
    """Scaled sums, then SiLU of the gate's vectors times up's."""
    passes = [_silu_pass(wanted, number) for number in range(_PAIR_VECTORS)]
    about = f"{NAME}: {wanted.tiles} micro-tiles of int32 become bfloat16 of half as many: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", [*scaled_parts(wanted), *passes, restored()], about, GIVEN, hardware=hardware)


def _silu_pass(wanted: Scaled, number: int) -> FunctionPart:
    """Over one vector of each micro-tile."""
    tile, first = _PAIR_VECTORS * VECTOR_BYTES, number * VECTOR_BYTES
    setup = [] if number else [*silu_setup()]
    for pointer, offset in (("p0", first), ("p6", first), ("p1", tile + first), ("p2", first)):
        setup += [AssemblyOp(f"mov {pointer}, p7"), set_register("m0", offset), AssemblyOp(f"padda [{pointer}], m0")]
    return replace(silu_gates(2 * tile, tile, _C), setup=setup, times=wanted.tiles // 2)


def _written(wanted: _Gated) -> AssemblyKernel:
    parts = [to_floats(wanted.tiles, wanted.fields, list(_arguments(wanted))), _multiplied(wanted)]
    parts.append(repeated("aie2p", [], [named_op(f"mov {register}, {place}") for register, place in SAVED.items()], 1))
    about = (
        f"{NAME}: {wanted.tiles} micro-tiles of int32 at p0 become bfloat16 of half as many: {{cycles}} cycles (exact)."
    )
    return function(NAME, "aie2p", parts, about, hardware=wanted.hardware)


def _arguments(wanted: _Gated) -> Iterator[AssemblyOp]:
    yield from (AssemblyOp(f"mov {place}, {register}", "kept for the caller") for register, place in SAVED.items())
    yield from to_part(4 * SIDE**2 * wanted.tiles, wanted.parts)
    yield AssemblyOp("mov p1, p0")


def _multiplied(wanted: _Gated) -> FunctionPart:
    """The second pass: floats in p1 become results in p2."""
    setup = [
        AssemblyOp("mov p1, p0"),
        AssemblyOp("mov p2, p0"),
        set_register("r0", FLOAT_CONF),
        set_register("r4", INTEGERS),
    ]
    setup += set_control("crRnd", ROUNDINGS["symmetric_floor"], "cut")
    for register, value in _CONSTANTS.items():
        setup += [set_register("r10", value), AssemblyOp(f"vbcst.16 {register}, r10")]
    setup += [set_register(register, value) for register, value in _BELOW.items()]
    return replace(_pairs(), setup=setup, times=wanted.tiles // 2)


@cache
def _pairs() -> FunctionPart:
    """The second pass over a pair of micro-tiles: what it does is the same for all sizes."""
    return repeated("aie2p", [], list(_pair()), 1, _FREE, list(_order()))


def _pair() -> Iterator[DataflowOp]:
    for name in ("g", "u"):
        yield from (named_op(f"vlda {part}{{{name}}}, [p1], #64", _C) for part in PARTS)
        yield from _cut(name)
    yield from _product("s", (("ghigh", "ghigh"), ("ghigh", "glow"), ("ghigh", "glow")))
    yield from _cut("s")
    yield from _product("z", (("shigh", "uhigh"), ("slow", "uhigh"), ("shigh", "ulow")))
    yield named_op("vmac dm{nearest}, dm{z}, x2, x0, r4")
    for half in (0, 1):
        yield from _half(half)


def _order() -> Iterator[tuple[str, str]]:
    """Parts that come one after the other, as there are three pairs of registers for them."""
    for i in (0, 1):
        yield f"vlt.16 r{16 + i}, x{{ghigh.{i}}}, x{{least{i}}}, vaddSign1", "vconv.bf16.fp32 x{shigh.0}, cml{sless}"
        yield f"vadd.16 x{{shifted{i}}}, x{{uhigh.{i}}}, x{{uhigh.{i}}}", "vconv.bf16.fp32 x{ulow.0}, cml{urest}"
    yield "vmac.f dm{z1}, dm{z0}, y{slow}, y{uhigh}, r0", "vconv.bf16.fp32 x{ulow.0}, cml{urest}"


def _cut(name: str) -> Iterator[DataflowOp]:
    """A number's parts {name}high and {name}low; high is cut from 2 units less, so that the rest is not 0."""
    yield named_op(f"vmsc dm{{{name}less}}, dm{{{name}}}, x2, x2, r4")
    yield from (named_op(f"vconv.bf16.fp32 x{{{name}high.{i}}}, cm{'lh'[i]}{{{name}less}}") for i in (0, 1))
    yield named_op(f"vmsc.f dm{{{name}rest}}, dm{{{name}}}, y{{{name}high}}, y0, r0")
    yield from (named_op(f"vconv.bf16.fp32 x{{{name}low.{i}}}, cm{'lh'[i]}{{{name}rest}}") for i in (0, 1))


def _product(name: str, factors: tuple[tuple[str, str], ...]) -> Iterator[DataflowOp]:
    """The sum of products of parts."""
    for i, (one, other) in enumerate(factors):
        result = name if i + 1 == len(factors) else f"{name}{i}"
        start = f"vmac.f dm{{{result}}}, dm{{{name}{i - 1}}}" if i else f"vmul.f dm{{{result}}}"
        yield named_op(f"{start}, y{{{one}}}, y{{{other}}}, r0")


def _half(i: int) -> Iterator[DataflowOp]:
    """Results of half of the lanes, 0 where the gate is below 1 or up is 0."""
    yield named_op(f"vbcst.16 x{{least{i}}}, r5")
    yield named_op(f"vlt.16 r{16 + i}, x{{ghigh.{i}}}, x{{least{i}}}, vaddSign1")
    yield named_op(f"vadd.16 x{{shifted{i}}}, x{{uhigh.{i}}}, x{{uhigh.{i}}}")
    yield named_op(f"vbcst.16 x{{twice{i}}}, r6")
    yield named_op(f"vlt.16 r{18 + i}, x{{shifted{i}}}, x{{twice{i}}}, vaddSign0")
    yield named_op(f"or r{20 + i}, r{16 + i}, r{18 + i}")
    yield named_op(f"vconv.bf16.fp32 x{{found{i}}}, cm{'lh'[i]}{{nearest}}")
    yield named_op(f"vbcst.16 x{{zero{i}}}, r8")
    yield named_op(f"vsel.16 x{{done{i}}}, x{{found{i}}}, x{{zero{i}}}, r{20 + i}")
    yield named_op(f"vst x{{done{i}}}, [p2], #64", _C)
