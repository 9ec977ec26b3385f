"""How far rounding takes a model from its formulas: logits with results as designs give them, and in float64.

The integers of a layer are exact everywhere; what differs is the float type of its results, and of all between layers.
A difference in the last bit turns an int8 code now and then, and layers behind it go on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bdforge.models.bitnet import BitNet
from bdforge.models.linear import Products, TernaryLinear
from bdforge.models.parts import ArrayParts
from bdforge.models.split import Ledger, Split


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Logits of a way against those in float64: normalised mean square error, and how many of the tokens' most likely
    next ones agree."""

    results: str
    nmse: float
    agreeing: int
    tokens: int


@dataclass
class _Results:
    """Products on the CPU with results of one type, in a model's place of its own."""

    products: Products
    type: str
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def split(self) -> Split:
        return self.products.split

    def __call__(self, linear: TernaryLinear, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        if self.type != "float64":
            return self.products.on_cpu(linear, codes, scales, narrow=self.type == "bf16")
        ones = replace(linear, scales=np.ones_like(linear.scales), codes=self.products.codes_of(linear))
        sums = self.products.on_cpu(ones, codes, np.ones(len(codes), np.float32), narrow=False)
        return sums.astype(np.float64) * scales[:, None] * linear.scales


def accuracy(model: BitNet, ids: Sequence[int]) -> list[Accuracy]:
    """Of logits behind each token of a text: with results in bf16, as designs that scale give them, and in float32 of
    int32 sums; both against float64 in all but embedding and head. On the CPU; errors as of `BitNet.hidden`."""
    right = _logits(model, ids, "float64")
    found = []
    for results in ("bf16", "float32"):
        logits = _logits(model, ids, results)
        nmse = float(np.square(logits - right).mean() / np.square(right).mean())
        found.append(Accuracy(results, nmse, int((logits.argmax(1) == right.argmax(1)).sum()), len(ids)))
    return found


def _logits(model: BitNet, ids: Sequence[int], results: str) -> np.ndarray:
    products: Any = _Results(model.products, results)
    there = replace(model, products=products, parts=ArrayParts())
    return there.logits(there.hidden(ids, there.cache())).astype(np.float64)
