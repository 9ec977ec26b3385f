"""How operands of each element type lie in host memory."""

from bdforge.devices.types import ElementType, Order
from bdforge.operators.gemm.grid import Storage


def storage_of(type_: ElementType, order: Order) -> Storage:
    """An operand of this type in host memory: block floats lie in lines of whole micro-tiles, 8 rows high."""
    if order == "packed":
        return Storage(type_.bits, order)
    run = type_.block * type_.bits // type_.memory_bits if type_.blocked else 1
    return Storage(type_.memory_bits, order, type_.block, run)
