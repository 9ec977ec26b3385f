"""Kernels that are software pipelined: small dataflow descriptions become modulo schedules, registers and loops.

A block of a kernel is operations on named values (`dataflow`, `product`). Its schedule repeats
(`bdforge.core.isa.modulo`, `block`), its values get registers that they leave in time for the next block's
(`registers`), and its blocks, written one after the other, are folded into a loop again (`trace`, `fold`).
"""

from bdforge.core.codegen.pipeline.pipelined_function import Pipelined
from bdforge.core.codegen.pipeline.pipelined_kernel import pipelined
from bdforge.core.codegen.pipeline.product import MatrixProduct

__all__ = ["MatrixProduct", "Pipelined", "pipelined"]
