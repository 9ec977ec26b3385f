"""Running built designs: numpy in, numpy out."""

from bdforge.runtime.design import BuildError, BuiltDesign
from bdforge.runtime.gemm import GemmRun, Mismatch, first_mismatch, reference, run_gemm
from bdforge.runtime.kernels import KernelFault, KernelLibraryError, load_kernels

__all__ = [
    "BuildError",
    "BuiltDesign",
    "GemmRun",
    "KernelFault",
    "KernelLibraryError",
    "Mismatch",
    "first_mismatch",
    "load_kernels",
    "reference",
    "run_gemm",
]
