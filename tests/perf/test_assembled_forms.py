"""Costs of assembled cores in the model: forms against counts of tiles, and what estimates make of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.assembled import counted_tiles as forms
from bdforge.perf.assembled.counted_core import MAIN, CoreCosts, Cycles
from bdforge.perf.assembled.counted_tiles import CoreForm, Kind, core_form
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.kernels import kernel_cost
from bdforge.perf.kernels.kernel_cost import ScheduleError
from bdforge.perf.timed import timed, timing_options
from bdforge.perf.tune.candidate_search import Search
from bdforge.perf.tune.choice_reasons import verdicts
from bdforge.perf.tune.space import search_space
from bdforge.perf.tune.time_model import kernel_of, kernel_on
from bdforge.perf.tune.tuner import tune
from support.built_designs import small_gemm

KIND = Kind("strix_halo", ("int8", "int8", "int32", "int32"), ("row", "row", "row"))
PROBLEM = GemmProblem(64, 288, 48)


def plan(c: str = "int32", a: str = "int8"):
    return small_gemm(64, 72, 48, types=(a, a, c), layouts="row row row", rows=1, columns=1, k_mt=144, rho=2)


@pytest.fixture(scope="module")
def form():
    return core_form(KIND)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "tile"), [(1, (64, 72, 48)), (2, (64, 128, 64))])
def test_forms_are_near_counts(form, rho, tile):
    m, k, n = tile
    exact = KIND.costs(rho, m, k, n)
    assert form.step(rho, m, k, n) == pytest.approx(exact.step.issue[exact.multiply], rel=0.08)
    assert form.around_step(rho) == pytest.approx(exact.step.issue[MAIN])
    assert form.ends_of(rho, m, n) == pytest.approx(sum(exact.ends.issue.values()), rel=0.02)


@pytest.mark.parametrize(("in_parts", "fixed", "part"), [(False, 24, 0), (True, 0, 45.5)], ids=["at once", "in parts"])
def test_a_form_recovers_the_costs_that_it_was_made_of(monkeypatch, in_parts: bool, fixed: float, part: float):
    """Around a step 13 cycles and 21 for each part, but 30 where it is whole; a pass over C 3/16 of a cycle for each
    element, and what is fixed or each part's beside it."""

    def counted(_: Kind, rho: int, m: int, k: int, n: int) -> CoreCosts:
        around = 30.0 if rho == 1 and not in_parts else 13.0 + 21 * rho
        step = Cycles({MAIN: around, "mm": 7.0 * m * k}, {"mm": 99.0})
        return CoreCosts(step, Cycles({MAIN: fixed, "zero": part * rho + 3 / 16 * m * n}, {"zero": 99.0}), "mm", 0)

    monkeypatch.setattr(Kind, "costs", counted)
    form = core_form(replace(KIND, device="krackan", c_in_parts=in_parts))
    assert form.around_step(np.array([1, 2, 4])).tolist() == [34 if in_parts else 30, 13 + 2 * 21, 13 + 4 * 21]
    assert form.ends_of(4, 48, 80) == pytest.approx(fixed + 4 * part + 3 / 16 * 48 * 80)


def test_calls_of_a_step_are_those_of_its_parts(monkeypatch):
    """rho calls on m / rho rows, for numbers and arrays, each size asked for once."""
    asked = []

    def call(symbol: str, generation: str, turned: tuple[str, ...], rows: int, k: int, n: int) -> float:
        asked.append((rows, k, n))
        return 1000.0 * rows + 10 * k + n

    monkeypatch.setattr(kernel_cost, "_expected", call)
    form = CoreForm(KIND, (0, 0, 0), (0, 0, 0))
    assert form.step(4, 64, 8, 16) == 4 * (16_000 + 80 + 16)
    asked.clear()
    found = form.step(np.array([1, 2, 4, 1]), np.array([16, 32, 32, 16]), 8, np.array([24, 24, 24, 24]))
    assert found.tolist() == [16_104, 2 * 16_104, 4 * 8_104, 16_104]
    assert sorted(asked) == [(8, 8, 24), (16, 8, 24)]


@pytest.mark.parametrize("turned", ["", "a", "b", "c", "abc"])
def test_a_call_is_asked_for_with_the_layouts_that_come_by_columns(monkeypatch, turned: str):
    asked = []
    monkeypatch.setattr(kernel_cost, "_expected", lambda *arguments: asked.append(arguments) or 5.0)
    layouts = tuple("column" if side in turned else "row" for side in "abc")
    kind = replace(KIND, device="krackan", layouts=layouts)  # type: ignore[arg-type]
    assert CoreForm(kind, (0, 0, 0), (0, 0, 0)).step(1, 8, 16, 24) == 5
    assert asked == [("mm_i8_i8_i32", "aie2p", tuple(f"{side.upper()}_TRANSPOSED" for side in turned), 8, 16, 24)]


@pytest.mark.parametrize("in_parts", [False, True])
def test_samples_are_designs_of_one_core_with_two_slices_a_slab(monkeypatch, in_parts: bool):
    monkeypatch.setattr(forms, "core_costs", lambda plan: plan.spec)
    types, layouts = ("int8", "int2", "int8", "int32"), ("column", "packed", "row")
    spec: Any = Kind("strix_halo", types, layouts, in_parts).costs(2, 32, 16, 64)
    assert (spec.a, spec.b, spec.c, spec.accumulator) == types
    assert (spec.layouts.a, spec.layouts.b, spec.layouts.c) == layouts
    assert (spec.rows, spec.columns, spec.tile.m, spec.tile.k, spec.tile.n) == (1, 1, 32, 16, 64)
    buffers = spec.buffers
    assert (buffers.k_mt, buffers.rho, buffers.stack_bytes) == (32, 2, 256)
    assert (buffers.residency, buffers.c_in_parts) == (("b", True) if in_parts else ("none", False))


def test_cycles_of_a_function_are_its_issue_and_its_stalls():
    found = Cycles({MAIN: 10.0, "mm": 20.0}, {"mm": 3.0, "zero": 4.0})
    assert [found.of(name) for name in (MAIN, "mm", "zero", "none")] == [10, 23, 4, 0]
    assert found.total == 37


@pytest.mark.slow
def test_an_estimate_takes_what_was_counted_around_the_kernels(form):
    small = plan()
    case = case_of(small.spec, small.device, PROBLEM)
    counted, formed = kernel_on(small, case, "assembled"), kernel_of(case, "assembled")
    assert formed.cycles == pytest.approx(counted.cycles, rel=0.15)  # stalls at banks beside
    assert formed.around == counted.around == 13 + 2 * 16
    core = estimate(case, kernel=counted).core
    assert (core.kernel, core.ends) == (counted.cycles + counted.around, counted.ends)
    assert core.compute == 288 / 72 * (counted.cycles + counted.around) + counted.ends


def test_kernels_of_the_host_take_what_was_counted():
    small = plan()
    options = timing_options(small, PROBLEM, "assembled")
    counted = kernel_on(small, case_of(small.spec, small.device, PROBLEM), "assembled")
    assert options.timing is not None
    zero = options.kernels["zero_i32"]
    assert options.kernels["mm_i8_i8_i32"] == counted.cycles / 2
    assert zero == counted.ends - 24  # calls, locks, loop
    assert (options.timing.core_lock_cycles, options.timing.kernel_call_cycles) == (4, 6)


def test_machine_code_in_time_takes_what_was_counted():
    small = plan()
    few, many = (timed(small, GemmProblem(64, 144 * slabs, 48), "assembled").cores[0] for slabs in (2, 4))
    counted = kernel_on(small, case_of(small.spec, small.device, PROBLEM), "assembled")
    took = [core.busy["core program"] + core.stalled.get("own banks", 0) for core in (few, many)]
    assert took[1] - took[0] == pytest.approx(4 * (counted.cycles + counted.around))


def test_products_without_assembled_kernels_are_named():
    turned = {"layouts": "row row column", "rows": 1, "columns": 1, "k_mt": 144, "rho": 2}
    plan = small_gemm(64, 72, 48, "phoenix", types=("int8", "int8", "int8"), **turned)
    case = case_of(plan.spec, plan.device, PROBLEM)
    with pytest.raises(ScheduleError, match="mm_i8_i8_i8 is not assembled"):
        kernel_of(case, "assembled")
    with pytest.raises(ScheduleError, match="mm_i8_i8_i8 is not assembled"):
        kernel_on(plan, case, "assembled")


@pytest.mark.slow
def test_a_search_believes_counted_cycles(form):
    space = search_space(
        device_named("strix_halo"), "int8,int8,int32", 512, b_layouts=("row",),
        fixed={"m": (16,), "k": (16,), "n": (32, 48), "k_mt": (32,), "c_buffers": (1,), "a_shims": (1,)},
    )  # fmt: skip
    found = tune(Search(space, "assembled", ((GemmProblem(512, 512, 768), 1),)), finalists=0)
    ranked = found.best.ranked
    spec = space.spec(ranked.candidate)
    case = case_of(spec, space.device, GemmProblem(512, 512, 768))
    assert ranked.time_us == pytest.approx(estimate(case, kernel=kernel_of(case, "assembled")).time_us)
    (verdict,) = verdicts(found.wanted, ranked.candidate)
    assert list(verdict.estimates) == ["assembled", "compiled", "ideal"]
    assert verdict.estimates["assembled"].kernel.basis == "counted: assembled, with stalls at own banks"
