"""Cycles of kernels known only by their published rate, and a fitted form for the rest.

`cycles = m·k·n / P + q·m·n`: P MACs per cycle in the inner loop, q cycles for each element of C that is loaded and
stored. Fitted by least squares of relative errors, two parameters for all rows of a generation and types
(`data/kernel_rates.csv`). Wang et al. publish rates of a core, not of a kernel, so theirs have the calls between
microkernels taken off. Our own kernels are scheduled in `kernels.schedule`, nothing fitted.
"""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.devices import Generation
from bdforge.devices.timing import Timing, timing_of
from bdforge.devices.topology import DEVICES
from bdforge.devices.types import PEAK_MACS, TYPES, type_named

RATES_FILE = Path(__file__).parents[1] / "data" / "kernel_rates.csv"
_UNPACKED = {"int8": "int8", "bf16": "bfp16", "bfp16": "bfp16"}  # what 2- and 4-bit weights become, by A's type
_UNKNOWN_SHARE = 0.25  # of bf16's peak, for types that no unit multiplies


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


@dataclass(frozen=True, slots=True)
class FittedKernel:
    """A fitted kernel: `macs_per_cycle` is P, `cycles_per_c` is q of the module's formula."""

    macs_per_cycle: float
    cycles_per_c: float
    rows: int
    note: str = ""

    def cycles(self, m: int, k: int, n: int) -> float:
        """Cycles of one m x k x n step."""
        return m * k * n / self.macs_per_cycle + self.cycles_per_c * m * n


@dataclass(frozen=True, slots=True)
class KernelCycles:
    """Cycles that a core spends on one tile of C, and where they come from; numbers or arrays.

    `cycles` are those of the kernels of one step m x k x n, `around` of all else in the step (calls, locks, loops),
    `ends` of zeroing and finishing the tile. Where None, these take what calls and locks of compiled code were measured
    at, and our schedules of the passes (`estimate.tile_cycles`).
    """

    cycles: Any
    basis: str
    around: Any = None
    ends: Any = None


Cycles = Callable[[int, int, int], float]


def switch_cycles(timing: Timing) -> int:
    """Cycles between two runs of a microkernel: a call and two lock operations, together the 50 of Wang et al."""
    return timing.kernel_call_cycles + 2 * timing.core_lock_cycles


@cache
def published_rates() -> tuple[Rate, ...]:
    """All rates of `data/kernel_rates.csv`."""
    with RATES_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Rate(
                row["source"], row["device"], _types(row),
                int(row["m_ct"]), int(row["k_ct"]), int(row["n_ct"]), int(row["rho"]),
                float(row["core_macs_per_cycle"]),
            )
            for row in csv.DictReader(file)
        )  # fmt: skip


def _types(row: Mapping[str, str]) -> tuple[str, str, str]:
    a, b, c = (type_named(row[f"dtype_{operand}"]).name for operand in "abc")
    return a, b, c


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
def fitted_kernels(left_out: frozenset[str] = frozenset()) -> dict[tuple[str, str, str, str], FittedKernel]:
    """The form of each (generation, a, b, c), fitted without the sources in `left_out`."""
    groups: dict[tuple[str, str, str, str], list[Rate]] = {}
    for rate in published_rates():
        if rate.source not in left_out:
            groups.setdefault((rate.generation.name, *rate.types), []).append(rate)
    return {key: fit_kernel(rates) for key, rates in groups.items()}


def fitted_kernel(generation: str, types: tuple[str, str, str], left_out: frozenset[str] = frozenset()) -> FittedKernel:
    """The fitted form for these types, or the nearest one scaled.

    Packed int2 and int4 weights take the form of what they are unpacked to. Otherwise P scales with the peak of the
    operand types and q with the bytes of an element of C.
    """
    forms = fitted_kernels(left_out)
    a, b, c = types
    if b in ("int2", "int4"):
        b = _UNPACKED.get(a, b)
    if (generation, a, b, c) in forms:
        return forms[generation, a, b, c]
    key = min(forms, key=lambda known: _distance(known, (generation, a, b, c)))
    near = forms[key]
    share = _peak(generation, a, b) / _peak(*key[:3])
    size = TYPES[c].bytes / TYPES[key[3]].bytes
    return FittedKernel(
        near.macs_per_cycle * share, near.cycles_per_c * size, 0, f"scaled from {' x '.join(key[1:3])} to {key[3]}"
    )


def _peak(generation: str, a: str, b: str) -> float:
    peaks = PEAK_MACS[generation]
    return peaks.get((a, b)) or peaks["bf16", "bf16"] * _UNKNOWN_SHARE


def _distance(known: tuple[str, str, str, str], wanted: tuple[str, str, str, str]) -> tuple[float, ...]:
    """Same generation first, then A's type, B's type, and the nearest size of C."""
    sizes = abs(TYPES[known[3]].bytes - TYPES[wanted[3]].bytes)
    return (known[0] != wanted[0], known[1] != wanted[1], known[2] != wanted[2], sizes)


def kernel_cycles(
    generation: str, types: tuple[str, str, str], m: int, k: int, n: int, *,
    macs_per_cycle: float | None = None, left_out: frozenset[str] = frozenset(),
) -> KernelCycles:  # fmt: skip
    """Cycles of one step: m·k·n / `macs_per_cycle` when the rate is published, else the fitted form.

    `types` are those of A, B and C by name; `generation` is "AIE2" or "AIE2P".
    """
    if macs_per_cycle:
        return KernelCycles(m * k * n / macs_per_cycle, "published rate")
    form = fitted_kernel(generation, types, left_out)
    return KernelCycles(form.cycles(m, k, n), f"fitted form{f' {form.note}' if form.note else ''}")
