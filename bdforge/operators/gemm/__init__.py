"""GEMM, C = A B of any size: from a design spec to a GemmPlan with every number, and its runtime sequences."""

from bdforge.design.sequences import SequenceOptions
from bdforge.operators.gemm.plan import GemmPlan, plan_gemm
from bdforge.operators.gemm.sequence import Counts, Edges, GemmSequence, Staged, Staging, sequence
from bdforge.operators.gemm.spec import AXES, KIND, GemmProblem, GemmSpec, SpecError, load_spec, spec_from
from bdforge.operators.gemm.spec_check import fits
from bdforge.operators.operator_api import Operator

OPERATOR = Operator(KIND, AXES, spec_from, plan_gemm, fits)

__all__ = [
    "AXES",
    "OPERATOR",
    "Counts",
    "Edges",
    "GemmPlan",
    "GemmProblem",
    "GemmSequence",
    "GemmSpec",
    "SequenceOptions",
    "SpecError",
    "Staged",
    "Staging",
    "load_spec",
    "plan_gemm",
    "sequence",
    "spec_from",
]  # fmt: skip
