"""Machine code without a compiler: kernels, and what programs of cores are made of.

`scheduled` makes bundles of straight code, `bdforge.core.codegen.abi` says how functions call. Programs of cores from
their bodies in MLIR are `bdforge.array.core_bodies`.
"""

from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.basic_block import AssemblyOp, BasicBlock
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.schedule import scheduled

__all__ = ["AssemblyKernel", "AssemblyOp", "BasicBlock", "Callee", "CodegenError", "scheduled"]
