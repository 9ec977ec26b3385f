"""A gate's function times up on AIE2P: `gate_i32_bf16` of FUNCTION=relu2 or silu, with the bits of the C++ kernel.

Sums become bfloat16 first, in micro-tiles of gate and up in turn: as they are, or scaled for SiLU. Two passes of the
gate's function (`element_floats`) follow, one over the first vectors of the gate's micro-tiles and one over the others.
Result i goes where a vector of pair i / 2 was read.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.digits import SIDE, Rounded, rounded_parts, rounded_pass, whole_tiles
from bdforge.core.codegen.kernels.element_floats import gate_setup, gates
from bdforge.core.codegen.kernels.kernel_options import Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, restored
from bdforge.core.codegen.kernels.scaled import GIVEN, Scaled, scaled_parts, scaled_pass
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, set_register

NAME = "gate_i32_bf16"
_VECTORS = SIDE**2 // LANES  # of a micro-tile of bfloat16
_TILE_BYTES = _VECTORS * VECTOR_BYTES
_C = "C"


def gate(name: str, generation: str, options: Options) -> Maker:
    """What writes the kernel; CodegenError for a generation, a function or a tile without an assembled one."""
    _, columns, _ = whole_tiles(name, generation, options)
    wanted = options.given.get("FUNCTION", "none")
    if wanted not in ("relu2", "silu"):
        raise CodegenError(f"{name} is assembled for FUNCTION=relu2 and silu, not for {wanted}")
    if columns % (2 * SIDE):
        raise CodegenError(f"{name}: n = {columns} is no multiple of {2 * SIDE}: gate's and up's columns take turns")
    if options.has("SCALE"):
        return partial(_written, wanted, scaled_pass(name, generation, options), options.hardware_loops)
    return partial(_written, wanted, rounded_pass(name, generation, options), options.hardware_loops)


def _written(wanted: str, first: Scaled | Rounded, hardware: bool) -> AssemblyKernel:
    scaled = isinstance(first, Scaled)
    made = scaled_parts(first) if scaled else rounded_parts(first)
    passes = [_gated(wanted, first.tiles // 2, number, "p7" if scaled else "p0") for number in range(_VECTORS)]
    about = f"{NAME}: {first.tiles} micro-tiles of int32 become half as much bfloat16, {wanted}: {{cycles}} cycles"
    given = GIVEN if scaled else "p0 = C, r0 = part."
    return function(NAME, "aie2p", [*made, *passes, restored()], f"{about} (exact).", given, hardware=hardware)


def _gated(wanted: str, pairs: int, number: int, results: str) -> FunctionPart:
    """Over one vector of each micro-tile, of what a pointer has since the pass before."""
    setup = [] if number else [AssemblyOp(f"mov p7, {results}"), *gate_setup(wanted)]
    return replace(
        gates(wanted, 2 * _TILE_BYTES, _TILE_BYTES, _C), setup=[*setup, *_pointers(number * VECTOR_BYTES)], times=pairs
    )


def _pointers(first: int) -> Iterator[AssemblyOp]:
    """The gate, once more, up and results, from a byte on."""
    for pointer, offset in (("p0", first), ("p6", first), ("p1", _TILE_BYTES + first), ("p2", first)):
        yield AssemblyOp(f"mov {pointer}, p7")
        yield from (set_register("m0", offset), AssemblyOp(f"padda [{pointer}], m0"))
