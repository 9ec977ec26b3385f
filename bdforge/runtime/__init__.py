"""Running built designs: numpy in, numpy out."""

from bdforge.runtime.design import BuildError, BuiltDesign
from bdforge.runtime.gemm import GemmRun, Mismatch, first_mismatch, reference, run_gemm
from bdforge.runtime.kernels import KernelFault, KernelLibraryError, load_kernels
from bdforge.runtime.load import Gemm, PackedWeights, load
from bdforge.runtime.operands import c_buffer, packed_weights, staged_a

__all__ = [
    "BuildError",
    "BuiltDesign",
    "Gemm",
    "GemmRun",
    "KernelFault",
    "KernelLibraryError",
    "Mismatch",
    "PackedWeights",
    "c_buffer",
    "first_mismatch",
    "load",
    "load_kernels",
    "packed_weights",
    "reference",
    "run_gemm",
    "staged_a",
]
