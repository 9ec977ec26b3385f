"""Joint least squares of the few parameters that no source states.

Four parameters for all rows and devices, none per row: bytes per nanosecond of npu2's DRAM lines, array cycles per
opened page and column (one number for both generations), Strix Halo's share of that (its memory bus is twice as wide),
and the exponent of imperfect overlap. The residual is log(modelled time / measured time). A parameter that the rows do
not reach keeps its start, which is what one would assume without them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from bdforge.devices.timing import Timing
from bdforge.perf.case import GemmCase
from bdforge.perf.estimate import Estimate, estimate
from bdforge.perf.kernel_rates import kernel_cycles
from bdforge.perf.rows import Row

FITTED_SOURCES = (
    "taka-table2", "taka-table3", "taka-5.2.2-fig6a", "wang-table2", "iron-gemm-operator-npu2", "casselc-tile-ab",
    "casselc-resweep",
)  # fmt: skip
"""Sources whose rows are fitted. The others are left out and only predicted."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is fitted; the defaults are the starts. Units: GB/s, cycles, share, exponent."""

    npu2_gb_s: float = 50.0
    page_cycles: float = 50.0
    strix_halo_share: float = 1.0
    overlap_exponent: float = 8.0

    def timing(self, device: str, timing: Timing, columns: int) -> Timing:
        """`timing` of a device with these parameters in place; `columns` are those of its array."""
        share = self.strix_halo_share if device == "strix_halo" else 1.0
        page_ns = share * self.page_cycles / columns / timing.array_hz * 1e9
        gb_s = self.npu2_gb_s if columns > 4 else timing.dram_read_gb_s
        return replace(
            timing, dram_read_gb_s=gb_s, dram_write_gb_s=gb_s, dram_read_page_ns=page_ns, dram_write_page_ns=page_ns
        )


def modelled(case: GemmCase, parameters: Parameters, left_out: Collection[str] = ()) -> Estimate:
    """`case` with other parameters, its kernel's form fitted without the sources in `left_out`."""
    timing = parameters.timing(case.device, case.timing, case.array.columns)
    kernel = kernel_cycles(
        case.array.generation.name, (case.a, case.b, case.accumulator or case.c), case.m, case.k, case.n,
        macs_per_cycle=case.core_macs_per_cycle, left_out=frozenset(left_out),
    )  # fmt: skip
    return estimate(case, timing=timing, exponent=parameters.overlap_exponent, kernel=kernel)


def usable(row: Row) -> bool:
    """Whether a row has a measured time, a problem and a tile."""
    return bool(row.tops) and not row.core_only and all(row.fields.get(name) for name in ("M", "K", "N", "m_ct"))


def fit_parameters(rows: Sequence[Row], left_out: Collection[str] = ()) -> Parameters:
    """Least squares over `rows`, without those of the sources in `left_out`."""
    used = [row for row in rows if row.source in FITTED_SOURCES and row.source not in left_out and usable(row)]

    def residuals(logs: np.ndarray) -> np.ndarray:
        parameters = Parameters(*np.exp(logs))
        return np.array([np.log(modelled(r.case, parameters, left_out).time_us / (r.time_us or 1)) for r in used])

    return Parameters(*(float(x) for x in np.exp(least_squares(residuals, np.log(astuple(Parameters()))))))


_CONVERGED = 1e-9  # relative gain in the sum of squares
_GIVE_UP = 1e6  # damping at which no step helps


def least_squares(
    residuals: Callable[[np.ndarray], np.ndarray], start: np.ndarray, *, steps: int = 60, damping: float = 1e-2
) -> np.ndarray:
    """Levenberg-Marquardt with numeric derivatives: the `x` near `start` with the smallest sum of squares."""
    x, error = start, residuals(start)
    for _ in range(steps):
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


PARAMETER_NAMES = tuple(field.name for field in fields(Parameters))
