"""GEMM: from a design spec to a Plan with every number, to MLIR text and manifest, and to instruction words."""

from bdforge.operators.gemm.check import fits
from bdforge.operators.gemm.manifest import manifest
from bdforge.operators.gemm.plan import Plan, plan_gemm
from bdforge.operators.gemm.render import render
from bdforge.operators.gemm.sequence import Counts, Edges, GemmSequence, sequence
from bdforge.operators.gemm.spec import AXES, KIND, GemmSpec, Problem, SpecError, load_spec, spec_from
from bdforge.operators.gemm.staging import Staged, Staging
from bdforge.operators.operator import Operator
from bdforge.sequences import SequenceOptions

OPERATOR = Operator(KIND, AXES, spec_from, plan_gemm, fits)

__all__ = [
    "OPERATOR",
    "Counts",
    "Edges",
    "GemmSequence",
    "GemmSpec",
    "Plan",
    "Problem",
    "SequenceOptions",
    "SpecError",
    "Staged",
    "Staging",
    "load_spec",
    "manifest",
    "plan_gemm",
    "render",
    "sequence",
    "spec_from",
]
