"""Modelled performance: what a GEMM can reach, and which bound limits it.

`estimate` models one `GemmCase`, `estimate_table` the rows of a table. Formulas are in `bounds.core` and
`bounds.traffic`, hardware numbers in `bdforge.devices.timing`, kernels known by rate in `kernels.rates`, our own
kernels' cycles in `kernels.kernel_cost`. How far the models can be believed: docs/accuracy.md.
"""

from bdforge.perf.bounds.case import DramTraffic, GemmCase
from bdforge.perf.bounds.estimate import BOUNDS, Estimate, estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.rates import KernelCycles, kernel_cycles
from bdforge.perf.rows import Row, measured_rows, read_rows
from bdforge.perf.table import estimate_table

__all__ = [
    "BOUNDS", "DramTraffic", "Estimate", "GemmCase", "KernelCycles", "PerfError", "Row", "estimate", "estimate_table",
    "kernel_cycles", "measured_rows", "read_rows",
]  # fmt: skip
