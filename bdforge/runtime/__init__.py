"""Running built designs: numpy in, numpy out."""

from bdforge.runtime.design import BuildError, BuiltDesign
from bdforge.runtime.epilogues import Scales
from bdforge.runtime.gemm import GemmRun, Mismatch, first_mismatch, run_gemm
from bdforge.runtime.kernels import KernelFault, KernelLibraryError, load_kernels
from bdforge.runtime.load import Gemm, PackedWeights, load
from bdforge.runtime.operands import DTYPES, b_operand, c_buffer, c_matrix, packed_weights, staged_a
from bdforge.runtime.reference import Expected, expected, random_operands, random_scales, reference

__all__ = [
    "DTYPES",
    "BuildError",
    "BuiltDesign",
    "Expected",
    "Gemm",
    "GemmRun",
    "KernelFault",
    "KernelLibraryError",
    "Mismatch",
    "PackedWeights",
    "Scales",
    "b_operand",
    "c_buffer",
    "c_matrix",
    "expected",
    "first_mismatch",
    "load",
    "load_kernels",
    "packed_weights",
    "random_operands",
    "random_scales",
    "reference",
    "run_gemm",
    "staged_a",
]
