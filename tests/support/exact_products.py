"""Products of a model that are compared with its own matrices."""

from itertools import cycle

import numpy as np

from bdforge.models import Products
from support.differences import same
from tools.bitnet.content import Content


class Exact(Products):
    """Products that are compared with those of the content's own matrices, in the order of the layers."""

    def watch(self, content: Content) -> "Exact":
        roles = {"qkv": "qkv", "out": "o", "gate_up": ("gate", "up"), "down": ("down",)}
        matrices = [(name, [layer[role] for role in of]) for layer in content.matrices for name, of in roles.items()]
        self.right = cycle(matrices)
        return self

    def __call__(self, linear, codes, scales):
        name, parts = next(self.right)
        assert linear.name == name
        y = super().__call__(linear, codes, scales)
        sums = codes.astype(np.float64) @ np.hstack([weights for weights, _ in parts])  # exact, by BLAS
        columns = np.repeat(np.array([scale for _, scale in parts], np.float32), [w.shape[1] for w, _ in parts])
        if self.split.plan.spec.c == "int32":
            same(y, sums.astype(np.float32) * scales[:, None] * columns)
        else:
            same(y, sums * scales[:, None].astype(np.float64) * columns, rtol=1.01 * 2**-8)
        return y
