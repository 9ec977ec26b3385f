"""Every operation that a core program may use: importing the modules below fills the table."""

from bdforge.emulator.cores.mlir import (
    affine,
    aie,
    constants,
    control,
    floats,
    integers,
    memory,
    vectors,
)
from bdforge.emulator.cores.mlir.emit import EMITTERS

MODULES = (
    affine,
    aie,
    constants,
    control,
    floats,
    integers,
    memory,
    vectors,
)

__all__ = ["EMITTERS", "MODULES"]
