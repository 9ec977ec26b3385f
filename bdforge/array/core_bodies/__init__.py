"""Machine code of cores from their bodies in MLIR, linked with kernels of machine code."""

from bdforge.array.core_bodies.core_program import LinkedProgram, core_program, core_symbols

__all__ = ["LinkedProgram", "core_program", "core_symbols"]
