"""Joint least squares of the few parameters that no source states.

Seven parameters for all rows and devices, none per row: what a request of a shim takes on npu1, what runs take that
DRAM serves one by one on Strix Halo (side by side in a row, each in a page of its own), how much more on products with
half of its bus, the share of a request's time in an array of one column, and the two exponents of imperfect overlap.
The residual is log(modelled time / measured time), rows of a source weighing n^-1/4 each, so that a sweep of twenty
does not count twenty times. `SPREAD` and `NOISE` keep a parameter that the rows hardly reach near its start, which is
what one would assume without them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from bdforge.devices.timing import Timing
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.kernels.rates import kernel_cycles
from bdforge.perf.rows import Row
from tools.fit.kernel_rates import fitted_forms

FITTED_SOURCES = (
    "taka-table2", "taka-table3", "taka-5.2.2-fig6a", "wang-table2", "iron-gemm-operator-npu2",
    "iron-gemm-operator-npu1-v1", "casselc-tile-ab", "casselc-resweep", "casselc-tiling-sweep", "casselc-geometry-bf16",
)  # fmt: skip
"""Sources whose rows are fitted. The others are left out and only predicted."""
SPREAD, NOISE = 0.5, 0.1
"""Standard deviations, in logarithms, of a parameter about its start and of a row about the model."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is fitted; the defaults are the starts. Units: ns, shares, exponents."""

    npu1_request_ns: float = 40.0
    shared_run_ns: float = 4.0
    far_run_ns: float = 4.0
    narrow_bus: float = 2**0.5  # between the latency of one channel (1) and their number (2)
    alone_share: float = 1.0
    overlap_exponent: float = 8.0
    memory_exponent: float = 4.0

    def timing(self, device: str, timing: Timing) -> Timing:
        """`timing` of a device with these parameters in place."""
        if timing.shim_line_bytes:
            return replace(
                timing, shim_request_ns=self.npu1_request_ns, shim_alone_share=self.alone_share,
                memory_exponent=self.memory_exponent,
            )  # fmt: skip
        bus = 1.0 if device == "strix_halo" else self.narrow_bus
        return replace(
            timing, shared_run_ns=bus * self.shared_run_ns, far_run_ns=bus * self.far_run_ns,
            shim_alone_share=self.alone_share, memory_exponent=self.memory_exponent,
        )  # fmt: skip


def modelled(case: GemmCase, parameters: Parameters, left_out: Collection[str] = ()) -> Estimate:
    """`case` with other parameters, its kernel's form fitted without the sources in `left_out`."""
    kernel = kernel_cycles(
        case.array.generation.name, (case.a, case.b, case.accumulator or case.c), case.m, case.k, case.n,
        macs_per_cycle=case.core_macs_per_cycle, forms=fitted_forms(frozenset(left_out)),
    )  # fmt: skip
    timing = parameters.timing(case.device, case.timing)
    return estimate(case, timing=timing, exponent=parameters.overlap_exponent, kernel=kernel)


def usable(row: Row) -> bool:
    """Whether a row has a measured time, a problem and a tile."""
    return bool(row.tops) and not row.core_only and all(row.fields.get(name) for name in ("M", "K", "N", "m_ct"))


def fit_parameters(rows: Sequence[Row], left_out: Collection[str] = ()) -> Parameters:
    """Least squares over `rows`, without those of the sources in `left_out`."""
    used = [row for row in rows if row.source in FITTED_SOURCES and row.source not in left_out and usable(row)]
    counts = Counter(row.source for row in used)
    weights = np.array([counts[row.source] ** -0.25 for row in used]) / NOISE
    start = np.log(astuple(Parameters()))

    def residuals(logs: np.ndarray) -> np.ndarray:
        parameters = Parameters(*np.exp(logs))
        errors = [np.log(modelled(r.case, parameters, left_out).time_us / (r.time_us or 1)) for r in used]
        return np.concatenate([weights * errors, (logs - start) / SPREAD])

    return Parameters(*(float(x) for x in np.exp(least_squares(residuals, start))))


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
