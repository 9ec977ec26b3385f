"""Scores and values on AIE2P: products of digits that `attention_queries_bf16` and `attention_weights_bf16` made."""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import (
    BLOCK,
    FRESH,
    HAS_MASK,
    KEYS,
    POSITION,
    START,
    TILE_FLOATS,
    VECTOR,
    Head,
    Ops,
    least,
    most,
    pointer,
)
from bdforge.core.codegen.kernels.digit_products import DigitProduct, Nest, same_exponents
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.row_scalars import op, with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register

Parts = Iterator[FunctionPart]
_MAGIC = "ex10"
_MANTISSA = 0xA0A0A0A0  # -1.5 in 1/64, of all lanes


def _even() -> list[AssemblyOp]:
    return set_control("crRnd", ROUNDINGS["conv_even"])


def scores(head: Head) -> Parts:
    """s = MAGIC + (q k^T - M); p0 = q, p1 = k, p2 = s, p3 = state."""
    rows, columns = head.pairs, head.key_tiles // 2
    across, down = 2 * TILE_FLOATS, 2 * head.key_tiles * TILE_FLOATS
    product = DigitProduct(
        head.dim_tiles, ((rows, 1, 0), (columns, 0, 1)), False, ((TILE_FLOATS, 0), (across, 0)),
        ((head.key_tiles * TILE_FLOATS, TILE_FLOATS), (down, across)), _MAGIC, head.digits,
    )  # fmt: skip
    setup = [
        *_even(), *_taken(head), *pointer("p4", "p0", product.planes_bytes), *pointer("p6", "p3", head.state("begin")),
        set_register("r8", _MANTISSA), AssemblyOp(f"vbcst.32 x{_MAGIC[2:]}, r8"),
        *same_exponents(_MAGIC, 127 + 15 + head.exponent),
    ]  # fmt: skip
    yield product.part(setup)


def _taken(head: Head) -> Ops:
    """The next block's number, where it starts, and whether a query of it must not see one of its keys."""
    for register, place in (("r8", BLOCK), ("r9", POSITION), ("r10", KEYS)):
        yield AssemblyOp(f"lda {register}, [p3, #{place}]")
    yield from with_constant("mul", "r11", "r8", head.keys)
    yield from with_constant("add", "r8", "r8", 1)
    yield from with_constant("sub", "r12", "r10", head.keys)
    yield from (set_register("r13", 0), *most("r12", "r12", "r13"), *least("r12", "r12", "r11"))
    yield op("lt", "r13", "r12", "r11")
    yield from with_constant("add", "r14", "r12", head.keys)
    yield from (op("lt", "r15", "r10", "r14"), op("or", "r13", "r13", "r15"))
    if head.causal:
        yield from with_constant("add", "r14", "r14", -1)
        yield from (op("lt", "r15", "r9", "r14"), op("or", "r13", "r13", "r15"))
    if head.window:
        yield from with_constant("add", "r14", "r9", head.item_queries - 1 - head.window)
        yield from (op("ge", "r15", "r14", "r12"), op("or", "r13", "r13", "r15"))
    for register, place in (("r8", BLOCK), ("r12", START), ("r11", FRESH), ("r13", HAS_MASK)):
        yield AssemblyOp(f"st {register}, [p3, #{place}]")


def values(head: Head) -> Parts:
    """o += p v, and the sums that weights made; p0 = p, p1 = v, p2 = o, p3 = state."""
    block = 4 * TILE_FLOATS
    sums = (TILE_FLOATS, 2 * TILE_FLOATS), (head.dim_tiles // 2 * block, block)
    product = DigitProduct(head.key_tiles, _halves_in_turn(head), True, sums, sums, digits=head.digits)
    yield product.part([*_even(), *pointer("p4", "p0", product.planes_bytes), AssemblyOp("mov p6, p2")])
    setup = [*pointer("p4", "p3", head.state("next")), *pointer("p5", "p3", head.state("sums"))]
    ops = [named_op(f"vldb x{{x}}, [p4], #{VECTOR}", "next"), named_op(f"vst x{{x}}, [p5], #{VECTOR}", "sums")]
    yield repeated("aie2p", setup, ops, head.queries // 2, {"x": range(8)})


def _halves_in_turn(head: Head) -> Nest:
    """Blocks of o's halves in turn, which may stand in two banks, so that loads of sums don't meet the stores of the
    block before. A half is so many pairs of rows of tiles, or of one pair so many columns; an odd number of more pairs
    is gone down."""
    rows, columns = head.pairs, head.dim_tiles // 2
    if rows % 2 == 0:
        return (rows // 2, 1, 0), (columns, 0, 1), (2, rows // 2, 0)
    if rows == 1 and columns % 2 == 0:
        return (columns // 2, 0, 1), (2, 0, columns // 2)
    return (columns, 0, 1), (rows, 1, 0)
