"""What a core does when it takes up an item, `attention_begin_bf16`, and with its queries, `attention_queries_bf16`."""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import (
    BLOCK,
    BLOCKS,
    KEYS,
    POSITION,
    QUERIES,
    VECTOR,
    Head,
    Ops,
    chosen,
    divided,
    least,
    most,
    of_pair,
    pointer,
)
from bdforge.core.codegen.kernels.digit_products import IDENTITY, access, minus_identity
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.row_scalars import op, with_constant
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P, BLOCK_CONF

_SPARE = "r10", "r11"


def begin(head: Head) -> Iterator[FunctionPart]:
    """p0 = state, p1 = parameters, r0 = round, r1 = row, r2 = column."""
    yield _stored([*_item(head), *_numbers(head)], {"p4": "x0", "p5": "x1"}, head.queries // 16)
    yield _stored(_rows(head), {"p4": "x2", "p5": "x0"}, head.queries // 2)


def queries(head: Head) -> Iterator[FunctionPart]:
    """p0 = given, p1 = q, p2 = o, r0 = pair."""
    yield _digits(head)
    yield _stored([set_register("r8", 0), AssemblyOp("vbcst.32 x0, r8")], {"p2": "x0"}, head.dim)


def _stored(setup: list[AssemblyOp], stores: dict[str, str], times: int) -> FunctionPart:
    return repeated("aie2p", setup, [named_op(f"vst {x}, [{p}], #{VECTOR}", p) for p, x in stores.items()], times)


def _item(head: Head) -> Ops:
    """The item's numbers to the state, as `take_item` of the C++ kernel has them."""
    aside, kv_heads, rows, columns = head.shares
    for register, place in (("r8", 4), ("r9", 8)):
        yield AssemblyOp(f"lda {register}, [p1, #{place}]")
    yield from (AssemblyOp(f"st r8, [p0, #{QUERIES}]"), AssemblyOp(f"st r9, [p0, #{KEYS}]"))
    yield from (*_rounded_up("r15", "r8", head.item_queries, "r14"), *with_constant("mul", "r15", "r15", aside))
    yield from (*_rounded_up("r3", "r15", columns, "r14"), *with_constant("mul", "r3", "r3", kv_heads))
    yield from (set_register("r12", 0), *_unit(kv_heads, rows))
    yield from (*divided("r13", "r0", kv_heads, _SPARE), *with_constant("mul", "r13", "r13", columns))
    yield from (*with_constant("add", "r14", "r13", columns), *least("r14", "r14", "r15"))
    yield from with_constant("add", "r14", "r14", -1)
    yield op("sub", "r3", "r9", "r8") if head.causal else set_register("r3", 0)
    yield from (*with_constant("sub", "r4", "r8", head.item_queries), *most("r4", "r4", "r12"))
    yield from _rounded_up("r15", "r9", head.keys, "r9")
    if head.causal:
        yield from (*_first_query(head, "r0", "r14"), *with_constant("add", "r0", "r0", head.item_queries - 1))
        yield from (*divided("r1", "r0", head.keys, _SPARE), *with_constant("add", "r1", "r1", 1))
        yield from least("r15", "r1", "r15")
    yield set_register("r9", 0)
    if head.window:
        yield from (*_first_query(head, "r0", "r13"), *with_constant("add", "r0", "r0", 1 - head.window))
        yield from (*most("r0", "r0", "r12"), *divided("r9", "r0", head.keys, _SPARE))
    yield from (op("sub", "r15", "r15", "r9"), *_range(head))
    yield from (op("add", "r13", "r13", "r2"), *least("r13", "r13", "r14"))
    yield from _first_query(head, "r0", "r13")
    for register, place in (("r15", BLOCKS), ("r9", BLOCK), ("r0", POSITION)):
        yield AssemblyOp(f"st {register}, [p0, #{place}]")


def _unit(kv_heads: int, rows: int) -> Ops:
    """r0 = the unit that stream r1 of `rows` takes in round r0, of r3 units, as `unit_of` of the C++ kernel has it."""
    yield from (*with_constant("and", "r7", "r0", 1), *with_constant("add", "r0", "r0", 1))
    yield from (*with_constant("mul", "r0", "r0", rows), op("sub", "r0", "r3", "r0"), *most("r0", "r0", "r12"))
    if rows > 1:
        yield from (*divided("r13", "r0", kv_heads, _SPARE), *with_constant("mul", "r13", "r13", kv_heads))
        yield from (op("sub", "r13", "r13", "r0"), *with_constant("add", "r13", "r13", kv_heads))
        yield from (set_register("r14", rows), *least("r13", "r13", "r14"), op("mul", "r13", "r13", "r7"))
        yield from (op("add", "r1", "r1", "r13"), op("sub", "r13", "r1", "r14"))
        yield from chosen("r1", "lt", ("r1", "r14"), "r1", "r13")
    yield from (op("add", "r0", "r0", "r1"), *with_constant("add", "r3", "r3", -1), *least("r0", "r0", "r3"))


def _rounded_up(to: str, x: str, divisor: int, spare: str) -> Ops:
    """How many of `divisor` hold x."""
    yield from (*with_constant("add", spare, x, divisor - 1), *divided(to, spare, divisor, _SPARE))


def _range(head: Head) -> Ops:
    """Of r15 blocks from r9 on the range of column r2."""
    if head.splits > 1:
        yield from (op("mul", "r0", "r15", "r2"), *divided("r1", "r0", head.splits, _SPARE))
        yield from (op("add", "r0", "r0", "r15"), *divided("r8", "r0", head.splits, _SPARE))
        yield from (op("sub", "r15", "r8", "r1"), op("add", "r9", "r9", "r1"))


def _first_query(head: Head, to: str, item: str) -> Ops:
    """Where an item's first query stands among the keys; r3 those before all queries, r4 the last block's first."""
    yield from divided("r1", item, head.shares[0], _SPARE)
    yield from (
        *with_constant("mul", "r1", "r1", head.item_queries),
        *least("r1", "r1", "r4"),
        op("add", to, "r1", "r3"),
    )


def _numbers(head: Head) -> Ops:
    """Where numbers of rows stand in the state, and what they are."""
    yield from (*pointer("p4", "p0", head.state("power")), *pointer("p5", "p0", head.state("offset")))
    for x, value in (("x0", 0), ("x1", 1), ("x2", 0x80000000 | (127 + head.exponent - 14) << 23)):
        yield from (set_register("r8", value), AssemblyOp(f"vbcst.32 {x}, r8"))


def _rows(head: Head) -> list[AssemblyOp]:
    return [*pointer("p4", "p0", head.state("begin")), *pointer("p5", "p0", head.state("sums"))]


def _digits(head: Head) -> FunctionPart:
    """Two tiles of queries, one above the other, to q's planes (`digit_products`)."""
    line, made = head.dim_tiles * 128, Steppers(AIE2P.small, AIE2P.access)
    mantissas, before = 16 * head.digits * head.dim, 2 * head.queries_from
    (after,) = made.walks([PointerWalk("p0", (0, 64, line, line + 64), ((head.dim_tiles, 128),))])
    setup = [
        *pointer("p5", "p1", head.pairs * mantissas), *pointer("p0", "p0", before),
        *of_pair(head, {"p0": before + 2 * line, "p1": mantissas, "p5": mantissas // 8, "p2": 4 * line}),
        set_register("r0", BLOCK_CONF),
        *set_control("crRnd", ROUNDINGS["conv_even"]), *minus_identity(),
        *(set_register(register, value) for register, value in made.constants.items()),
    ]  # fmt: skip
    ops = []
    for i, half in ((i, h) for i in (0, 1) for h in (0, 1)):
        text = access(f"cm{'lh'[half]}{{x{i}}}", "p0", after[2 * i + half])
        dimensions, _, rest = text.partition(" ")
        ops.append(named_op(f"vlda{dimensions}.conv.fp32.bf16 {rest}", "o", f"load {i}{half}"))
    digits = ("high", "low")[: head.digits]
    ops += [op for i in (0, 1) for op in to_digits(f"x{i}", [f"{name}{i}" for name in digits], "r0")]
    ops += to_planes([f"{name}{i}" for name in digits for i in (0, 1)], ("p1", "p5"), ("#64", "#4"))
    return repeated("aie2p", setup, ops, head.dim_tiles, {"x": range(11), "dm": range(5)})


def to_digits(source: str, digits: list[str], conf: str) -> Iterator[DataflowOp]:
    """The digits of an accumulator's tile, high and low, or the high one alone."""
    high, *others = digits
    yield named_op(f"vconv.bfp16ebs8.fp32 ex{{{high}}}, dm{{{source}}}")
    for low in others:
        yield named_op(f"vmac.f dm{{{low}of}}, dm{{{source}}}, ex{{{high}}}, {IDENTITY}, {conf}")
        yield named_op(f"vconv.bfp16ebs8.fp32 ex{{{low}}}, dm{{{low}of}}")


def to_planes(digits: list[str], pointers: tuple[str, str], steps: tuple[str, str]) -> Iterator[DataflowOp]:
    """Mantissas and exponents of digits, one after the other."""
    for digit in digits:
        yield named_op(f"vst x{{{digit}}}, [{pointers[0]}], {steps[0]}", "planes")
        yield from (named_op(f"st e{half}{{{digit}}}, [{pointers[1]}], {steps[1]}", "planes") for half in "lh")
