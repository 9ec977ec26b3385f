"""Rows times a scale of their own and one of all rows on AIE2P, with the bits of `kernels/include/row_scale.h`:
`residual_bf16`, and the factor that rotary embeddings take.
"""

from collections.abc import Iterator
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.float_products import (
    float_product,
    loaded_floats,
    parts_of,
    stored_floats,
    three_parts,
)
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, Ops
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

NAME = "residual_bf16"
ONES, FACTOR = "x11", ("x8", "x9", "x10")
"""Lanes of 1.0, and the parts of a factor."""
_FREE = {"x": range(8), "dm": range(4)}


def scale_setup() -> Iterator[AssemblyOp]:
    """What `factor` takes for granted, once for a call."""
    yield from (*set_control("crRnd", ROUNDINGS["conv_even"]), set_register("r0", FLOAT_CONF))
    yield from (set_register("r1", 0x3F80), AssemblyOp(f"vbcst.16 {ONES}, r1"))


def factor(setup: list[AssemblyOp]) -> FunctionPart:
    """The product of two floats, whose bits `setup` brings into r12 and r13, in parts; works with x0 to x7."""
    setup = [*setup, AssemblyOp("vbcst.32 x6, r12"), AssemblyOp("vbcst.32 x7, r13")]
    ops: list[DataflowOp] = []
    for name, bits in (("s", "x6"), ("c", "x7")):
        ops += [named_op(f"vmov bm{half}{{{name}}}, {bits}") for half in ("ll", "lh")]
        ops += three_parts(name, parts_of(name), ONES)
    ops += [*float_product("f", parts_of("s"), parts_of("c")), *three_parts("f", FACTOR, ONES)]
    return repeated("aie2p", setup, ops, 1, {"x": range(6), "dm": range(5)})


def residual(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a width without one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    elements = options.number("TILE_ELEMENTS", 0)
    if elements < 1 or elements % LANES:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {LANES}")
    return partial(_written, elements, options.number("X_F32", 0) == 1, options.hardware_loops)


def _written(elements: int, floats: bool, hardware: bool) -> AssemblyKernel:
    setup = [*scale_setup(), AssemblyOp("lda r12, [p2, #0]"), AssemblyOp("lda r13, [p3, #0]")]
    row = repeated("aie2p", [AssemblyOp("vclr dm4")], list(_sum(floats)), elements // LANES, _FREE)
    about = f"{NAME}: a row of {elements} elements; pointers x, r, s, c, sum: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", [factor(setup), row], about, hardware=hardware)


def _sum(floats: bool) -> Ops:
    """A vector's."""
    if floats:
        yield from loaded_floats("x0", "p0", "p0")
    else:
        yield named_op(f"vlda x{{x}}, [p0], #{VECTOR_BYTES}", "p0")
        yield named_op(f"vmac.f dm{{x0}}, dm4, x{{x}}, {ONES}, r0")
    yield named_op(f"vldb x{{r}}, [p1], #{VECTOR_BYTES}", "p1")
    for i, part in enumerate(reversed(FACTOR)):
        yield named_op(f"vmac.f dm{{x{i + 1}}}, dm{{x{i}}}, x{{r}}, {part}, r0")
    yield from stored_floats("x3", "p4", "p4", narrow=not floats)
