"""Blocks of tiles turned on AIE2P as `kernels/aie2p/transpose_i{8,16,32}.cc` does: a VSHUFFLE for each register."""

from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import function, repeated, set_register

_BYTES = 64
_SHUFFLES = {8: (35,), 16: (52, 53), 32: (34,)}
"""Modes that turn 8 x 8 bytes; halves of 8 x 8 elements of 16 bits; 4 x 4 words. By bits of elements."""
TRANSPOSES = {f"transpose_i{bits}": bits for bits in _SHUFFLES}
"""Names of kernels, with bits of elements."""


def transpose(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation or a size without one."""
    bits, elements = TRANSPOSES[name], options.number("TILE_ELEMENTS", 0)
    block = len(_SHUFFLES[bits]) * _BYTES * 8 // bits
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    if elements < 1 or elements % block:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {block}")
    return partial(_written, name, bits, elements // block, options.hardware_loops)


def _written(name: str, bits: int, blocks: int, hardware: bool) -> AssemblyKernel:
    modes = _SHUFFLES[bits]
    setup = [set_register(f"r{i}", mode) for i, mode in enumerate(modes)]
    ops = [named_op(f"vlda x{{x{i}}}, [p0], #{_BYTES}", "p0", f"load {i}") for i in range(len(modes))]
    for i in range(len(modes)):
        ops.append(named_op(f"vshuffle x{{y{i}}}, x{{x0}}, x{{x{len(modes) - 1}}}, r{i}"))
        ops.append(named_op(f"vst x{{y{i}}}, [p1], #{_BYTES}", "p1", f"store {i}"))
    part = repeated("aie2p", setup, ops, blocks, {"x": range(12)})
    about = f"{name}: {blocks} blocks; p0 = x, p1 = y: {{cycles}} cycles (exact)."
    return function(name, "aie2p", [part], about, hardware=hardware)
