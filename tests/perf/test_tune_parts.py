"""What a tuner reads, ranks, reduces and tells, piece by piece and at its limits."""

import re
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bdforge.common.tasks import Workers, made, sources
from bdforge.operators.gemm import GemmProblem
from bdforge.operators.specs import LARGEST_SIZE
from bdforge.perf import PerfError
from bdforge.perf.tune import tuner
from bdforge.perf.tune.candidate_search import (
    KEPT,
    Height,
    Search,
    SearchPart,
    _fastest,
    buildable,
    fastest,
    search_part,
)
from bdforge.perf.tune.choice_reasons import Verdict, _alternative, _changed, _values, alternatives
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, Emulation
from bdforge.perf.tune.shapes import shapes
from bdforge.perf.tune.space import Candidate, candidates_of, core_holds, rows_of_tiles
from bdforge.perf.tune.time_model import modelled_us
from bdforge.perf.tune.tuner import search, tune
from support.tuner_cases import ALL_INT8, PLAIN, SPACE, ranked


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


def test_a_search_tells_how_far_it_is_and_adds_up_its_parts(monkeypatch):
    wanted = Search(replace(SPACE, fixed=(("m", (8, 16, 24)),)), "fitted", ((GemmProblem(64, 64, 64), 1),))
    told: list[tuple[int, int]] = []

    def part(height: Height) -> SearchPart:
        m = height.m
        return SearchPart(m, 10 * m, m, (ranked(float(m), m=m),))

    def backwards(call, tasks):
        return ((place, made(call, tasks[place], sources())) for place in reversed(range(len(tasks))))

    monkeypatch.setattr(tuner, "search_part", part)
    parts = search(wanted, Workers(backwards), ended=lambda done, of: told.append((done, of)))
    assert [part.m for part in parts] == [8, 16, 24]
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    found = tune(wanted, Workers(backwards), finalists=0)
    assert (found.examined, found.legal, found.resumed_parts) == (480, 48, 0)
    assert [finalist.time_us for finalist in found.finalists] == [8, 16, 24]


def test_a_verdict_tells_the_four_largest_parts_of_its_first_basis():
    first = SimpleNamespace(parallel={"a": 1.0, "b": 9.0, "c": 4.0}, serial={"d": 7.0, "e": 5.0}, bound="b",
                            time_us=21.4, tops=1.234)  # fmt: skip
    other = SimpleNamespace(tops=2.0)
    verdict = Verdict(GemmProblem(1, 2, 3), 1, {"fitted": first, "ideal": other})  # type: ignore[dict-item]
    assert verdict.sentence() == "1x2x3: 1.23 fitted, 2.00 ideal TOPS; bound: b (b 9, d 7, e 5, c 4 us of 21)"


def test_designs_that_cannot_run_do_not_count_and_come_last(monkeypatch):
    """The fastest by the model is passed over; of two others, the one that emulation slows down less is first."""
    best = [ranked(float(m), m=m) for m in (8, 16, 24, 32)]
    ratios = {8: None, 16: 40.0, 24: 10.0, 32: 1.0}

    def emulated(task: Emulation) -> EmulatedFinalist | str:
        ratio = ratios[task.candidate.m]
        return "it stops" if ratio is None else EmulatedFinalist((1, 1, 1), ratio, 10.0)

    def part(height: Height) -> SearchPart:
        return SearchPart(8, 4, 4, tuple(best))

    monkeypatch.setattr(tuner, "emulated_or_not", emulated)
    monkeypatch.setattr(tuner, "search_part", part)
    monkeypatch.setattr(tuner, "_fixed_us", lambda *_: 0.0)
    wanted = Search(replace(SPACE, fixed=(("m", (8,)),)), "fitted", ((GemmProblem(64, 64, 64), 1),))
    told: list[tuple[int, int]] = []
    found = tune(wanted, finalists=2, emulating=lambda done, of: told.append((done, of))).finalists
    assert [(f.ranked.candidate.m, f.time_us) for f in found] == [(24, 24.0), (16, 64.0), (8, 8.0)]
    assert [f.passed_over for f in found] == ["", "", "it stops"]
    assert told[-1] == (2, 2)


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
    assert len(_fastest(Candidate.of(rows), times, KEPT + 2)) == KEPT + 2
    assert {entry.candidate.k_mt for entry in found} == {600}
    assert _fastest(Candidate.of([]), np.array([])) == []


def test_a_part_counts_what_it_examined_and_what_can_be_built():
    space = replace(SPACE, fixed=(("rho", (1, 2)),))
    pieces = list(candidates_of(space, 32))
    assert len(pieces) == 2
    part = search_part(Height(Search(space, "fitted", ((GemmProblem(64, 64, 64), 1),)), 32))
    assert part.examined == sum(piece.length for piece in pieces)
    assert part.legal == sum(buildable(space, piece).length for piece in pieces)


def test_a_depth_that_is_fixed_is_searched_however_many_slices_it_has():
    """Without one slabs have the twelve slices at most that leave one by one."""
    free = replace(SPACE, deepest=4096, fixed=(("rho", (1,)),))
    deepest = max(int((piece.k_mt // piece.k).max()) for piece in candidates_of(free, 32))
    assert deepest == 12
    deep = replace(free, fixed=(*free.fixed, ("k_mt", (1024, 1100))))
    found = [piece.row(i) for piece in candidates_of(deep, 32) for i in range(piece.length)]
    assert {row.k_mt for row in found} == {1024}, "no k is a divisor of 1100"
    assert {row.k for row in found} == {8 << i for i in range(8)} & {row.k for row in found} >= {8, 16, 32, 64}
    assert buildable(deep, Candidate.of(found)).length


def test_a_search_goes_up_to_the_last_m_that_fits_a_core():
    """int2 with k of 8 and n of 32: C of m x 32 sums, A of m / rho x 8 twice beside 32 x 8 / 4 bytes of B twice."""
    heights = rows_of_tiles(SPACE)
    assert heights == list(range(8, 8 * len(heights) + 1, 8))
    free = 65536 - SPACE.stack_bytes
    assert heights[-1] == (free - 2 * 8 * 8 - 2 * 64) // (8 * 32 * 4) * 8
    assert rows_of_tiles(replace(SPACE, fixed=(("m", (heights[-1], heights[-1] + 8, 4)),))) == heights[-1:]


def test_no_other_choice_is_faster_than_the_best_of_its_part():
    fixed = (("m", (32,)), ("rho", (1, 2)))
    wanted = Search(replace(SPACE, fixed=fixed), "fitted", ((GemmProblem(512, 64, 512), 1),))
    best = search_part(Height(wanted, 32)).best[0].candidate
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
