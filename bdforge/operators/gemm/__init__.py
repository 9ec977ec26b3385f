"""GEMM: from a design spec to a Plan with every number, and its runtime sequences."""

from bdforge.design.sequences import SequenceOptions
from bdforge.operators.gemm.plan import Plan, plan_gemm
from bdforge.operators.gemm.sequence import Counts, Edges, GemmSequence, Staged, Staging, sequence
from bdforge.operators.gemm.spec import AXES, KIND, GemmSpec, Problem, SpecError, load_spec, spec_from
from bdforge.operators.gemm.spec_check import fits
from bdforge.operators.operator_api import Operator

OPERATOR = Operator(KIND, AXES, spec_from, plan_gemm, fits)

__all__ = [
    "AXES", "OPERATOR", "Counts", "Edges", "GemmSequence", "GemmSpec", "Plan", "Problem", "SequenceOptions",
    "SpecError", "Staged", "Staging", "load_spec", "plan_gemm", "sequence", "spec_from",
]  # fmt: skip
