"""Sums times powers of two on AIE2P, in place: what moves them to another M, as `shifted` of the C++ kernels does."""

from collections.abc import Iterator
from math import prod

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import TILE_FLOATS, VECTOR, Head, Ops, plain
from bdforge.core.codegen.kernels.digit_products import access
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P

_PERIOD = 7  # fewer leave no place for the count and the branch of a loop
_VECTORS = TILE_FLOATS // VECTOR


def broadcast(values: dict[str, int]) -> Ops:
    """Numbers in all lanes of registers; r8 is worked with."""
    for x, value in values.items():
        yield from (set_register("r8", value), AssemblyOp(f"vbcst.32 {x}, r8"))


def further(p: str, size: int) -> Ops:
    """A pointer so many bytes further, by way of m7."""
    yield from (set_register("m7", size), plain(f"padda [{p}], m7"))


def shifted(head: Head, setup: list[AssemblyOp], o: str) -> Iterator[FunctionPart]:
    """Sums of weights, at p6, and o, at another pointer; p4 has what exponents of each row are moved by.

    p5, p7 and r16 are worked with.
    """
    ready = [*setup, plain("mov p7, p6"), *broadcast({"x8": 0x7F800000, "x9": 0})]
    yield _scaled(ready, ("p6", "p7"), ((head.row_tiles * _VECTORS, VECTOR),))
    back = [plain(f"mov p5, {o}"), *further("p4", -head.row_tiles * TILE_FLOATS)]
    yield _scaled(back, (o, "p5"), ((head.pairs, 2 * TILE_FLOATS), (head.dim_tiles, 0), (2 * _VECTORS, VECTOR)))


def _scaled(setup: list[AssemblyOp], pointers: tuple[str, str], walk: tuple[tuple[int, int], ...]) -> FunctionPart:
    """Floats of vectors, 0 where that is too small; `walk` is that of what exponents are moved by."""
    made = Steppers(AIE2P.small, AIE2P.access)
    ((after,),) = made.walks([PointerWalk("p4", (0,), walk)])
    ops = [
        named_op(f"vldb x{{b}}, [{pointers[0]}], #{VECTOR}"), named_op(f"vlda{access('x{by}', 'p4', after)}"),
        named_op("vband x{e}, x{b}, x8"), named_op("vadd.32 x{m}, x{e}, x{by}"),
        named_op("vlt.32 r16, x9, x{e}, vaddSign1"), named_op("vlt.32 r27, x9, x{m}, vaddSign1"),
        named_op("and r27, r27, r16", key="both"), named_op("vadd.32 x{r}, x{b}, x{by}"),
        named_op("vsel.32 x{y}, x9, x{r}, r27"), named_op(f"vst x{{y}}, [{pointers[1]}], #{VECTOR}"),
    ]  # fmt: skip
    constants = [set_register(register, value) for register, value in made.constants.items()]
    return repeated(
        "aie2p",
        [*setup, *constants],
        ops,
        prod(count for count, _ in walk),
        {"x": (*range(8), 10, 11)},
        shortest=_PERIOD,
    )
