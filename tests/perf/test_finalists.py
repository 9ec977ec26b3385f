"""Finalists in emulated time, what is told of them, and sizes of sweeps, piece by piece."""

from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import pytest

from bdforge.devices import AIE2P, device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.types import Order
from bdforge.operators.gemm import GemmProblem, SpecError, plan_gemm
from bdforge.operators.specs import LARGEST_SIZE
from bdforge.perf import PerfError
from bdforge.perf import size_sweep as native
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.kernels.kernel_cost import ScheduleError, kernel_cost
from bdforge.perf.size_sweep import native_problems
from bdforge.perf.timed import scheduled_cycles, timing_options
from bdforge.perf.tune import emulated_finalists as emulate
from bdforge.perf.tune.candidate_search import Search
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, reduced
from bdforge.perf.tune.space import B_LAYOUTS
from bdforge.perf.tune.time_model import Basis, check_basis, kernel_of
from bdforge.perf.tune.tuned_design import _value, design_name, finalist_line
from bdforge.perf.tune.tuner import Finalist, _fixed_us
from support.tuner_cases import BYTES, PLAIN, SPACE, SPEC, ranked


@pytest.mark.parametrize(
    ("changes", "K", "expected"),
    [({}, 100, (4 * 64, 128, 3 * 8 * 64)), ({}, 128, (4 * 64, 128, 3 * 8 * 64)), ({}, 129, (4 * 64, 256, 3 * 8 * 64)),
     ({}, 9999, (4 * 64, 2560, 3 * 8 * 64)), ({"residency": "b"}, 100, (3 * 4 * 64, 128, 8 * 64))],
)  # fmt: skip
def test_a_finalist_runs_a_few_tiles_of_whole_slabs(changes: dict, K: int, expected: tuple[int, int, int]):
    spec = replace(SPEC, tile=replace(SPEC.tile, m=64, k=64, n=64), buffers=replace(SPEC.buffers, k_mt=128, **changes))
    found = reduced(spec, ((GemmProblem(1, 7, 1), 5), (GemmProblem(1, K, 1), 1)), 3)
    assert expected == (found.M, found.K, found.N)


def test_emulation_scales_what_is_steady():
    found = Finalist(ranked(100.0), EmulatedFinalist((1, 2, 3), 30.0, 20.0), fixed_us=40.0)
    assert found.time_us == 40 + 60 * 1.5
    assert Finalist(ranked(100.0), fixed_us=40.0).time_us == 100


def test_what_happens_once_counts_every_run_of_every_problem():
    problem = GemmProblem(64, 64, 64)
    once, more = (_fixed_us(Search(SPACE, "fitted", ((problem, n),)), PLAIN) for n in (1, 3))
    both = Search(SPACE, "fitted", ((problem, 1), (problem, 2)))
    assert more == pytest.approx(3 * once) == pytest.approx(_fixed_us(both, PLAIN))
    assert once > 100  # dispatch


def test_finalists_are_told_in_a_line_each():
    plain, emulated = ranked(100.4), EmulatedFinalist((8, 16, 24), 30.0, 20.0)
    name = "64x64x64, k_mt 128, 1 C buffer, rho 1, 1 shim a row's A, B packed"
    assert finalist_line(Finalist(plain)) == f"{name}: 100 modelled"
    assert finalist_line(Finalist(plain, passed_over="it stops")) == f"{name}: 100 modelled, passed over: it stops"
    assert finalist_line(Finalist(plain, emulated)) == (
        f"{name}: 100 modelled, 151 as emulation corrects it (additional tiles up to 8x16x24: 30 emulated, 20 modelled)"
    )
    other = ranked(c_buffers=2, a_shims=2, rho=4, b_layout=2).candidate
    assert design_name(other) == f"64x64x64, k_mt 128, 2 C buffers, rho 4, 2 shims a row's A, B {B_LAYOUTS[2]}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (3, "3"), ('a "b" \\ c', '"a \\"b\\" \\\\ c"'), ("line\nend\x1b", '"line end "')],
)
def test_values_are_written_as_toml(value: object, text: str):
    assert _value(value) == text


def test_sizes_of_a_sweep_become_the_nearest_that_the_array_takes(monkeypatch):
    spec = replace(SPEC, tile=replace(SPEC.tile, m=64, k=64, n=64), buffers=replace(SPEC.buffers, k_mt=192))
    found = native_problems(spec, [1, 600, 500])  # units of 256, 192 and 512
    assert sorted({p.M for p in found}) == [256, 512]
    assert sorted({p.K for p in found}) == [192, 576]
    assert sorted({p.N for p in found}) == [512]
    assert len(found) == 4
    monkeypatch.setattr(native, "SHAPES_MOST", 4)
    assert len(native_problems(spec, [1, 600])) == 4
    monkeypatch.setattr(native, "SHAPES_MOST", 3)
    with pytest.raises(PerfError, match="4 problems exceed the 3 of one sweep"):
        native_problems(spec, [1, 600])


def test_rows_that_hold_data_are_what_a_sweep_s_sizes_are_made_of():
    spec = replace(SPEC, tile=replace(SPEC.tile, m=64, m_used=8))
    assert [problem.M for problem in native_problems(spec, [100])] == [3 * 8 * spec.rows]


@pytest.mark.parametrize("sizes", [[], [0], [1, LARGEST_SIZE + 1]])
def test_sizes_of_a_sweep_that_no_problem_has_are_refused(sizes: list[int]):
    assert native_problems(SPEC, [1, LARGEST_SIZE])
    with pytest.raises(PerfError, match=f"sizes of a sweep lie within 1 and {LARGEST_SIZE}"):
        native_problems(SPEC, sizes)


def test_kernels_in_emulated_time_have_stalls_unless_they_were_measured_with_them():
    """The ideal schedule takes stalls on top; a compiled kernel's share of a loop nest holds them already."""
    plan = plan_gemm(SPEC, device_named("strix_halo"))
    multiply, tile = plan.kernel.multiply, plan.spec.tile
    cost = kernel_cost(multiply, tile.m, tile.k, tile.n, generation=AIE2P, a_rows=tile.m // plan.spec.buffers.rho)
    stall = timing_of("strix_halo").core_bank_stall
    assert stall > 1
    assert scheduled_cycles(plan)[multiply] == ceil(cost.cycles * stall)
    assert scheduled_cycles(plan, "sequential", 0.8)[multiply] == ceil(cost.sequential_cycles / 0.8)
    assert scheduled_cycles(plan, "sequential", 99)[multiply] == cost.slot_cycles
    zero = kernel_cost("zero_i32", tile.m, 0, tile.n, generation=AIE2P)
    assert scheduled_cycles(plan, "sequential", 0.8)["zero_i32"] == zero.sequential_cycles, "no matrix kernel"


@pytest.mark.parametrize("basis", ["fitted", "ideal"])
def test_a_call_of_the_product_takes_its_share_of_a_step_in_emulated_time(basis: Basis):
    """With rho parts of A a step of K is rho calls of m / rho rows; what is known of a kernel is known of the step."""
    device, sizes = device_named("strix_halo"), GemmProblem(256, 512, 512)
    for rho in (1, 2, 4):
        plan = plan_gemm(replace(SPEC, buffers=replace(SPEC.buffers, rho=rho)), device)
        step = kernel_of(case_of(plan.spec, device, sizes), basis).cycles
        call = timing_options(plan, sizes, basis).kernels[plan.kernel.multiply]
        assert call == pytest.approx(step / rho), f"cycles of one of {rho} calls, of a step's {step}"


@pytest.mark.parametrize("layouts", [("row", "row", "row"), ("column", "row", "row"), ("row", "column", "column")])
def test_calls_in_emulated_time_know_which_operands_come_by_columns(layouts: tuple[Order, Order, Order]):
    a, b, c = layouts
    spec = replace(BYTES, layouts=replace(BYTES.layouts, a=a, b=b, c=c))
    plan = plan_gemm(spec, device_named("strix_halo"))
    turned = [side for side, layout in zip("abc", layouts, strict=True) if layout == "column"]
    cost = kernel_cost("mm_i8_i8_i32", 16, 16, 32, generation=AIE2P, transposed=turned)
    stall = timing_of("strix_halo").core_bank_stall
    assert scheduled_cycles(plan)["mm_i8_i8_i32"] == ceil(cost.cycles * stall)


def test_a_finalist_is_held_to_the_additional_tiles_of_the_larger_run(monkeypatch):
    """900 and 400 us emulated, 700 and 300 modelled: 500 and 400 for three tiles more of each core."""
    monkeypatch.setattr(emulate, "_emulated_us", lambda plan, wanted, problem: {2: 400.0, 5: 900.0}[tiles(problem)])
    monkeypatch.setattr(
        emulate, "estimate", lambda case, kernel: SimpleNamespace(time_us={2: 300.0, 5: 700.0}[tiles(case)])
    )
    wanted = Search(SPACE, "ideal", ((GemmProblem(64, 64, 64), 1),))
    found = emulate.emulated(wanted, PLAIN)
    assert (found.emulated_us, found.modelled_us, found.ratio) == (500, 400, 1.25)
    assert found.problem == (4 * 64, 128, 5 * 8 * 64)


def tiles(sizes) -> int:
    """Tiles of C of each core of 4 x 8, 64 x 64 each."""
    return sizes.M // (4 * 64) * (sizes.N // (8 * 64))


def test_passes_over_c_in_parts_take_a_part_of_it_in_emulated_time():
    """Four parts of C: each pass has a quarter of m, as the calls of the product have."""
    buffers = replace(SPEC.buffers, residency="b", c_in_parts=True, rho=4, c_memtile_buffers=1)
    plan = plan_gemm(replace(SPEC, buffers=buffers), device_named("strix_halo"))
    tile = plan.spec.tile
    assert tile.m % 4 == 0
    part, found = GemmProblem(tile.m // 4, tile.k, tile.n), scheduled_cycles(plan)
    for symbol in ("zero_i32", "unscale_i32"):
        assert found[symbol] == kernel_cost(symbol, part.M, part.K, part.N, generation=AIE2P).cycles, symbol


@pytest.mark.parametrize(
    ("basis", "needed"), [("compiled", True), ("ideal", True), ("fitted", False), ("assembled", False)]
)
def test_only_bases_with_loops_of_ours_ask_for_one(basis: Basis, needed: bool):
    types = ("int16", "int16", "int32")
    check_basis(("int8", "int2", "int32"), AIE2P, basis)
    if not needed:
        check_basis(types, AIE2P, basis)
        return
    with pytest.raises(ScheduleError, match="no matrix kernel 'mm_i16_i16_i32' for AIE2P"):
        check_basis(types, AIE2P, basis)


@pytest.mark.parametrize(("a", "b", "peak"), [
    ("int8", "int2", 512), ("bf16", "bf16", 256), ("bf16", "bfp16", 512), ("int16", "int16", 128),
    ("int16", "int2", 128),  # unpacked to int16
])  # fmt: skip
def test_the_peak_of_a_timed_run_is_that_of_its_types(a: str, b: str, peak: int):
    plan = plan_gemm(SPEC, device_named("strix_halo"))
    named = replace(plan, spec=replace(plan.spec, a=a, b=b))
    assert timing_options(named, GemmProblem(256, 512, 512), "fitted").peak_macs_per_cycle == peak


def test_a_sweep_models_every_problem_with_every_layout_of_b():
    """One core of 16 x 16 x 32: what one tile moves is A, B and C once."""
    device, problems = device_named("strix_halo"), [GemmProblem(16, 32, 32), GemmProblem(32, 64, 64)]
    swept = list(native.sweep(BYTES, device, ("row", "column"), problems, "fitted"))
    assert [(one.layout, native._shape(one)) for one in swept] == [
        (layout, tuple(problem.sizes.values())) for layout in ("row", "column") for problem in problems
    ]
    for one in swept:
        case = replace(case_of(BYTES, device, GemmProblem(*native._shape(one))), b_layout=one.layout)
        assert one.found.time_us == estimate(case).time_us
    assert swept[0].intensity == pytest.approx(2 * 16 * 32 * 32 / (16 * 32 + 32 * 32 + 4 * 16 * 32))
    (ideal,) = native.sweep(BYTES, device, ("row",), problems[:1], "ideal")
    assert ideal.found.kernel.basis.startswith("modelled: ideal")
    times = [one.found.time_us for one in swept]
    assert native.ratios(swept, "row", "column") == pytest.approx([times[0] / times[2], times[1] / times[3]])
    for wrong, sizes in ((SPEC, GemmProblem(16, 32, 32)), (BYTES, GemmProblem(1, 1 << 17, 1))):
        with pytest.raises(SpecError):
            list(native.sweep(wrong, device, ("row",), [sizes], "fitted"))


def test_a_sweep_is_written_line_by_line():
    swept = list(native.sweep(BYTES, device_named("strix_halo"), ("row",), [GemmProblem(16, 32, 64)], "fitted"))
    found, lines = swept[0].found, native.write_csv(swept).splitlines()
    low, high = found.time_us * 0.84, found.time_us * 1.19
    assert lines == [
        "layout_b,M,K,N,operations_per_byte,tops_modelled,time_us_modelled,time_us_low,time_us_high,bound",
        f"row,16,32,64,{swept[0].intensity:.6g},{found.tops:.6g},{found.time_us:.6g},{low:.6g},{high:.6g},{found.bound}",
    ]
