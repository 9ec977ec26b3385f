"""Published rates of single kernels beside our schedules: which share of a schedule compiled kernels reach.

`data/kernel_rates.csv` holds the rates of compiled kernels. *taka*: Taka et al., tables 1 to 3 (traces of xchesscc
kernels, bank stalls included). *wang*: Wang et al. (rates of a whole core, so that a call and two lock operations are
added to each of our costs). Two hand-written ones stand below: a thesis, Jena 2025 (Phoenix, 2.703 µs at 1.02 GHz), and
the same group's bfp16 kernel for Strix (1760 of 1843 GFLOPS).
"""

from dataclasses import dataclass
from functools import cache
from statistics import fmean

from bdforge.devices import AIE2, Generation
from bdforge.perf.kernels.loop_schedule import BLOCKING, KernelCost, Schedule, ScheduleError, kernel_cost
from bdforge.perf.kernels.rates import Rate, published_rates

_AIE2_BLOCKING = {"int8": (4, 2), "bf16": (4, 4)}
"""Micro-tiles in a block of mlir-aie's `aie_kernels/aie2/mm.cc`, by the type of A. On AIE2P it makes blocks as ours."""


HAND_WRITTEN = (
    Rate("thesis-jena", "phoenix", ("bf16", "bf16", "bf16"), 64, 80, 64, 1, 118.9, compiled=False),
    Rate("jena-docs", "strix", ("bfp16", "bfp16", "f32"), 64, 96, 64, 1, 488.9, compiled=False),
)


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


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Share of a schedule's rate that compiled kernels reach: mean and range over `tiles` published tiles.

    `basis` says whose: the kernel's own types, or the nearest ones that somebody measured.
    """

    mean: float
    low: float
    high: float
    tiles: int
    basis: str


@cache
def comparisons() -> tuple[Comparison, ...]:
    """Every published rate beside our cost of the same call, compiled kernels first."""
    return tuple(Comparison(rate, _cost(rate)) for rate in (*published_rates(), *HAND_WRITTEN))


def compiled_efficiency(
    a: str, b: str, c: str, generation: Generation, which: Schedule = "sequential"
) -> Efficiency:  # fmt: skip
    """What compiled kernels reach of a schedule, for the types of A, B and C by name.

    For types that nobody measured: the tiles with the same A and C, else with the same A, else all of the generation.
    Against the sequential schedule it varies little with the tile, so the default is the one to extrapolate with.

    ScheduleError if nobody published a rate for the generation.
    """
    rows = [r for r in comparisons() if r.published.compiled and r.published.generation == generation]
    for basis, found in (
        (f"{a} x {b} to {c}", [r for r in rows if r.published.types == (a, b, c)]),
        (f"{a} x any to {c}", [r for r in rows if (r.published.types[0], r.published.types[2]) == (a, c)]),
        (f"{a} x any to any", [r for r in rows if r.published.types[0] == a]),
        ("all types", rows),
    ):
        if found:
            return _summary([r.efficiency(which) for r in found], basis)
    raise ScheduleError(f"nobody published a kernel rate for {generation.name}; take efficiency 1 and say so")


def _cost(rate: Rate) -> KernelCost:
    """One call by our schedules, with the blocks that the measured kernel makes."""
    blocking = _AIE2_BLOCKING[rate.types[0]] if rate.generation == AIE2 else BLOCKING
    return kernel_cost(
        rate.types, rate.m, rate.k, rate.n, generation=rate.generation, a_rows=rate.m // rate.rho,
        call_cycles=rate.between, blocking=blocking,
    )  # fmt: skip


def _summary(shares: list[float], basis: str) -> Efficiency:
    return Efficiency(fmean(shares), min(shares), max(shares), len(shares), basis)
