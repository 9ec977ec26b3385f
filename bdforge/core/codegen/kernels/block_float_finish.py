"""Block floats out of float sums, in place, on AIE2P: `finish_bf16_bfp16`, `finish_f32_bfp16`."""

from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.block_float_streams import (
    LINE_BYTES,
    TILE,
    Ops,
    empty_fifos,
    kept_positions,
    pushed,
    restored_positions,
    tile_parts,
)
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import function, repeated, set_control, set_register

_GROUP = 4  # tiles that are pushed before a flush; accumulators, of which each is loaded while others wait
_FREE = {"x": range(11)}
_ZEROS, _MASK, _KEPT = "x11", "r16", "r12"
"""What nothing is below, lanes that were, and where these registers of the caller's wait."""


def finish_blocks(name: str, generation: str, options: Options) -> Maker:
    """What writes a kernel that makes block floats of sums; CodegenError for options without one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    if told := [option for option in ("BIAS", "SCALE", "C_IN_PARTS") if options.has(option)]:
        raise CodegenError(f"{name} is not assembled with {told[0]}")
    elements = options.number("DIM_M") * options.number("DIM_N")
    if elements % (TILE * TILE):
        raise CodegenError(f"{name}: {elements} elements are no multiple of {TILE * TILE}")
    tiles, relu = elements // (TILE * TILE), options.has("RELU")
    return partial(_finished, name, name.split("_")[1], tiles, relu, options.hardware_loops)


def _finished(name: str, kind: str, tiles: int, relu: bool, hardware: bool) -> AssemblyKernel:
    """Results are shorter than sums, and so never reach what is still to be read."""
    setup = [
        *kept_positions(), *empty_fifos(), AssemblyOp("mov p2, p0", "results"),
        *set_control("crRnd", ROUNDINGS["conv_even"]),
    ]  # fmt: skip
    narrowed, ends = partial(_narrowed, kind), [restored_positions()]
    if relu:
        setup += [AssemblyOp(f"mov {_KEPT}, {_MASK}", "kept for the caller"), set_register("r8", 0)]
        setup.append(AssemblyOp(f"vbcst.32 {_ZEROS}, r8"))
        narrowed = partial(_rectified, kind)
        ends.append(repeated("aie2p", [], [named_op(f"mov {_MASK}, {_KEPT}")], 1))
    blocks, rest = divmod(tiles, _GROUP)
    groups = [(count, times) for count, times in ((_GROUP, blocks), (rest, 1)) if count and times]
    parts = [
        repeated("aie2p", () if number else setup, list(narrowed(count)), times, _FREE if relu else {})
        for number, (count, times) in enumerate(groups)
    ]  # fmt: skip
    about = f"{name}: {tiles} micro-tiles at p0 become block floats: {{cycles}} cycles (exact)."
    return function(name, "aie2p", [*parts, *ends], about, hardware=hardware)


def _narrowed(kind: str, tiles: int) -> Ops:
    for tile in range(tiles):
        for part in tile_parts(kind):
            up = ".conv.fp32.bf16" if kind == "bf16" else ""
            yield named_op(f"vlda{up} {part}{tile}, [p0], #{LINE_BYTES}", "C")
    yield from pushed(range(tiles), "", "C")


def _rectified(kind: str, tiles: int) -> Ops:
    """Floats below 0 are so as integers, too, which are compared in one instruction."""
    bits, up = (16, "vconv.fp32.bf16") if kind == "bf16" else (32, "vmov")
    for tile in range(tiles):
        for part in tile_parts(kind):
            given, made = f"x{{{part}{tile}}}", f"x{{kept_{part}{tile}}}"
            yield named_op(f"vlda {given}, [p0], #{LINE_BYTES}", "C")
            yield named_op(f"vmax_lt.{bits} {made}, {_MASK}, {given}, {_ZEROS}, vaddSign1")
            yield named_op(f"{up} {part}{tile}, {made}")
    yield from pushed(range(tiles), "", "C")
