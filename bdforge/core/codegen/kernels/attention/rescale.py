"""What moves M on AIE2P: `attention_rescale_bf16`, in scalars row by row as the C++ kernel tells.

Three passes: over the scores for their largest ones, in an order of integers; over rows, for what changes; over scores,
sums and o. The largest scores wait where the changes of exponents will stand.
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import (
    HIGH_SUM,
    LOW_SUM,
    MASKED,
    VECTOR,
    Head,
    Ops,
    least,
    most,
    plain,
    pointer,
)
from bdforge.core.codegen.kernels.attention.shift import broadcast, shifted
from bdforge.core.codegen.kernels.row_scalars import op, with_constant
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, LoopOfParts, repeated, set_register
from bdforge.core.codegen.pipeline.product import AIE2P, FLOAT_CONF

KEPT, COUNTER = "el0", "r4"
"""Where r16 waits for the caller; what counts passes."""
_MAXIMA = "x4", "x5", "x6", "x7"
NONE = -1 << 30
ROW = 32
"""Bytes of eight equal words."""


def _ordered(bits: int) -> int:
    return bits ^ (0x7FFFFFFF if bits >> 31 else 0)


def rescale(head: Head) -> Iterator[FunctionPart | LoopOfParts]:
    """p0 = s, p1 = o, p2 = state."""
    setup = [
        AssemblyOp("mov p3, p0"),
        *pointer("p4", "p2", head.state("shift")),
        *broadcast({"x8": 0, "x9": 0x7FFFFFFF}),
    ]
    yield repeated("aie2p", setup, [named_op(f"mov {KEPT}, r16")], 1)
    yield LoopOfParts(list(_maxima(head)), head.row_tiles, COUNTER)
    yield repeated("aie2p", _pointers(head), [named_op("mov el1, r16")], 1)
    yield LoopOfParts([repeated("aie2p", list(_row(head)), [named_op("mov el1, r16")], 1)], head.queries, COUNTER)
    yield repeated("aie2p", _further(head), [named_op("mov el1, r16")], 1)
    yield LoopOfParts([_changed(head)], head.row_tiles, COUNTER)
    sums = [*pointer("p4", "p2", head.state("shift")), *pointer("p6", "p2", head.state("sums"))]
    yield from shifted(head, sums, "p1")
    yield repeated("aie2p", [], [named_op(f"mov r16, {KEPT}")], 1)


def _maxima(head: Head) -> Iterator[FunctionPart]:
    """The largest scores of a row of tiles, in each lane."""
    ops: list[DataflowOp] = []
    for q, largest in enumerate(_MAXIMA):
        ops += [
            named_op(f"vlda x{{s{q}}}, [p3], #{VECTOR}", "s"), named_op(f"vlt.32 r27, x{{s{q}}}, x8, vaddSign1"),
            named_op(f"vsub.32 x{{turned{q}}}, x9, x{{s{q}}}"),
            named_op(f"vsel.32 x{{o{q}}}, x{{s{q}}}, x{{turned{q}}}, r27"),
            named_op(f"vmax_lt.32 {largest}, r16, {largest}, x{{o{q}}}, vaddSign1"),
        ]  # fmt: skip
    setup = list(broadcast(dict.fromkeys(_MAXIMA, _ordered(MASKED))))
    yield repeated("aie2p", setup, ops, head.key_tiles, {"x": (0, 1, 2, 3, 10, 11)})
    yield repeated("aie2p", [], [named_op(f"vst {x}, [p4], #{VECTOR}", "shift") for x in _MAXIMA], 1)


def _pointers(head: Head) -> list[AssemblyOp]:
    """p3 to what is one word a row, dj0 from power to offset; the others to eight words a row."""
    places = {"p4": "shift", "p5": "next", "p6": "sums", "p7": "begin", "p3": "power"}
    ops = [made for to, part in places.items() for made in pointer(to, "p2", head.state(part))]
    return [*ops, set_register("m0", ROW), set_register("dj0", head.state("offset") - head.state("power"))]


def _row(head: Head) -> Ops:
    """A row: r0 is what M moves by, r14 and r15 j and M before, r1 and r2 behind."""
    yield from _largest()
    for register, place in (("r12", "[p5, #0]"), ("r13", "[p6], m0"), ("r14", "[p3, #0]"), ("r15", "[p3, dj0]")):
        yield AssemblyOp(f"lda {register}, {place}")
    yield from _moves(head)
    yield from (op("add", "r1", "r14", "r0"), *_within("r1", 65535))
    yield from (*with_constant("eq", "r3", "r0", NONE), plain("mov r27, r3"), plain("sel.nez r1, r14, r1, r27"))
    high, low = head.inverse
    yield from (*with_constant("mul", "r2", "r1", low), *with_constant("ashl", "r2", "r2", -14))
    yield from (
        *with_constant("mul", "r3", "r1", high),
        op("add", "r2", "r2", "r3"),
        *with_constant("or", "r2", "r2", 1),
    )
    yield from (op("eq", "r27", "r1", "r14"), plain("sel.nez r2, r15, r2, r27"))
    yield from (
        plain("st r2, [p3, dj0]"),
        plain("st r1, [p3], #4"),
        op("sub", "r8", "r15", "r2"),
        *_float_bits("r9", "r8", head.exponent - 14),
    )
    yield from (*with_constant("eq", "r27", "r8", 0), plain("sel.nez r9, r8, r9, r27"))
    yield from (*with_constant("sub", "r8", "r2", 0, reverse=True), *_float_bits("r10", "r8", head.exponent - 14))
    yield from (op("sub", "r8", "r14", "r1"), *_within("r8", 254), *with_constant("lshl", "r8", "r8", 23))
    for x, register, place in (("0", "r9", "p5"), ("1", "r10", "p7"), ("2", "r8", "p4")):
        yield from (plain(f"vbcst.32 x{x}, {register}"), plain(f"vst wl{x}, [{place}], #{ROW}"))


def _largest() -> Ops:
    """r0: the largest of a row's scores, in the order of integers."""
    found = ("r0", "r1", "r2", "r3", "r8", "r9", "r10", "r11")
    yield from (AssemblyOp(f"lda {register}, [p4, #{4 * i}]") for i, register in enumerate(found))
    for register in found[1:]:
        yield from most("r0", "r0", register)


def _within(register: str, limit: int) -> Ops:
    yield from (set_register("r11", limit), *least(register, register, "r11"))
    yield from (set_register("r11", -limit), *most(register, register, "r11"))


def _moves(head: Head) -> Ops:
    """r0: from the largest score to what M moves by, or none."""
    yield from with_constant("eq", "r1", "r0", _ordered(MASKED))
    yield from (*with_constant("ashl", "r2", "r0", -31), *with_constant("and", "r2", "r2", 0x7FFFFFFF))
    yield from (op("xor", "r0", "r0", "r2"), *with_constant("and", "r2", "r0", 0x7FFFFF))
    yield from with_constant("or", "r2", "r2", 0x800000)
    yield from (*with_constant("lshl", "r3", "r0", -23), *with_constant("and", "r3", "r3", 255))
    yield from with_constant("add", "r3", "r3", -(127 + 23 + head.exponent - 8))
    yield from (set_register("r11", 6), op("lt", "r9", "r11", "r3"), *least("r3", "r3", "r11"))
    yield from (set_register("r11", -24), *most("r3", "r3", "r11"), op("lshl", "r2", "r2", "r3"))
    yield from (set_register("r11", 1 << 30), plain("mov r27, r9"), plain("sel.nez r2, r11, r2, r27"))
    yield from (*with_constant("ashl", "r3", "r0", -31), op("xor", "r2", "r2", "r3"), op("sub", "r2", "r2", "r3"))
    yield from (*with_constant("add", "r2", "r2", -0xC00000), *with_constant("ashl", "r2", "r2", -8))
    yield from (*with_constant("and", "r3", "r2", 32767), *with_constant("mul", "r3", "r3", head.multiplier))
    yield from (*with_constant("lshl", "r3", "r3", -15), *with_constant("ashl", "r2", "r2", -15))
    yield from (*with_constant("mul", "r2", "r2", head.multiplier), op("add", "r2", "r2", "r3"))
    yield from (*with_constant("add", "r0", "r2", 2), set_register("r11", NONE), plain("mov r27, r1"))
    yield from (plain("sel.nez r0, r11, r0, r27"), *with_constant("ashl", "r2", "r13", -23))
    yield from (
        *with_constant("add", "r2", "r2", -127),
        op("lt", "r3", "r0", "r2"),
        *with_constant("ne", "r9", "r13", 0),
    )
    yield from (op("and", "r27", "r3", "r9"), plain("sel.nez r0, r2, r0, r27"))
    yield from (*with_constant("lt", "r2", "r12", LOW_SUM), *with_constant("lt", "r3", "r12", HIGH_SUM, reverse=True))
    yield from (op("or", "r27", "r2", "r3"), plain("sel.nez r0, r0, r11, r27"))


def _float_bits(to: str, value: str, power: int) -> Ops:
    """Bits of value * 2^power as a float32, cut to 24 bits; r3 and r11 are worked with."""
    yield from (plain(f"abs {to}, {value}"), plain(f"clz r3, {to}"), *with_constant("add", "r3", "r3", -8))
    yield from (op("lshl", to, to, "r3"), *with_constant("and", to, to, 0x7FFFFF))
    yield from (
        *with_constant("sub", "r3", "r3", 127 + 23 + power, reverse=True),
        *with_constant("lshl", "r3", "r3", 23),
    )
    yield from (op("or", to, to, "r3"), *with_constant("and", "r11", value, 0x80000000), op("or", to, to, "r11"))


def _further(head: Head) -> list[AssemblyOp]:
    """p5 to changes, p3 behind scores."""
    return [*pointer("p5", "p2", head.state("next")), plain("mov p3, p0"), set_register("r0", FLOAT_CONF)]


def _changed(head: Head) -> FunctionPart:
    """A row of tiles of scores."""
    setup = [plain(f"vlda {part}4, [p5], #{VECTOR}") for part in AIE2P.parts]
    ops = [named_op(f"vlda {part}{{s}}, [p0], #{VECTOR}", "s", f"load {part}") for part in AIE2P.parts]
    ops.append(named_op("vadd.f dm{t}, dm{s}, dm4, r0"))
    ops += [named_op(f"vst {part}{{t}}, [p3], #{VECTOR}", "s", f"store {part}") for part in AIE2P.parts]
    return repeated("aie2p", setup, ops, head.key_tiles, {"dm": range(4)})
