"""Capped scores on AIE2P: `attention_cap_bf16`, with tanh in fixed point as the C++ kernel tells."""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.attention.head import LOG2_E, VECTOR, Head
from bdforge.core.codegen.kernels.element_floats import inverse
from bdforge.core.codegen.kernels.lane_block import LaneBlock, Ops, lane_setup, restored
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated

_PERIOD = 90  # in less nobody found registers, and to look takes seconds
_FREE = {"x": range(11), "dm": range(5)}
_CONSTANTS = {"r10": 0x3F80, "r18": 10592, "r19": -23831, "r20": 17377 << 2, "r28": 0, "r24": 1, "r9": 127 << 16}
"""1.0 in bfloat16, coefficients of 1 / (1 + e), 0, the least size, and an exponent of 0 as fixed point."""


def cap(head: Head) -> Iterator[FunctionPart]:
    """p0 = s."""
    if not head.cap:
        raise CodegenError("attention_cap_bf16 is for a SOFT_CAP of 1 to 60")
    setup = [*lane_setup(_CONSTANTS | _numbers(head)), *(AssemblyOp(f"mov {p}, p0") for p in ("p1", "p2"))]
    yield repeated("aie2p", setup, list(_capped(LaneBlock())), head.queries * head.keys // 32, _FREE, shortest=_PERIOD)
    yield restored()


def _numbers(head: Head) -> dict[str, int]:
    """What a cap makes of constants (`Cap` of the C++ kernel): r4, r5, r6 bits of the least, largest and middle score,
    r8 the factor, r14 the cap, r21 and r23 shifts."""
    a, shift, less = 256 * head.cap / head.scale * 2.0**-head.exponent, 0, 0
    while a / (1 << shift) > 12800:
        shift += 1
    most = int(a + 0.5)
    limit, factor = min(16 * most, 65535 << shift), 65536 * 2 * LOG2_E * (1 << shift) / a
    while factor < 32768:
        factor, less = factor * 2, less + 1
    return {
        "r4": head.magic - limit, "r5": head.magic + limit, "r6": head.magic, "r8": int(factor + 0.5), "r14": most,
        "r21": shift, "r23": less,
    }  # fmt: skip


def _capped(b: LaneBlock) -> Ops:
    """32 scores."""
    yield from _size(b)
    yield from (b.constant("factor", "r8"), b.op("vmul dm{steep}, x{size}, x{factor}, r2"))
    yield b.op("mov s3, r23")
    yield from b.lanes32("steep", "steep", "s3")
    yield b.op("vbcst.32 x{unit}, r9")
    yield from (b.op(f"vsub.32 x{{e{i}}}, x{{unit}}, x{{steep{i}}}") for i in (0, 1))
    yield from b.halves("fraction", "exponent", "e")
    yield from inverse(b)
    yield from (b.constant("zero1", "r28"), b.op("vsub.16 x{rest}, x{zero1}, x{whole}"))
    yield from b.product("tanh", "rest", "inverse", "r2", "s0")
    yield from (b.constant("most", "r14"), b.op("vmul dm{capped}, x{tanh}, x{most}, r2"))
    yield from b.lanes32("capped", "capped", "s1")
    yield from (b.op("vbcst.32 x{middle}, r6"), b.op("vbcst.32 x{none}, r28"))
    for i, mask in enumerate(("r30", "r22")):
        yield b.op(f"vldb x{{again{i}}}, [p1], #{VECTOR}", "s")
        yield b.op(f"vlt.32 {mask}, x{{again{i}}}, x{{middle}}, vaddSign1")
        yield b.op(f"vsub.32 x{{minus{i}}}, x{{none}}, x{{capped{i}}}")
        yield b.op(f"vsel.32 x{{signed{i}}}, x{{capped{i}}}, x{{minus{i}}}, {mask}")
        yield b.op(f"vadd.32 x{{y{i}}}, x{{signed{i}}}, x{{middle}}")
        yield b.op(f"vst x{{y{i}}}, [p2], #{VECTOR}", "s")


def _size(b: LaneBlock) -> Ops:
    """How far scores are from the middle, in 16 bits: 1 at least."""
    for i in (0, 1):
        yield b.op(f"vlda x{{s{i}}}, [p0], #{VECTOR}", "s")
        yield from (
            b.op(f"vbcst.32 x{{{name}{i}}}, {r}") for name, r in (("low", "r4"), ("high", "r5"), ("point", "r6"))
        )
        yield b.op(f"vmax_lt.32 x{{above{i}}}, r16, x{{s{i}}}, x{{low{i}}}, vaddSign1")
        yield b.op(f"vmin_ge.32 x{{cut{i}}}, r16, x{{above{i}}}, x{{high{i}}}, vaddSign1")
        yield b.op(f"vsub.32 x{{up{i}}}, x{{cut{i}}}, x{{point{i}}}")
        yield b.op(f"vsub.32 x{{down{i}}}, x{{point{i}}}, x{{cut{i}}}")
        yield b.op(f"vmax_lt.32 x{{far{i}}}, r16, x{{up{i}}}, x{{down{i}}}, vaddSign1")
    yield b.op("mov s3, r28")
    yield from (b.op(f"vups.2x cm{half}{{far}}, x{{far{i}}}, s3, upsSign1") for i, half in enumerate("lh"))
    yield from (b.op("mov s3, r21"), b.op("vsrs.4x x{narrow}, dm{far}, s3, srsSign1"))
    yield from (b.constant("least", "r24"), b.op("vmax_lt.16 x{size}, r16, x{narrow}, x{least}, vaddSign0"))
