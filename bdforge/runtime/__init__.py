"""Running built designs: numpy in, numpy out."""

from bdforge.runtime.design import BuildError, BuiltDesign
from bdforge.runtime.kernels import KernelFault, KernelLibraryError, load_kernels
from bdforge.runtime.load import Loaded, load
from bdforge.runtime.prepared import Packed, Prepared
from bdforge.runtime.run import Mismatch, Run, first_mismatch, run
from bdforge.runtime.runs import Pending, UseError
from bdforge.sequences import OperandError

__all__ = [
    "BuildError", "BuiltDesign", "KernelFault", "KernelLibraryError", "Loaded", "Mismatch", "OperandError", "Packed",
    "Pending", "Prepared", "Run", "UseError", "first_mismatch", "load", "load_kernels", "run",
]  # fmt: skip
