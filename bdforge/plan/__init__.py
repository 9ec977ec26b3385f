"""From a design spec to a Plan with every number, from a Plan to MLIR text and manifest, and to instruction words."""

from bdforge.plan.cpp_design import cpp_design
from bdforge.plan.gemm import Plan, plan_gemm
from bdforge.plan.manifest import manifest
from bdforge.plan.mlir_sequence import plan_sequence
from bdforge.plan.render import render
from bdforge.plan.sequence import Counts, Edges, GemmSequence, sequence
from bdforge.plan.spec import GemmSpec, Problem, SequenceOptions, SpecError, load_spec, spec_from
from bdforge.plan.staging import Staged, Staging

__all__ = [
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
    "cpp_design",
    "load_spec",
    "manifest",
    "plan_gemm",
    "plan_sequence",
    "render",
    "sequence",
    "spec_from",
]
