"""Kernels that are software pipelined: small dataflow descriptions become modulo schedules, registers and loops.

A block of a kernel is operations on named values (`dataflow`, `product`). Its schedule repeats (`bdforge.isa.modulo`,
`block`), its values get registers that they leave in time for the next block's (`registers`), and its blocks, written
one after the other, are folded into a loop again (`trace`, `fold`).
"""

from bdforge.codegen.pipeline.function import Pipelined
from bdforge.codegen.pipeline.kernel import pipelined
from bdforge.codegen.pipeline.product import Product

__all__ = ["Pipelined", "Product", "pipelined"]
