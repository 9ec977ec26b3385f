"""A sweep over sizes that an array takes whole: what a design reaches where nothing is padded, by layout of B.

Native sizes are multiples of what the array takes at a time: m of every core row, a slab of k_mt, n of every column.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bdforge.common.files import csv_text
from bdforge.common.tasks import HERE, Told, Workers, untold
from bdforge.devices import Device
from bdforge.devices.types import Order
from bdforge.operators.gemm import GemmProblem, GemmSpec, plan_gemm
from bdforge.operators.specs import LARGEST_SIZE
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.plots.roofline import intensity
from bdforge.perf.tune.time_model import Basis, kernel_on

SHAPES_MOST = 10_000
COLUMNS = ("layout_b", "M", "K", "N", "operations_per_byte", "tops_modelled", "time_us_modelled", "time_us_low",
           "time_us_high", "bound")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Swept:
    """A design with one layout of B, modelled for a problem."""

    layout: Order
    found: Estimate

    @property
    def intensity(self) -> float:
        """Operations per byte of DRAM traffic."""
        return intensity(self.found.case)


def native_problems(spec: GemmSpec, sizes: Iterable[int]) -> list[GemmProblem]:
    """M, K and N each from `sizes`, to the nearest multiple of what the array takes; equal ones once.

    PerfError for sizes that no problem has, or more than `SHAPES_MOST` problems.
    """
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or wanted[-1] > LARGEST_SIZE:
        raise PerfError(f"sizes of a sweep lie within 1 and {LARGEST_SIZE}, such as 512,1024,2048")
    units = (spec.tile.rows * spec.rows, spec.buffers.k_mt, spec.tile.n * spec.columns)
    axes = [sorted({max(1, round(size / unit)) * unit for size in wanted}) for unit in units]
    if (count := len(axes[0]) * len(axes[1]) * len(axes[2])) > SHAPES_MOST:
        raise PerfError(f"{count} problems exceed the {SHAPES_MOST} of one sweep; give fewer sizes")
    return [GemmProblem(M, K, N) for M, K, N in product(*axes)]


@dataclass(frozen=True, slots=True)
class SizeTask:
    """A task: a design, with its layout of B, modelled for a problem by its kernels."""

    spec: GemmSpec
    device: Device
    problem: GemmProblem
    basis: Basis


def swept(task: SizeTask) -> Swept:
    """Model it; SpecError for a layout or a problem that the design cannot have."""
    plan = plan_gemm(task.spec, task.device)
    plan.check(task.problem)
    case = case_of(plan.spec, task.device, task.problem)
    kernel = None if task.basis == "fitted" else kernel_on(plan, case, task.basis)
    return Swept(task.spec.layouts.b, estimate(case, kernel=kernel))


def sweep(
    spec: GemmSpec, device: Device, layouts: Sequence[Order], problems: Sequence[GemmProblem], basis: Basis,
    workers: Workers = HERE, ended: Told = untold,
) -> list[Swept]:  # fmt: skip
    """Every problem with every layout of B; faults as `swept`. `ended` hears of the progress."""
    specs = [replace(spec, layouts=replace(spec.layouts, b=layout)) for layout in layouts]
    return workers.results(swept, [SizeTask(one, device, each, basis) for one in specs for each in problems], ended)


def ratios(swept: Sequence[Swept], first: Order, second: Order) -> list[float]:
    """TOPS with the second layout over those with the first, by problem."""
    tops = [{_shape(one): one.found.tops for one in swept if one.layout == layout} for layout in (first, second)]
    return [tops[1][shape] / tops[0][shape] for shape in tops[0]]


def _shape(one: Swept) -> tuple[int, int, int]:
    return one.found.case.M, one.found.case.K, one.found.case.N


def write_csv(swept: Iterable[Swept]) -> str:
    """A line for each, with the columns `COLUMNS`."""
    rows: list[tuple] = [COLUMNS]
    for one in swept:
        figures = (one.intensity, one.found.tops, one.found.time_us, *one.found.time_range_us)
        rows.append((one.layout, *_shape(one), *(f"{figure:.6g}" for figure in figures), one.found.bound))
    return csv_text(rows)
