"""Tensor contractions on the array of a GEMM design: from an einsum expression to a sequence program."""

from bdforge.operators.contraction.choose import Choice
from bdforge.operators.contraction.config import Config
from bdforge.operators.contraction.dims import Contraction, ContractionError, TensorDim, contraction, parse, text_of
from bdforge.operators.contraction.plan import ContractionPlan, plan_config, plan_contraction, plan_spec
from bdforge.operators.contraction.spec import KIND, ContractionSpec, fits
from bdforge.operators.operator_api import Operator

OPERATOR = Operator(KIND, (), ContractionSpec.load, plan_spec, fits)

__all__ = [
    "KIND", "OPERATOR", "Choice", "Config", "Contraction", "ContractionError", "ContractionPlan", "ContractionSpec",
    "TensorDim", "contraction", "parse", "plan_config", "plan_contraction", "text_of",
]  # fmt: skip
