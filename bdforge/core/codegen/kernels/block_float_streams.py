"""Streams of block floats on AIE2P, by FIFOs between memory and registers (`bdforge.core.isa.meaning.fifo`).

A tile of 8 x 8 has 72 bytes. A fill loads the line in which a stream begins, each pop one more; a push stores a line,
and a flush what is left of the last one. A stream ends with a step of its pointer to where another begins. Pointers
count bytes, and what is stepped begins with an empty FIFO: kernels of others have it so that ran on XDNA2, recorded
is it where lines and bytes agree (docs/isa_forms.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.digit_products import access
from bdforge.core.codegen.kernels.kernel_options import SIZES
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_register
from bdforge.core.codegen.pipeline.product import AIE2P_FLOATS, SQUARE_HALVES

TILE = 8  # rows, columns, depth
BLOCK_TILE_BYTES, LINE_BYTES = 72, 64
FIFOS = {"p0": "p0, lf0, r24", "p1": "p1, lf1, r25", "p2": "p2, sf, r26"}
"""By their pointers."""
_POSITIONS = {"r24": "r9", "r25": "r10", "r26": "r11"}
"""What counts their bytes, and where it waits for the caller."""
_WIDE = 4  # the accumulator in which bfloat16 becomes block floats

TURNS = ("r2", "r3")
"""What holds VSHUFFLE's modes that make the halves of a tile turned."""

Ops = Iterator[DataflowOp]


def tile_bytes(code: str) -> int:
    """Of a tile of elements."""
    return BLOCK_TILE_BYTES if code == "bfp16" else TILE * TILE * SIZES[code]


def tile_parts(code: str) -> tuple[str, ...]:
    """Of an accumulator with a tile of floats, those that an access moves."""
    return AIE2P_FLOATS.parts if code == "f32" else AIE2P_FLOATS.widened[2][1]


def kept_positions() -> Iterator[AssemblyOp]:
    """Puts away what callers keep where FIFOs count."""
    yield from (AssemblyOp(f"mov {kept}, {position}", "kept for the caller") for position, kept in _POSITIONS.items())


def empty_fifos() -> Iterator[AssemblyOp]:
    """No bytes in any."""
    yield from (set_register(position, 0) for position in _POSITIONS)


def restored_positions() -> FunctionPart:
    """Gives back what `kept_positions` put away."""
    ops = [named_op(f"mov {position}, {kept}") for position, kept in _POSITIONS.items()]
    return repeated("aie2p", [], ops, 1)


def loaded(units: str, rest: str, bank: str, key: str) -> DataflowOp:
    """A load that any of these units may do."""
    op = named_op(f"vld{units[0]}{rest}", bank, key)
    return replace(op, texts=tuple(f"vld{unit}{rest}" for unit in units))


def popped(pointer: str, units: str, registers: Sequence[str], steps: Sequence[str], bank: str) -> Ops:
    """Tiles of as many streams as there are steps behind them."""
    fifo, run = FIFOS[pointer], len(registers) // len(steps)
    for number, register in enumerate(registers):
        stream, place = divmod(number, run)
        if not place:
            yield loaded(units, f".fill.512 [{fifo}]", bank, f"fill {bank} {stream}")
        ends = place == run - 1
        text = access(register, fifo, steps[stream]) if ends else f" {register}, [{fifo}]"
        yield loaded(units, f".pop.576{text}", bank, f"pop {bank} {number}")


def pushed(accumulators: Sequence[int], step: str, bank: str) -> Ops:
    """Accumulators as a stream of block floats, and a step behind it, or none; a flush ends it, as its last line has
    room for all that is left."""
    for number in accumulators:
        text = f"vst.push.576.conv.bfp16ebs8.fp32 dm{number}, [{FIFOS['p2']}]"
        yield named_op(text, bank, f"push {number}")
    text = f"vst.flush.512.conv{dimensions(step)} [{FIFOS['p2']}]{', ' * bool(step)}{step}"
    yield named_op(text, bank, f"flush {accumulators[-1]}")


def converted(pointer: str, names: Sequence[str], steps: Sequence[str], bank: str) -> Ops:
    """Tiles of bfloat16 as block floats, by way of the last accumulator."""
    for name in names:
        for h, part in enumerate(tile_parts("bf16")):
            text = with_conversion("vlda", "conv.fp32.bf16", access(f"{part}{_WIDE}", pointer, steps[h]))
            yield named_op(text, bank, f"{name}.{h}")
        yield named_op(f"vconv.bfp16ebs8.fp32 ex{{{name}}}, dm{_WIDE}", key=f"block {name}")


def turned(pointer: str, units: str, names: Sequence[str], steps: Sequence[str], bank: str) -> Ops:
    """As `converted`, of tiles that lie column by column: by way of the move slot, two shuffles and two conversions."""
    for name in names:
        for h in (0, 1):
            yield loaded(units, access(f"x{{{name}raw{h}}}", pointer, steps[h]), bank, f"{name}.{h}")
        for h, mode in enumerate(TURNS):
            yield named_op(f"vshuffle x{{{name}row{h}}}, x{{{name}raw0}}, x{{{name}raw1}}, {mode}")
        for h, part in enumerate(tile_parts("bf16")):
            yield named_op(f"vconv.fp32.bf16 {part}{_WIDE}, x{{{name}row{h}}}")
        yield named_op(f"vconv.bfp16ebs8.fp32 ex{{{name}}}, dm{_WIDE}", key=f"block {name}")


def set_turns() -> Iterator[AssemblyOp]:
    """The modes of `turned`."""
    return map(set_register, TURNS, SQUARE_HALVES)


def stepped_pointer(pointer: str, step: str) -> Ops:
    """A pointer goes on, in the store slot, which has the least to do."""
    if step != "#0":
        yield named_op(f"padds{dimensions(step)} [{pointer}], {step}")


def dimensions(step: str) -> str:
    """Of a walk in two dimensions."""
    return ".2d" if step.startswith("d") else ""


def with_conversion(mnemonic: str, conversion: str, rest: str) -> str:
    """An access that converts: its dimensions come before that."""
    before, _, operands = rest.partition(" ")
    return f"{mnemonic}{before}.{conversion} {operands}"
