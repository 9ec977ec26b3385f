"""The search: exhaustive, the same in any order and on any number of processes, taken up where it stopped."""

from dataclasses import replace

import pytest

from bdforge.common.tasks import Workers, key
from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import PerfError, estimate, measured_rows
from bdforge.perf.rows import Row
from bdforge.perf.tune.candidate_search import Height, Search, SearchPart, buildable, search_part
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, Emulation, emulated_or_not
from bdforge.perf.tune.space import Candidate, candidates_of, rows_of_tiles, search_space
from bdforge.perf.tune.time_model import case_at, kernel_of
from bdforge.perf.tune.tuner import search, tune
from support.tuner_cases import PLAIN

HALO = device_named("strix_halo")
SMALL = Search(
    search_space(HALO, "i8,i2,i32", 40), "compiled", ((GemmProblem(100, 40, 300), 1), (GemmProblem(512, 32, 640), 2))
)
TABLES = ("taka-table2", "taka-table3", "wang-table2")


def published() -> list[Row]:
    """Rows of the tables whose tile and layout are known."""
    rows = [row for row in measured_rows() if row.source in TABLES]
    return [row for row in rows if not any(note.startswith("tile") for note in row.case.assumed)]


def test_a_part_finds_what_brute_force_finds():
    m, times = 56, {}
    for candidates in candidates_of(SMALL.space, m):
        good = buildable(SMALL.space, candidates)
        for index in range(good.length):
            cases = [(case_at(SMALL.space, good.row(index), problem), count) for problem, count in SMALL.problems]
            spent = [count * estimate(case, kernel=kernel_of(case, "compiled")).time_us for case, count in cases]
            times[good.row(index)] = sum(spent)
    part = search_part(Height(SMALL, m))
    assert part.legal == len(times) > 50
    assert part.best[0].time_us == pytest.approx(min(times.values()))
    assert all(ranked.time_us == pytest.approx(times[ranked.candidate]) for ranked in part.best)


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(
    "row", published()[::3], ids=lambda row: f"{row.source} {row.case.m}x{row.case.k}x{row.case.n}"
)
def test_search_models_no_slower_than_the_published_best_tile(row):
    """Even one part of the search, that of the published m, holds a design which the model gives at least its speed."""
    case = replace(row.case, core_macs_per_cycle=None)
    space = search_space(device_named(case.device), f"{case.a},{case.b},{case.c}", case.K, b_layouts=(case.b_layout,))
    problem = GemmProblem(case.M, case.K, case.N)
    best = search_part(Height(Search(space, "fitted", ((problem, 1),)), case.m)).best[0]
    assert best.time_us <= estimate(case).time_us * (1 + 1e-9)


def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path, monkeypatch):
    searched = []

    def counted(height: Height) -> SearchPart:
        if len(searched) == 5:
            raise KeyboardInterrupt
        searched.append(height.m)
        return search_part(height)

    monkeypatch.setattr("bdforge.perf.tune.tuner.search_part", counted)
    with pytest.raises(KeyboardInterrupt):
        search(SMALL, Workers(kept=tmp_path))
    first = searched.copy()
    searched.clear()
    monkeypatch.setattr("bdforge.perf.tune.tuner.search_part", counted)
    told = []
    with pytest.raises(KeyboardInterrupt):
        search(SMALL, Workers(kept=tmp_path), lambda done, of: told.append(done))
    assert first + searched == rows_of_tiles(SMALL.space)[:10]
    assert told == list(range(5, 11))


@pytest.mark.parametrize(
    "change", [{"basis": "ideal"}, {"problems": SMALL.problems[:1]}, {"kept": 33},
               {"space": replace(SMALL.space, stack_bytes=1024)}], ids=str
)  # fmt: skip
def test_a_part_of_another_search_is_another(change):
    assert key(search_part, Height(replace(SMALL, **change), 8)) != key(search_part, Height(SMALL, 8))


def test_a_candidate_is_emulated_once_for_searches_that_differ_in_what_they_try():
    wider = replace(SMALL, kept=99, space=replace(SMALL.space, fixed=(("m", (8,)),), b_layouts=("row", "packed")))
    assert Emulation.of(wider, PLAIN) == Emulation.of(SMALL, PLAIN)
    assert key(emulated_or_not, Emulation.of(replace(SMALL, basis="ideal"), PLAIN)) != key(
        emulated_or_not, Emulation.of(SMALL, PLAIN)
    )


@pytest.mark.slow
def test_finalists_are_emulated_once_ranked_by_it_and_kept(tmp_path, monkeypatch):
    asked = []

    def slower_first(task: Emulation) -> EmulatedFinalist | str:
        asked.append(task.candidate)
        return EmulatedFinalist((64, 64, 64), 300.0 / len(asked), 100.0)

    monkeypatch.setattr("bdforge.perf.tune.tuner.emulated_or_not", slower_first)
    first = tune(SMALL, Workers(kept=tmp_path), finalists=3)
    assert [finalist.ranked.candidate for finalist in first.finalists] == asked[::-1]
    best = first.best
    assert best.time_us == pytest.approx(best.ranked.time_us), "a ratio of 1 changes nothing"
    assert first.finalists[1].time_us > first.finalists[1].ranked.time_us
    again = tune(SMALL, Workers(kept=tmp_path), finalists=3)
    assert (again.finalists, len(asked)) == (first.finalists, 3)
    assert (again.resumed_parts, again.legal) == (len(rows_of_tiles(SMALL.space)), first.legal)


@pytest.mark.slow
def test_finalists_that_cannot_run_are_passed_over(monkeypatch):
    def stops(task: Emulation) -> EmulatedFinalist | str:
        return "the array stops"

    monkeypatch.setattr("bdforge.perf.tune.tuner.emulated_or_not", stops)
    with pytest.raises(PerfError, match=r"none of the .* fastest designs can run the problems: the array stops"):
        tune(SMALL, finalists=1)


def test_memtiles_without_room_for_two_tiles_of_c_hold_one():
    space = search_space(HALO, "i8,i2,i32", 2560)
    roomy, tight = (64, 160, 160, 480, 1, 2, 8, 1, 0), (64, 160, 160, 1440, 1, 2, 8, 1, 0)
    good = buildable(space, Candidate.of([roomy, tight]))
    assert good.c_memtile_buffers.tolist() == [2, 1]
    assert good.k_mt.tolist() == [480, 1440]
