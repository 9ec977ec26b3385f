"""What a GEMM's C must be, by numpy: exact for integers, with a bound for floats. Random inputs to try it with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.devices.formats import error_bound, rounded, shifted
from bdforge.devices.formats.bounds import BLOCK_ROUNDOFF, largest_of_block
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.operands import COLUMN_SCALES, MATRICES
from bdforge.operators.gemm.spec import GemmSpec, Output
from bdforge.operators.gemm.stages import walked_size
from bdforge.operators.operator_api import Expected
from bdforge.operators.specs import Problem

_EXACT_FLOAT32 = 1 << 24  # integers up to here are exact in float32
_LARGEST_INT8 = 128
_BF16_ROUNDOFF = 2.0**-8
_SCALING_ROUNDOFF = 2.0**-21  # of products and sums by way of bfloat16 parts: contract of finish_i32_bf16
_LOST = 2.0**-122  # of 9 products of such parts, each of which becomes 0 below 2^-126, as parts do
_LEAST = 2.0**-125
"""Where a sigmoid stays, and twice the least normal number."""
_SILU_ROUNDINGS = 5.25  # the gate, the sigmoid (and 2^-11 of it), their product, up, C; second orders
_SMALL = (-8, 7)


def product(a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int32 a @ weights by numpy. Sums below 2^24 are exact in float32, which BLAS multiplies fastest."""
    largest = _LARGEST_INT8 * int(np.abs(weights.astype(np.int16)).max(initial=0)) * a.shape[1]
    exact = np.float32 if largest <= _EXACT_FLOAT32 else np.float64
    return (a.astype(exact) @ weights.astype(exact)).astype(np.int32)


def random_inputs(spec: GemmSpec, problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """A and B of a design's types and orders, over the whole range of integers; floats are small integers.

    Scales between 1/2 and 1 and biases within 1, as far as the design takes them.
    """
    rng, (M, K, N) = np.random.default_rng(seed), problem.sizes.values()
    inputs = {"A": _random(rng, spec.a, spec.layouts.a, (M, K))}
    inputs |= {name: _random(rng, spec.b, spec.layouts.b, (K, N)) for name in MATRICES[spec.matrices]}
    rng, epilogue = np.random.default_rng(seed), spec.epilogue
    names = ("row_scales", *COLUMN_SCALES[spec.matrices])
    scales = {name: rng.uniform(0.5, 1, N if i else M).astype(np.float32) for i, name in enumerate(names)}
    if epilogue.scale:
        inputs |= scales if spec.matrices == 1 else {name: each / 64 for name, each in scales.items()}
    if epilogue.bias:
        inputs["bias"] = rng.uniform(-1, 1, N).astype(np.float32)
    return inputs


# quoted: numpy imports its generators when they are named first
def _random(rng: "np.random.Generator", type_name: str, order: str, shape: tuple[int, int]) -> np.ndarray:
    values = random_operand(rng, TYPES[type_name], shape)
    return np.asfortranarray(values) if order == "column" else values


# quoted: numpy imports its generators when they are named first
def random_operand(rng: "np.random.Generator", type_: ElementType, shape: Sequence[int]) -> np.ndarray:
    """An operand over the whole range of integers; floats are small integers, whose products block floats hold."""
    low, high = type_.values or _SMALL
    return rng.integers(low, high + 1, shape, np.int8).astype(type_.dtype)


def moved_back(size: int, tile: int) -> np.ndarray:
    """The positions 0 to size - 1 in tiles; the last tile moves back until it ends at `size`."""
    starts = np.minimum(np.arange(0, size, tile), size - tile)
    return (starts[:, None] + np.arange(tile)).ravel()


def k_steps(tiling: Tiling, K: int) -> list[np.ndarray]:
    """The depths that each step of K adds: the last slab moves back, and skips what the one before it held."""
    walked = walked_size(tiling, "K", K)
    starts = [min(start, walked - tiling.k_mt) for start in range(0, walked, tiling.k_mt)]
    fresh = np.zeros(walked, bool)
    steps = []
    for start in starts:
        for first in range(start, start + tiling.k_mt, tiling.k):
            depths = np.arange(first, first + tiling.k)
            steps.append(depths[(depths < K) & ~fresh[depths]])
        fresh[start : start + tiling.k_mt] = True
    return steps


def by_output(c: Expected, outputs: Sequence[Output]) -> dict[str, Expected]:
    """C's columns by the array that takes them."""
    ends = np.cumsum([one.columns for one in outputs])[:-1]
    values = np.split(c.values, ends, axis=1)
    bounds = [None] * len(outputs) if c.bound is None else np.split(c.bound, ends, axis=1)
    return {one.name: Expected(v, b) for one, v, b in zip(outputs, values, bounds, strict=True)}


def gated(function: str, inputs: Mapping[str, np.ndarray]) -> Expected:
    """C of a gate and up, with the bounds of `kernels/aie2p/gate_i32_bf16.cc`.

    The square: exactly what `relu2_gate` makes of sums that are rounded. Products of bfloat16 are exact in float32.

    SiLU: scaled sums are rounded to bfloat16, as are the sigmoid, its product with the gate, and C. A gate g that is
    off by a part of itself moves SiLU by that part, and by |g (1 - sigmoid(g))| times it. A sigmoid below 2^-125 stays
    there, and numbers below the least normal one become 0 at every step.
    """
    a = inputs["A"]
    gate, up = (product(a, inputs[name]) for name in MATRICES[2])
    if function == "relu2":
        gate, up = (_bfloat16(sums) for sums in (gate, up))
        return Expected(_bfloat16(_bfloat16(np.maximum(gate, 0) ** 2) * up).astype(np.float64))
    rows = np.asarray(inputs.get("row_scales", np.ones(len(a))), np.float64)[:, None]
    gate_scales, up_scales = (np.asarray(inputs.get(name, 1.0), np.float64) for name in COLUMN_SCALES[2])
    gate, up = gate * rows * gate_scales, up * rows * up_scales
    sigmoid = 1 / (1 + np.exp(np.minimum(-gate, 700)))
    exact = gate * sigmoid * up
    lost = _LEAST * (1 + np.abs(gate)) * (1 + np.abs(up))
    return Expected(exact, _BF16_ROUNDOFF * (_SILU_ROUNDINGS + np.abs(gate * (1 - sigmoid))) * np.abs(exact) + lost)


def _bfloat16(numbers: np.ndarray) -> np.ndarray:
    """Rounded to float32 and then to bfloat16, as float32."""
    return numbers.astype(np.float32).astype(TYPES["bf16"].dtype).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Reference:
    """C in the types and with the epilogue of a design."""

    spec: GemmSpec
    kernel: Kernel
    tiling: Tiling

    def expected(self, inputs: Mapping[str, np.ndarray]) -> Expected:
        """C of A (M, K), B (K, N) and what feeds an epilogue; scales that are left out are ones, biases 0."""
        if self.spec.matrices > 1:
            return gated(self.spec.epilogue.gate, inputs)
        a, b, spec, epilogue = inputs["A"], inputs["B"], self.spec, self.spec.epilogue
        sums = self._integer_sums(a, b) if TYPES[spec.accumulator].integer else self._float_sums(a, b)
        if not TYPES[spec.c].integer:
            return self._finished_floats(sums, inputs)
        c = sums.values
        if spec.accumulator != spec.c:
            c = shifted(c, epilogue.shift, epilogue.rounding, TYPES[spec.c].dtype)
        return Expected(np.maximum(c, 0) if epilogue.relu else c)

    def _integer_sums(self, a: np.ndarray, b: np.ndarray) -> Expected:
        spec, epilogue = self.spec, self.spec.epilogue
        if spec.accumulator == "int32":
            return Expected(product(a, b).astype(np.int64))
        c = np.zeros((a.shape[0], b.shape[1]), np.int64)
        for depths in k_steps(self.tiling, a.shape[1]):
            step = product(a[:, depths], b[depths]).astype(np.int64)
            c = shifted((c << epilogue.shift) + step, epilogue.shift, epilogue.rounding, TYPES[spec.accumulator].dtype)
        return Expected(c)

    def _float_sums(self, a: np.ndarray, b: np.ndarray) -> Expected:
        blocks, accumulator = self.kernel.block_products, self.spec.accumulator
        a, b = self._in_slabs(a, b)
        seen = [rounded(operand, axis) if blocks else operand for operand, axis in ((a, -1), (b, 0))]
        exact = seen[0].astype(np.float64) @ seen[1].astype(np.float64)
        bound = error_bound(a, b, k=self.spec.tile.k, accumulator=accumulator, blocks=blocks)  # type: ignore[arg-type]
        return Expected(exact, bound)

    def _in_slabs(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole slabs of K as cores meet them, since shared exponents depend on it: the last one moves back.

        For what the slab before it holds, B has zeros where it is packed, else A.
        """
        depth, k_mt = a.shape[1], self.tiling.k_mt
        walked = walked_size(self.tiling, "K", depth)
        order = moved_back(walked, k_mt)
        a, b = np.pad(a, [(0, 0), (0, walked - depth)])[:, order], np.pad(b, [(0, walked - depth), (0, 0)])[order]
        whole, covered = len(order) - k_mt, len(order) - walked
        (b.T if self.tiling.b.order == "packed" else a)[:, whole : whole + covered] = 0
        return a, b

    def _finished_floats(self, sums: Expected, inputs: Mapping[str, np.ndarray]) -> Expected:
        spec, epilogue = self.spec, self.spec.epilogue
        if sums.bound is None and not epilogue.fed:  # of integers: rounded to float32, then once more
            c = _bfloat16(sums.values).astype(np.float64)
            return Expected(np.maximum(c, 0) if epilogue.relu else c)
        c, bound = sums.values.astype(np.float64), np.zeros(sums.values.shape) if sums.bound is None else sums.bound
        if epilogue.fed:
            rows, columns = (
                np.asarray(inputs.get(f"{of}_scales", np.ones(size)), np.float64)
                for of, size in zip(("row", "column"), c.shape, strict=True)
            )
            bias = np.asarray(inputs.get("bias", np.zeros(c.shape[1])), np.float64)
            factor = rows[:, None] * columns
            bound = bound * np.abs(factor) + _SCALING_ROUNDOFF * (np.abs(c * factor) + np.abs(bias))
            bound = bound + _LOST * (1 + np.abs(c)) * (1 + np.abs(rows[:, None]) + np.abs(columns))
            c = c * factor + bias
        if epilogue.relu:
            c = np.maximum(c, 0)
        if spec.accumulator != spec.c:
            largest = np.abs(c) + bound
            coarse = BLOCK_ROUNDOFF * largest_of_block(largest) if spec.c == "bfp16" else _BF16_ROUNDOFF * largest
            bound = bound + coarse
        return Expected(c, bound)
