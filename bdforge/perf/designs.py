"""Design specs as cases of the models."""

from bdforge.devices import Device
from bdforge.operators.gemm.spec import GemmSpec, Problem
from bdforge.perf.bounds.case import GemmCase


def case_of(spec: GemmSpec, device: Device, problem: Problem, *, core_macs_per_cycle: float | None = None) -> GemmCase:
    """The case of `problem` on `spec`'s design, all buffers and layouts as in the spec."""
    return GemmCase(
        device=device.name, a=spec.a, b=spec.b, c=spec.c,
        m=spec.tile.m, k=spec.tile.k, n=spec.tile.n, k_mt=spec.buffers.k_mt, rows=spec.rows, columns=spec.columns,
        M=problem.M, K=problem.K, N=problem.N,
        a_layout=spec.layouts.a, b_layout=spec.layouts.b, c_layout=spec.layouts.c,
        accumulator=spec.accumulator, a_shims=spec.buffers.a_shims,
        m_used=spec.tile.m_used, c_buffers=spec.buffers.c_buffers, rho=spec.buffers.rho,
        core_macs_per_cycle=core_macs_per_cycle,
    )  # fmt: skip
