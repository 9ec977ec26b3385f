"""How W's weights are packed, and what cores make of them: the one place that another way to pack them changes.

A tile of W is k x n, in the order in which its kernel reads it; a stream of whole tiles is all that shims, memtiles
and locks know. So weights quantised in blocks are one more entry of `SUMS`, a kernel that takes them, and their tile
here: its bytes (codes, then the scales of its blocks) and the loops in which the host writes them.
"""

from dataclasses import dataclass
from typing import Any

from bdforge.design.sequences import Dim
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.types import ElementType
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.operands import micro_tiles, packed_values

SUMS = {"int8": "int32", "int2": "int32", "bf16": "f32"}
"""In which type cores sum products with weights of a type."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Tiles of W, k x n of a type, for the kernel that unpacks them."""

    type: ElementType
    kernel: Kernel
    k: int
    n: int

    @property
    def tile_bytes(self) -> int:
        """Of a tile in memory and on streams."""
        return self.k * self.n * self.type.bits // BYTE_BITS

    @property
    def finish(self) -> tuple[str, ...]:
        """What a core calls for sums that a kernel leaves scaled."""
        return ("unscale_i32",) if self.kernel.field_scaled else ()

    def loops(self) -> list[Dim]:
        """Over a tile of W, in the order in which its bytes lie."""
        return micro_tiles(self.k, self.n, self.kernel.t, self.type.bits, self.kernel.field_scaled)

    def values(self) -> dict[str, Any]:
        """How a weight is stored, for `Builder.operand`."""
        return packed_values(self.type.name)
