"""Every operation that a core program may use: importing the modules below fills the table."""

from bdforge.emulator import (
    core_affine,
    core_aie,
    core_constants,
    core_control,
    core_floats,
    core_integers,
    core_memory,
    core_vectors,
)
from bdforge.emulator.core_emit import EMITTERS

MODULES = (
    core_affine,
    core_aie,
    core_constants,
    core_control,
    core_floats,
    core_integers,
    core_memory,
    core_vectors,
)

__all__ = ["EMITTERS", "MODULES"]
