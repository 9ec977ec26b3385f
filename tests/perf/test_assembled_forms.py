"""Costs of assembled cores in the model: forms against counts of tiles, and what estimates make of them."""

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import Problem, plan_gemm, spec_from
from bdforge.perf.assembled.core import MAIN
from bdforge.perf.assembled.forms import Kind, core_form
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.kernels.schedule import ScheduleError
from bdforge.perf.timed import timed, timing_options
from bdforge.perf.tune.model import kernel_of, kernel_on
from bdforge.perf.tune.reasons import verdicts
from bdforge.perf.tune.search import Search
from bdforge.perf.tune.space import search_space
from bdforge.perf.tune.tuner import tune

KIND = Kind("strix_halo", ("int8", "int8", "int32", "int32"), ("row", "row", "row"))
PROBLEM = Problem(64, 288, 48)


def plan(c: str = "int32", a: str = "int8"):
    content = {
        "kind": "gemm",
        "types": {"a": a, "b": a, "c": c, "accumulator": c},
        "layouts": {"a": "row", "b": "row", "c": "row"},
        "array": {"rows": 1, "columns": 1},
        "tile": {"m": 64, "k": 72, "n": 48},
        "buffers": {"k_mt": 144, "rho": 2},
    }
    return plan_gemm(spec_from(content, "small"), device_named("strix_halo"))


@pytest.fixture(scope="module")
def form():
    return core_form(KIND)


@pytest.mark.parametrize(("rho", "tile"), [(1, (64, 72, 48)), (2, (64, 128, 64))])
def test_forms_are_near_counts(form, rho, tile):
    m, k, n = tile
    exact = KIND.costs(rho, m, k, n)
    assert form.step(rho, m, k, n) == pytest.approx(exact.step.issue[exact.multiply], rel=0.08)
    assert form.around_step(rho) == pytest.approx(exact.step.issue[MAIN])
    assert form.ends_of(rho, m, n) == pytest.approx(sum(exact.ends.issue.values()), rel=0.02)


def test_an_estimate_takes_what_was_counted_around_the_kernels(form):
    small = plan()
    case = case_of(small.spec, small.device, PROBLEM)
    counted, formed = kernel_on(small, case, "assembled"), kernel_of(case, "assembled")
    assert formed.cycles == pytest.approx(counted.cycles, rel=0.15)  # stalls at banks beside
    assert formed.around == counted.around == 13 + 2 * 18
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
    few, many = (timed(small, Problem(64, 144 * slabs, 48), "assembled").cores[0] for slabs in (2, 4))
    counted = kernel_on(small, case_of(small.spec, small.device, PROBLEM), "assembled")
    took = [core.busy["core program"] + core.stalled.get("own banks", 0) for core in (few, many)]
    assert took[1] - took[0] == pytest.approx(4 * (counted.cycles + counted.around))


def test_types_without_assembled_kernels_are_named():
    floats = plan("f32", "bf16")
    case = case_of(floats.spec, floats.device, PROBLEM)
    with pytest.raises(ScheduleError, match="mm_bf16_bf16_f32 is not assembled"):
        kernel_of(case, "assembled")
    with pytest.raises(ScheduleError, match="mm_bf16_bf16_f32 is not assembled"):
        kernel_on(floats, case, "assembled")


def test_a_search_believes_counted_cycles(form):
    space = search_space(
        device_named("strix_halo"), "int8,int8,int32", 512, b_layouts=("row",),
        fixed={"m": (64,), "k": (64,), "n": (64, 96), "k_mt": (128,), "c_buffers": (1,), "a_shims": (1,)},
    )  # fmt: skip
    found = tune(Search(space, "assembled", ((Problem(512, 512, 768), 1),)), finalists=0)
    ranked = found.best.ranked
    spec = space.spec(ranked.candidate)
    case = case_of(spec, space.device, Problem(512, 512, 768))
    assert ranked.time_us == pytest.approx(estimate(case, kernel=kernel_of(case, "assembled")).time_us)
    (verdict,) = verdicts(found.wanted, ranked.candidate)
    assert list(verdict.estimates) == ["assembled", "compiled", "ideal"]
    assert verdict.estimates["assembled"].kernel.basis == "assembled: counted, with stalls at own banks"
