"""Running built designs: numpy in, numpy out."""

from bdforge.common.mismatch import ElementMismatch, first_mismatch
from bdforge.design.sequences import OperandError
from bdforge.runtime.batch import BatchedRun
from bdforge.runtime.built_design import BuildError, BuiltDesign
from bdforge.runtime.host_kernels import KernelFault, KernelLibraryError, load_kernels
from bdforge.runtime.loading import Loaded, load
from bdforge.runtime.packed_operands import PackedOperands
from bdforge.runtime.prepared import Prepared
from bdforge.runtime.run import Closeness, Run, run
from bdforge.runtime.run_queue import Pending, UseError

__all__ = [
    "BatchedRun", "BuildError", "BuiltDesign", "Closeness", "ElementMismatch", "KernelFault", "KernelLibraryError",
    "Loaded", "OperandError", "PackedOperands", "Pending", "Prepared", "Run", "UseError", "first_mismatch", "load",
    "load_kernels", "run",
]  # fmt: skip
