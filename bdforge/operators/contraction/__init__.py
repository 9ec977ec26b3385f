"""Tensor contractions on the array of a GEMM design: from an einsum expression to a sequence program."""

from bdforge.operators.contraction.choose import Choice
from bdforge.operators.contraction.config import Config
from bdforge.operators.contraction.dims import Contraction, ContractionError, Dim, contraction, parse, text_of
from bdforge.operators.contraction.plan import KIND, ContractionPlan, plan_config, plan_contraction

__all__ = [
    "KIND", "Choice", "Config", "Contraction", "ContractionError", "ContractionPlan", "Dim", "contraction", "parse",
    "plan_config", "plan_contraction", "text_of",
]  # fmt: skip
