"""Cycles of the kernels of millions of candidates, from `kernels.schedule` or from forms fitted to published rates.

`BASES` are what a search may believe: *compiled*, a plain loop nest's schedule at the mean share that published
compiled kernels reach of it (`compiled_efficiency`; their traces hold stalls at memory banks); *ideal*, the ideal
kernel schedule with the stalls that hand-made kernels were measured with, or compiled where that is faster; *fitted*,
the form of `kernel_rates`, which needs no kernel of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal, get_args

import numpy as np

from bdforge.devices import Generation
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels import schedule as kernel_schedule
from bdforge.perf.kernels.published import compiled_efficiency
from bdforge.perf.kernels.rates import KernelCycles, form_for
from bdforge.perf.kernels.rates import kernel_cycles as fitted_cycles
from bdforge.perf.kernels.schedule import BLOCKING, MATRIX_KERNELS, KernelCost, ScheduleError
from bdforge.perf.tune.space import B_LAYOUTS, Candidates, SearchSpace

Basis = Literal["compiled", "ideal", "fitted"]
BASES: tuple[Basis, ...] = ("compiled", "ideal", "fitted")


def basis_named(text: str) -> Basis:
    """The basis called `text`; PerfError lists them."""
    names: dict[str, Basis] = dict(zip(get_args(Basis), BASES, strict=True))
    if text not in names:
        raise PerfError(f"kernel {text!r} is not one of {', '.join(BASES)}")
    return names[text]


def share_reached(types: tuple[str, str, str], generation: Generation) -> float:
    """Mean share of the sequential schedule that published compiled kernels of such types reach, at most 1."""
    return min(compiled_efficiency(*types, generation).mean, 1.0)


def kernel_of(case: GemmCase, basis: Basis) -> KernelCycles:
    """Cycles of one step of a case, all its rho calls; ScheduleError where no loop of ours is known."""
    generation, types = case.array.generation, (case.a, case.b, case.accumulator or case.c)
    if basis == "fitted":
        return fitted_cycles(generation.name, types, case.m, case.k, case.n)
    turned = {"a": case.a_layout, "b": case.b_layout, "c": case.c_layout}
    cost = kernel_schedule.kernel_cycles(
        types, case.m, case.k, case.n, generation=generation, a_rows=case.m // case.rho,
        transposed=[name for name, layout in turned.items() if layout == "column"],
    )  # fmt: skip
    share = share_reached(types, generation)
    compiled = _compiled(cost, share)
    if basis == "ideal":
        stalled = min(ceil(cost.cycles * case.timing.core_bank_stall), compiled)
        return KernelCycles(case.rho * stalled, "ideal kernel schedule with bank stalls")
    return KernelCycles(case.rho * compiled, f"compiled: {share:.2f} of the sequential schedule")


def _compiled(cost: KernelCost, share: float) -> int:
    return max(cost.slot_cycles, ceil(cost.sequential_cycles / share))


@dataclass(frozen=True)
class KernelTable:
    """Kernel cycles of all candidates of a space. Blocks are scheduled once for each shape and depth."""

    space: SearchSpace
    basis: Basis
    _tables: dict[frozenset[str], "_Blocks"] = field(default_factory=dict)

    @property
    def types(self) -> tuple[str, str, str]:
        """Types of A, B and the accumulator as models name them."""
        space = self.space
        return space.a, space.b, space.accumulator

    def cycles(self, c: Candidates) -> np.ndarray:
        """Cycles of one step of each candidate, all its rho calls; equal to `kernel_of`."""
        generation = self.space.device.generation
        if self.basis == "fitted":
            form = form_for(generation.name, self.types)
            return c.m * c.k * c.n / form.macs_per_cycle + form.cycles_per_c * c.m * c.n
        cycles = np.zeros(len(c))
        for index in np.unique(c.b_layout):
            chosen = c.b_layout == index
            cycles[chosen] = self._scheduled(c[chosen], self._transposed(int(index)))
        return cycles * c.rho

    def check(self) -> None:
        """ScheduleError where no loop of ours, or no published rate, is known for the space's types."""
        if self.basis != "fitted":
            _Blocks(self.types, self.space.device.generation, frozenset())
            share_reached(self.types, self.space.device.generation)

    def _transposed(self, b_layout: int) -> frozenset[str]:
        layouts = {"a": self.space.a_layout, "b": B_LAYOUTS[b_layout], "c": self.space.c_layout}
        return frozenset(name for name, layout in layouts.items() if layout == "column")

    def _scheduled(self, c: Candidates, transposed: frozenset[str]) -> np.ndarray:
        if transposed not in self._tables:
            self._tables[transposed] = _Blocks(self.types, self.space.device.generation, transposed)
        cycles = self._tables[transposed].cycles(c.m // c.rho, c.k, c.n)
        share = share_reached(self.types, self.space.device.generation)
        compiled = np.maximum(cycles["slots"], np.ceil(cycles["sequential"] / share))
        if self.basis == "compiled":
            return compiled
        return np.minimum(np.ceil(cycles["ideal"] * timing_of(self.space.device).core_bank_stall), compiled)


class _Blocks:
    """Blocks of one kernel by shape (whole or odd, down and across) and steps of K."""

    def __init__(self, types: tuple[str, str, str], generation: Generation, transposed: frozenset[str]):
        symbol = "_".join(("mm", *(TYPES[name].code for name in types)))
        found = [k for k in MATRIX_KERNELS if (k.symbol, k.generation) == (symbol, generation)]
        if not found:
            raise ScheduleError(f"no loop of a kernel {symbol!r} for {generation.name}; tune with --kernel fitted")
        self.kernel, self.transposed = found[0], transposed
        self.rows: list[tuple[float, ...]] = []

    def cycles(self, rows: np.ndarray, k: np.ndarray, n: np.ndarray) -> Mapping[str, np.ndarray]:
        """Ideal, sequential and slot cycles of calls on rows x k x n, as `kernels.schedule` joins blocks."""
        product, (high, wide) = self.kernel.product, BLOCKING
        steps = k // product.s
        table = self._table(int(steps.max()))[steps]  # (calls, shape of block, alone | period | slots)
        down, across = np.divmod(rows // product.r, high), np.divmod(n // product.t, wide)
        counts = np.stack([i * j for i in down for j in across], axis=-1)
        alone, period, slots = np.moveaxis(table, -1, 0)
        busy = counts * period
        main = np.argmax(busy, axis=-1)[:, None]
        first = np.take_along_axis(alone - period, main, -1)[:, 0]
        return {
            "ideal": np.ceil(first + busy.sum(-1)),
            "sequential": (counts * alone).sum(-1),
            "slots": (counts * slots).sum(-1),
        }

    def _table(self, most: int) -> np.ndarray:
        for steps in range(len(self.rows), most + 1):
            self.rows.append(self._row(steps) if steps else (0.0,) * 12)
        return np.array(self.rows).reshape(-1, 4, 3)

    def _row(self, steps: int) -> tuple[float, ...]:
        high, wide = BLOCKING
        shapes = [(i, j) for i in (high, 1) for j in (wide, 1)]
        blocks = [kernel_schedule._blocks(self.kernel, i, j, self.transposed, steps, 1) for i, j in shapes]
        return tuple(float(value) for block in blocks for value in (block.alone, block.period, block.slots))
