"""Passes over rows that come in chunks and become codes, on AIE2P: `quantise_{largest,results}_{bf16,f32}`.

They are made of the parts of whole rows' kernels.

p0 = a chunk, p1 = codes and behind them their scale, p2 = the largest magnitudes so far; r0 = the number of the chunk.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.chunk_state import later, loaded, stored
from bdforge.core.codegen.kernels.convert_floats import (
    LARGEST,
    codes_of_numbers,
    elements_of,
    kept_mask,
    largest_numbers,
    mask_back,
    rounded,
)
from bdforge.core.codegen.kernels.float_codes import codes_begun, codes_of_floats, largest_floats
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, behind, restored
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function

_FLOATS = "x9", "x10"
"""The largest magnitudes of float32; those of bfloat16 are in `LARGEST`."""

Parts = Iterator[FunctionPart]


def _largest(elements: int) -> Parts:
    yield largest_numbers(elements, later(), loaded("p2", LARGEST))
    yield stored("p2", LARGEST)
    yield mask_back()


def _results(elements: int) -> Parts:
    before = [*kept_mask(), AssemblyOp("mov p3, p0"), *rounded(), *loaded("p2", LARGEST, masked=False)]
    yield codes_of_numbers(elements, [*before, *behind("p2", "p1", elements)])
    yield mask_back()


def _largest_floats(elements: int) -> Parts:
    yield largest_floats(elements // LANES, [*later(), *codes_begun()], loaded("p3", *_FLOATS))
    yield stored("p3", *_FLOATS)
    yield restored()


def _results_floats(elements: int) -> Parts:
    before = [*codes_begun(), *loaded("p3", *_FLOATS, masked=False), *behind("p3", "p2", elements)]
    yield codes_of_floats(elements // LANES, before)
    yield restored()


def _chunk(parts: Callable[[int], Parts], name: str, generation: str, options: Options) -> Maker:
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    elements = elements_of(name, options)

    def written() -> AssemblyKernel:
        about = f"{name}: a chunk of {elements} elements; p0 = given, p1 = made, p2 = state: {{cycles}} cycles (exact)."
        return function(name, generation, list(parts(elements)), about, hardware=options.hardware_loops)

    return written


CODE_CHUNKS: Mapping[str, Callable[[str, str, Options], Maker]] = {
    "quantise_largest_bf16": partial(_chunk, _largest),
    "quantise_results_bf16": partial(_chunk, _results),
    "quantise_largest_f32": partial(_chunk, _largest_floats),
    "quantise_results_f32": partial(_chunk, _results_floats),
}
"""What writes kernels, by their names."""
