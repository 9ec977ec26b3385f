"""What our C++ kernels do in their loops, as the instructions that a compiler makes of them.

A matrix kernel brings micro-tiles of A and B into registers and multiplies each of one with each of the other; C comes
into accumulators before the first step of K and leaves them after the last. Which instructions a kernel uses follows
from its source under `kernels/` and from the AIE API's lowering of each call; names of registers and parts of C are
those of `bdforge.core.codegen`. Only kernels that this project does not assemble need a pass over C here.

`vld?` issues in either load unit; of both, unit A alone loads accumulators.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bdforge.core.codegen.pipeline.product import AIE2 as AIE2_INTEGERS
from bdforge.core.codegen.pipeline.product import AIE2_FLOATS, Vectors
from bdforge.core.codegen.pipeline.product import AIE2P as AIE2P_INTEGERS
from bdforge.devices import AIE2, AIE2P
from bdforge.devices.types import TYPES

Texts = tuple[str, ...]
"""Instructions in the order of a program."""

FLOAT_PARTS = 3
"""bfloat16 parts of a float32 operand at full precision: each part of one operand is multiplied by each of the other,
nine products in all, and each part but the last is subtracted to reach the next (AIE API, emulated float products)."""

TO_FLOAT_OPERATIONS = 5
"""Operations of the MAC slot that make float32 lanes out of int32 ones (AIE API, `to_float`)."""


@dataclass(frozen=True, slots=True)
class TileOperand:
    """What brings a micro-tile of A or B into registers as it is multiplied, and what does if it lies column by column.

    `opened` comes once before the tiles of an iteration.
    """

    plain: Texts
    turned: Texts
    opened: Texts = ()

    def texts(self, turned: bool) -> Texts:
        """As the tile lies."""
        return self.turned if turned else self.plain


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """A step of K: both operands, a product of two micro-tiles, and what all columns of B `share`.

    `run` steps make an iteration where they divide the steps of a call.
    """

    a: TileOperand
    b: TileOperand
    product: str
    share: Texts = ()
    run: int = 1


@dataclass(frozen=True, slots=True)
class Moved:
    """How a micro-tile of C comes from memory and goes there."""

    enter: Texts
    leave: Texts


def _loaded(register: int, *parts: str) -> TileOperand:
    """By a load for each part of a register; one shuffle turns it."""
    loads = tuple(f"vld? {part}{register}, [p0, #0]" for part in parts)
    return TileOperand(loads, (*loads, f"vshuffle x{register}, x{register}, x{register}, r2"))


def _block_floats(register: int) -> TileOperand:
    """bf16 becomes bfp16 by way of one accumulator: widened on the load path, or in the move slot after shuffles."""
    narrow = f"vconv.bfp16ebs8.fp32 ex{register}, dm4"
    widened = tuple(f"vlda.conv.fp32.bf16 {half}4, [p0, #0]" for half in ("cml", "cmh"))
    turned = (
        "vld? x4, [p0, #0]", "vld? x5, [p0, #0]", "vshuffle x6, x4, x5, r2", "vshuffle x7, x4, x5, r3",
        "vconv.fp32.bf16 cml4, x6", "vconv.fp32.bf16 cmh4, x7",
    )  # fmt: skip
    return TileOperand((*widened, narrow), (*turned, narrow))


def _popped(register: int) -> TileOperand:
    """bfp16 tiles of 72 bytes come out of a load FIFO, which a line opens. Each unit has one FIFO: streams take turns;
    that the tiles of one stream come by the same unit is left out."""
    tile = (f"vld?.pop.512 x{register}, [p0, lf0, r24]",)
    return TileOperand(tile, tile, ("vld?.fill.512 [p0, lf0, r24]",))


_UNPACKED = ("vldb.unpack x1, [p1, #0], unpackSign1",)
_MASKED = ("vband x3, x2, x6", "vadd.8 x1, x3, x7")
_TURNED_FIRST = TileOperand(_block_floats(1).turned, _block_floats(1).plain)  # the product takes B transposed
_INTEGERS, _BLOCKS = "vmac dm0, dm0, x0, x1, r0", "vmac.f dm0, dm0, ex0, ex1, r0"

INNER_LOOPS: Mapping[tuple[str, str, str], InnerLoop] = {
    (AIE2P.name, "int8", "int8"): InnerLoop(_loaded(0, "x"), _loaded(1, "x"), _INTEGERS),
    # Unpacked by their loads; the host packs 4 and 2 bits, which lie as they are multiplied.
    (AIE2P.name, "int8", "int4"): InnerLoop(_loaded(0, "x"), TileOperand(_UNPACKED, _UNPACKED), _INTEGERS),
    # Four columns in a byte: masked in place, then less the bias (`kernels/include/ternary.h`).
    (AIE2P.name, "int8", "int2"): InnerLoop(
        _loaded(0, "x"), TileOperand(_MASKED, _MASKED), _INTEGERS, ("vld? x2, [p1, #0]",)
    ),
    (AIE2P.name, "bf16", "bf16"): InnerLoop(_block_floats(0), _TURNED_FIRST, _BLOCKS),
    (AIE2P.name, "bf16", "bfp16"): InnerLoop(_block_floats(0), _popped(1), _BLOCKS, run=2),
    (AIE2P.name, "bfp16", "bfp16"): InnerLoop(_popped(0), _popped(1), _BLOCKS, run=2),
    (AIE2.name, "int8", "int8"): InnerLoop(_loaded(0, "wl"), _loaded(1, "wl", "wh"), "vmac cm0, cm0, x0, x1, r0"),
    (AIE2.name, "int8", "int4"): InnerLoop(
        _loaded(0, "wl", "wh"), _loaded(1, "wl", "wh"), "vmac cm0, cm0, x0, x1, r0"
    ),
    (AIE2.name, "int8", "int2"): InnerLoop(
        _loaded(0, "wl"), TileOperand(_MASKED, _MASKED), "vmac cm0, cm0, x0, x1, r0",
        ("vld? wl2, [p1, #0]", "vld? wh2, [p1, #0]"),
    ),
    (AIE2.name, "bf16", "bf16"): InnerLoop(
        _loaded(0, "wl", "wh"), _loaded(1, "wl", "wh"), "vmac.f bml0, bml0, x0, x1, r0"
    ),
}  # fmt: skip
"""Loops by generation and the types of A and B."""

_AIE2P_FLOATS = replace(
    AIE2P_INTEGERS, widened={2: (".fp32.bf16", ("cml", "cmh"))}, narrowed={2: (".bf16.fp32", ("cml", "cmh"))},
    signs=("", ""), converts=("conv", "conv", ""),
)  # fmt: skip
_VECTORS: Mapping[tuple[str, bool], Vectors] = {
    (AIE2P.name, True): AIE2P_INTEGERS, (AIE2P.name, False): _AIE2P_FLOATS,
    (AIE2.name, True): AIE2_INTEGERS, (AIE2.name, False): AIE2_FLOATS,
}  # fmt: skip


def moved(generation: str, c: str, turned: bool) -> Moved:
    """A micro-tile of C of a type by name; block floats, a stream for each tile, are never turned."""
    type_ = TYPES[c]
    if type_.blocked:  # a product with an identity block widens C, the store path narrows it
        return Moved(
            ("vlda.fill.512 [p0, lf0, r24]", "vlda.pop.512 x8, [p0, lf0, r24]", "vmul.f dm0, ex8, ex9, r0"),
            ("vst.push.576.conv.bfp16ebs8.fp32 dm0, [p2, sf, r26]", "vst.flush.512.conv [p2, sf, r26]"),
        )
    vectors = _VECTORS[generation, type_.integer]
    ways = _words(vectors, turned) if type_.bits == 32 else _narrow(vectors, type_.bits // 8, turned)
    return Moved(*(tuple(text for texts in way for text in texts) for way in ways))


def _words(v: Vectors, turned: bool) -> tuple[list[Texts], list[Texts]]:
    """Elements of 32 bits. A micro-tile is turned in two rounds of shuffles, the second of which AIE2P's reach
    accumulators with."""
    parts = [v.named(part, 0) for part in v.parts]
    if not turned:
        return [(f"vlda {part}, [p2, #0]",) for part in parts], [(f"vst {part}, [p2, #0]",) for part in parts]
    register, turn = _register(v), "vshuffle x4, x4, x5, r2"
    last = (turn, "vmov {0}, wl4") if v.access < 64 else ("vshuffle {0}, x4, x5, r2",)
    enter: list[Texts] = [(f"vld? {register}, [p2, #0]", turn, *(text.format(part) for text in last)) for part in parts]
    leave: list[Texts] = [(f"vmov {register}, {part}", turn, turn, f"vst {register}, [p2, #0]") for part in parts]
    return enter, leave


def _narrow(v: Vectors, size: int, turned: bool) -> tuple[list[Texts], list[Texts]]:
    """Elements that a load widens and a store narrows; one that is turned takes a shuffle between."""
    (wider, parts), (narrower, _) = v.widened[size], v.narrowed[size]
    (up, down, shift), (signed_in, signed_out) = v.converts, v.signs
    named = [v.named(part, 0) for part in parts]
    if not turned:
        return (
            [(f"vlda.{up}{wider} {part}, {shift}[p2, #0]{signed_in}",) for part in named],
            [(f"vst.{down}{narrower} {part}, {shift}[p2, #0]{signed_out}",) for part in named],
        )
    register, turn, by = _register(v), "vshuffle x4, x4, x5, r2", ", s0" if shift else ""
    return (
        [(f"vld? {register}, [p2, #0]", turn, f"v{up}{wider} {part}, {register}{by}{signed_in}") for part in named],
        [
            (f"v{down}{narrower} {register}, {part}{by}{signed_out}", turn, f"vst {register}, [p2, #0]")
            for part in named
        ],
    )


def _register(v: Vectors) -> str:
    return "wl4" if v.access < 64 else "x4"


def _scaled(generation: str, conversions: int, scales: int = 2) -> Texts:
    """Lanes of one float product times a scale of the row and one of the column, float32 all: both operands are taken
    apart, and the parts multiplied. What the API moves between registers is left out; it has the move slot alone."""
    aie2 = generation == AIE2.name
    product = "vmac.f bml0, bml0, x0, x1, r0" if aie2 else "vmac.f dm0, dm0, x0, x1, r0"
    part = "vconv.bf16.fp32 wl0, bml0" if aie2 else "vconv.bf16.fp32 x0, cml0"
    apart = (*(part, product) * (FLOAT_PARTS - 1), part)
    by_scale = (*apart, *apart, *(product,) * FLOAT_PARTS**2)
    store = moved(generation, "bf16", False).leave[0]
    loads = _loaded(0, "wl", "wh").plain if aie2 else ("vld? x0, [p0, #0]", "vld? x1, [p0, #0]")
    return (*loads, *(product,) * conversions, *by_scale * scales, store)


def _gated(generation: str, silu: bool) -> Texts:
    """Lanes of two matrices' sums: scaled, SiLU of one (include/sigmoid.h counts its operations) and their product; or
    as they are, a square times up."""
    (*scaled, store), sigmoid = _scaled(generation, TO_FLOAT_OPERATIONS), (13, 14)
    part, product = scaled[-(FLOAT_PARTS**2) - 1], scaled[-1]
    if silu:
        return (*(*scaled, part) * 2, *(product,) * sigmoid[0], *(part,) * sigmoid[1], product, part, product, store)
    return (*scaled[:2] * 2, *(product,) * (2 * TO_FLOAT_OPERATIONS + 2), *(part,) * 3, store)


def _finish(wide: str, narrow: str) -> Texts:
    return (*moved(AIE2P.name, wide, False).enter, *moved(AIE2P.name, narrow, False).leave)


PASSES: Mapping[tuple[str, str, str], tuple[int, Texts]] = {
    (AIE2P.name, "finish_f32_bf16", ""): (64, _finish("f32", "bf16")),
    (AIE2P.name, "finish_f32_bf16", "SCALE"): (32, _scaled(AIE2P.name, 0)),
    (AIE2.name, "finish_f32_bf16", "SCALE"): (16, _scaled(AIE2.name, 0)),
    (AIE2.name, "finish_i32_bf16", ""): (16, _scaled(AIE2.name, TO_FLOAT_OPERATIONS, scales=0)),
    **{
        (generation.name, "finish_i32_bf16", option): (lanes, _scaled(generation.name, TO_FLOAT_OPERATIONS))
        for generation, lanes in ((AIE2P, 32), (AIE2, 16)) for option in ("SCALE", "BIAS")
    },
    (AIE2P.name, "gate_i32_bf16", "FUNCTION=silu"): (64, _gated(AIE2P.name, silu=True)),
    (AIE2.name, "gate_i32_bf16", "FUNCTION=silu"): (32, _gated(AIE2.name, silu=True)),
    (AIE2.name, "gate_i32_bf16", "FUNCTION=relu2"): (32, _gated(AIE2.name, silu=False)),
}  # fmt: skip
"""Passes over C: elements of an iteration and its instructions, by generation, entry point and the option with which
the kernel costs this."""
