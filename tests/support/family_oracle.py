"""What every member of the GEMM family must compute, by numpy out of the kernels' contracts.

Nothing here comes from the code under test but the sizes of a plan: integers are Python and numpy integers, floats are
compared with the exact product within the bound of docs/block_floats.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor

import ml_dtypes
import numpy as np

from bdforge.devices.formats import error_bound, rounded
from bdforge.operators.gemm import GemmPlan, GemmProblem, sequence
from support.differences import difference

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NUMBERS = {"int2": (-1, 1), "int4": (-8, 7), "int8": (-128, 127), "int16": (-(1 << 15), (1 << 15) - 1)}
_BFLOAT16_ROUNDOFF = 2.0**-8  # to nearest: 8 bits of significand
_BLOCK_ROUNDOFF = 1 / 127.5  # of the largest of a block, docs/block_floats.md
_SCALED_ROUNDOFF = 2.0**-21  # of products and bias, contract of finish_i32_bf16 and finish_f32_bf16


@dataclass(frozen=True)
class Data:
    """Operands of a problem and what the epilogue takes."""

    a: np.ndarray
    b: np.ndarray
    fed: Mapping[str, np.ndarray]

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """All of them, by operand."""
        return {"A": self.a, "B": self.b, **self.fed}


def random_data(plan: GemmPlan, problem: GemmProblem, seed: int) -> Data:
    """Integers over the whole range, floats of many magnitudes; column-major operands lie so."""
    rng = np.random.default_rng(seed)
    spec = plan.spec
    a = _ordered(_numbers(rng, spec.a, (problem.M, problem.K)), spec.layouts.a)
    b = _ordered(_numbers(rng, spec.b, (problem.K, problem.N)), spec.layouts.b)
    rows, columns, bias = (rng.uniform(-2, 2, size).astype(np.float32) for size in (problem.M, problem.N, problem.N))
    scale = spec.epilogue.scale
    fed = {"row_scales": rows, "column_scales": columns} if scale else {}
    return Data(a, b, fed | ({"bias": bias} if spec.epilogue.bias else {}))


def _numbers(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> np.ndarray:
    if name in NUMBERS:
        low, high = NUMBERS[name]
        return rng.integers(low, high + 1, shape, np.int8)
    values = (rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, shape)).astype(np.float32)
    return values.astype(BFLOAT16) if name == "bf16" else values


def _ordered(matrix: np.ndarray, order: str) -> np.ndarray:
    return np.asfortranarray(matrix) if order == "column" else matrix


def check(plan: GemmPlan, data: Data, c: np.ndarray) -> str:
    """What is wrong with a C that is not exact (integers) or not within its bound (floats)."""
    right, allowed = _right(plan, data)
    tile = (plan.spec.tile.rows, plan.spec.tile.n)
    return difference(c, right, tile=tile, atol=0 if allowed is None else allowed)


def wanted(plan: GemmPlan, data: Data) -> np.ndarray:
    """The exact C: int64, or float64 that no core has rounded."""
    return _right(plan, data)[0]


def _right(plan: GemmPlan, data: Data) -> tuple[np.ndarray, np.ndarray | None]:
    """C, and for floats how far a core's may be from it."""
    if plan.kernel.accumulator.integer:
        sums, bound = _integer_sums(plan, data), None
    else:
        sums, bound = _float_sums(plan, data)
    if plan.spec.c.startswith("int"):
        return _finished_integers(plan, sums), None
    return _finished_floats(plan, data, sums.astype(np.float64), bound)


def in_slabs(plan: GemmPlan, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """A and B as steps of K meet them: the last slab moves back, and what the one before it held counts once.

    Packed B holds zeros there, and A is read again; otherwise A holds the zeros.
    """
    problem = GemmProblem(data.a.shape[0], data.a.shape[1], data.b.shape[1])
    k_mt, K = plan.tiling.k_mt, sequence(plan, problem.M, problem.K, problem.N).walk.K
    a = np.zeros((problem.M, K), data.a.dtype)
    b = np.zeros((K, problem.N), data.b.dtype)
    a[:, : problem.K], b[: problem.K] = data.a, data.b
    if not K % k_mt:
        return a, b
    whole = K // k_mt * k_mt
    a_slabs, b_slabs = (np.concatenate([x[..., :whole], x[..., K - k_mt :]], axis=-1) for x in (a, b.T))
    covered = slice(whole, 2 * whole + k_mt - K)
    (b_slabs if plan.spec.layouts.b == "packed" else a_slabs)[:, covered] = 0
    return a_slabs, b_slabs.T


def _integer_sums(plan: GemmPlan, data: Data) -> np.ndarray:
    accumulator, epilogue = plan.spec.accumulator, plan.spec.epilogue
    if accumulator == "int32":
        return data.a.astype(np.int64) @ data.b.astype(np.int64)
    a, b = in_slabs(plan, data)
    c = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for start in range(0, a.shape[1], plan.spec.tile.k):
        depths = slice(start, start + plan.spec.tile.k)
        sums = (c << epilogue.shift) + a[:, depths].astype(np.int64) @ b[depths].astype(np.int64)
        c = _narrowed(sums, epilogue.shift, epilogue.rounding, accumulator)
    return c


def _narrowed(values: np.ndarray, shift: int, rounding: str, type_name: str) -> np.ndarray:
    """round(values / 2^shift), saturated."""
    low, high = NUMBERS[type_name]
    if not shift:
        return np.clip(values, low, high)
    unique, where = np.unique(values, return_inverse=True)
    results = [min(max(ROUND[rounding](Fraction(int(value), 1 << shift)), low), high) for value in unique]
    return np.array(results, np.int64)[where].reshape(values.shape)


def _to_nearest(value: Fraction, up_at_half) -> int:
    down = floor(value)
    rest = value - down
    return down + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and up_at_half(value)))


ROUND = {
    "floor": floor,
    "ceil": lambda value: -floor(-value),
    "symmetric_floor": int,
    "symmetric_ceil": lambda value: floor(value) if value < 0 else -floor(-value),
    "positive_inf": lambda value: floor(value + Fraction(1, 2)),
    "negative_inf": lambda value: _to_nearest(value, lambda _: False),
    "symmetric_inf": lambda value: _to_nearest(value, lambda v: v > 0),
    "symmetric_zero": lambda value: _to_nearest(value, lambda v: v < 0),
    "conv_even": round,
    "conv_odd": lambda value: _to_nearest(value, lambda v: floor(v) % 2 == 0),
}
"""Exact quotients to integers, by the names of the AIE API."""


def _finished_integers(plan: GemmPlan, sums: np.ndarray) -> np.ndarray:
    epilogue, c = plan.spec.epilogue, plan.spec.c
    if plan.spec.accumulator != c:
        sums = _narrowed(sums, epilogue.shift, epilogue.rounding, c)
    return np.maximum(sums, 0) if epilogue.relu else sums


def _float_sums(plan: GemmPlan, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Exact sums of the operands as the products see them, and how far a core's may be from them."""
    blocks = "bfp16" in (plan.spec.a, plan.spec.b) or plan.kernel.generation.name == "AIE2P"
    a, b = in_slabs(plan, data)
    bound = error_bound(a, b, k=plan.spec.tile.k, accumulator=plan.spec.accumulator, blocks=blocks)  # type: ignore[arg-type]
    if blocks:
        a, b = rounded(a, -1), rounded(b, 0)
    return a.astype(np.float64) @ b.astype(np.float64), bound


def _finished_floats(
    plan: GemmPlan, data: Data, sums: np.ndarray, bound: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    epilogue, spec = plan.spec.epilogue, plan.spec
    allowed = np.zeros(sums.shape) if bound is None else bound
    if epilogue.fed:
        rows, columns, bias = (data.fed.get(name) for name in ("row_scales", "column_scales", "bias"))
        factors = np.ones(sums.shape) if rows is None or columns is None else np.outer(rows.astype(float), columns)
        added = np.zeros(sums.shape[1]) if bias is None else bias.astype(np.float64)
        allowed = allowed * np.abs(factors) + _SCALED_ROUNDOFF * (np.abs(sums * factors) + np.abs(added))
        sums = sums * factors + added
    if epilogue.relu:
        sums = np.maximum(sums, 0)
    if spec.c == "bf16" and spec.accumulator != "bf16":
        allowed = allowed + _BFLOAT16_ROUNDOFF * (np.abs(sums) + allowed)
    if spec.c == "bfp16" and spec.accumulator != "bfp16":
        allowed = allowed + _BLOCK_ROUNDOFF * _largest_of_block(np.abs(sums) + allowed)
    return sums, allowed


def _largest_of_block(values: np.ndarray) -> np.ndarray:
    """The largest of the 8 neighbours along N for each value."""
    columns = values.shape[1]
    blocks = np.pad(values, [(0, 0), (0, -columns % 8)]).reshape(len(values), -1, 8)
    return np.repeat(blocks.max(axis=-1), 8, axis=1)[:, :columns]
