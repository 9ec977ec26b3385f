"""What tasks are kept by is the same in every process, and they can be sent there."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bdforge.common.files import read_toml
from bdforge.common.tasks import key
from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem, load_spec
from bdforge.perf.reproduce import entry_named
from bdforge.perf.reproduce.producers import PaperRow, row_figures
from bdforge.perf.size_sweep import SizeTask, swept
from bdforge.perf.tune.candidate_search import Height, Search, search_part
from bdforge.perf.tune.emulated_finalists import Emulation, emulated_or_not
from bdforge.perf.tune.free_numbers import ChosenNumbers, emulated_us
from bdforge.perf.tune.space import Candidate, search_space

HALO = device_named("strix_halo")
PROBLEM = GemmProblem(100, 40, 300, "named")
SEARCH = Search(search_space(HALO, "i8,i2,i32", 40), "compiled", ((PROBLEM, 2),))
DESIGNS = Path(__file__).parents[2] / "designs"


def tasks() -> dict:
    entry = entry_named("air-rope")
    spec = load_spec(DESIGNS / "gemm_i8_i2_bitnet.toml")
    return {
        search_part: Height(SEARCH, 8),
        emulated_or_not: Emulation.of(SEARCH, Candidate(64, 64, 64, 128, 1, 2, 1, 1, 0)),
        emulated_us: ChosenNumbers(read_toml(DESIGNS / "add_i8.toml"), "add_i8", "strix_halo"),
        swept: SizeTask(spec, HALO, PROBLEM, "ideal"),
        row_figures: PaperRow(replace(entry, rows=entry.rows[:1]), True),
    }


def keys() -> str:
    return " ".join(key(call, pickle.loads(pickle.dumps(task))) for call, task in tasks().items())


@pytest.mark.slow
def test_tasks_that_are_sent_are_kept_by_the_same():
    assert keys() == " ".join(key(call, task) for call, task in tasks().items())
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from perf.test_task_keys import keys; print(keys())"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == keys().split()


@pytest.mark.parametrize(
    "changed",
    [{"problem": GemmProblem(100, 40, 301)}, {"basis": "fitted"}, {"device": device_named("krackan")},
     {"spec": load_spec(DESIGNS / "gemm_i8_i2_tuned.toml")}], ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_each_part_of_a_task_counts(changed):
    task = tasks()[swept]
    assert key(swept, replace(task, **changed)) != key(swept, task)
