"""Weights of a block of keys and their sums on AIE2P: `attention_weights_bf16`, in fixed point as the C++ kernel tells.

A step is a tile of 8 x 8 scores, each half of it a vector of 16-bit lanes. x + 127 in 1/256 is saturated at 0 by the
shift that rounds it. 2^f without its 1, in place below the exponent, is f / 2 in the number's own bits, and what the
slope is beside 1/2 times f.
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.begin import to_digits
from bdforge.core.codegen.kernels.attention.head import (
    HAS_MOVED,
    HIGH_SUM,
    LOW_SUM,
    VECTOR,
    Head,
    Ops,
    pointer,
)
from bdforge.core.codegen.kernels.digit_products import EXPONENTS, TILE, access, minus_identity, same_exponents
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.lane_block import LaneBlock
from bdforge.core.codegen.kernels.lane_block import Ops as LaneOps
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P, BLOCK_CONF, INT16_CONF, UINT16_CONF
from bdforge.core.codegen.pipeline.steps_in_blocks import BlockOfSteps, stepped

_SUMS, _BIAS, _SLOPE, _ONES, _LEAST, _KEPT = "dm0", "dm1", "dm2", "ex10", "x9", "el9"
_FREE = {"x": range(9), "dm": (3, 4)}
_UNSIGNED, _SIGNED = "r1", "r2"
_CONSTANTS = {"r0": BLOCK_CONF, _UNSIGNED: UINT16_CONF, _SIGNED: INT16_CONF, "r3": 2}
"""Confs of block floats, of uint16, of int16 with uint16; VSHUFFLE's even lanes of 16 bits."""
_LANES = {"r9": 256 * 227, "r10": 255, "r11": 42, "r12": 32768, "r13": 256 * 31, "r14": 0}
"""The largest power, the fraction, the slope's, 1/2 in 16 bits, the smallest power, and 0.
r8 is c1, r4 the bits of the largest score."""
_SHARED = ("r10", "r11")
"""Those of both halves of a tile."""
_INTERVAL = 34  # of a tile: fewer cycles have no place in the move slot for all


def weights(head: Head) -> Iterator[FunctionPart]:
    """p0 = s, p1 = p, p2 = state."""
    made = Steppers(AIE2P.small, AIE2P.access)
    mantissas, words = made.walks(list(_walks(head)))
    setup = [*_setup(head), *(set_register(register, value) for register, value in made.constants.items())]
    before = [named_op(f"vlda {part}0, [p5], #{VECTOR}", "sums") for part in AIE2P.parts]
    behind = [named_op(f"vst {part}0, [p6], #{VECTOR}", "next") for part in AIE2P.parts]

    def step(i: int) -> list[DataflowOp]:
        return list(_tile(LaneBlock(), mantissas[head.digits * i :], words[2 * head.digits * i :], head.digits))

    block = BlockOfSteps(before, step, behind, head.key_tiles, _FREE, shortest=_INTERVAL)
    yield stepped("aie2p", setup, block, head.row_tiles)
    yield from _moved(head)


def _walks(head: Head) -> Iterator[PointerWalk]:
    """Planes of p, digits of a row: every other place of those of a pair."""
    count = head.digits * head.key_tiles
    for pointer_, size in (("p1", TILE), ("p4", EXPONENTS)):
        places = [2 * size * i + at for i in range(count) for at in ((0,) if size == TILE else (0, 4))]
        loops = (head.row_tiles // 2, 2 * count * size), (2, size)
        yield PointerWalk(pointer_, tuple(places), loops, access=0 if size == TILE else 4)


def _setup(head: Head) -> Ops:
    yield AssemblyOp(f"mov {_KEPT}, r16", "kept for the caller")
    yield from pointer("p4", "p1", head.digits * head.queries * head.keys)
    yield from (*pointer("p5", "p2", head.state("sums")), *pointer("p6", "p2", head.state("next")))
    for control, value in {"crRnd": ROUNDINGS["conv_even"], "crSat": 1, "crSRSMode": 1}.items():
        yield from set_control(control, value)
    yield from minus_identity()
    yield from (set_register("r8", 0x40404040), AssemblyOp(f"vbcst.32 x{_ONES[2:]}, r8"))
    yield from same_exponents(_ONES, 127)
    yield from (set_register("r8", head.magic - 32768), AssemblyOp(f"vbcst.32 {_LEAST}, r8"))
    constants = _CONSTANTS | _LANES | {"r4": head.magic + 32767, "r8": head.multiplier}
    yield from (set_register(register, value) for register, value in constants.items())
    for number, shift in enumerate((0, 15, 16)):
        yield from (set_register("r15", shift), AssemblyOp(f"mov s{number}, r15"))
    for dm, value, factor in ((_BIAS, 127 * 256, "r12"), (_SLOPE, 21872 - 32768, None)):
        yield from (set_register("r15", value), AssemblyOp("vbcst.16 x0, r15"))
        yield from () if factor else (set_register("r15", 1),)
        yield from (AssemblyOp(f"vbcst.16 x1, {factor or 'r15'}"), AssemblyOp(f"vmul {dm}, x0, x1, {_SIGNED}"))


def _tile(b: LaneBlock, mantissas: list[str], words: list[str], digits: int) -> LaneOps:
    yield b.op("vbcst.32 x{most}, r4")
    for made in (_cut, _weights):
        yield from (op for half in "ab" for op in made(b, half))
    for part, half in zip("lh", "ab", strict=True):
        yield b.op(f"vconv.fp32.bf16 cm{part}{{whole}}, x{{p{half}}}")
    names = ["high", "low"][:digits]
    yield from to_digits("whole", names, "r0")
    for number, digit in enumerate(names):
        yield b.op(f"vmac.f {_SUMS}, {_SUMS}, ex{{{digit}}}, {_ONES}, r0")
        yield b.op(f"vst{access(f'x{{{digit}}}', 'p1', mantissas[number])}", "p")
        for i, part in enumerate("lh"):
            yield b.op(f"st{access(f'e{part}{{{digit}}}', 'p4', words[2 * number + i])}", "p")


def _cut(b: LaneBlock, h: str) -> LaneOps:
    """32 scores, cut to 16 bits."""
    for i in (0, 1):
        yield b.op(f"vlda x{{s{i}{h}}}, [p0], #{VECTOR}", "s")
        yield b.op(f"vmax_lt.32 x{{above{i}{h}}}, r16, x{{s{i}{h}}}, {_LEAST}, vaddSign1")
        yield b.op(f"vmin_ge.32 x{{cut{i}{h}}}, r16, x{{above{i}{h}}}, x{{most}}, vaddSign1")
    yield b.op(f"vshuffle x{{t{h}}}, x{{cut0{h}}}, x{{cut1{h}}}, r3")


def _weights(b: LaneBlock, h: str) -> LaneOps:
    """Weights of 32 scores, of both halves in turn: few constants are taken for long."""
    for register in ("r8", *_LANES):
        if register not in _SHARED:
            yield b.constant(f"{register}{h}", register)
        elif h == "a":
            yield b.constant(register, register)
    yield b.op(f"vmac dm{{x{h}}}, {_BIAS}, x{{t{h}}}, x{{r8{h}}}, {_SIGNED}")
    yield b.op(f"vsrs.4x x{{any{h}}}, dm{{x{h}}}, s1, srsSign0")
    yield b.op(f"vmin_ge.16 x{{all{h}}}, r16, x{{any{h}}}, x{{r9{h}}}, vaddSign0")
    yield b.op(f"vlt.16 r27, x{{all{h}}}, x{{r13{h}}}, vaddSign0")
    yield b.op(f"vsel.16 x{{u{h}}}, x{{all{h}}}, x{{r14{h}}}, r27")
    yield b.op(f"vband x{{f{h}}}, x{{u{h}}}, x{{r10}}")
    yield b.op(f"vmac dm{{line{h}}}, {_SLOPE}, x{{f{h}}}, x{{r11}}, {_UNSIGNED}")
    yield b.op(f"vsrs.4x x{{slope{h}}}, dm{{line{h}}}, s0, srsSign1")
    yield b.op(f"vmul dm{{whole{h}}}, x{{u{h}}}, x{{r12{h}}}, {_UNSIGNED}")
    yield b.op(f"vmac dm{{found{h}}}, dm{{whole{h}}}, x{{slope{h}}}, x{{f{h}}}, {_SIGNED}")
    yield b.op(f"vsrs.4x x{{p{h}}}, dm{{found{h}}}, s2, srsSign1")


def _moved(head: Head) -> Iterator[FunctionPart]:
    """Whether a sum is too large or too small."""
    setup = [*pointer("p5", "p2", head.state("next")), set_register("r0", 0)]
    for x, value in (("x8", LOW_SUM), ("x9", HIGH_SUM)):
        setup += [set_register("r8", value), AssemblyOp(f"vbcst.32 {x}, r8")]
    ops = [
        named_op(f"vlda x{{sum}}, [p5], #{VECTOR}", "next"), named_op("vlt.32 r16, x{sum}, x8, vaddSign1"),
        named_op("vlt.32 r27, x9, x{sum}, vaddSign1"), named_op("or r0, r0, r16"), named_op("or r0, r0, r27"),
    ]  # fmt: skip
    yield repeated("aie2p", setup, ops, head.queries // 2, {"x": range(8)})
    found = [set_register("r8", 0)] if head.cap else [set_register("r9", 0), AssemblyOp("ltu r8, r9, r0")]
    stored = [*found, *pointer("p4", "p2", HAS_MOVED), AssemblyOp("st r8, [p4, #0]")]
    yield repeated("aie2p", stored, [named_op(f"mov r16, {_KEPT}")], 1)
