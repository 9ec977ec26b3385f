"""Runs as tasks: by the content of a design's files, the same wherever they are run, kept where they ended."""

import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bdforge.cli.checked_runs import CheckedRun, RunTask, checked_run, tasks_of
from bdforge.cli.run import TimedRuns, run_problems
from bdforge.common.task_runners import in_processes
from bdforge.common.tasks import TaskError, Workers, key
from bdforge.operators.gemm import GemmProblem
from bdforge.runtime import BuiltDesign

OPTIONS: dict[str, Any] = {"seed": 0, "data": "random", "poison": False, "basis": None}
PROBLEMS = [GemmProblem(20, 40, 40), GemmProblem(32, 64, 64, "named")]


def copied(design: BuiltDesign, folder: Path) -> BuiltDesign:
    shutil.copytree(design.folder, folder)
    return BuiltDesign.load(folder)


def task(design: BuiltDesign, **changes: Any) -> RunTask:
    return tasks_of(design, PROBLEMS[:1], None, (), OPTIONS | changes)[0]


@pytest.mark.slow
def test_a_run_is_known_by_what_its_files_hold_wherever_they_lie(small, tmp_path):
    first, second = (copied(small, tmp_path / name) for name in "ab")
    known = key(checked_run, task(first))
    assert key(checked_run, task(second)) == key(checked_run, pickle.loads(pickle.dumps(task(first)))) == known
    others = [
        task(first, **change) for change in ({"seed": 1}, {"data": "spike"}, {"poison": True}, {"basis": "ideal"})
    ]
    assert len({known, *(key(checked_run, other) for other in others)}) == 5
    (second.folder / "another").write_text("")
    assert key(checked_run, task(second)) != known
    before = task(first)
    (first.folder / "another").write_text("")
    with pytest.raises(TaskError, match="hold something else here than where the run was asked for"):
        checked_run(before)


def test_what_ended_is_told_again_and_not_run(small, tmp_path, monkeypatch, printed):
    asked: list[RunTask] = []

    def counted(task: RunTask) -> CheckedRun:
        asked.append(task)
        return checked_run(task)

    monkeypatch.setattr("bdforge.cli.run.checked_run", counted)

    def told(problems: list[GemmProblem]) -> list[str]:
        timed, workers = TimedRuns("ideal"), Workers(kept=tmp_path)
        return printed(lambda: run_problems(small, small.plan, problems, None, (), 0, timed, workers=workers))

    first = told(PROBLEMS[1:])
    assert told(PROBLEMS[1:]) == first
    assert any("32x64x64 named" in line and "exact" in line for line in first)
    assert [str(task.problem) for task in asked] == ["32x64x64"]
    both = told(PROBLEMS)
    assert [str(task.problem) for task in asked] == ["32x64x64", "20x40x40"]
    assert [line for line in both if "32x64x64 named" in line] == [line for line in first if "32x64x64 named" in line]


@pytest.mark.slow
def test_processes_tell_the_same_but_for_the_seconds_of_the_host(small, printed):
    def told(workers: Workers) -> list[str]:
        lines = printed(
            lambda: run_problems(small, small.plan, PROBLEMS, None, (), 3, TimedRuns("compiled"), workers=workers)
        )
        return [re.sub(r" exact [\d.]+$", " exact", line) for line in lines]

    assert told(Workers(in_processes(2))) == told(Workers())
    broken = replace(task(small), content="of others")
    with pytest.raises(TaskError, match="hold something else"):
        Workers(in_processes(2)).results(checked_run, [broken])
