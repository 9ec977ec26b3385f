"""LayerNorm of rows on AIE2P: passes of `layernorm_bf16`, with the bits of `kernels/include/layernorm.h`.

A first pass adds elements up in the lanes of dm4; their sum's product with -1 / width, both in three bfloat16 parts, is
minus the mean in dm3. A second one adds squares of x - mean, in two parts, in dm4; a third one scales and shifts, or
makes codes (`layer_codes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels import layer_codes
from bdforge.core.codegen.kernels.float_products import float_product, loaded_floats, parts_of, three_parts
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.lane_block import VECTOR_BYTES, Ops, restored
from bdforge.core.codegen.kernels.row_floats import NormRow, lanes_sum, mean_bits, root_parts, row_sums
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "layernorm_bf16"
_SUMS, _LESS_MEAN, _LOADED = "dm4", "dm3", "dm2"
"""Sums; minus the mean; where floats are loaded, whose lanes beyond 32 stay 0, since accumulators are added in 64."""
_ONES, _ROOT = "x11", ("x9", "x10")
_FREE = {"x": range(9), "dm": (0, 1)}
_MORE = _FREE | {"dm": (0, 1, 4)}


def layernorm(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel of whole rows; CodegenError as of `normed_row`."""
    return partial(_written, NormRow.of(name, generation, options), options.hardware_loops)


def _written(row: NormRow, hardware: bool) -> AssemblyKernel:
    parts = _coded(row) if row.codes else _normed(row)
    if row.residual:
        waiting = [AssemblyOp(f"mov {to}") for to in ("p6, p2", "p7, p3", "p2, p4", "p3, p4")]
        parts = [row_sums(row, waiting), *parts]
    last = [restored()] if row.residual or row.codes else []
    about = f"{NAME}: a row of {row.width} elements; {_pointers(row)}: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", [*parts, *last], about, hardware=hardware)


def _pointers(row: NormRow) -> str:
    """What the function is called with, for a comment."""
    names = ["x", *(["residual"] if row.residual else []), "w", "b"]
    if row.codes:
        names += ["sum and codes and scale"] if row.residual else ["codes", "scale"]
    else:
        names += [*(["sum"] if row.residual else []), "y"]
    return ", ".join(f"p{i} = {name}" for i, name in enumerate(names))


def _coded(row: NormRow) -> list[FunctionPart]:
    first = replace(totals(row), setup=[*layer_codes.pointers(row), *begun()])
    return layer_codes.parts(row, first, less_mean(row))


def _normed(row: NormRow) -> list[FunctionPart]:
    moved = ("p0, p3", "p1, p6", "p2, p7", "p3, p5") if row.residual else ()
    pointers = [AssemblyOp(f"mov {to}") for to in (*moved, "p4, p0", "p5, p0")]
    return [
        replace(totals(row), setup=[*pointers[: len(moved)], *begun(), *pointers[len(moved) :]]), less_mean(row),
        replace(squares(row), setup=[AssemblyOp(f"vclr {_SUMS}")]), shifted(row),
    ]  # fmt: skip


def begun() -> Iterator[AssemblyOp]:
    """What all passes take for granted: modes, ones, accumulators of 0."""
    yield from (*set_control("crRnd", ROUNDINGS["conv_even"]), set_register("r0", FLOAT_CONF))
    yield from (set_register("r1", 0x3F80), AssemblyOp(f"vbcst.16 {_ONES}, r1"))
    yield from (AssemblyOp(f"vclr dm{i}") for i in range(5))


def totals(row: NormRow) -> FunctionPart:
    """p0's elements, added to dm4."""
    if row.floats:
        ops = [*loaded_floats("x", "p0", "p0"), named_op(f"vadd.f {_SUMS}, {_SUMS}, dm{{x}}, r0")]
    else:
        ops = [named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0")]
        ops += [named_op(f"vmac.f {_SUMS}, {_SUMS}, x{{x}}, {_ONES}, r0")]
    return repeated("aie2p", [], ops, row.vectors, _FREE)


def less_mean(row: NormRow, setup: Sequence[AssemblyOp] = ()) -> FunctionPart:
    """Minus the mean of a row in dm3, of sums in dm4, after `setup`."""
    share = int(np.float32(-1 / row.width).view(np.int32))
    setup = [*setup, *lanes_sum(_SUMS), AssemblyOp("vmov x9, bmll0")]
    setup += [set_register("r1", share), AssemblyOp("vbcst.32 x10, r1")]
    ops = [
        named_op(f"vmov bm{half}{{{name}}}, {x}") for name, x in (("s", "x9"), ("c", "x10")) for half in ("ll", "lh")
    ]
    for name in ("s", "c"):
        ops += three_parts(name, parts_of(name), _ONES)
    ops += [*float_product("mean", parts_of("s"), parts_of("c")), named_op(f"vmov cml{_LESS_MEAN[2:]}, cml{{mean}}")]
    return repeated("aie2p", setup, ops, 1, _MORE)


def squares(row: NormRow) -> FunctionPart:
    """Squares of x - mean of p4's elements, added to dm4."""
    ops = [*_centred("p4", row.floats), named_op(f"vmac.f {_SUMS}, {_SUMS}, x{{high}}, x{{high}}, r0")]
    ops += [named_op(f"vmac.f {_SUMS}, {_SUMS}, x{{high}}, x{{low}}, r0", key=f"twice {i}") for i in (0, 1)]
    return repeated("aie2p", [], ops, row.vectors, _FREE)


def shifted(row: NormRow) -> FunctionPart:
    """(x - mean) r w + b of p5, p1 and p2 to p3; the lanes of dm4 are squares."""
    high, low = _ROOT
    ops = [
        *_centred("p5", row.floats),
        named_op(f"vmul.f dm{{n0}}, x{{high}}, {high}, r0"),
        named_op(f"vmac.f dm{{n1}}, dm{{n0}}, x{{high}}, {low}, r0"),
        named_op(f"vmac.f dm{{n2}}, dm{{n1}}, x{{low}}, {high}, r0"),
        named_op("vconv.bf16.fp32 x{n}, cml{n2}"),
        named_op(f"vldb x{{b}}, [p2], #{VECTOR_BYTES}", "p2"),
        named_op(f"vmul.f dm{{shift}}, x{{b}}, {_ONES}, r0"),
        named_op(f"vldb x{{w}}, [p1], #{VECTOR_BYTES}", "p1"),
        named_op("vmac.f dm{y}, dm{shift}, x{n}, x{w}, r0"),
        named_op(f"vst.conv.bf16.fp32 cml{{y}}, [p3], #{VECTOR_BYTES}", "p3"),
    ]
    setup = [*mean_bits(row.added), *root_parts(row.width, *_ROOT)]
    return replace(repeated("aie2p", [], ops, row.vectors, _MORE), setup=setup)


def _centred(pointer: str, floats: bool) -> Ops:
    """x - mean in two parts."""
    if floats:
        for half in ("ll", "lh"):
            yield named_op(f"vlda bm{half}{_LOADED[2:]}, [{pointer}], #{VECTOR_BYTES}", "p0")
        yield named_op(f"vadd.f dm{{exact}}, {_LESS_MEAN}, {_LOADED}, r0")
    else:
        yield named_op(f"vlda x{{x}}, [{pointer}], #{VECTOR_BYTES}", "p0")
        yield named_op(f"vmac.f dm{{exact}}, {_LESS_MEAN}, x{{x}}, {_ONES}, r0")
    yield named_op("vconv.bf16.fp32 x{high}, cml{exact}")
    yield named_op(f"vmsc.f dm{{rest}}, dm{{exact}}, x{{high}}, {_ONES}, r0")
    yield named_op("vconv.bf16.fp32 x{low}, cml{rest}")
