"""Whole models: layers of operators, weights from files, and what runs on the array and what on the CPU.

`functions` holds the formulas, `linear` the products of ternary matrices on one loaded design, `parts` other functions
on designs of their own, `split` where all that runs and what it took, `sampling` the tokens; `bitnet` is BitNet b1.58.
"""

from bdforge.models.errors import ModelError
from bdforge.models.linear import Products, TernaryLinear
from bdforge.models.parts import ArrayParts
from bdforge.models.sampling import Sampler, generate
from bdforge.models.split import Entry, Ledger, Split
from bdforge.perf.bounds.stage_split import RULES

__all__ = [
    "RULES", "ArrayParts", "Entry", "Ledger", "ModelError", "Products", "Sampler", "Split", "TernaryLinear", "generate",
]  # fmt: skip
