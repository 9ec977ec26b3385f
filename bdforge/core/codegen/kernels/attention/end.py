"""A result on AIE2P: `attention_end_bf16`, a pair of rows of o's tiles times the inverses of their sums.

Inverses of four rows at a time, in lanes of 16 bits as the C++ kernel has them in scalars; then a tile of o a pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.attention.head import TILE_FLOATS, VECTOR, Head, Ops, of_pair, pointer
from bdforge.core.codegen.kernels.digit_products import access
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS
from bdforge.core.codegen.kernels.lane_block import LaneBlock
from bdforge.core.codegen.kernels.lane_block import Ops as LaneOps
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated, set_control, set_register
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2P, FLOAT_CONF, UINT16_CONF

_HALF = 128  # bytes of a tile in bfloat16
_MODES = {"r0": UINT16_CONF, "r1": 1, "r2": 2, "r3": 3}
"""conf, a shift by a byte, VSHUFFLE's even and odd lanes of 16 bits."""
_LANES = {
    "bits15": 0x7FFF, "top": 0x8000, "slope": 30840, "most": 92521 - 65536, "none": 0, "byte": 256, "even": 254,
    "exponents": 0x7F80, "inverse": 253 << 7, "one": 129, "further": 7 << 7,
}  # fmt: skip
_REGISTERS = dict(zip(_LANES, (f"r{i}" for i in (*range(8, 16), 4, 5, 6)), strict=True))


def end(head: Head) -> Iterator[FunctionPart]:
    """p0 = o, p1 = state, r0 = pair."""
    yield _inverted(head)
    yield _scaled(head)


def _constants(made: Steppers) -> Ops:
    return (set_register(register, value) for register, value in made.constants.items())


def _inverted(head: Head) -> FunctionPart:
    """Tiles of both parts of 1 / sums, one behind the other, to the state's `shift`."""
    made = Steppers(AIE2P.small, AIE2P.access)
    ((first, second),) = made.walks([PointerWalk("p3", (0, _HALF), ((2, TILE_FLOATS), (2, VECTOR)))])
    setup = [
        *of_pair(head, {"p0": 2 * TILE_FLOATS * head.dim_tiles, "p1": 2 * TILE_FLOATS}),
        *pointer("p2", "p1", head.state("sums")), *pointer("p3", "p1", head.state("shift")),
        AssemblyOp("mov p5, p2", "sums once more"),
        *(op for control, value in {"crRnd": ROUNDINGS["floor"], "crSat": 1, "crSRSMode": 1}.items()
          for op in set_control(control, value)),
        *(op for i, shift in enumerate((15, 16)) for op in (set_register("r4", shift), AssemblyOp(f"mov s{i}, r4"))),
        *(set_register(register, value) for register, value in _MODES.items()),
        *(set_register(_REGISTERS[name], value) for name, value in _LANES.items()), *_constants(made),
    ]  # fmt: skip
    b = _Lanes()
    ops = [*_inverse(b), b.op(f"vst{access('x{high}', 'p3', first)}", "shift")]
    ops.append(b.op(f"vst{access('x{low}', 'p3', second)}", "shift"))
    return repeated("aie2p", setup, ops, 4, {"x": range(12), "dm": range(5)})


@dataclass
class _Lanes(LaneBlock):
    """Constants are broadcast at each use, so that no register is taken for long."""

    def of(self, name: str) -> tuple[DataflowOp, str]:
        """A broadcast, and its value's name."""
        made = f"{name}{self.written}"
        return self.constant(made, _REGISTERS[name]), made

    def with_constant(self, text: str, name: str) -> LaneOps:
        """An operation with a constant, which stands as {} in its text."""
        broadcast, made = self.of(name)
        yield broadcast
        yield self.op(text.replace("{}", f"x{{{made}}}"))

    def product(
        self, result: str, one: str, other: str, conf: str = "r0", shift: str = "s0", start: str = "vmul"
    ) -> LaneOps:
        """A product of uint16, cut and saturated to it; the other factor may be a constant."""
        if other in _LANES:
            broadcast, other = self.of(other)
            yield broadcast
        yield self.op(f"{start} dm{{{result}wide}}, x{{{one}}}, x{{{other}}}, {conf}")
        yield self.op(f"vsrs.4x x{{{result}}}, dm{{{result}wide}}, {shift}, srsSign0")


def _inverse(b: _Lanes) -> LaneOps:
    for i in (0, 1):
        yield b.op(f"vlda x{{sum{i}}}, [p2], #{VECTOR}", "sums")
        yield b.op(f"vshift x{{cut{i}}}, x{{sum{i}}}, x{{sum{i}}}, r1")
    yield b.op("vshuffle x{bits}, x{cut0}, x{cut1}, r2")
    yield from b.with_constant("vband x{fraction}, x{bits}, {}", "bits15")
    yield from b.with_constant("vbor x{x}, x{fraction}, {}", "top")
    yield from b.product("line", "x", "slope")
    yield from b.with_constant("vsub.16 x{y0}, {}, x{line}", "most")
    for step in (0, 1):
        yield from b.product(f"near{step}", f"y{step}", "x", shift="s1")
        yield from b.with_constant(f"vsub.16 x{{left{step}}}, {{}}, x{{near{step}}}", "none")
        yield from b.product(f"y{step + 1}", f"y{step}", f"left{step}")
    yield from b.product("upper", "y2", "byte", shift="s1")
    yield from b.with_constant("vsub.16 x{apart}, x{upper}, {}", "one")
    yield from b.with_constant("vlt.16 r27, x{apart}, {}, vaddSign1", "none")
    yield from (b.op("vadd.16 x{less}, x{apart}, x{apart}"), b.op("vsel.16 x{mantissa}, x{apart}, x{less}, r27"))
    yield from (b.op(f"vldb x{{again{i}}}, [p5], #{VECTOR}", "sums") for i in (0, 1))
    yield b.op("vshuffle x{words}, x{again0}, x{again1}, r3")
    yield from b.with_constant("vband x{given}, x{words}, {}", "exponents")
    yield from b.with_constant("vsub.16 x{e}, {}, x{given}", "inverse")
    yield b.op("vadd.16 x{high}, x{e}, x{mantissa}")
    yield from (*b.with_constant("vband x{rest}, x{y2}, {}", "even"), *b.product("lower", "rest", "top", shift="s1"))
    yield from b.with_constant("vsub.16 x{below}, x{e}, {}", "further")
    yield b.op("vadd.16 x{low}, x{below}, x{lower}")


def _scaled(head: Head) -> FunctionPart:
    """y, of half the size, from the start of o on."""
    made = Steppers(AIE2P.small, AIE2P.access)
    loops = (head.dim_tiles, 0), (2, TILE_FLOATS)
    (after,) = made.walks([PointerWalk("p3", tuple(range(0, TILE_FLOATS, VECTOR)), loops)])
    setup = [
        AssemblyOp("mov p4, p0"), *pointer("p3", "p1", head.state("shift")), set_register("r0", FLOAT_CONF),
        *set_control("crRnd", ROUNDINGS["conv_even"]), *_constants(made),
    ]  # fmt: skip
    ops: list[DataflowOp] = [named_op(f"vlda {part}{{o}}, [p4], #{VECTOR}", "o", part) for part in AIE2P.parts]
    ops += [named_op(f"vconv.bf16.fp32 x{{near.{i}}}, cm{'lh'[i]}{{o}}") for i in (0, 1)]
    for number, (name, i) in enumerate((name, i) for name in ("high", "low") for i in (0, 1)):
        ops.append(named_op(f"vldb{access(f'x{{{name}.{i}}}', 'p3', after[number])}", "shift"))
    ops += [named_op("vmul.f dm{first}, y{near}, y{high}, r0"),
            named_op("vmac.f dm{y}, dm{first}, y{near}, y{low}, r0")]  # fmt: skip
    ops += [named_op(f"vst.conv.bf16.fp32 cm{half}{{y}}, [p0], #{VECTOR}", "o") for half in "lh"]
    return repeated("aie2p", setup, ops, 2 * head.dim_tiles, {"y": range(6), "dm": range(5)})
