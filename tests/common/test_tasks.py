"""Tasks: the same results in the same order whoever does them, kept by content, and what the loss of a worker costs."""

import os
import sys
from pathlib import Path

import pytest

from bdforge.common import task_runners, tasks
from bdforge.common.files import FileError
from bdforge.common.task_runners import in_processes, on_cluster
from bdforge.common.tasks import TaskError, Workers, key, sources_of
from support.task_calls import Found, Job, begun, faulty, found, refusing, says_two

JOBS = [Job(number) for number in (5, 3, 8, 3, 1)]


@pytest.mark.slow
def test_processes_find_the_same_in_the_same_order():
    told: list[tuple[int, int]] = []
    alone = Workers().results(found, JOBS, lambda done, of: told.append((done, of)))
    assert alone == [found(job) for job in JOBS]
    assert told == [(done, 4) for done in range(5)], "equal tasks are one"
    assert repr(Workers(in_processes(2)).results(found, JOBS)) == repr(alone)


def test_what_is_kept_is_not_done_again_and_what_cannot_be_read_is(tmp_path: Path):
    kept, seen = tmp_path / "kept", tmp_path / "seen"
    seen.mkdir()
    workers, jobs = Workers(kept=kept), [Job(number, str(seen)) for number in (4, 7)]
    first = workers.results(found, jobs)
    told: list[tuple[int, int]] = []
    assert workers.results(found, [Job(9, str(seen)), *jobs], lambda done, of: told.append((done, of)))[1:] == first
    assert told == [(2, 3), (3, 3)]
    assert begun(seen) == ["4-0", "7-0", "9-0"]
    (kept / key(found, jobs[0])).write_text('[{"number": "four"}]')
    assert workers.results(found, jobs) == first
    assert begun(seen) == ["4-0", "4-1", "7-0", "9-0"]
    assert Workers().results(found, jobs) == first, "without a folder nothing is taken over"
    assert len(begun(seen)) == 6


def test_a_folder_that_cannot_be_written_costs_only_what_is_kept(tmp_path: Path, caplog):
    (tmp_path / "file").write_text("")
    assert Workers(kept=tmp_path / "file" / "kept").results(refusing, [Job(2)]) == [2]
    assert "results are not kept, an interrupted command begins anew" in caplog.text


@pytest.mark.parametrize("workers", [Workers(), Workers(in_processes(2))], ids=["here", "processes"])
def test_the_first_failure_is_told_and_the_rest_kept(tmp_path: Path, workers: Workers):
    workers = Workers(workers.run, tmp_path)
    with pytest.raises(FileError, match=r"^3 is odd$"):
        workers.results(refusing, [Job(2), Job(3), Job(5)])
    assert (tmp_path / key(refusing, Job(2))).read_text() == "[2]"
    with pytest.raises(TaskError, match=r"^7: it is$"):
        workers.results(says_two, [Job(7)])


def test_a_fault_of_its_own_tells_its_place_from_another_process():
    with pytest.raises(ZeroDivisionError) as raised:
        Workers(in_processes(2)).results(faulty, [Job(2)])
    assert "task_calls.py" in raised.value.__notes__[0]


@pytest.mark.slow
def test_a_lost_process_costs_only_its_task(tmp_path: Path):
    jobs = [Job(number, str(tmp_path), kills=2 * (number == 1)) for number in range(4)]
    assert Workers(in_processes(2)).results(found, jobs) == [found(Job(number)) for number in range(4)]
    assert begun(tmp_path) == ["0-0", "1-0", "1-1", "1-2", "2-0", "3-0"]


def test_a_task_that_ends_every_process_is_named(tmp_path: Path):
    kept, seen = tmp_path / "kept", tmp_path / "seen"
    seen.mkdir()
    jobs = [Job(0, str(seen)), Job(1, str(seen), kills=99)]
    with pytest.raises(TaskError, match=r"found of Job\(number=1.*: 3 processes ended with it, the last by SIGKILL"):
        Workers(in_processes(2), kept).results(found, jobs)
    assert [path.name for path in kept.iterdir()] == [key(found, jobs[0])]


def test_whoever_has_another_bdforge_does_nothing(monkeypatch):
    asked = iter(["mine", "other"])
    monkeypatch.setattr(tasks, "sources", lambda: next(asked))
    assert isinstance(tasks.made(refusing, Job(2), next(asked)), TaskError)


def test_a_key_says_the_call_the_task_and_the_sources(monkeypatch):
    keys = {key(found, Job(1)), key(found, Job(2)), key(refusing, Job(1))}
    monkeypatch.setattr(tasks, "sources", lambda: "others")
    assert len(keys | {key(found, Job(1))}) == 4


@pytest.mark.parametrize("change", ["content", "name", "another"])
def test_sources_are_all_files_but_what_is_made_of_them(tmp_path: Path, change: str):
    (tmp_path / "a.csv").write_text("1")
    before = sources_of([tmp_path])
    (tmp_path / "made.pyc").write_text("2")
    assert sources_of([tmp_path]) == before
    if change == "content":
        (tmp_path / "a.csv").write_text("2")
    elif change == "name":
        (tmp_path / "a.csv").rename(tmp_path / "b.csv")
    else:
        (tmp_path / "b.csv").write_text("1")
    assert sources_of([tmp_path]) != before


def test_no_process_at_all_is_refused():
    with pytest.raises(TaskError, match="-j 0 is below 1"):
        in_processes(0)


def test_a_missing_dask_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = r"--scheduler needs Dask, which is not installed; pip install 'bdforge\[dask\]'"
    with pytest.raises(TaskError, match=told):
        on_cluster("tcp://127.0.0.1:1")


@pytest.fixture
def dask():
    return pytest.importorskip("distributed", reason="Dask is not installed; pip install 'bdforge[dask]'")


@pytest.mark.slow
def test_a_silent_scheduler_is_one_sentence(dask, monkeypatch):
    monkeypatch.setattr(task_runners, "CONNECT_SECONDS", 0.2)
    with pytest.raises(TaskError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:1'"):
        Workers(on_cluster("tcp://127.0.0.1:1")).results(refusing, [Job(2)])


def test_a_cluster_finds_the_same_and_tells_failures(dask):
    with dask.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        workers = Workers(on_cluster(cluster.scheduler_address))
        assert workers.results(found, JOBS) == Workers().results(found, JOBS)
        with pytest.raises(FileError, match=r"^3 is odd$"):
            workers.results(refusing, [Job(2), Job(3), Job(5)])


def test_a_cluster_without_workers_is_given_up(dask, monkeypatch):
    monkeypatch.setattr(task_runners, "WITHOUT_WORKERS_SECONDS", 0.1)
    with dask.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        workers = Workers(on_cluster(cluster.scheduler_address))
        with pytest.raises(TaskError, match=r"has had no workers for 0 s; start some with dask worker"):
            workers.results(refusing, [Job(2)])


@pytest.mark.slow
def test_a_lost_worker_of_a_cluster_costs_only_its_tasks(dask, tmp_path: Path, monkeypatch):
    """Two processes, of which one is killed in a task of its own."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    jobs = [Job(number, str(tmp_path), kills=int(number == 2)) for number in range(6)]
    with dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert Workers(on_cluster(cluster.scheduler_address)).results(found, jobs) == [
            found(Job(number)) for number in range(6)
        ]
    assert {"2-0", "2-1"} <= set(begun(tmp_path))


def test_results_are_plain_values_of_the_type_that_the_call_says():
    (one,) = Workers().results(found, [Job(2)])
    assert isinstance(one, Found)
    assert isinstance(one.facts["tenths"], tuple)
