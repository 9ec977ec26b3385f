"""Design specs as cases of the models."""

from bdforge.devices import Device
from bdforge.operators.gemm.spec import GemmSpec, Problem
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.types import type_named

_LAYOUTS = {"row": "row", "column": "col", "packed": "packed"}


def case_of(spec: GemmSpec, device: Device, problem: Problem, *, core_macs_per_cycle: float | None = None) -> GemmCase:
    """The case of `problem` on `spec`'s design, all buffers and layouts as in the spec."""
    return GemmCase(
        device=device.name, a=type_named(spec.a), b=type_named(spec.b), c=type_named(spec.c),
        m=spec.tile.m, k=spec.tile.k, n=spec.tile.n, k_mt=spec.buffers.k_mt, rows=spec.rows, columns=spec.columns,
        M=problem.M, K=problem.K, N=problem.N,
        a_layout=_LAYOUTS[spec.layouts.a], b_layout=_LAYOUTS[spec.layouts.b], c_layout=_LAYOUTS[spec.layouts.c],
        accumulator=type_named(spec.accumulator), a_shims=spec.buffers.a_shims,
        m_used=spec.tile.m_used, c_buffers=spec.buffers.c_buffers, rho=spec.buffers.rho,
        core_macs_per_cycle=core_macs_per_cycle,
    )  # fmt: skip
