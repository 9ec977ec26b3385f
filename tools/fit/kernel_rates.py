"""Published rates of single kernels: the forms that are fitted to them, and the share of our schedules they reach.

`kernel_rates.csv` holds the rates of compiled kernels. *taka*: Taka et al., tables 1 to 3 (traces of xchesscc kernels,
bank stalls included). *wang*: Wang et al. (rates of a whole core, so that calls and lock operations are taken off, and
added to each of our costs). Two hand-written ones stand below: a thesis, Jena 2025 (Phoenix, 2.703 µs at 1.02 GHz), and
the same group's bfp16 kernel for Strix (1760 of 1843 GFLOPS).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np

from bdforge.common.files import csv_text, read_csv
from bdforge.devices import Generation
from bdforge.devices.timing import timing_of
from bdforge.devices.topology import DEVICES
from bdforge.devices.types import type_named
from bdforge.perf.kernels.kernel_cost import KernelCost, Schedule, kernel_cost, mlir_aie_blocking
from bdforge.perf.kernels.rates import FittedKernel, FormKey, switch_cycles

RATES = Path(__file__).with_name("kernel_rates.csv")


@dataclass(frozen=True, slots=True)
class Rate:
    """A published kernel rate: MACs per cycle of one core on a tile m x k x n, which `rho` calls make."""

    source: str
    device: str
    types: tuple[str, str, str]
    m: int
    k: int
    n: int
    rho: int
    macs_per_cycle: float
    compiled: bool = True

    @property
    def generation(self) -> Generation:
        """Generation of its device."""
        return DEVICES[self.device].generation

    @property
    def between(self) -> int:
        """Cycles between two calls that the rate holds, since it is that of a whole core."""
        return switch_cycles(timing_of(self.device)) if self.source.startswith("wang") else 0

    @property
    def cycles(self) -> float:
        """Cycles of the kernel, without the calls between the microkernels of asymmetric tile buffering."""
        return self.m * self.k * self.n / self.macs_per_cycle - self.rho * self.between


HAND_WRITTEN = (
    Rate("thesis-jena", "phoenix", ("bf16", "bf16", "bf16"), 64, 80, 64, 1, 118.9, compiled=False),
    Rate("jena-docs", "strix", ("bfp16", "bfp16", "f32"), 64, 96, 64, 1, 488.9, compiled=False),
)


@cache
def published_rates() -> tuple[Rate, ...]:
    """All rates of `kernel_rates.csv`."""
    return tuple(map(_rate, read_csv(RATES)))


def _rate(row: dict[str, str]) -> Rate:
    a, b, c = (type_named(row[f"dtype_{operand}"]).name for operand in "abc")
    m, k, n, rho = (int(row[name]) for name in ("m_ct", "k_ct", "n_ct", "rho"))
    return Rate(row["source"], row["device"], (a, b, c), m, k, n, rho, float(row["core_macs_per_cycle"]))


def fit_kernel(rates: Iterable[Rate]) -> FittedKernel:
    """Least squares of the relative error of `cycles`, P and q not negative."""
    rows = list(rates)
    wanted = np.array([rate.cycles for rate in rows])
    terms = np.array([(rate.m * rate.k * rate.n, rate.m * rate.n) for rate in rows]) / wanted[:, None]
    (per_mac, per_c), *_ = np.linalg.lstsq(terms, np.ones(len(rows)), rcond=None)
    if len(rows) < 2 or per_c < 0:
        per_c, per_mac = 0.0, 1 / float(np.mean([r.m * r.k * r.n / r.cycles for r in rows]))
    return FittedKernel(1 / float(per_mac), float(per_c), len(rows))


@cache
def fitted_forms(left_out: frozenset[str] = frozenset()) -> dict[FormKey, FittedKernel]:
    """The form of each generation and types, fitted without the sources in `left_out`."""
    groups: dict[FormKey, list[Rate]] = {}
    for rate in published_rates():
        if rate.source not in left_out:
            groups.setdefault((rate.generation.name, *rate.types), []).append(rate)
    return {key: fit_kernel(rates) for key, rates in groups.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published rate and the cost that our schedules give to one call of it."""

    published: Rate
    cost: KernelCost

    @property
    def published_cycles(self) -> float:
        """Cycles of the call at the published rate."""
        return self.cost.macs / self.published.macs_per_cycle

    def efficiency(self, which: Schedule) -> float:
        """Published rate over that of a schedule."""
        return self.cost.cycles_of(which) / self.published_cycles


@cache
def comparisons() -> tuple[Comparison, ...]:
    """Every published rate beside our cost of the same call, compiled kernels first."""
    return tuple(Comparison(rate, _cost(rate)) for rate in (*published_rates(), *HAND_WRITTEN))


def _cost(rate: Rate) -> KernelCost:
    """One call by our schedules, with the blocks that the measured kernel makes."""
    blocking = mlir_aie_blocking(rate.generation, rate.types[0])
    return kernel_cost(
        rate.types, rate.m, rate.k, rate.n, generation=rate.generation, a_rows=rate.m // rate.rho,
        call_cycles=rate.between, blocking=blocking,
    )  # fmt: skip


def shares(key: FormKey, which: Schedule) -> list[float]:
    """What compiled kernels of a generation and types reach of a schedule, by published tile."""
    found = (row for row in comparisons() if row.published.compiled)
    return [r.efficiency(which) for r in found if (r.published.generation.name, *r.published.types) == key]


def forms_csv() -> str:
    """The table that the product reads."""
    rows: list[tuple] = [("generation", "a", "b", "c", "macs_per_cycle", "cycles_per_c", "rows", "share")]
    for key, form in fitted_forms().items():
        form = replace(form, share=fmean(shares(key, "sequential")))
        figures = (f"{form.macs_per_cycle:.8g}", f"{form.cycles_per_c:.8g}", form.rows, f"{form.share:.6g}")
        rows.append((*key, *figures))
    return csv_text(rows)


def sources() -> Collection[str]:
    """Whose rates there are."""
    return {rate.source for rate in published_rates()}
