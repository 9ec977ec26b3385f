"""What a design's C must be, by numpy: exact for integers, with a bound for floats. Random operands to try it with."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bdforge.devices.types import TYPES
from bdforge.formats import error_bound, rounded
from bdforge.formats.bounds import BLOCK_ROUNDOFF, largest_of_block
from bdforge.operators.gemm import Plan, Problem
from bdforge.operators.gemm.staging import walked_sizes
from bdforge.runtime.epilogues import NO_SCALES, Scales
from bdforge.runtime.operands import DTYPES, moved_back

_EXACT_FLOAT32 = 1 << 24  # integers up to here are exact in float32
_LARGEST_INT8 = 128
_BF16_ROUNDOFF = 2.0**-8
_SCALING_ROUNDOFF = 2.0**-21  # of products and sums by way of bfloat16 parts: contract of finish_i32_bf16
_SMALL = (-8, 7)  # floats are small integers, whose products block floats hold


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """C as it must be (M, N), and how far it may be off: None where it must be exact."""

    c: np.ndarray
    bound: np.ndarray | None = None


def reference(a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int32 a @ weights by numpy. Sums below 2^24 are exact in float32, which BLAS multiplies fastest."""
    largest = _LARGEST_INT8 * int(np.abs(weights.astype(np.int16)).max(initial=0)) * a.shape[1]
    exact = np.float32 if largest <= _EXACT_FLOAT32 else np.float64
    return (a.astype(exact) @ weights.astype(exact)).astype(np.int32)


def random_operands(plan: Plan, problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a design's types and orders, over the whole range of integers; floats are small integers."""
    rng, spec = np.random.default_rng(seed), plan.spec
    shapes = ((spec.a, spec.layouts.a, (problem.M, problem.K)), (spec.b, spec.layouts.b, (problem.K, problem.N)))
    a, b = (_random(rng, *facts) for facts in shapes)
    return a, b


def _random(rng: np.random.Generator, type_name: str, order: str, shape: tuple[int, int]) -> np.ndarray:
    low, high = TYPES[type_name].values or _SMALL
    values = rng.integers(low, high + 1, shape, np.int8).astype(DTYPES[type_name])
    return np.asfortranarray(values) if order == "column" else values


def random_scales(plan: Plan, problem: Problem, seed: int) -> Scales:
    """Scales between 1/2 and 1 and biases within 1, as far as the design takes them."""
    rng, epilogue = np.random.default_rng(seed), plan.spec.epilogue
    rows, columns = (rng.uniform(0.5, 1, size).astype(np.float32) for size in (problem.M, problem.N))
    bias = rng.uniform(-1, 1, problem.N).astype(np.float32)
    return Scales(
        rows if epilogue.scale else None, columns if epilogue.scale else None, bias if epilogue.bias else None
    )


def expected(plan: Plan, a: np.ndarray, b: np.ndarray, scales: Scales = NO_SCALES) -> Expected:
    """C of A (M, K) and B (K, N), in the types and with the epilogue of a design."""
    sums = _integer_sums(plan, a, b) if TYPES[plan.spec.accumulator].integer else _float_sums(plan, a, b)
    spec, epilogue = plan.spec, plan.spec.epilogue
    if not TYPES[spec.c].integer:
        return _finished_floats(plan, sums, scales)
    c = sums.c
    if spec.accumulator != spec.c:
        c = shifted(c, epilogue.shift, epilogue.rounding, DTYPES[spec.c])
    return Expected(np.maximum(c, 0) if epilogue.relu else c)


def _integer_sums(plan: Plan, a: np.ndarray, b: np.ndarray) -> Expected:
    spec, epilogue = plan.spec, plan.spec.epilogue
    if spec.accumulator == "int32":
        return Expected(reference(a, b).astype(np.int64))
    c = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for depths in k_steps(plan, a.shape[1]):
        step = reference(a[:, depths], b[depths]).astype(np.int64)
        c = shifted((c << epilogue.shift) + step, epilogue.shift, epilogue.rounding, DTYPES[spec.accumulator])
    return Expected(c)


def k_steps(plan: Plan, K: int) -> list[np.ndarray]:
    """The depths that each step of K adds: the last slab moves back, and skips what the one before it held."""
    tiles = plan.tiling
    walked = walked_sizes(tiles, 1, K, 1)[1]
    starts = [min(start, walked - tiles.k_mt) for start in range(0, walked, tiles.k_mt)]
    fresh = np.zeros(walked, bool)
    steps = []
    for start in starts:
        for first in range(start, start + tiles.k_mt, tiles.k):
            depths = np.arange(first, first + tiles.k)
            steps.append(depths[(depths < K) & ~fresh[depths]])
        fresh[start : start + tiles.k_mt] = True
    return steps


def _float_sums(plan: Plan, a: np.ndarray, b: np.ndarray) -> Expected:
    blocks, accumulator = plan.kernel.block_products, plan.spec.accumulator
    a, b = _in_slabs(plan, a, b)
    seen = [rounded(operand, axis) if blocks else operand for operand, axis in ((a, -1), (b, 0))]
    product = seen[0].astype(np.float64) @ seen[1].astype(np.float64)
    bound = error_bound(a, b, k=plan.spec.tile.k, accumulator=accumulator, blocks=blocks)  # type: ignore[arg-type]
    return Expected(product, bound)


def _in_slabs(plan: Plan, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole slabs of K as cores meet them, since values that share an exponent depend on it: the last one moves back.

    For what the slab before it holds, B has zeros where it is packed, else A.
    """
    depth, k_mt = a.shape[1], plan.tiling.k_mt
    walked = walked_sizes(plan.tiling, 1, depth, 1)[1]
    order = moved_back(walked, k_mt)
    a, b = np.pad(a, [(0, 0), (0, walked - depth)])[:, order], np.pad(b, [(0, walked - depth), (0, 0)])[order]
    whole, covered = len(order) - k_mt, len(order) - walked
    (b.T if plan.tiling.b.order == "packed" else a)[:, whole : whole + covered] = 0
    return a, b


def _finished_floats(plan: Plan, sums: Expected, scales: Scales) -> Expected:
    spec, epilogue = plan.spec, plan.spec.epilogue
    c, bound = sums.c.astype(np.float64), np.zeros(sums.c.shape) if sums.bound is None else sums.bound
    if epilogue.fed:
        rows = np.ones(c.shape[0]) if scales.rows is None else scales.rows.astype(np.float64)
        columns = np.ones(c.shape[1]) if scales.columns is None else scales.columns.astype(np.float64)
        bias = np.zeros(c.shape[1]) if scales.bias is None else scales.bias.astype(np.float64)
        factor = rows[:, None] * columns
        bound = bound * np.abs(factor) + _SCALING_ROUNDOFF * (np.abs(c * factor) + np.abs(bias))
        c = c * factor + bias
    if epilogue.relu:
        c = np.maximum(c, 0)
    if spec.accumulator != spec.c:
        largest = np.abs(c) + bound
        bound = bound + (BLOCK_ROUNDOFF * largest_of_block(largest) if spec.c == "bfp16" else _BF16_ROUNDOFF * largest)
    return Expected(c, bound)


_Round = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def _nearest(up_at_half: Callable[[np.ndarray], np.ndarray]) -> _Round:
    """To nearest; `up_at_half` says of the floors of values halfway whether they go up."""

    def round_(down: np.ndarray, rest: np.ndarray, half: int) -> np.ndarray:
        return down + ((rest > half) | ((rest == half) & up_at_half(down)))

    return round_


MODES: dict[str, _Round] = {
    "floor": lambda down, rest, half: down,
    "ceil": lambda down, rest, half: down + (rest > 0),
    "symmetric_floor": lambda down, rest, half: down + ((rest > 0) & (down < 0)),
    "symmetric_ceil": lambda down, rest, half: down + ((rest > 0) & (down >= 0)),
    "negative_inf": _nearest(lambda down: np.zeros(down.shape, bool)),
    "positive_inf": _nearest(lambda down: np.ones(down.shape, bool)),
    "symmetric_zero": _nearest(lambda down: down < 0),
    "symmetric_inf": _nearest(lambda down: down >= 0),
    "conv_even": _nearest(lambda down: down % 2 == 1),
    "conv_odd": _nearest(lambda down: down % 2 == 0),
}
"""What becomes of a floor, given what was cut off and what half a step is."""


def shifted(values: np.ndarray, shift: int, mode: str, dtype: np.dtype) -> np.ndarray:
    """int64 `values` divided by 2^shift, rounded as `mode` says, saturated to the integers of `dtype`; int64."""
    limits = np.iinfo(dtype)
    if shift:
        half = 1 << (shift - 1)
        down = values >> shift
        values = MODES[mode](down, values - (down << shift), half)
    return np.clip(values, limits.min, limits.max)
