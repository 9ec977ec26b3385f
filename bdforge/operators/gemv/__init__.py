"""GEMV, C = A W of up to 8 rows: a spec's plan for a product, numpy reference and cost. W's bytes decide its time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bdforge.design import Design
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.formats import error_bound, rounded
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES, peak_macs
from bdforge.operators.gemv.mapping import GemvTiling, map_gemv
from bdforge.operators.gemv.program import AXES, A, GemvProgram
from bdforge.operators.gemv.spec import KIND, GemvSpec, fits
from bdforge.operators.gemv.weights import Weights
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import Problem, design_reasons, refuse, sizes_tried, stack_reasons

_BF16_ROUNDOFF = 2.0**-8
_LEAST_DEPTH = 64  # of a tile that a tuner tries: calls and locks outweigh shorter ones


@dataclass(frozen=True, repr=False)
class GemvPlan(Plan):
    """Every number of a GEMV design."""

    spec: GemvSpec
    device: Device
    design: Design
    tiling: GemvTiling

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any M up to the spec's, K and N."""
        form, array, steps = self.spec.form, self.spec.form.array, self.spec.sequence.steps
        return GemvProgram(array.cores(self.design), self.tiling, form.tile.m, steps, array.first_column).program()

    @property
    def kernels(self) -> Kernels:
        """Multiply, zero, and what makes C of the sums."""
        tiling = self.tiling
        defines = [f"DIM_M={tiling.height}", f"DIM_K={tiling.k}", f"DIM_N={tiling.n}"]
        defines += ["FIELD_SCALED"] * (tiling.kernel.field_scaled and tiling.c is not tiling.kernel.accumulator)
        return Kernels.ours(_symbols(tiling), defines, self._cycles)

    @property
    def _cycles(self) -> dict[str, int]:
        """Cycles of each kernel's call, as their sources count slots: a single block of rows halves the products."""
        tiling, generation = self.tiling, self.device.generation
        peak = peak_macs(generation.name, self.spec.form.types.a, self.spec.form.types.w)
        if tiling.height == tiling.kernel.r:
            peak //= 2
        multiply, *ends = _symbols(tiling)
        sums = tiling.height * tiling.n * tiling.kernel.accumulator.bits // BYTE_BITS
        vectors = dict.fromkeys(ends, sums // generation.vector_align_bytes)
        return {multiply: tiling.height * tiling.k * tiling.n // peak} | vectors

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """C (M x N) of A (M x K) and W (K x N): exact of integers, float64 of bfloat16 as the cores see it.

        `error_bound` has the bound of its sums, narrower C adds half a step; of integers it is the nearest bfloat16.
        """
        a, w, kernel = inputs["A"], inputs["W"], self.tiling.kernel
        if kernel.accumulator.integer:
            exact = a.astype(np.float64) @ w.astype(np.float64)  # below 2^53
            return {"C": Expected(exact.astype(np.float32).astype(self.tiling.c.dtype))}
        seen = (rounded(a), rounded(w, 0)) if kernel.block_products else (a, w)
        exact = seen[0].astype(np.float64) @ seen[1].astype(np.float64)
        bound = error_bound(a, w, k=self.tiling.k, blocks=kernel.block_products)
        if self.tiling.c is not kernel.accumulator:
            bound += _BF16_ROUNDOFF * (np.abs(exact) + bound)
        return {"C": Expected(exact, bound)}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, rows of zeros included, and the cycles of a core that has a tile in every pass of A."""
        M, K, N = problem.sizes.values()
        sequence = self.sequence(problem)
        passes = sum(task.runs for task in sequence.tasks() for bd in task.bds if bd.argument == A)
        multiply, *ends = self._cycles.values()
        return Cost.of(sequence, M * K * N, passes * (-(-K // self.tiling.k) * multiply + sum(ends)))


def _symbols(tiling: GemvTiling) -> tuple[str, ...]:
    kernel, c = tiling.kernel, tiling.c
    narrowed = c is not kernel.accumulator
    finish = (f"finish_{kernel.accumulator.code}_{c.code}",) if narrowed else tiling.weights.finish
    return kernel.multiply, kernel.zero, *finish


def plan_gemv(spec: GemvSpec, device: Device) -> GemvPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    types, tile, array, stack_bytes = spec.form.types, spec.form.tile, spec.form.array, spec.form.stack_bytes
    columns, kernel = array.columns or device.columns, spec.kernel(device.generation)
    refuse(spec, [*array.reasons(array.rows, columns, device), *_reasons(spec, device)])
    assert kernel is not None
    lines = tile.m if tile.m < kernel.r else -(-tile.m // kernel.r) * kernel.r
    channels = 1 if columns == 1 else array.channels or _channels(device, columns, array.rows)
    weights = Weights(TYPES[types.w], kernel, tile.k, tile.n)
    buffers = spec.form.buffers
    tiling = GemvTiling(weights, TYPES[types.c], lines, array.rows, columns, channels, buffers.w, buffers.w_memtile)
    comment = (
        f"{spec.name}: {types.a} x {types.w} -> {types.c}, tile {tile.m} x {tile.k} x {tile.n} (m x k x n), "
        f"{array.rows} x {columns} cores (rows x columns), W by {channels} channels of each shim."
    )
    mapped = map_gemv(spec.name, array.part(columns, device), tiling, _symbols(tiling), stack_bytes, comment)
    design = array.arranged(mapped)
    refuse(
        spec,
        design_reasons(
            design, {"memory": "a smaller tile.k, tile.n, buffers.w or stack_bytes", "bds": "fewer buffers.w_memtile"}
        ),
    )
    return GemvPlan(spec, device, design, tiling)


def _channels(device: Device, columns: int, rows: int) -> int:
    """2 where one channel of each shim brings less than DRAM gives, and the cores of a column are two halves."""
    timing = timing_of(device)
    gb_s = 1 / timing.channel_ns(1.0, timing.stream_bytes_per_cycle, write=False)
    return 2 if columns * gb_s < timing.dram_read_gb_s and rows % 2 == 0 else 1


def _reasons(spec: GemvSpec, device: Device) -> Iterator[str]:
    types, tile, array = spec.form.types, spec.form.tile, spec.form.array
    yield from stack_reasons("stack_bytes", spec.form.stack_bytes, device)
    if array.channels == 2 and array.rows % 2:
        yield f"array.channels = 2 halves the cores of a column; use 1, or an even array.rows, not {array.rows}"
    kernel = spec.kernel(device.generation)
    if kernel is None:
        there = "int8 x int8, int8 x int2 or bf16 x bf16"
        yield f"no kernel for {types.a} x {types.w} on {device.generation.name}; use {there}"
        return
    if types.c not in (spec.accumulator, "bf16"):
        yield f"types.c = {types.c}: sums of {types.a} x {types.w} are {spec.accumulator}; use it, or bf16"
    for name, size, multiple in zip("kn", (tile.k, tile.n), kernel.multiples[1:], strict=True):
        if size % multiple:
            up = -(-size // multiple) * multiple
            yield f"tile.{name} = {size} is not a multiple of {multiple}, which {kernel.multiply} needs; use {up}"


def free_numbers(spec: GemvSpec, device: Device) -> dict[str, list[int]]:
    """The tile of W that a core takes at a time, in whole micro-tiles, and the channels that bring it."""
    kernel = spec.kernel(device.generation)
    if kernel is None:
        return {}
    _, k, n = kernel.multiples
    return {
        "tile.k": sizes_tried(k, _LEAST_DEPTH, _LEAST_DEPTH << 5), "tile.n": sizes_tried(n, n, n << 3),
        "array.channels": [1, 2],
    }  # fmt: skip


OPERATOR = Operator(KIND, AXES, GemvSpec.load, plan_gemv, fits, free_numbers)
