"""From a design spec to a Plan with every number, and from a Plan to MLIR text and manifest."""

from bdforge.plan.gemm import Plan, plan_gemm
from bdforge.plan.manifest import manifest
from bdforge.plan.padding import Padding, padding
from bdforge.plan.render import render
from bdforge.plan.sequence import plan_sequence
from bdforge.plan.spec import GemmSpec, Problem, SpecError, load_spec, spec_from

__all__ = [
    "GemmSpec",
    "Padding",
    "Plan",
    "Problem",
    "SpecError",
    "load_spec",
    "manifest",
    "padding",
    "plan_gemm",
    "plan_sequence",
    "render",
    "spec_from",
]
