"""The search: exhaustive, the same in any order and on any number of processes, taken up where it stopped."""

import sys
from dataclasses import replace
from itertools import islice

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import PerfError, estimate, measured_rows
from bdforge.perf.rows import Row
from bdforge.perf.tune.candidate_search import (
    Search,
    SearchPart,
    buildable,
    in_process,
    in_processes,
    on_cluster,
    search_part,
)
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist
from bdforge.perf.tune.search_state import SOURCES, State, default_state, identity
from bdforge.perf.tune.space import Candidate, candidates_of, rows_of_tiles, search_space
from bdforge.perf.tune.time_model import case_at, kernel_of
from bdforge.perf.tune.tuner import search, tune

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
    part = search_part(SMALL, m)
    assert part.legal == len(times) > 50
    assert part.best[0].time_us == pytest.approx(min(times.values()))
    assert all(ranked.time_us == pytest.approx(times[ranked.candidate]) for ranked in part.best)


@pytest.mark.parametrize(
    "row", published()[::3], ids=lambda row: f"{row.source} {row.case.m}x{row.case.k}x{row.case.n}"
)
def test_search_models_no_slower_than_the_published_best_tile(row):
    """Even one part of the search, that of the published m, holds a design which the model gives at least its speed."""
    case = replace(row.case, core_macs_per_cycle=None)
    space = search_space(device_named(case.device), f"{case.a},{case.b},{case.c}", case.K, b_layouts=(case.b_layout,))
    problem = GemmProblem(case.M, case.K, case.N)
    best = search_part(Search(space, "fitted", ((problem, 1),)), case.m).best[0]
    assert best.time_us <= estimate(case).time_us * (1 + 1e-9)


def test_processes_find_the_same_as_one():
    alone = search(SMALL)
    assert search(SMALL, in_processes(2)) == alone
    assert [part.m for part in alone] == rows_of_tiles(SMALL.space)


def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "search.jsonl"
    state = State.open(path, SMALL)
    for part in islice(in_process(SMALL, rows_of_tiles(SMALL.space)), 5):
        state.add(part)
    path.write_text(path.read_text() + '{"part": {"m": 48, "exam')  # killed while writing
    resumed, searched = State.open(path, SMALL), []

    def counted(wanted, heights):
        for m in heights:
            searched.append(m)
            yield search_part(wanted, m)

    parts = search(SMALL, counted, resumed)
    assert parts == search(SMALL)
    assert searched == rows_of_tiles(SMALL.space)[5:]
    assert State.open(path, SMALL).parts == {part.m: part for part in parts}


def test_a_state_of_another_search_is_refused(tmp_path):
    path = tmp_path / "search.jsonl"
    State.open(path, SMALL).add(SearchPart(8, 1, 1, ()))
    other = replace(SMALL, basis="ideal")
    assert identity(other) != identity(SMALL)
    with pytest.raises(PerfError, match="holds another search"):
        State.open(path, other)
    for text, told in (("{}", "holds another search"), ('{"part": {}}', "is no state of"), ("3", "is no state of"),
                       ("not JSON", r"is no state of a search \(Invalid JSON")):  # fmt: skip
        path.write_text(f"{text}\n")
        with pytest.raises(PerfError, match=told):
            State.open(path, SMALL)


@pytest.mark.parametrize(
    "file",
    ["perf/bounds/estimate.py", "operators/gemm/memtiles.py", "array/emulator/dma.py", "perf/data/kernel_forms.csv"],
)
def test_a_state_of_other_models_or_another_array_is_another(tmp_path, file):
    for name in (f"bdforge/{file}", "bd_patterns/legality.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes((SOURCES / name).read_bytes())
    before = identity(SMALL, tmp_path)
    with (tmp_path / "bdforge" / file).open("a") as source:
        source.write("# changed")
    assert identity(SMALL, tmp_path) != before


def test_states_lie_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_state(SMALL) == tmp_path / "bdforge" / "tune" / f"{identity(SMALL)}.jsonl"


def test_finalists_are_emulated_once_ranked_by_it_and_kept(tmp_path, monkeypatch):
    asked = []

    def slower_first(wanted, candidate):
        asked.append(candidate)
        return EmulatedFinalist((64, 64, 64), 300.0 / len(asked), 100.0)

    monkeypatch.setattr("bdforge.perf.tune.tuner.emulated", slower_first)
    first = tune(SMALL, state=State.open(tmp_path / "search.jsonl", SMALL), finalists=3)
    assert [finalist.ranked.candidate for finalist in first.finalists] == asked[::-1]
    best = first.best
    assert best.time_us == pytest.approx(best.ranked.time_us), "a ratio of 1 changes nothing"
    assert first.finalists[1].time_us > first.finalists[1].ranked.time_us
    again = tune(SMALL, state=State.open(tmp_path / "search.jsonl", SMALL), finalists=3)
    assert (again.finalists, len(asked)) == (first.finalists, 3)
    assert (again.resumed_parts, again.legal) == (len(rows_of_tiles(SMALL.space)), first.legal)


def test_finalists_that_cannot_run_are_passed_over(monkeypatch):
    def stops(wanted, candidate):
        raise PerfError("the array stops")

    monkeypatch.setattr("bdforge.perf.tune.tuner.emulated", stops)
    with pytest.raises(PerfError, match=r"none of the .* fastest designs can run the problems: the array stops"):
        tune(SMALL, finalists=1)


def test_memtiles_without_room_for_two_tiles_of_c_hold_one():
    space = search_space(HALO, "i8,i2,i32", 2560)
    roomy, tight = (64, 160, 160, 480, 1, 2, 8, 1, 0), (64, 160, 160, 1440, 1, 2, 8, 1, 0)
    good = buildable(space, Candidate.of([roomy, tight]))
    assert good.c_memtile_buffers.tolist() == [2, 1]
    assert good.k_mt.tolist() == [480, 1440]


def test_a_dask_cluster_finds_the_same():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install 'bdforge[dask]'")
    wanted = replace(SMALL, problems=SMALL.problems[:1])
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:  # fmt: skip
        heights = rows_of_tiles(wanted.space)[:4]
        found = list(on_cluster(cluster.scheduler_address)(wanted, heights))
    assert sorted(found, key=lambda part: part.m) == [search_part(wanted, m) for m in heights]


def test_a_missing_dask_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        PerfError, match=r"--scheduler needs Dask, which is not installed; pip install 'bdforge\[dask\]'"
    ):
        on_cluster("tcp://127.0.0.1:1")


def test_no_process_at_all_is_refused():
    with pytest.raises(PerfError, match="-j 0 is below 1"):
        in_processes(0)
