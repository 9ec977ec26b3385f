"""Whole models: layers of operators, weights from files, and what runs on the array and what on the CPU.

`functions` holds the formulas, `linear` the products of ternary matrices on one loaded design, `split` where parts run
and what that took, `sampling` the tokens; `bitnet` is BitNet b1.58.
"""

from bdforge.models.errors import ModelError
from bdforge.models.linear import Products, TernaryLinear
from bdforge.models.sampling import Sampler, generate
from bdforge.models.split import RULES, Entry, Ledger, Split

__all__ = ["RULES", "Entry", "Ledger", "ModelError", "Products", "Sampler", "Split", "TernaryLinear", "generate"]
