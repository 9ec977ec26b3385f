"""Element types of operands: how specs name them and how they lie in memory."""

from dataclasses import dataclass

from bdforge.formats import BLOCK, BLOCK_BYTES
from bdforge.operators.gemm.grid import BYTE_BITS, Order, Storage


@dataclass(frozen=True, slots=True)
class ElementType:
    """A type by the name that specs use.

    `code` is its part of kernel names; `bits` the width of one element in tile memory, shared exponents included;
    `memory` the MLIR type of buffers that hold it. `packed_only`: elements are no whole bytes, so that only the host
    can bring them into the order of a kernel.
    """

    name: str
    code: str
    bits: int
    memory: str
    integer: bool
    blocked: bool = False

    @property
    def memory_bits(self) -> int:
        """Width of one element of `memory`."""
        return int(self.memory.lstrip("iubf"))

    @property
    def packed_only(self) -> bool:
        """Whether B of this type is always packed by the host."""
        return self.blocked or self.bits < self.memory_bits

    def memory_elements(self, count: int) -> int:
        """Elements of `memory` that hold `count` elements."""
        return count * self.bits // self.memory_bits

    def storage(self, order: Order) -> Storage:
        """How an operand of this type lies in host memory."""
        if order == "packed":
            return Storage(self.bits, order)
        if self.blocked:
            return Storage(self.memory_bits, order, BLOCK, BLOCK * self.bits // self.memory_bits)
        return Storage(self.memory_bits, order)


TYPES = {
    t.name: t
    for t in (
        ElementType("int2", "i2", 2, "i8", True),
        ElementType("int4", "i4", 4, "i8", True),
        ElementType("int8", "i8", 8, "i8", True),
        ElementType("int16", "i16", 16, "i16", True),
        ElementType("int32", "i32", 32, "i32", True),
        ElementType("bf16", "bf16", 16, "bf16", False),
        ElementType("f32", "f32", 32, "f32", False),
        # bfp16ebs8, mlir-aie's v8bfp16ebs8: a byte of exponent for each block
        ElementType("bfp16", "bfp16", BLOCK_BYTES * BYTE_BITS // BLOCK, "i8", False, blocked=True),
    )
}
"""Types by name. int2 holds ternary weights."""
