"""Scores of keys that a query must not see, on AIE2P: `attention_mask_bf16`.

A vector has the scores of two queries and eight keys. Of each the number of its key is compared with what bounds its
query's: keys from `fresh` on, and before all keys' end or its own, and in another pass those of its window.
"""

from collections.abc import Callable, Iterator
from functools import partial

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import (
    FRESH,
    KEYS,
    MASKED,
    POSITION,
    START,
    VECTOR,
    Head,
    Ops,
)
from bdforge.core.codegen.kernels.row_scalars import with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, LoopOfParts, repeated, set_register

_ENDS, _FRESH, _KEY, _HIDDEN, _EIGHT, _QUERY = ("x0", "x1", "x2", "x3"), "x4", "x5", "x6", "x7", "x8"
_LAST, _SPARE = "x9", "x10"
_KEPT, _COUNTER = "el0", "r4"
Parts = Iterator[FunctionPart | LoopOfParts]


def mask(head: Head) -> Parts:
    """p0 = s, p1 = state."""
    setup = [AssemblyOp("mov p4, p0", "s for a second pass"), *_numbers(head)]
    yield repeated("aie2p", setup, [named_op(f"mov {_KEPT}, r16")], 1)
    yield from _pass(head, window=False)
    if head.window:
        yield repeated("aie2p", _numbers(head), [named_op("mov p0, p4")], 1)
        yield from _pass(head, window=True)
    yield repeated("aie2p", [], [named_op(f"mov r16, {_KEPT}")], 1)


def _pass(head: Head, window: bool) -> Parts:
    """All rows of tiles: a loop, but where lines of several heads follow each other, of which each is told apart."""
    if head.heads == 1:
        first = [AssemblyOp(f"vadd.32 {_QUERY}, {_QUERY}, {_EIGHT}")]
        yield LoopOfParts([_rows(head, window, first, _beside)], head.row_tiles, _COUNTER)
        return
    for row in range(head.row_tiles):
        first = [AssemblyOp(f"lda r1, [p1, #{POSITION}]"), set_register("r27", 0xFF00)]
        yield _rows(head, window, first, partial(_one_by_one, head, row))


def _beside(x: str, pair: int, less: int) -> Ops:
    """Of each lane, where its query stands, which follows the one before, and a key further, less so many."""
    yield set_register("r8", 2 * pair - less)
    yield from (AssemblyOp(f"vbcst.32 {x}, r8"), AssemblyOp(f"vadd.32 {x}, {x}, {_QUERY}"))


def _one_by_one(head: Head, row: int, x: str, pair: int, less: int) -> Ops:
    """As `_beside`, of two lines."""
    for line, to in enumerate((x, _SPARE)):
        yield from with_constant("add", "r8", "r1", head.query_of(8 * row + 2 * pair + line) + 1 - less)
        yield AssemblyOp(f"vbcst.32 {to}, r8")
    yield AssemblyOp(f"vsel.32 {x}, {x}, {_SPARE}, r27")


def _numbers(head: Head) -> list[AssemblyOp]:
    """Each lane's key behind those of the block, and its query less 7, that of eight rows before and a key further."""
    ops = [AssemblyOp("mov p3, p4")]
    for register, place in (("r0", START), ("r1", POSITION), ("r2", KEYS), ("r3", FRESH)):
        ops.append(AssemblyOp(f"lda {register}, [p1, #{place}]"))
    for x, register in ((_FRESH, "r3"), (_LAST, "r2")):
        ops.append(AssemblyOp(f"vbcst.32 {x}, {register}"))
    for x, value in ((_HIDDEN, MASKED), (_EIGHT, 8)):
        ops += [set_register("r8", value), AssemblyOp(f"vbcst.32 {x}, r8")]
    for lane in range(16):
        ops += with_constant("add", "r9", "r0", head.keys + lane % 8)
        ops.append(AssemblyOp(f"vpush.hi.32 {_KEY}, {_KEY}, r9"))
    for lane in range(16):
        ops += with_constant("add", "r9", "r1", lane // 8 - 7)
        ops.append(AssemblyOp(f"vpush.hi.32 {_QUERY}, {_QUERY}, r9"))
    return ops


def _rows(head: Head, window: bool, setup: list[AssemblyOp], ends: Callable[[str, int, int], Ops]) -> FunctionPart:
    """A row of tiles; registers of keys, and of queries that follow each other, go on to the next."""
    for pair, x in enumerate(_ENDS):
        setup += ends(x, pair, head.window if window else 0)
        if not window:
            found = f"vmin_ge.32 {x}, r16, {x}, {_LAST}, vaddSign1" if head.causal else f"vmov {x}, {_LAST}"
            setup.append(AssemblyOp(found))
    ops = []
    for pair, x in enumerate(_ENDS):
        s = f"x{10 + pair % 2}"
        ops.append(named_op(f"vlda {s}, [p0], #{VECTOR}", "s", f"load {pair}"))
        if window:
            ops.append(named_op(f"vge.32 r27, {_KEY}, {x}, vaddSign1"))
        else:
            ops += [named_op(f"vge.32 r16, {_KEY}, {_FRESH}, vaddSign1", key=f"fresh {pair}"),
                    named_op(f"vlt.32 r27, {_KEY}, {x}, vaddSign1"),
                    named_op("and r27, r27, r16", key=f"both {pair}")]  # fmt: skip
        ops.append(named_op(f"vsel.32 {s}, {_HIDDEN}, {s}, r27", key=f"seen {pair}"))
        ops.append(named_op(f"vst {s}, [p3], #{VECTOR}", "s", f"store {pair}"))
    ops.append(named_op(f"vadd.32 {_KEY}, {_KEY}, {_EIGHT}"))
    part = repeated("aie2p", setup, ops, head.key_tiles, closed=True)
    back = [set_register("r8", -head.keys), AssemblyOp(f"vbcst.32 {_SPARE}, r8")]
    return FunctionPart(
        [*setup, *back, AssemblyOp(f"vadd.32 {_KEY}, {_KEY}, {_SPARE}")], part.issues, part.period, part.times
    )
