"""What a tuner reads, ranks, reduces and tells, piece by piece and at its limits."""

import re
from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest

from bdforge.devices import AIE2P, device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.types import PEAK_MACS, Order
from bdforge.operators.gemm import GemmProblem, SpecError, load_spec, plan_gemm
from bdforge.operators.specs import LARGEST_SIZE
from bdforge.perf import PerfError
from bdforge.perf import size_sweep as native
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.kernels.kernel_cost import ScheduleError, kernel_cost
from bdforge.perf.size_sweep import native_problems
from bdforge.perf.timed import scheduled_cycles, timing_options
from bdforge.perf.tune import emulated_finalists as emulate
from bdforge.perf.tune import tuner
from bdforge.perf.tune.candidate_search import (
    KEPT,
    Ranked,
    Search,
    SearchPart,
    _fastest,
    buildable,
    fastest,
    search_part,
)
from bdforge.perf.tune.choice_reasons import Verdict, _alternative, _changed, _values, alternatives
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, reduced
from bdforge.perf.tune.shapes import shapes
from bdforge.perf.tune.space import (
    B_LAYOUTS,
    Candidate,
    candidates_of,
    core_holds,
    rows_of_tiles,
    search_space,
)
from bdforge.perf.tune.time_model import Basis, check_basis, kernel_of, modelled_us
from bdforge.perf.tune.tuned_design import _value, design_name, finalist_line
from bdforge.perf.tune.tuner import Finalist, _fixed_us, search, tune
from support.built_designs import ROOT, small_gemm

SPEC = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
SPACE = search_space(device_named("strix_halo"), "i8,i2,i32", 64)
BYTES = small_gemm(types=("int8", "int8", "int32"), rows=1, columns=1, k_mt=32).spec
ALL_INT8 = search_space(device_named("strix_halo"), "i8,i8,i8,i8", 512)
PLAIN = Candidate(64, 64, 64, 128, 1, 2, 1, 1, 0)


def ranked(time_us: float = 5.0, **changes: int) -> Ranked:
    return Ranked(time_us, PLAIN._replace(**changes))


@pytest.mark.parametrize(
    ("text", "problem", "count"),
    [(f"{LARGEST_SIZE}x1x{LARGEST_SIZE}", (LARGEST_SIZE, 1, LARGEST_SIZE), 1),
     (f"1x{LARGEST_SIZE}x1*{LARGEST_SIZE}", (1, LARGEST_SIZE, 1), LARGEST_SIZE), ("2x3x4*1", (2, 3, 4), 1)],
)  # fmt: skip
def test_the_largest_sizes_and_counts_are_taken(text: str, problem: tuple[int, int, int], count: int):
    assert shapes(text) == ((GemmProblem(*problem), count),)


@pytest.mark.parametrize(
    ("text", "message"),
    [(f"{LARGEST_SIZE + 1}x1x1", f"M = {LARGEST_SIZE + 1} is not within"), ("1x0x1", "K = 0 is not within"),
     (f"1x1x{LARGEST_SIZE + 1}", f"N = {LARGEST_SIZE + 1} is not within"), ("1x1x1*0", "a count of 0 is not within"),
     (f"1x1x1*{LARGEST_SIZE + 1}", f"a count of {LARGEST_SIZE + 1} is not within")],
)  # fmt: skip
def test_sizes_and_counts_beyond_the_limits_are_named(text: str, message: str):
    with pytest.raises(PerfError, match=message):
        shapes(text)


PREFERRED = [
    {}, {"rho": 2}, {"c_buffers": 2}, {"k_mt": 192}, {"b_layout": 1}, {"a_shims": 2}, {"c_memtile_buffers": 1},
]  # fmt: skip


def test_equals_are_ranked_by_each_choice_in_its_turn():
    """Each of these differs from the first in one choice, and one that counts more beats all that count less."""
    entries = [ranked(**changes) for changes in PREFERRED]
    assert sorted([*entries[3:], *entries[:3]], key=lambda entry: entry.rank) == entries
    assert ranked(4.9, c_memtile_buffers=1).rank < ranked().rank
    assert ranked(5.0 + 1e-8).rank == ranked().rank  # noise of sums decides nothing


@pytest.mark.parametrize(
    ("changes", "apart"),
    [({"m": 72}, True), ({"k": 32}, True), ({"n": 96}, True), ({"a_shims": 2}, True), ({"k_mt": 256}, True),
     ({"k_mt": 192}, False), ({"rho": 2}, False), ({"c_buffers": 2}, False), ({"b_layout": 1}, False)],
)  # fmt: skip
def test_kinds_are_told_apart_by_what_is_worth_emulating(changes: dict[str, int], apart: bool):
    assert len(fastest([ranked(), ranked(6.0, **changes)])) == 1 + apart


def test_a_core_holds_buffers_to_its_last_byte_aligned_for_vectors():
    """A of 72 x 224 and B of 224 x 56 twice, C once, all int8: 64 KiB with a stack of 4 KiB and the parameters."""
    space = ALL_INT8
    assert 4096 + 64 + 2 * 72 * 224 + 2 * 224 * 56 + 72 * 56 == 65536
    assert core_holds(space, 72, 224, 56, 1, 1)
    assert not core_holds(space, 72, 224, 56, 2, 1)
    assert not core_holds(space, 72, 232, 56, 1, 1)


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


def test_a_search_tells_how_far_it_is_and_adds_up_its_parts():
    wanted = Search(replace(SPACE, fixed=(("m", (8, 16, 24)),)), "fitted", ((GemmProblem(64, 64, 64), 1),))
    told: list[tuple[int, int]] = []

    def run(_, heights):
        return (SearchPart(m, 10 * m, m, (ranked(float(m), m=m),)) for m in reversed(heights))

    parts = search(wanted, run, ended=lambda done, of: told.append((done, of)))
    assert [part.m for part in parts] == [8, 16, 24]
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    found = tune(wanted, run, finalists=0)
    assert (found.examined, found.legal, found.resumed_parts) == (480, 48, 0)
    assert [finalist.time_us for finalist in found.finalists] == [8, 16, 24]


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


def test_a_verdict_tells_the_four_largest_parts_of_its_first_basis():
    first = SimpleNamespace(parallel={"a": 1.0, "b": 9.0, "c": 4.0}, serial={"d": 7.0, "e": 5.0}, bound="b",
                            time_us=21.4, tops=1.234)  # fmt: skip
    other = SimpleNamespace(tops=2.0)
    verdict = Verdict(GemmProblem(1, 2, 3), 1, {"fitted": first, "ideal": other})  # type: ignore[dict-item]
    assert verdict.sentence() == "1x2x3: 1.23 fitted, 2.00 ideal TOPS; bound: b (b 9, d 7, e 5, c 4 us of 21)"


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


def test_designs_that_cannot_run_do_not_count_and_come_last(monkeypatch):
    """The fastest by the model is passed over; of two others, the one that emulation slows down less is first."""
    best = [ranked(float(m), m=m) for m in (8, 16, 24, 32)]
    ratios = {8: None, 16: 40.0, 24: 10.0, 32: 1.0}

    def emulated(_, candidate):
        if (ratio := ratios[candidate.m]) is None:
            raise PerfError("it stops")
        return EmulatedFinalist((1, 1, 1), ratio, 10.0)

    monkeypatch.setattr(tuner, "emulated", emulated)
    monkeypatch.setattr(tuner, "_fixed_us", lambda *_: 0.0)
    wanted = Search(replace(SPACE, fixed=(("m", (8,)),)), "fitted", ((GemmProblem(64, 64, 64), 1),))
    found = tune(wanted, lambda *_: iter([SearchPart(8, 4, 4, tuple(best))]), finalists=2).finalists
    assert [(f.ranked.candidate.m, f.time_us) for f in found] == [(24, 24.0), (16, 64.0), (8, 8.0)]
    assert [f.passed_over for f in found] == ["", "", "it stops"]


@pytest.mark.parametrize(("rho", "parts"), [(1, False), (2, True), (6, True), (7, False)])
def test_c_leaves_in_two_to_six_parts_of_designs_whose_b_stays(rho: int, parts: bool):
    space = replace(SPACE, residency="b")
    assert bool(space.c_in_parts(rho, 64, 256)) is parts
    assert (space.c_memtile_buffers, SPACE.c_memtile_buffers) == (1, 2)
    assert not space.c_in_parts(rho, 64, 192)  # an odd number of slices
    assert not SPACE.c_in_parts(rho, 64, 256)
    assert not replace(space, c="bfp16").c_in_parts(rho, 64, 256)


@pytest.mark.parametrize(("k", "k_mt"), [(32, 128), (96, 96), (128, 128), (256, 256), (16, 128)])
def test_slabs_keep_their_depth_when_k_changes(k: int, k_mt: int):
    found = _changed(PLAIN, "k", k, 1)
    assert (found.k, found.k_mt, found.c_memtile_buffers) == (k, k_mt, 1)


@pytest.mark.parametrize(
    ("field", "values"),
    [("m", range(16, 129, 16)), ("k", range(8, 129, 8)), ("n", range(32, 129, 32)), ("k_mt", (64, 128, 192, 256)),
     ("rho", (1, 2, 4, 8)), ("c_buffers", (1, 2)), ("a_shims", (1, 2)), ("b_layout", (0,))],
)  # fmt: skip
def test_other_choices_are_tried_up_to_twice_a_size(field: str, values: Iterable[int]):
    """With rho 2, m goes in 16s; slabs to one slice more than 200 deep; int2 has packed B alone."""
    wanted = Search(replace(SPACE, deepest=200), "fitted", ((GemmProblem(64, 200, 64), 1),))
    assert _values(wanted, ranked(rho=2).candidate, field) == list(values)


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


@pytest.mark.parametrize(
    ("tile", "held"), [((8, 8, 8), True), ((8, 4, 16), False), ((16, 4, 8), False), ((4, 16, 8), False)],
    ids=["whole", "a", "b", "c"],
)  # fmt: skip
def test_each_buffer_of_a_core_is_whole_vectors_of_64_bytes(tile: tuple[int, int, int], held: bool):
    """int8 throughout: of each of the others one buffer has 32 bytes."""
    assert bool(core_holds(ALL_INT8, *tile, 1, 1)) is held


def test_a_piece_keeps_its_fastest_of_so_many_kinds():
    """Of each k two slabs of one kind, the deeper one faster, and more kinds than are kept."""
    rows = [PLAIN._replace(k=k, k_mt=depth) for k in range(8, 8 * KEPT + 25, 8) for depth in (520, 600)]
    times = np.arange(len(rows), 0.0, -1)
    found = _fastest(Candidate.of(rows), times)
    assert [entry.time_us for entry in found] == [1.0 + 2 * i for i in range(KEPT)]
    assert {entry.candidate.k_mt for entry in found} == {600}
    assert _fastest(Candidate.of([]), np.array([])) == []


def test_a_part_counts_what_it_examined_and_what_can_be_built():
    space = replace(SPACE, fixed=(("rho", (1, 2)),))
    pieces = list(candidates_of(space, 32))
    assert len(pieces) == 2
    part = search_part(Search(space, "fitted", ((GemmProblem(64, 64, 64), 1),)), 32)
    assert part.examined == sum(piece.length for piece in pieces)
    assert part.legal == sum(buildable(space, piece).length for piece in pieces)


def test_a_search_goes_up_to_the_last_m_that_fits_a_core():
    """int2 with k of 8 and n of 32: C of m x 32 sums, A of m / rho x 8 twice beside 32 x 8 / 4 bytes of B twice."""
    heights = rows_of_tiles(SPACE)
    assert heights == list(range(8, 8 * len(heights) + 1, 8))
    free = 65536 - SPACE.stack_bytes
    assert heights[-1] == (free - 2 * 8 * 8 - 2 * 64) // (8 * 32 * 4) * 8
    assert rows_of_tiles(replace(SPACE, fixed=(("m", (heights[-1], heights[-1] + 8, 4)),))) == heights[-1:]


def test_the_peak_of_a_timed_run_is_that_of_its_types():
    for types, peak in ((("int8", "int2"), 512), (("bf16", "bfp16"), 512), (("int8", "int8"), 512)):
        plan = plan_gemm(SPEC, device_named("strix_halo"))
        named = replace(plan, spec=replace(plan.spec, a=types[0], b=types[1]))
        assert PEAK_MACS["AIE2P"][types] == peak
        assert timing_options(named, GemmProblem(256, 512, 512), "fitted").peak_macs_per_cycle == peak


def test_no_other_choice_is_faster_than_the_best_of_its_part():
    fixed = (("m", (32,)), ("rho", (1, 2)))
    wanted = Search(replace(SPACE, fixed=fixed), "fitted", ((GemmProblem(512, 64, 512), 1),))
    best = search_part(wanted, 32).best[0].candidate
    told = [line for line in alternatives(wanted, best) if not line.startswith("m = ")]
    changes = [float(change) for line in told for change in re.findall(r"takes ([+-][\d.]+)% of the time", line)]
    assert len(changes) > 3
    assert all(change >= 0 for change in changes), told
    assert any(change > 0 for change in changes), told


FULL = PLAIN._replace(m=72, k=224, n=56, k_mt=224)


@pytest.mark.parametrize(("field", "told"), [
    # A and B twice and C once fill a core, of 72 rows, of which 2 shims would bring half a tile each.
    ("c_buffers", "c_buffers = 1: no other value can be built; c_buffers = 2: core and 31 more: 69568 bytes of 65536; "
     "choose smaller or fewer buffers: a smaller tile or k_mt, less buffering, buffers.stack_bytes"),
    ("a_shims", "a_shims = 1: no other value can be built; a_shims = 2: tile.m = 72 is not a multiple of 16, which "
     "mm_i8_i8_i8 needs; use 64 or 80"),
])  # fmt: skip
def test_a_choice_without_another_says_why_with_its_numbers(field: str, told: str):
    """Only what stands in brackets is left out: places, parts of a sum."""
    wanted = Search(ALL_INT8, "fitted", ((GemmProblem(512, 512, 512), 1),))
    assert list(_alternative(wanted, FULL, field, 1.0)) == [told]


def test_of_other_choices_the_fastest_is_told_and_how_many_fit():
    """Of k_mt 224 to 672, three slabs at most for K = 512; own time is that of the choice itself."""
    wanted = Search(ALL_INT8, "fitted", ((GemmProblem(512, 512, 512), 1),))
    others = Candidate.of([FULL._replace(k_mt=k_mt) for k_mt in (448, 672)])
    times = modelled_us(wanted.space, "fitted", others, wanted.problems)
    best = int(times.argmin())
    assert list(_alternative(wanted, FULL, "k_mt", 2 * times[best])) == [
        f"k_mt = 224: the next best, {(448, 672)[best]}, takes -50.0% of the time; 2 of 2 others fit"
    ]


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
