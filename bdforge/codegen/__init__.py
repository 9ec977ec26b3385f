"""Machine code without a compiler: programs of cores from their MLIR bodies, linked with kernels of machine code.

`core_program` makes a core's ELF, `scheduled` bundles of straight code, `bdforge.codegen.abi` says how functions call.
"""

from bdforge.codegen.abi import Callee, Kernel
from bdforge.codegen.block import Block, Op
from bdforge.codegen.core_program import CoreProgram, core_program
from bdforge.codegen.errors import CodegenError
from bdforge.codegen.schedule import scheduled
from bdforge.codegen.symbols import core_symbols

__all__ = [
    "Block", "Callee", "CodegenError", "CoreProgram", "Kernel", "Op", "core_program", "core_symbols", "scheduled",
]  # fmt: skip
