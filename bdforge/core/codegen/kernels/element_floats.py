"""Element-wise functions of bfloat16 on AIE2P, with the bits of `kernels/aie2p/elementwise_bf16.cc`.

A block is a vector of 32 lanes: operands from p0 and p1, results to the pointer behind them. SiLU and GELU multiply by
the logistic function in fixed point, step by step as `kernels/include/sigmoid.h` tells: products of 16-bit lanes in
accumulators of 64 bits, which the store slot shifts and rounds. Constants are broadcast where they are used, for ten
values live at a time. An operand that is wanted late is loaded a second time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import function, repeated, set_control, set_register

NAME = "elementwise_bf16"
_LANES, _BYTES = 32, 64
_UNIT = "x11"  # 128 in each lane
_FREE = {"x": range(11), "dm": range(5)}
_CONSTANTS = {
    "r4": 0x7FFF, "r5": 0x3980, "r6": 0x42AE, "r23": 0x3FB9, "r8": 0xBB2C, "r9": 0x437F, "r10": 0x3F80, "r11": 2557,
    "r12": 7424, "r13": 22786, "r14": -0x4300, "r15": 128, "r17": 256, "r18": 10592, "r19": -23831, "r20": 17377 << 2,
    "r21": 0x8000, "r25": 126, "r28": 0,
}  # fmt: skip
"""What lanes of constants are broadcast from: clamps, log2(e) in two parts, 255.0, 1.0, coefficients."""
_GELU_CONSTANTS = {"r6": 0x411E, "r23": 53971, "r8": 9430, "r9": 0x4500, "r14": 254, "r24": 0x45A}
_OWN = {"gelu": _GELU_CONSTANTS, "gelu_gate": _GELU_CONSTANTS, "add": {"r6": 0x7F80}}
"""Where functions have others. GELU: 2048.0, the polynomial of its argument, 254, one more kind of products of uint16;
sums: infinity."""
_CONFS = {"r0": 0x3C, "r1": 0x25A, "r2": 0x5A, "r3": 0x65A}
"""Products: of bfloat16, of int16 with uint16, of uint16, and the second after the accumulator's shift by 16 bits."""
_MODES = {"r26": 1, "r27": 2, "r29": 3}
"""A shift by a byte, and VSHUFFLE of two vectors: their even lanes of 16 bits, and their odd ones."""
_SHIFTS = {"s0": 16, "s1": 15, "s2": 14, "s3": 8}
_SAVED = {f"r{16 + i}": f"e{'lh'[i % 2]}{i // 2}" for i in range(16) if i != 11}
"""What callers keep, and where it waits."""

Ops = Iterator[DataflowOp]


@dataclass
class _Block:
    """Writes a block's operations, each with a key of its own."""

    operands: int
    written: int = 0

    def op(self, text: str, bank: str | None = None) -> DataflowOp:
        """`named_op`, by its place among the block's."""
        self.written += 1
        return named_op(text, bank, f"{self.written}: {text}")

    def load(self, name: str, pointer: str, slot: str = "vldb", bank: str | None = None) -> DataflowOp:
        return self.op(f"{slot} x{{{name}}}, [{pointer}], #{_BYTES}", bank or pointer)

    def constant(self, name: str, register: str) -> DataflowOp:
        return self.op(f"vbcst.16 x{{{name}}}, {register}")

    def store(self, result: str) -> DataflowOp:
        pointer = f"p{self.operands}"
        return self.op(f"vst.conv.bf16.fp32 cml{{{result}}}, [{pointer}], #{_BYTES}", pointer)

    def product(self, result: str, one: str, other: str, conf: str, shift: str, start: str = "vmul") -> Ops:
        """result = one x other in lanes of 16 bits, shifted down and rounded."""
        yield self.op(f"{start} dm{{{result}wide}}, x{{{one}}}, x{{{other}}}, {conf}")
        yield self.op(f"vsrs.4x x{{{result}}}, dm{{{result}wide}}, {shift}, srsSign1")

    def line(self, result: str, slope: str, x: str, shift: str, constant: str) -> Ops:
        """result = slope x shifted down, and a constant."""
        yield from self.product(f"{result}only", slope, x, "r1", shift)
        yield self.constant(f"{result}behind", constant)
        yield self.op(f"vadd.16 x{{{result}}}, x{{{result}only}}, x{{{result}behind}}")

    def exponent(self, result: str, exponent: str) -> Ops:
        """Lanes of 64 bits: a biased exponent from bit 7 on, which `mantissa` shifts up by 16."""
        yield self.op(f"vmul dm{{{result}}}, x{{{exponent}}}, {_UNIT}, r2")

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

    def constant_float(self, result: str) -> Ops:
        """An accumulator of the constant in r9, and ones in bfloat16."""
        yield from (self.constant(f"{result}first", "r9"), self.constant(f"{result}one", "r10"))
        yield self.op(f"vmul.f dm{{{result}}}, x{{{result}first}}, x{{{result}one}}, r0")


def _magnitude(b: _Block) -> Ops:
    """t: the magnitude of a, cut."""
    yield b.load("a", "p0", "vlda")
    for register, name in (("r4", "bits15"), ("r6", "largest"), ("r5", "least")):
        yield b.constant(name, register)
    yield b.op("vband x{bits}, x{a}, x{bits15}")
    yield b.op("vmin_ge.16 x{cut}, r16, x{bits}, x{largest}, vaddSign1")
    yield b.op("vmax_lt.16 x{t}, r16, x{cut}, x{least}, vaddSign1")


def _silu_exponent(b: _Block) -> Ops:
    """127 - t log2(e): the integer in `exponent`, what is behind the point in `fraction`."""
    yield from b.constant_float("most")
    yield from (b.constant("log2high", "r23"), b.constant("log2", "r8"))
    yield b.op("vmsc.f dm{near}, dm{most}, x{t}, x{log2high}, r0")
    yield b.op("vmsc.f dm{w}, dm{near}, x{t}, x{log2}, r0")
    yield from b.words("w", "w")
    yield from b.halves("fraction", "upper", "w")
    yield b.constant("bias", "r14")
    yield b.op("vadd.16 x{exponent}, x{upper}, x{bias}")


def _gelu_exponent(b: _Block) -> Ops:
    """The same of GELU's argument, a polynomial of t in fixed point."""
    yield from b.constant_float("point")
    yield b.op("vmac.f dm{place}, dm{point}, x{t}, x{pointone}, r0")
    yield from b.words("place", "place")
    yield from b.halves("fixed", "", "place")
    yield from b.product("square", "fixed", "fixed", "r2", "s1")
    yield from (b.constant("cubic", "r23"), b.constant("linear", "r8"))
    yield from b.product("cubed", "square", "cubic", "r2", "s0")
    yield b.op("vadd.16 x{slope}, x{cubed}, x{linear}")
    yield b.constant("base", "r14")
    yield from b.exponent("start", "base")
    yield b.op("vmsc dm{rest}, dm{start}, x{slope}, x{fixed}, r24")
    yield from b.lanes32("rest", "rest", "s3")
    yield from b.halves("fraction", "exponent", "rest")


def _inverse(b: _Block) -> Ops:
    """`inverse` = 1 / (1 + e), and `power` = e's mantissa without its 1."""
    yield b.constant("c3", "r11")
    yield from b.line("power2", "c3", "fraction", "s0", "r12")
    yield from b.line("power1", "power2", "fraction", "s0", "r13")
    yield from b.product("power", "power1", "fraction", "r1", "s0")
    yield from b.exponent("scale", "exponent")
    yield from b.mantissa("float", "scale", "power")
    yield b.constant("zero", "r28")
    yield b.op("vmac dm{up}, dm{float}, x{zero}, x{zero}, r3")
    yield from b.lanes32("float", "up", "s0")
    yield from (b.op(f"vmov bml{'lh'[i]}{{e}}, x{{float{i}}}") for i in (0, 1))
    yield b.constant("one", "r10")
    yield b.op("vmac.f dm{sum}, dm{e}, x{one}, x{one}, r0")
    yield from b.words("sum", "sum")
    yield from (b.op(f"vshift x{{cut{i}}}, x{{sum{i}}}, x{{sum{i}}}, r26") for i in (0, 1))
    yield from b.halves("whole", "", "cut")
    yield b.constant("q2", "r18")
    yield from b.line("first", "q2", "whole", "s0", "r19")
    yield from b.line("guess", "first", "whole", "s2", "r20")
    yield from b.product("left", "guess", "whole", "r2", "s1", "vnegmul")
    yield from b.product("inverse", "guess", "left", "r2", "s2")


def _sigmoid(b: _Block) -> Ops:
    """`s` in bfloat16: the inverse, or e times it where a, once more in `again`, is negative.

    A mantissa from 1 on, without its 1, goes to e's exponent; one below 1 lies under it by as much as its bits are
    below 0 when they are read as signed.
    """
    yield b.constant("half", "r21")
    yield b.op("vadd.16 x{mantissa}, x{power}, x{half}")
    yield b.op("vmul dm{quotient}, x{mantissa}, x{inverse}, r2")
    yield b.op("vsrs.4x x{below}, dm{quotient}, s1, srsSign1")
    yield b.op("vsrs.4x x{above}, dm{quotient}, s0, srsSign1")
    yield b.constant("none", "r28")
    yield b.op("vlt.16 r30, x{above}, x{none}, vaddSign1")
    yield b.op("vadd.16 x{behind}, x{above}, x{half}")
    yield b.op("vsel.16 x{found}, x{below}, x{behind}, r30")
    yield from b.mantissa("negative", "scale", "found")
    yield b.constant("positives", "r25")
    yield from b.exponent("halves", "positives")
    yield b.op("vadd.16 x{inner}, x{inverse}, x{half}")
    yield from b.mantissa("positive", "halves", "inner")
    yield from (b.op(f"vsrs.4x x{{s{sign}}}, dm{{{sign}tive}}, s0, srsSign1") for sign in ("posi", "nega"))
    yield b.load("again", "p6", bank="p0")
    yield b.op("vlt.16 r22, x{again}, x{none}, vaddSign1")
    yield b.op("vsel.16 x{s}, x{sposi}, x{snega}, r22")


def _gated(b: _Block, one: str, other: str) -> Ops:
    """y = one x other, or bf16 of it times b."""
    yield b.op(f"vmul.f dm{{y}}, x{{{one}}}, x{{{other}}}, r0")
    if b.operands == 1:
        yield b.store("y")
        return
    yield b.op("vconv.bf16.fp32 x{gate}, cml{y}")
    yield b.load("b", "p1")
    yield b.op("vmul.f dm{gated}, x{gate}, x{b}, r0")
    yield b.store("gated")


def _by_sigmoid(exponent: Callable[[_Block], Ops], b: _Block) -> Ops:
    for part in (_magnitude, exponent, _inverse, _sigmoid):
        yield from part(b)
    yield from _gated(b, "again", "s")


def _add(b: _Block) -> Ops:
    """Sums, none of which is zero but of two +0, for the sign of others on silicon is not known.

    Where operands are each other's negative, and finite, 1 + 1 is computed and 0 stored; -0 is taken for +0 in a.
    """
    yield from (b.load("given", "p0", "vlda"), b.load("b", "p1"))
    for name, register in (("top", "r21"), ("none", "r28"), ("one", "r10"), ("bits15", "r4"), ("infinity", "r6")):
        yield b.constant(name, register)
    yield from (b.op("vsub.16 x{magnitude}, x{given}, x{top}"), b.op("veqz.16 r16, x{magnitude}"))
    yield b.op("vsel.16 x{a}, x{given}, x{none}, r16")
    yield from (b.op("vsub.16 x{apart}, x{a}, x{b}"), b.op("vsub.16 x{opposite}, x{apart}, x{top}"))
    yield from (b.op("veqz.16 r22, x{opposite}"), b.op("vband x{size}, x{a}, x{bits15}"))
    yield from (b.op("vlt.16 r23, x{size}, x{infinity}, vaddSign1"), b.op("and r24, r22, r23"))
    for name in "ab":
        yield b.op(f"vsel.16 x{{{name}safe}}, x{{{name}}}, x{{one}}, r24")
        yield b.op(f"vconv.fp32.bf16 cml{{{name}wide}}, x{{{name}safe}}")
    yield b.op("vadd.f dm{sum}, dm{awide}, dm{bwide}, r0")
    yield b.op("vconv.bf16.fp32 x{rounded}, cml{sum}")
    yield b.op("vsel.16 x{y}, x{rounded}, x{none}, r24")
    yield b.op(f"vst x{{y}}, [p2], #{_BYTES}", "p2")


def _mul(b: _Block) -> Ops:
    yield from (b.load("a", "p0", "vlda"), b.load("b", "p1"))
    yield b.op("vmul.f dm{y}, x{a}, x{b}, r0")
    yield b.store("y")


def _relu2_gate(b: _Block) -> Ops:
    yield from (b.load("a", "p0", "vlda"), b.constant("none", "r28"))
    yield b.op("vmax_lt.16 x{positive}, r16, x{a}, x{none}, vaddSign1")
    yield from _gated(b, "positive", "positive")


_SILU, _GELU = partial(_by_sigmoid, _silu_exponent), partial(_by_sigmoid, _gelu_exponent)
_FUNCTIONS: Mapping[str, tuple[int, Callable[[_Block], Ops]]] = {
    "add": (2, _add), "mul": (2, _mul), "relu2_gate": (2, _relu2_gate), "silu": (1, _SILU), "gelu": (1, _GELU),
    "silu_gate": (2, _SILU), "gelu_gate": (2, _GELU),
}  # fmt: skip
"""By name: operands, and what is done with a vector of each."""


def element_floats(name: str, generation: str, options: Options) -> Maker:
    """What writes a function's kernel; CodegenError for a generation, a function or a size without one."""
    wanted, elements = options.given.get("FUNCTION", ""), options.number("TILE_ELEMENTS", 0)
    if generation != "aie2p" or wanted not in _FUNCTIONS:
        known = f"for aie2p there is {', '.join(_FUNCTIONS)}"
        raise CodegenError(f"{name} is not assembled for {generation} as {wanted or 'nothing'}: {known}")
    if elements < 1 or elements % _LANES:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {_LANES}")
    operands, _ = _FUNCTIONS[wanted]
    if options.number("OPERANDS", 2) != operands:
        raise CodegenError(f"{name}: {wanted} is of {operands} operands; OPERANDS={operands} says so")
    return partial(_written, wanted, elements, options.hardware_loops)


def _written(wanted: str, elements: int, hardware: bool) -> AssemblyKernel:
    operands, body = _FUNCTIONS[wanted]
    part = repeated("aie2p", [], list(body(_Block(operands))), elements // _LANES, _FREE)
    restored = [named_op(f"mov {register}, {place}") for register, place in _SAVED.items()]
    parts = [replace(part, setup=list(_setup(wanted))), repeated("aie2p", [], restored, 1)]
    pointers = ", ".join(f"p{i} = {name}" for i, name in enumerate("ab"[:operands] + "y"))
    about = f"{NAME}: y = {wanted} of {elements} elements; {pointers}: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", parts, about, hardware=hardware)


def _setup(wanted: str) -> Iterator[AssemblyOp]:
    yield from (AssemblyOp(f"mov {place}, {register}", "kept for the caller") for register, place in _SAVED.items())
    yield AssemblyOp("mov p6, p0", "a once more")
    for control, value in {"crRnd": ROUNDINGS["conv_even"], "crSat": 0, "crSRSMode": 1, "crUPSMode": 1}.items():
        yield from set_control(control, value)
    for register, value in _SHIFTS.items():
        yield from (set_register("r4", value), AssemblyOp(f"mov {register}, r4"))
    constants = _CONFS | _MODES | _CONSTANTS | _OWN.get(wanted, {})
    yield from (set_register(register, value) for register, value in constants.items())
    yield AssemblyOp(f"vbcst.16 {_UNIT}, r15")
    # sums are of twice the lanes of a block: the others stay 0
    yield from (AssemblyOp(f"vclr dm{i}") for i in _FREE["dm"])
