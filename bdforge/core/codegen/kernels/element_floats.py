"""Element-wise functions of bfloat16 on AIE2P, with the bits of `kernels/aie2p/elementwise_bf16.cc`.

A block is a vector of 32 lanes: operands from p0 and p1, results to the pointer behind them. SiLU and GELU multiply by
the logistic function in fixed point, step by step as `kernels/include/sigmoid.h` tells (`lane_block`). Ten values live
at a time. An operand that is wanted late is loaded a second time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, LaneBlock, Ops, lane_setup, restored
from bdforge.core.codegen.pipeline.dataflow import DataflowOp
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, repeated

NAME = "elementwise_bf16"
_FREE = {"x": range(11), "dm": range(5)}
_CONSTANTS = {
    "r4": 0x7FFF, "r5": 0x3980, "r6": 0x42AE, "r23": 0x3FB9, "r8": 0xBB2C, "r9": 0x437F, "r10": 0x3F80,
    "r14": -0x4300, "r18": 10592, "r19": -23831, "r20": 17377 << 2, "r21": 0x8000, "r25": 126, "r28": 0,
}  # fmt: skip
"""What lanes of constants are broadcast from: clamps, log2(e) in two parts, 255.0, 1.0, coefficients."""
_GELU_CONSTANTS = {"r6": 0x411E, "r23": 53971, "r8": 9430, "r9": 0x4500, "r14": 254, "r24": 0x45A}
_OWN = {"gelu": _GELU_CONSTANTS, "gelu_gate": _GELU_CONSTANTS, "add": {"r6": 0x7F80}}
"""Where functions have others. GELU: 2048.0, the polynomial of its argument, 254, one more kind of products of uint16;
sums: infinity."""


@dataclass
class _Block(LaneBlock):
    """A block of so many operands, whose vectors are `step` bytes apart, as results are `results`; all of them in one
    `bank` where it has a name."""

    operands: int = 1
    step: int = VECTOR_BYTES
    results: int = VECTOR_BYTES
    bank: str = ""

    def load(self, name: str, pointer: str, slot: str = "vldb", bank: str | None = None) -> DataflowOp:
        return self.op(f"{slot} x{{{name}}}, [{pointer}], #{self.step}", self.bank or bank or pointer)

    def store(self, result: str) -> DataflowOp:
        pointer = f"p{self.operands}"
        return self.op(f"vst.conv.bf16.fp32 cml{{{result}}}, [{pointer}], #{self.results}", self.bank or pointer)

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


def inverse(b: LaneBlock) -> Ops:
    """`inverse` = 1 / (1 + e), and `power` = e's mantissa without its 1."""
    yield from b.power("power", "fraction")
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
    for part in (_magnitude, exponent, inverse, _sigmoid):
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
    yield b.op(f"vst x{{y}}, [p2], #{VECTOR_BYTES}", "p2")


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


def _constants(wanted: str) -> dict[str, int]:
    return _CONSTANTS | _OWN.get(wanted, {})


def element_floats(name: str, generation: str, options: Options) -> Maker:
    """What writes a function's kernel; CodegenError for a generation, a function or a size without one."""
    wanted, elements = options.given.get("FUNCTION", ""), options.number("TILE_ELEMENTS", 0)
    if generation != "aie2p" or wanted not in _FUNCTIONS:
        known = f"for aie2p there is {', '.join(_FUNCTIONS)}"
        raise CodegenError(f"{name} is not assembled for {generation} as {wanted or 'nothing'}: {known}")
    if elements < 1 or elements % LANES:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {LANES}")
    operands, _ = _FUNCTIONS[wanted]
    if options.number("OPERANDS", 2) != operands:
        raise CodegenError(f"{name}: {wanted} is of {operands} operands; OPERANDS={operands} says so")
    return partial(_written, wanted, elements, options.hardware_loops)


def _written(wanted: str, elements: int, hardware: bool) -> AssemblyKernel:
    operands, body = _FUNCTIONS[wanted]
    setup = [AssemblyOp("mov p6, p0", "a once more"), *lane_setup(_constants(wanted))]
    part = repeated("aie2p", setup, list(body(_Block(operands=operands))), elements // LANES, _FREE)
    pointers = ", ".join(f"p{i} = {name}" for i, name in enumerate("ab"[:operands] + "y"))
    about = f"{NAME}: y = {wanted} of {elements} elements; {pointers}: {{cycles}} cycles (exact)."
    return function(NAME, "aie2p", [part, restored()], about, hardware=hardware)


def gate_setup(wanted: str) -> Iterator[AssemblyOp]:
    """What `gates` of a function needs, and where callers' registers wait for `restored`."""
    return lane_setup(_constants(f"{wanted}_gate"))


@cache
def gates(wanted: str, step: int, results: int, bank: str) -> FunctionPart:
    """bf16 of a function of a vector at p0, once more at p6, times one at p1, to p2; the vectors of each are `step`
    bytes apart, those of results `results`. Who calls says how many there are, and the set-up."""
    block = _Block(operands=2, step=step, results=results, bank=bank)
    return repeated("aie2p", [], list(_FUNCTIONS[f"{wanted}_gate"][1](block)), 1, _FREE)


def sums(vectors: int, setup: Iterable[AssemblyOp]) -> FunctionPart:
    """bf16 of sums of so many vectors of p0 and p1, to p2, after `setup`."""
    return repeated("aie2p", [*setup, *lane_setup(_constants("add"))], list(_add(_Block(operands=2))), vectors, _FREE)
