"""Tables of published measurements with the modelled columns added."""

import re
from collections.abc import Callable

from bdforge.common.messages import listed
from bdforge.perf.bounds.compiled_operator import CompiledOperator
from bdforge.perf.bounds.estimate import INTERVAL, Estimate, estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.rates import switch_cycles
from bdforge.perf.operator_rows import OperatorRow, operator_rows
from bdforge.perf.rows import Row, sound_rows, write_rows


def estimate_table(text: str, where: str, told: Callable[[], object] = lambda: None) -> tuple[str, list[str]]:
    """The CSV `text` with the columns of `rows.ADDED` behind every row; and what is wrong with rows that are left out.

    Its columns are those of `rows`, of GEMMs, or of `operator_rows`, of any operator.

    `time_us_low` and `time_us_high` are the range of `estimate.INTERVAL`; `estimate_of` says what was modelled: the row
    (`design`), the fastest design that fits where the row names no tile (`fastest tile`, no estimate of the row: leave
    it out of any error), or one step of one core (`core`). `told` is called for each row.

    PerfError names `where` and every missing column, or the first faults where no row can be modelled.
    """
    of_operators = "operator" in re.split(r"[\s,\"]+", text.split("\n", 1)[0])
    rows, faults = (operator_rows if of_operators else sound_rows)(text, where, told)
    if faults and not rows:
        raise PerfError(listed(faults, "\n"))
    return write_rows((row.fields, modelled_columns(row)) for row in rows), faults


def modelled_columns(row: Row | OperatorRow) -> dict[str, str]:
    """The columns that are added to a row."""
    if isinstance(row, OperatorRow):
        return _operator_columns(row.case)
    found = estimate(row.case)
    time_us, tops, bound = step_of_core(found) if row.core_only else (found.time_us, found.tops, found.bound)
    assumed = [*row.case.assumed, *(["one core, one m x k x n step"] if row.core_only else [])]
    return {
        "tops_modelled": f"{tops:.4g}", "time_us_modelled": f"{time_us:.6g}",
        "time_us_low": f"{time_us * INTERVAL[0]:.6g}", "time_us_high": f"{time_us * INTERVAL[1]:.6g}", "bound": bound,
        "estimate_of": _what(row), "assumed": "; ".join(assumed),
    }  # fmt: skip


def _operator_columns(case: CompiledOperator) -> dict[str, str]:
    low, high = case.time_range_us
    return {
        "tops_modelled": "", "time_us_modelled": f"{case.time_us():.6g}", "time_us_low": f"{low:.6g}",
        "time_us_high": f"{high:.6g}", "bound": case.bound, "estimate_of": "design",
        "assumed": "; ".join(("kernel=as compiled by mlir-air", *case.assumed)),
    }  # fmt: skip


def _what(row: Row) -> str:
    if row.core_only:
        return "core"
    return "fastest tile" if any(note.startswith("tile=") for note in row.case.assumed) else "design"


def step_of_core(found: Estimate) -> tuple[float, float, str]:
    """Microseconds, TOPS and bound of one core without a problem: its kernel's step.

    A published rate counts as it stands; a fitted kernel has the switches between its microkernels added.
    """
    case, hz = found.case, found.case.clock_hz or found.case.timing.array_hz
    switches = 0 if case.core_macs_per_cycle else case.rho * switch_cycles(case.timing)
    kernel = found.kernel.cycles + switches
    time_us = max(kernel, found.core.stream_in) / hz * 1e6
    bound = "compute" if kernel >= found.core.stream_in else "L1 stream"
    return time_us, 2 * case.m * case.k * case.n / time_us / 1e6, bound
