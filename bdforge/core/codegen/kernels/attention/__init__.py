"""Attention on AIE2P in machine code, with the bits of `kernels/aie2p/attention_*_bf16.cc`.

q and p are digits in planes (`digit_products`) in the buffers in which the C++ kernels keep bfloat16: functions of one
kind and of the other do not go together.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.kernels.attention.begin import begin, queries
from bdforge.core.codegen.kernels.attention.cap import cap
from bdforge.core.codegen.kernels.attention.end import end
from bdforge.core.codegen.kernels.attention.head import Head
from bdforge.core.codegen.kernels.attention.join import align, join, meet
from bdforge.core.codegen.kernels.attention.mask import mask
from bdforge.core.codegen.kernels.attention.products import scores, values
from bdforge.core.codegen.kernels.attention.rescale import rescale
from bdforge.core.codegen.kernels.attention.weights import weights
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, LoopOfParts, function

_PARTS: Mapping[str, Callable[[Head], Iterator[FunctionPart | LoopOfParts]]] = {
    "begin": begin, "queries": queries, "scores": scores, "cap": cap, "weights": weights, "rescale": rescale,
    "values": values, "mask": mask, "meet": meet, "align": align, "join": join, "end": end,
}  # fmt: skip
KERNELS = tuple(f"attention_{part}_bf16" for part in _PARTS)
"""Names of kernels."""


def attention(name: str, generation: str, options: Options) -> Maker:
    """What writes a kernel; CodegenError for a name, a generation, sizes or options without one."""
    return partial(_written, name, Head.of(name, generation, options), options.hardware_loops)


def _written(name: str, head: Head, hardware: bool) -> AssemblyKernel:
    size = f"{head.queries} queries, {head.keys} keys, {head.dim} dimensions"
    parts = list(_PARTS[name.split("_")[1]](head))
    return function(name, "aie2p", parts, f"{name}: {size}: {{cycles}} cycles (exact).", hardware=hardware)
