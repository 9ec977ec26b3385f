"""A contraction as the models of GEMMs see it: tiles as it deals them, DRAM as its operands are walked."""

from dataclasses import dataclass, fields
from math import prod

import numpy as np

from bdforge.operators.contraction import ContractionPlan
from bdforge.operators.gemm.spec import GemmProblem
from bdforge.perf.bounds.case import DramTraffic, GemmCase, case_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractionCase(GemmCase):
    """A GEMM of whole tiles, `batches` times; `needed` are the MACs of the answer."""

    batches: int
    needed: int
    runs: tuple[tuple[float, float], ...]
    """Bytes of a run and from run to run of A, B and C."""

    @property
    def rounds(self) -> int:
        """Tiles of C that each core makes."""
        return self.batches * GemmCase.rounds.fget(self)  # type: ignore[attr-defined]

    @property
    def macs(self) -> int:
        return self.needed

    @property
    def padded_macs(self) -> int:
        return self.batches * prod(self.padded)

    def dram_traffic(self) -> tuple[DramTraffic, DramTraffic, DramTraffic]:
        """A, B and C as DRAM sees them over all batches."""
        tile = (self.m * self.padded[1], self.padded[1] * self.n, self.m * self.n)
        units = (self.rows, self.columns, self.rows * self.columns)
        channels = (np.minimum(self.rows, self.columns), self.columns, self.columns)
        a, b, c = (
            DramTraffic(
                operand=name, size_bytes=size * self.rounds * many * width, run_bytes=run, stride_bytes=max(step, run),
                channels=channel, write=name == "C",
            )
            for name, size, many, width, (run, step), channel in zip(
                "ABC", tile, units, self.element_bytes, self.runs, channels, strict=True
            )
        )  # fmt: skip
        return a, b, c


def contraction_case(plan: ContractionPlan, *, core_macs_per_cycle: float | None = None) -> ContractionCase:
    mapped, tiles, spec = plan.choice.mapped, plan.gemm.tiling, plan.gemm.spec
    M, N = mapped.rows.tiles * tiles.panel_rows, mapped.columns.tiles * tiles.step_columns
    known = case_of(spec, plan.device, GemmProblem(M, mapped.depth, N), core_macs_per_cycle=core_macs_per_cycle)
    facts = {field.name: getattr(known, field.name) for field in fields(GemmCase)}
    return ContractionCase(
        **facts, batches=mapped.batches, needed=plan.choice.contraction.macs,
        runs=tuple(_run(side.run_elements() * side.store.bits / 8, side.staged) for side in plan.sides),
    )  # fmt: skip


def _run(size_bytes: float, staged: bool) -> tuple[float, float]:
    """Staged tiles follow one another; others are taken to be a page apart."""
    return size_bytes, size_bytes if staged else max(size_bytes, 4096)
