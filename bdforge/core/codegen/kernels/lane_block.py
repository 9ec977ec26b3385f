"""Vectors of 32 lanes of 16 bits on AIE2P: operations that kernels in fixed point share (`kernels/include/exp2.h`).

Products of 16-bit lanes are in accumulators of 64 bits, which the store slot shifts and rounds. Scalar registers hold
what such operations take; constants are broadcast where they are used, so that few registers are taken for long.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF, INT16_CONF, SHIFTED_CONF, UINT16_CONF

LANES, VECTOR_BYTES = 32, 64
UNIT = "x11"  # 128 in each lane
_CONFS = {"r0": FLOAT_CONF, "r1": INT16_CONF, "r2": UINT16_CONF, "r3": SHIFTED_CONF}
_MODES = {"r26": 1, "r27": 2, "r29": 3}
"""A shift by a byte, and VSHUFFLE of two vectors: their even lanes of 16 bits, and their odd ones."""
_POWER = {"r11": 2557, "r12": 7424, "r13": 22786, "r15": 128, "r17": 256}
"""Coefficients of 2^f, and what exponents and mantissas are multiplied with."""
_SHIFTS = {"s0": 16, "s1": 15, "s2": 14, "s3": 8}
_SAVED = {f"r{16 + i}": f"e{'lh'[i % 2]}{i // 2}" for i in range(16) if i != 11}
"""What callers keep, and where it waits."""

Ops = Iterator[DataflowOp]


def saved() -> Iterator[AssemblyOp]:
    """Puts away what callers want kept."""
    yield from (AssemblyOp(f"mov {place}, {register}", "kept for the caller") for register, place in _SAVED.items())


def behind(pointer: str, source: str, size: int) -> Iterator[AssemblyOp]:
    """A pointer so many bytes behind another one, or before it; by way of r6 and m0."""
    yield from (set_register("r6", size), AssemblyOp("mov m0, r6"))
    if pointer != source:
        yield AssemblyOp(f"mov {pointer}, {source}")
    yield AssemblyOp(f"padda [{pointer}], m0")


def lane_setup(constants: dict[str, int]) -> Iterator[AssemblyOp]:
    """Puts away what callers want kept, and sets modes, shifts and constants."""
    yield from saved()
    for control, value in {"crRnd": ROUNDINGS["conv_even"], "crSat": 0, "crSRSMode": 1, "crUPSMode": 1}.items():
        yield from set_control(control, value)
    for register, value in _SHIFTS.items():
        yield from (set_register("r4", value), AssemblyOp(f"mov {register}, r4"))
    every = _CONFS | _MODES | _POWER | constants
    yield from (set_register(register, value) for register, value in every.items())
    yield AssemblyOp(f"vbcst.16 {UNIT}, r15")
    # sums are of twice the lanes of a block: the others stay 0
    yield from (AssemblyOp(f"vclr dm{i}") for i in range(5))


def restored() -> FunctionPart:
    """Gives back what `saved` put away."""
    ops = [named_op(f"mov {register}, {place}") for register, place in _SAVED.items()]
    return repeated("aie2p", [], ops, 1)


@dataclass
class LaneBlock:
    """Writes a block's operations, each with a key of its own."""

    written: int = 0

    def op(self, text: str, bank: str | None = None) -> DataflowOp:
        """`named_op`, by its place among the block's."""
        self.written += 1
        return named_op(text, bank, f"{self.written}: {text}")

    def constant(self, name: str, register: str) -> DataflowOp:
        return self.op(f"vbcst.16 x{{{name}}}, {register}")

    def product(self, result: str, one: str, other: str, conf: str, shift: str, start: str = "vmul") -> Ops:
        """result = one x other in lanes of 16 bits, shifted down and rounded."""
        yield self.op(f"{start} dm{{{result}wide}}, x{{{one}}}, x{{{other}}}, {conf}")
        yield self.op(f"vsrs.4x x{{{result}}}, dm{{{result}wide}}, {shift}, srsSign1")

    def line(self, result: str, slope: str, x: str, shift: str, constant: str) -> Ops:
        """result = slope x shifted down, and a constant."""
        yield from self.product(f"{result}only", slope, x, "r1", shift)
        yield self.constant(f"{result}behind", constant)
        yield self.op(f"vadd.16 x{{{result}}}, x{{{result}only}}, x{{{result}behind}}")

    def power(self, result: str, fraction: str) -> Ops:
        """2^f - 1, of a fraction of 16 bits with 15."""
        yield self.constant("c3", "r11")
        yield from self.line(f"{result}2", "c3", fraction, "s0", "r12")
        yield from self.line(f"{result}1", f"{result}2", fraction, "s0", "r13")
        yield from self.product(result, f"{result}1", fraction, "r1", "s0")

    def exponent(self, result: str, exponent: str) -> Ops:
        """Lanes of 64 bits: a biased exponent from bit 7 on, which `mantissa` shifts up by 16."""
        yield self.op(f"vmul dm{{{result}}}, x{{{exponent}}}, {UNIT}, r2")

    def mantissa(self, result: str, exponent: str, mantissa: str) -> Ops:
        """Lanes of 64 bits: `exponent` from bit 23 on, and what is to be added to a mantissa of 15 bits."""
        yield self.constant(f"{result}256", "r17")
        yield self.op(f"vmac dm{{{result}}}, dm{{{exponent}}}, x{{{mantissa}}}, x{{{result}256}}, r3")

    def halves(self, low: str, high: str, words: str) -> Ops:
        """The lower and the upper halves of lanes of 32 bits in two vectors."""
        yield self.op(f"vshuffle x{{{low}}}, x{{{words}0}}, x{{{words}1}}, r27")
        if high:
            yield self.op(f"vshuffle x{{{high}}}, x{{{words}0}}, x{{{words}1}}, r29")

    def words(self, name: str, lanes: str) -> Ops:
        """An accumulator's 32 lanes of 32 bits in two vectors."""
        yield from (self.op(f"vmov x{{{name}{i}}}, bml{'lh'[i]}{{{lanes}}}") for i in (0, 1))

    def lanes32(self, name: str, wide: str, shift: str) -> Ops:
        """Lanes of 64 bits, shifted down to 32, in two vectors."""
        yield from (self.op(f"vsrs.2x x{{{name}{i}}}, cm{'lh'[i]}{{{wide}}}, {shift}, srsSign1") for i in (0, 1))
