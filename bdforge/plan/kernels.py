"""The compute kernels that plans know: what a core calls for a combination of types."""

from dataclasses import dataclass

from bdforge.devices import AIE2P, Generation


@dataclass(frozen=True, slots=True)
class Kernel:
    """A matrix kernel and its helpers; contracts stand in the sources under `kernels/`.

    `r, s, t` is the MAC shape. Tile sizes m, k, n must be multiples of `multiples`.
    `b_bits` is the width of one weight as the core receives it; `memory_*` are the MLIR types of the buffers.
    """

    multiply: str
    zero: str
    finish: str | None
    generation: Generation
    r: int
    s: int
    t: int
    multiples: tuple[int, int, int]
    memory_a: str
    memory_b: str
    memory_c: str
    b_bits: int
    depth_limit: int
    """Largest K for which the accumulators cannot overflow."""

    def b_tile_elements(self, k: int, n: int) -> int:
        """Elements of `memory_b` in one k x n tile."""
        return k * n * self.b_bits // int(self.memory_b.lstrip("iu"))


# 64 * 128 * K < 2^31: the highest of the four codes of a byte is multiplied in place, scaled by 64.
_I8_I2_I32 = Kernel(
    multiply="mm_i8_i2_i32", zero="zero_i32", finish="unscale_i32", generation=AIE2P, r=8, s=8, t=8,
    multiples=(16, 8, 32), memory_a="i8", memory_b="i8", memory_c="i32", b_bits=2, depth_limit=(1 << 18) - 1,
)  # fmt: skip

KERNELS = {("int8", "int2", "int32"): _I8_I2_I32}
"""Kernels by the types of A, B and C."""
