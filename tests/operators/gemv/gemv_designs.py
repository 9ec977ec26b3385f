"""Small GEMV designs on the emulated array, with kernels by numpy that follow the contracts of `kernels/`."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from bdforge.devices import device_named
from bdforge.operators.gemm.reference import random_operand
from bdforge.operators.gemv import GemvPlan, GemvSpec, plan_gemv
from support.differences import same
from support.loaded_arrays import LoadedArray

INT, FLOAT = {"a": "int8", "w": "int2", "c": "int32"}, {"a": "bf16", "w": "bf16", "c": "f32"}
DESIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "strix halo": ("strix_halo", {"types": INT, "tile": {"m": 8, "k": 16, "n": 32}}),
    "strix halo, two channels": (
        "strix_halo",
        {"types": INT, "tile": {"m": 3, "k": 16, "n": 64}, "array": {"columns": 3, "channels": 2}},
    ),
    "strix halo, sums as bf16": (
        "strix_halo",
        {
            "types": INT | {"c": "bf16"},
            "tile": {"m": 1, "k": 16, "n": 32},
            "buffers": {"w": 5},
            "array": {"rows": 2, "columns": 3, "first_row": 1, "first_column": 2, "from_end": True},
        },
    ),
    "strix halo, bf16": ("strix_halo", {"types": FLOAT, "tile": {"m": 8, "k": 8, "n": 16}}),
    "strix halo, int8": ("strix_halo", {"types": INT | {"w": "int8"}, "tile": {"m": 1, "k": 16, "n": 16}}),
    "phoenix, int8": (
        "phoenix",
        {"types": INT | {"w": "int8", "c": "bf16"}, "tile": {"m": 3, "k": 16, "n": 8}, "array": {"columns": 2}},
    ),
    "phoenix": ("phoenix", {"types": INT, "tile": {"m": 1, "k": 16, "n": 32}}),
    "phoenix, bf16": ("phoenix", {"types": FLOAT | {"c": "bf16"}, "tile": {"m": 6, "k": 8, "n": 8}}),
    "phoenix, one channel": (
        "phoenix",
        {"types": INT, "tile": {"m": 5, "k": 8, "n": 32}, "array": {"channels": 1}, "buffers": {"w": 3}},
    ),
    "two columns": (
        "phoenix",
        {"types": INT, "tile": {"m": 4, "k": 8, "n": 32}, "array": {"columns": 2, "rows": 2, "channels": 2}},
    ),
    "one core": ("strix_halo", {"types": INT, "tile": {"m": 2, "k": 8, "n": 32}, "array": {"columns": 1, "rows": 1}}),
}
"""The product and what its spec says beside its kind; k and n are small, so that sizes of several tiles run fast."""


class LoadedGemv(LoadedArray):
    """A design whose results are compared with numpy's."""

    def exact(self, sizes: Sequence[int], values: int, **options: Any) -> None:
        """Run a problem on random inputs (seed `values`) and compare every element of C."""
        inputs = self.random(sizes, values)
        found, _ = self.run(sizes, inputs, **options)
        same(found["C"].astype(np.float64), self.product(inputs))

    def product(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """float64 A W, as far as C's type holds it."""
        exact = inputs["A"].astype(np.float64) @ inputs["W"].astype(np.float64)
        return exact.astype(self.plan.tiling.c.dtype).astype(np.float64)

    def random(self, sizes: Sequence[int], seed: int) -> dict[str, np.ndarray]:
        """A and W over the whole range of integers; floats are integers, so that sums of any order are exact."""
        rng, (M, K, N), tiling = np.random.default_rng(seed), sizes, self.plan.tiling
        shapes = {"A": (tiling.kernel.a, (M, K)), "W": (tiling.w, (K, N))}
        return {name: random_operand(rng, type_, shape) for name, (type_, shape) in shapes.items()}


def plan_of(name: str) -> GemvPlan:
    """The plan of one of `DESIGNS`."""
    product, content = DESIGNS[name]
    return plan_gemv(GemvSpec.load({"kind": "gemv", **content}, "small"), device_named(product))


@cache
def loaded(name: str) -> LoadedGemv:
    """One of `DESIGNS` with kernels by numpy."""
    plan = plan_of(name)
    return LoadedGemv.of(plan, numpy_kernels(plan))


def numpy_kernels(plan: GemvPlan) -> dict[str, Callable[..., None]]:
    """The kernels of a plan as their contracts have them, from micro-tiles to micro-tiles."""
    tiling, kernel = plan.tiling, plan.tiling.kernel
    m, k, n, r, s, t = tiling.height, tiling.k, tiling.n, kernel.r, kernel.s, kernel.t
    scales = 4.0 ** (np.arange(n) // t % 4) if kernel.field_scaled else np.ones(n)

    def weights(w: np.ndarray) -> np.ndarray:
        if not kernel.field_scaled:
            return w.view(tiling.w.dtype).reshape(n // t, k, t).transpose(1, 0, 2).reshape(k, n).astype(np.float64)
        codes = w.view(np.uint8).reshape(n // (4 * t), k, t)
        fields = np.stack([codes >> (2 * j) & 3 for j in range(4)], axis=2)
        return fields.transpose(1, 0, 2, 3).reshape(k, n).astype(np.float64) - 1

    def tiles(c: np.ndarray) -> np.ndarray:
        return c.reshape(m // r, n // t, r, t)

    def multiply(a: np.ndarray, w: np.ndarray, c: np.ndarray) -> None:
        rows = (
            a.view(kernel.a.dtype).reshape(m // r, k // s, r, s).transpose(0, 2, 1, 3).reshape(m, k).astype(np.float64)
        )
        product = rows @ weights(w) * scales
        tiles(c)[...] += product.reshape(m // r, r, n // t, t).transpose(0, 2, 1, 3).astype(c.dtype)

    def zero(c: np.ndarray) -> None:
        c[:] = 0

    def unscale(c: np.ndarray) -> None:
        tiles(c)[...] //= scales.reshape(n // t, 1, t).astype(c.dtype)

    def narrow(c: np.ndarray) -> None:
        if kernel.field_scaled:
            unscale(c)
        half = c.view(tiling.c.dtype)
        half[: c.size] = c.astype(tiling.c.dtype)

    finish = unscale if tiling.c is kernel.accumulator else narrow
    return dict(zip(plan.kernels.symbols, (multiply, zero, finish), strict=False))
