"""The compute kernels that plans know: what a core calls for a combination of types on a generation of the array."""

from dataclasses import dataclass
from typing import Any

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.specs import LARGEST_SIZE

UNLIMITED_DEPTH = LARGEST_SIZE  # no problem is deeper


@dataclass(frozen=True, slots=True)
class Kernel:
    """A matrix kernel and its helpers; contracts stand in the sources under `kernels/`.

    C += A B on a core, with C as `accumulator`: the type in which a core keeps C from step to step of K. `r, s, t` is
    the MAC shape; tile sizes m, k, n must be multiples of `multiples`. All can take A, and leave C, in transposed
    micro-tiles; `field_scaled` ones leave C scaled, so that `finish` must follow.
    """

    generation: Generation
    a: ElementType
    b: ElementType
    accumulator: ElementType
    r: int
    s: int
    t: int
    multiples: tuple[int, int, int]
    depth_limit: int = UNLIMITED_DEPTH
    """Largest K for which sums cannot overflow."""
    block_products: bool = False
    """Whether operands become block floats before they are multiplied."""
    field_scaled: bool = False

    @property
    def multiply(self) -> str:
        """Symbol of the matrix kernel."""
        return f"mm_{self.a.code}_{self.b.code}_{self.accumulator.code}"

    @property
    def zero(self) -> str:
        """Symbol of the kernel that clears C."""
        return f"zero_{self.accumulator.code}"


def _kernels(
    generation: Generation, a: str, b: str, limits: dict[str, int], shape: tuple[int, int, int], **facts: Any
) -> dict[tuple[str, str, str, str], Kernel]:
    """One entry for each type of accumulator, with its limit of K."""
    facts = dict[str, Any](multiples=shape) | facts
    return {
        (generation.name, a, b, name): Kernel(
            generation, TYPES[a], TYPES[b], TYPES[name], *shape, depth_limit=depth, **facts
        )
        for name, depth in limits.items()
    }


# Accumulators of 32 bit must hold 128 * |b| * K; narrower ones saturate at every step instead.
_INT8 = {"int8": UNLIMITED_DEPTH, "int16": UNLIMITED_DEPTH, "int32": (1 << 17) - 1}
_INT4 = {"int16": UNLIMITED_DEPTH, "int32": UNLIMITED_DEPTH}
# 64 * 128 * K < 2^31: the highest of the four codes of a byte is multiplied in place, scaled by 64.
_INT2 = {"int32": (1 << 18) - 1}
_FLOAT = {"bf16": UNLIMITED_DEPTH, "f32": UNLIMITED_DEPTH}
_BLOCK = _FLOAT | {"bfp16": UNLIMITED_DEPTH}

KERNELS: dict[tuple[str, str, str, str], Kernel] = {
    **_kernels(AIE2P, "int8", "int8", _INT8, (8, 8, 8)),
    **_kernels(AIE2P, "int8", "int4", _INT4, (8, 8, 8)),
    **_kernels(AIE2P, "int8", "int2", _INT2, (8, 8, 8), multiples=(8, 8, 32), field_scaled=True),
    **_kernels(AIE2P, "bf16", "bf16", _FLOAT, (8, 8, 8), block_products=True),
    **_kernels(AIE2P, "bfp16", "bfp16", _BLOCK, (8, 8, 8), block_products=True),
    **_kernels(AIE2P, "bf16", "bfp16", _BLOCK, (8, 8, 8), block_products=True),
    **_kernels(AIE2, "int8", "int8", _INT8, (4, 8, 8)),
    **_kernels(AIE2, "int8", "int4", _INT4, (4, 16, 8)),
    **_kernels(AIE2, "int8", "int2", _INT2, (4, 8, 8), multiples=(4, 8, 32), field_scaled=True),
    **_kernels(AIE2, "bf16", "bf16", _FLOAT, (4, 8, 4)),
}
"""Kernels by generation and the types of A, B and the accumulator."""


def kernel_for(generation: Generation, spec: GemmSpec) -> Kernel | None:
    """The kernel that computes a spec on a generation, if there is one."""
    return KERNELS.get((generation.name, spec.a, spec.b, spec.accumulator))


def accumulators(generation: Generation, a: str, b: str) -> list[str]:
    """Accumulators for which there is a kernel."""
    return [key[3] for key in KERNELS if key[:3] == (generation.name, a, b)]


@dataclass(frozen=True, slots=True)
class Finish:
    """What a core calls once for each tile of C, in place: `symbol`, built with `defines`."""

    symbol: str
    defines: tuple[str, ...] = ()
