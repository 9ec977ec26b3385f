"""The forms of compiled operators, fitted to times of whole runs: one number an operator, two of attention."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from math import exp, log

import numpy as np

from bdforge.common.files import csv_text
from bdforge.perf.bounds.compiled_operator import OperatorForm
from bdforge.perf.operator_rows import OperatorRow, measured_operators
from tools.fit.parameters import FARTHEST, least_squares

_START, _ROW_START, _SPREAD, _NOISE = 1.0, 1000.0, 3.0, 0.1
"""Starts in cycles, and standard deviations in logarithms: of a number about its start, of a row about the model."""


@cache
def operator_runs() -> tuple[OperatorRow, ...]:
    """The published runs of operators that are no GEMM."""
    return tuple(row for row in measured_operators() if isinstance(row, OperatorRow) and row.time_us)


def _time_us(row: OperatorRow) -> float:
    return row.time_us or 1.0


def fit_operators(rows: Sequence[OperatorRow]) -> Mapping[str, OperatorForm]:
    """Least squares of log(modelled / measured time) for each operator by itself."""
    return {name: _fitted(name, [r for r in rows if r.case.operator == name]) for name in _operators(rows)}


def _operators(rows: Sequence[OperatorRow]) -> Collection[str]:
    return sorted({row.case.operator for row in rows})


def _fitted(name: str, rows: Sequence[OperatorRow]) -> OperatorForm:
    both = len(rows) > 1 and any(row.case.rows for row in rows)
    start = np.log([_START, _ROW_START] if both else [_START])

    def form(logs: np.ndarray) -> OperatorForm:
        return OperatorForm(exp(logs[0]), exp(logs[1]) if both else 0.0, len(rows))

    def residuals(logs: np.ndarray) -> np.ndarray:
        forms = {name: form(logs)}
        errors = [log(row.case.time_us(forms) / _time_us(row)) for row in rows]
        return np.concatenate([np.clip(errors, -FARTHEST * 10, FARTHEST * 10) / _NOISE, (logs - start) / _SPREAD])

    return form(least_squares(residuals, start))


def operator_error(row: OperatorRow, forms: Mapping[str, OperatorForm]) -> float:
    """Modelled over measured speed, minus 1."""
    return _time_us(row) / row.case.time_us(forms) - 1


@cache
def every_second_operator() -> tuple[tuple[OperatorRow, float], ...]:
    """Each run with its error by forms fitted to the other half of its operator's runs."""
    rows = sorted(operator_runs(), key=lambda row: row.case.operator)
    halves = rows[::2], rows[1::2]
    found: list[tuple[OperatorRow, float]] = []
    for half, other in (halves, halves[::-1]):
        forms = fit_operators(other)
        found += [(row, operator_error(row, forms)) for row in half if row.case.operator in forms]
    return tuple(found)


def operators_csv() -> str:
    """The table that the product reads."""
    forms = fit_operators(operator_runs())
    lines = ((name, f"{f.element_cycles:.4g}", f"{f.row_cycles:.4g}", f.count) for name, f in forms.items())
    return csv_text([("operator", "element_cycles", "row_cycles", "count"), *lines])
