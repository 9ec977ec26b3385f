"""Results of two ranges of keys on AIE2P: `attention_meet_bf16`, `attention_align_bf16`, `attention_join_bf16`.

The range before lies in the memory of the core to the west.
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import HAS_MOVED, VECTOR, Head, Ops, most, plain, pointer
from bdforge.core.codegen.kernels.attention.rescale import COUNTER, KEPT, NONE, ROW
from bdforge.core.codegen.kernels.attention.shift import further, shifted
from bdforge.core.codegen.kernels.row_scalars import op, with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, LoopOfParts, repeated, set_register
from bdforge.core.codegen.pipeline.product import AIE2P, FLOAT_CONF

Parts = Iterator[FunctionPart | LoopOfParts]


def meet(head: Head) -> Parts:
    """p0 = state of the range before, p1 = state."""
    setup = [
        AssemblyOp(f"mov {KEPT}, r16", "kept for the caller"), *pointer("p2", "p0", head.state("power")),
        *pointer("p3", "p1", head.state("power")), set_register("r0", 0),
    ]  # fmt: skip
    ops = [named_op(f"vlda x{{{of}}}, [{p}], #{VECTOR}", key=of) for of, p in (("theirs", "p2"), ("mine", "p3"))]
    for found, one, other in (("r16", "theirs", "mine"), ("r27", "mine", "theirs")):
        ops.append(named_op(f"vlt.32 {found}, x{{{one}}}, x{{{other}}}, vaddSign1"))
    ops += [named_op(f"or r0, r0, {found}") for found in ("r16", "r27")]
    yield repeated("aie2p", setup, ops, head.queries // 16, {"x": range(8)})
    stored = [
        set_register("r9", 0),
        op("ltu", "r8", "r9", "r0"),
        *pointer("p4", "p1", HAS_MOVED),
        plain("st r8, [p4, #0]"),
    ]
    yield repeated("aie2p", stored, [named_op(f"mov r16, {KEPT}")], 1)


def align(head: Head) -> Parts:
    """p0 = o of the range before, p1 = state of it, p2 = o, p3 = state."""
    ended = [named_op("mov el1, r16")]
    yield repeated("aie2p", _rows(head), [named_op(f"mov {KEPT}, r16")], 1)
    yield LoopOfParts([repeated("aie2p", list(_row()), ended, 1)], head.queries, COUNTER)
    back = [("p1", -head.state("power") - 4 * head.queries), ("p3", -head.state("shift") - ROW * head.queries)]
    yield repeated("aie2p", [one for p, size in back for one in further(p, size)], ended, 1)
    for o, state, by in (("p0", "p1", "next"), ("p2", "p3", "shift")):
        sums = [*pointer("p4", "p3", head.state(by)), *pointer("p6", state, head.state("sums"))]
        yield from shifted(head, sums, o)
    yield repeated("aie2p", [], [named_op(f"mov r16, {KEPT}")], 1)


def _rows(head: Head) -> list[AssemblyOp]:
    """Of rows p1 and p4 to powers, p7 and p6 to sums of weights, p5 and p3 to shifts: the range before's, the own."""
    places = {"p4": "power", "p5": "next", "p6": "sums"}
    ops = [*pointer("p7", "p1", head.state("sums")), *further("p1", head.state("power"))]
    ops += [made for to, part in places.items() for made in pointer(to, "p3", head.state(part))]
    return [*ops, *further("p3", head.state("shift")), set_register("m0", ROW)]


def _row() -> Ops:
    """A row: r2 is the own power, r3 that of the range before, r8 the larger one."""
    for register, place in (("r0", "[p6], m0"), ("r1", "[p7], m0"), ("r2", "[p4, #0]"), ("r3", "[p1], #4")):
        yield plain(f"lda {register}, {place}")
    yield set_register("r11", NONE)
    for power, seen in (("r2", "r0"), ("r3", "r1")):
        yield from (*with_constant("eq", "r27", seen, 0), plain(f"sel.nez {power}, r11, {power}, r27"))
    yield from (*most("r8", "r2", "r3"), plain("st r8, [p4], #4"), set_register("r11", -254))
    for power, place in (("r2", "p3"), ("r3", "p5")):
        yield from (op("sub", power, power, "r8"), *most(power, power, "r11"), *with_constant("lshl", power, power, 23))
        yield from (plain(f"vbcst.32 x0, {power}"), plain(f"vst wl0, [{place}], #{ROW}"))


def join(head: Head) -> Parts:
    """p0 = o of the range before, p1 = state of it, p2 = o, p3 = state."""
    yield _added([plain("mov p4, p2"), set_register("r0", FLOAT_CONF)], head.row_tiles * head.dim_tiles)
    sums = head.state("sums")
    yield _added([*pointer("p0", "p1", sums), *pointer("p2", "p3", sums), plain("mov p4, p2")], head.row_tiles)


def _added(setup: list[AssemblyOp], tiles: int) -> FunctionPart:
    """Tiles at p2 plus those at p0, stored at p4."""
    ops = [named_op(f"vlda {part}{{{of}}}, [{p}], #{VECTOR}", f"load {p}", f"{of} {part}")
           for of, p in (("mine", "p2"), ("theirs", "p0")) for part in AIE2P.parts]  # fmt: skip
    ops.append(named_op("vadd.f dm{t}, dm{mine}, dm{theirs}, r0"))
    ops += [named_op(f"vst {part}{{t}}, [p4], #{VECTOR}", "store", f"store {part}") for part in AIE2P.parts]
    return repeated("aie2p", setup, ops, tiles, {"dm": range(5)})
