"""What a core calls once for each tile of C, after the last step of K."""

from bdforge.devices.types import TYPES
from bdforge.operators.gemm.kernels import Finish, Kernel
from bdforge.operators.gemm.spec import GemmSpec

_CONVERSIONS = {("int32", "int8"), ("int32", "int16"), ("int32", "int32"), ("int32", "bf16"), ("f32", "bf16")}
"""Accumulator and C, where a kernel `finish_<accumulator>_<c>` exists."""
_TO_BLOCKS = {("bf16", "bfp16"), ("f32", "bfp16")}
"""The same, on arrays that multiply block floats."""
_FED = {("int32", "bf16"), ("f32", "bf16")}
"""Those that can take scales and biases."""
_SCALED_IF_FED = {("int32", "bf16")}
"""Those that multiply with scales where biases are added."""


def finish_for(kernel: Kernel, spec: GemmSpec) -> Finish | None:
    """The kernel that makes C of the accumulators, None where they are C already."""
    if not _needed(kernel, spec):
        return None
    if kernel.field_scaled and spec.c == "int32":
        return Finish("unscale_i32", _defines(spec))
    gated = spec.matrices > 1
    symbol = f"{'gate' if gated else 'finish'}_{TYPES[spec.accumulator].code}_{TYPES[spec.c].code}"
    scaled = ("FIELD_SCALED",) if kernel.field_scaled else ()
    scaled += (f"FUNCTION={spec.epilogue.gate}",) if gated else ()
    return Finish(symbol, (*scaled, *_defines(spec)))


def finish_problems(kernel: Kernel, spec: GemmSpec) -> list[str]:
    """Why the accumulators cannot become C."""
    pair, epilogue = (spec.accumulator, spec.c), spec.epilogue
    reasons = []
    conversions = _CONVERSIONS | (_TO_BLOCKS if kernel.block_products else set())
    if _needed(kernel, spec) and pair not in conversions:
        what = "epilogue.relu" if spec.accumulator == spec.c else f"types.c = {spec.c}"
        options = ", ".join(f"{a} to {c}" for a, c in sorted(conversions))
        reasons.append(f"{what} needs a kernel that finishes {pair[0]} as {pair[1]}; there are {options}: change types")
    reasons += _gate_problems(kernel, spec)
    if epilogue.fed and pair not in _FED:
        options = ", ".join(f"{a} to {c}" for a, c in sorted(_FED))
        reasons.append(
            f"epilogue.scale and epilogue.bias are there for {options}, not for {pair[0]} to {pair[1]}: change types"
        )
    if pair in _FED and epilogue.fed and (rows := spec.rows * spec.tile.m) % kernel.t:
        reasons.append(
            f"epilogue: the scales of {spec.rows} x {spec.tile.m} = {rows} rows are no whole vectors of {kernel.t}; "
            f"use a tile.m of which array.rows make a multiple of {kernel.t}"
        )
    if epilogue.shift and (spec.accumulator not in ("int8", "int16") and spec.c not in ("int8", "int16")):
        reasons.append(f"epilogue.shift = {epilogue.shift} divides narrow integers; C is {spec.c}: use 0")
    return reasons


def _gate_problems(kernel: Kernel, spec: GemmSpec) -> list[str]:
    """Why one matrix cannot gate the other."""
    epilogue, gate, n = spec.epilogue, spec.epilogue.gate, spec.tile.n
    if spec.matrices == 1:
        return []
    reasons = []
    if (spec.accumulator, spec.c) != ("int32", "bf16"):
        reasons.append(
            f"epilogue.gate = {gate} is there for int32 to bf16, not for {spec.accumulator} to {spec.c}: change types"
        )
    if n % (2 * kernel.t):
        reasons.append(
            f"epilogue.gate = {gate}: blocks of {kernel.t} columns are gate's and up's in turn, so tile.n = {n} must "
            f"be a multiple of {2 * kernel.t}; use one"
        )
    if spec.layouts.b != "packed":
        reasons.append(f"layouts.b = {spec.layouts.b}: packing alone puts a gate's columns beside up's; use packed")
    if epilogue.relu or epilogue.bias:
        reasons.append(f"epilogue.gate = {gate} takes no relu and no bias; leave them out")
    if epilogue.scale != (gate == "silu"):
        why = "is no factor of its result" if gate == "silu" else "is one of its result: whoever reads C can apply it"
        reasons.append(
            f"epilogue.gate = {gate}: a scale {why}; set epilogue.scale = {'true' if gate == 'silu' else 'false'}"
        )
    return reasons


def epilogue_bytes(spec: GemmSpec) -> tuple[int, int]:
    """Bytes of the epilogue's tile, which is as large as one of B: float32 scales of a row panel's rows, then the rest.

    The rest holds float32 scales and biases of an n-tile's columns; negative where a tile of B is too small.
    """
    tile = spec.tile.k * spec.tile.n * TYPES[spec.b].bits // 8
    rows = 4 * spec.rows * spec.tile.m
    return rows, tile - rows


def fed_operands(spec: GemmSpec) -> tuple[bool, bool]:
    """Whether the kernel that finishes C takes scales, and biases."""
    epilogue = spec.epilogue
    scaled = epilogue.scale or (epilogue.fed and (spec.accumulator, spec.c) in _SCALED_IF_FED)
    return scaled, epilogue.bias


def _needed(kernel: Kernel, spec: GemmSpec) -> bool:
    epilogue = spec.epilogue
    return kernel.field_scaled or spec.accumulator != spec.c or epilogue.relu or epilogue.fed


def _defines(spec: GemmSpec) -> tuple[str, ...]:
    epilogue = spec.epilogue
    fed = [f"ARRAY_ROWS={spec.rows}"] if epilogue.fed else []
    return (*fed, *(name.upper() for name in ("scale", "bias", "relu") if getattr(epilogue, name)))
