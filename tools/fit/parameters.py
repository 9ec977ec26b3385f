"""Joint least squares of the few parameters that no source states.

Eight parameters of memory for all rows and devices, none per row: what a request of a shim takes on npu1, what runs
take that DRAM serves one by one on Strix Halo (side by side in a row; each in a page of its own; whole pages apart),
how much more on products with half of its bus, how much faster Strix' port is, the share of a request's time in an
array of one column, and what handing over a full ELF takes. And a form for each compiler whose kernels are
known by times of whole problems (`FORMS`). The two exponents of imperfect overlap were fitted to the first 57 rows
(docs/accuracy.md) and are held since, so that designs of long runs keep the times that were published for them.

The residual is log(modelled time / measured time), rows of a source weighing n^-1/4 each, so that a sweep of twenty
does not count twenty times, and none counting for more than `FARTHEST`. `SPREAD` and `NOISE` keep a parameter that the
rows hardly reach near its start, which is what one would assume without them: a compiler's kernel starts as one of
xchesscc's, one of mlir-air's loops as one of Peano's.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bdforge.devices.timing import STRIX_HALO, Timing, timing_in, timing_of
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.kernels.rates import CompiledForms, FittedKernel, FormKey, KernelCycles, kernel_cycles
from bdforge.perf.rows import Row
from tools.fit.kernel_rates import fitted_forms

SPREAD, FORM_SPREAD, NOISE = 0.5, 1.0, 0.1
"""Standard deviations, in logarithms: of a parameter about its start, of a form's number, of a row about the model."""
FARTHEST = 0.6
"""The largest error that counts, in logarithms: a row that something else made slow does not bend the others."""

MEMORY: Mapping[str, float] = {
    "npu1_request_ns": 40.0, "shared_run_ns": 4.0, "far_run_ns": 4.0, "aligned_byte_ns": 0.02,
    "narrow_bus": 2**0.5, "strix_port": 1.1, "alone_share": 1.0, "elf_dispatch_ns": 99_000.0,
}  # fmt: skip
"""Starts of the parameters of memory and dispatch; of `narrow_bus` between the latency of one channel (1) and their
number (2)."""
_PORT = ("dram_read_gb_s", "dram_write_gb_s", "dram_gb_s")
_P, _Q, _RESULT, _SLAB = "macs_per_cycle", "cycles_per_c", "cycles_per_result", "cycles_per_slab"
_PEANO = (("peano", ("AIE2", "bf16", "bf16", "bf16")), ("peano", ("AIE2P", "bf16", "bf16", "bf16")),
          ("peano", ("AIE2P", "bf16", "bfp16", "bf16")))  # fmt: skip
_AIR = tuple((f"air-{way}", ("AIE2P", "bf16", "bf16", "bf16")) for way in ("direct", "drain", "fused-cast"))
_AIR_RATE, _AIR_RESULT, _AIR_SLAB = 0.7, 5.0, 1000.0
"""Starts: rates as Peano's beside xchesscc's, cycles of a pass of scalars over C, and of a turn of locks and DMAs."""
FORMS: tuple[tuple[str, FormKey], ...] = (*_PEANO, *_AIR)
"""What is fitted by times of whole problems: compiler and types. All of mlir-air's share what a slab takes."""


@dataclass(frozen=True)
class Parameters:
    """What is fitted, by name: `MEMORY`, and of each form its numbers as `peano AIE2 bf16 bf16 bf16 macs_per_cycle`."""

    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @cached_property
    def _timings(self) -> dict[tuple[str, str], Timing]:
        return {}

    def timing(self, device: str, dispatch: str) -> Timing:
        """A device's timing with these parameters in place, runs handed over so."""
        if (device, dispatch) not in self._timings:
            self._timings[device, dispatch] = self._timing(device, dispatch)
        return self._timings[device, dispatch]

    def _timing(self, device: str, dispatch: str) -> Timing:
        timing, alone = timing_in(timing_of(device), device, dispatch=dispatch), self["alone_share"]
        if timing.shim_line_bytes:
            return replace(timing, shim_request_ns=self["npu1_request_ns"], shim_alone_share=alone)
        bus = 1.0 if device == "strix_halo" else self["narrow_bus"]
        changes: dict[str, Any] = {name: bus * self[name] for name in MEMORY if "_run_" in name or "_byte_" in name}
        if device == "strix":
            changes |= {name: getattr(STRIX_HALO, name) * self["strix_port"] for name in _PORT}
        if dispatch == "elf" and device != "strix_halo":
            changes["dispatch_ns"] = self["elf_dispatch_ns"]
        return replace(timing, shim_alone_share=alone, **changes)

    @cached_property
    def compiled(self) -> CompiledForms:
        """The forms."""
        found: dict[tuple[str, FormKey], FittedKernel] = {}
        for form in FORMS:
            own = {name: self.values.get(_named(form, name)) for name in (_P, _Q, _RESULT)}
            slab = self["air slab"] if form in _AIR else 0.0
            found[form] = FittedKernel(own[_P] or 1.0, own[_Q] or 0.0, 0, cycles_per_result=own[_RESULT],
                                       cycles_per_slab=slab)  # fmt: skip
        return found


def _named(form: tuple[str, FormKey], name: str) -> str:
    return " ".join((form[0], *form[1], name))


def starts(left_out: Collection[str] = ()) -> Parameters:
    """Where the fit begins; forms as xchesscc's without the sources in `left_out`."""
    known, values = fitted_forms(frozenset(left_out)), dict(MEMORY)
    for form in FORMS:
        near = known.get(form[1]) or fitted_forms()[form[1]]
        less, more = (_AIR_RATE, 1 / _AIR_RATE) if form in _AIR else (1.0, 1.0)
        values |= {_named(form, _P): less * near.macs_per_cycle, _named(form, _Q): more * near.cycles_per_c}
        if form in _AIR:
            values[_named(form, _RESULT)] = _AIR_RESULT
    return Parameters(values | {"air slab": _AIR_SLAB})


def modelled(case: GemmCase, parameters: Parameters, left_out: Collection[str] = ()) -> Estimate:
    """`case` with other parameters, its kernel's form fitted without the sources in `left_out`."""
    kernel = kernel_cycles(
        case.array.generation.name, (case.a, case.b, case.accumulator or case.c), case.m, case.k, case.n,
        macs_per_cycle=case.core_macs_per_cycle, forms=fitted_forms(frozenset(left_out)), compiler=case.compiler,
        compiled=parameters.compiled,
    )  # fmt: skip
    return _estimated(case, parameters.timing(case.device, case.dispatch), kernel)


@lru_cache(maxsize=4096)  # more than one iteration asks for: of a derivative most rows stay as they are
def _estimated(case: GemmCase, timing: Timing, kernel: KernelCycles) -> Estimate:
    return estimate(case, timing=timing, kernel=kernel)


def fit_parameters(rows: Sequence[Row], left_out: Collection[str] = ()) -> Parameters:
    """Least squares over `rows`, without those of the sources in `left_out`."""
    used = [row for row in rows if row.source not in left_out]
    counts, start = Counter(row.source for row in used), starts(left_out).values
    weights = np.array([counts[row.source] ** -0.25 for row in used]) / NOISE
    first = np.log(list(start.values()))
    spread = np.where([name in MEMORY for name in start], SPREAD, FORM_SPREAD)

    def residuals(logs: np.ndarray) -> np.ndarray:
        parameters = Parameters(dict(zip(start, np.exp(logs), strict=True)))
        errors = [np.log(modelled(r.case, parameters, left_out).time_us / (r.time_us or 1)) for r in used]
        return np.concatenate([weights * np.clip(errors, -FARTHEST, FARTHEST), (logs - first) / spread])

    found = np.exp(least_squares(residuals, first))
    return Parameters({name: float(value) for name, value in zip(start, found, strict=True)})


_STEPS_MAX = 60
_CONVERGED = 1e-9  # relative gain in the sum of squares
_GIVE_UP = 1e6  # damping at which no step helps


def least_squares(residuals: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Levenberg-Marquardt with numeric derivatives: the `x` near `start` with the smallest sum of squares."""
    x, error, damping = start, residuals(start), 1e-2
    for _ in range(_STEPS_MAX):
        slopes = np.array([(residuals(x + unit) - error) / 1e-4 for unit in 1e-4 * np.eye(len(x))]).T
        normal = slopes.T @ slopes
        step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-6), slopes.T @ error)
        there = x + np.clip(step, -0.5, 0.5)
        tried = residuals(there)
        gain = error @ error - tried @ tried
        if gain > 0:
            x, error, damping = there, tried, damping / 3
        else:
            damping *= 4
        if damping > _GIVE_UP or 0 <= gain < _CONVERGED * (error @ error):
            break
    return x
