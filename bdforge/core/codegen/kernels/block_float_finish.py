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
from bdforge.core.codegen.pipeline.pipelined_function import function, repeated, set_control

_GROUP = 4  # tiles that are pushed before a flush; accumulators, of which each is loaded while others wait


def finish_blocks(name: str, generation: str, options: Options) -> Maker:
    """What writes a kernel that makes block floats of sums; CodegenError for options without one."""
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    if told := [option for option in ("BIAS", "SCALE", "RELU", "C_IN_PARTS") if options.has(option)]:
        raise CodegenError(f"{name} is not assembled with {told[0]}")
    elements = options.number("DIM_M") * options.number("DIM_N")
    if elements % (TILE * TILE):
        raise CodegenError(f"{name}: {elements} elements are no multiple of {TILE * TILE}")
    return partial(_finished, name, name.split("_")[1], elements // (TILE * TILE), options.hardware_loops)


def _finished(name: str, kind: str, tiles: int, hardware: bool) -> AssemblyKernel:
    """Results are shorter than sums, and so never reach what is still to be read."""
    setup = [
        *kept_positions(), *empty_fifos(), AssemblyOp("mov p2, p0", "results"),
        *set_control("crRnd", ROUNDINGS["conv_even"]),
    ]  # fmt: skip
    blocks, rest = divmod(tiles, _GROUP)
    groups = [(count, times) for count, times in ((_GROUP, blocks), (rest, 1)) if count and times]
    parts = [
        repeated("aie2p", () if number else setup, list(_narrowed(kind, count)), times)
        for number, (count, times) in enumerate(groups)
    ]  # fmt: skip
    about = f"{name}: {tiles} micro-tiles at p0 become block floats: {{cycles}} cycles (exact)."
    return function(name, "aie2p", [*parts, restored_positions()], about, hardware=hardware)


def _narrowed(kind: str, tiles: int) -> Ops:
    for tile in range(tiles):
        for part in tile_parts(kind):
            up = ".conv.fp32.bf16" if kind == "bf16" else ""
            yield named_op(f"vlda{up} {part}{tile}, [p0], #{LINE_BYTES}", "C")
    yield from pushed(range(tiles), "", "C")
