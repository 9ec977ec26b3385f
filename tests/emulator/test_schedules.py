"""Results do not depend on the order in which legal things happen, and that order does not depend on hash seeds."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.observe import PerfettoTrace
from support.built_designs import ROOT, PlannedDesign
from support.differences import same
from support.distribute import distribute
from support.gemm_problems import FilledProblem
from support.two_devices import module, run_of

BITNET = [(256, 2560, 2560), (256, 2560, 640), (256, 2560, 13824), (256, 6912, 2560)]


@pytest.fixture(scope="module")
def problem(small) -> FilledProblem:
    """Two row panels, odd K steps, ragged in every direction."""
    return FilledProblem.random(small, 41, 50, 100)


def check(problem: FilledProblem, **options) -> None:
    c, result = problem.run(**options)
    same(c, problem.expected, str(options))
    assert result.warnings == ()


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 50), marks=pytest.mark.slow)])
def test_our_gemm_gives_the_same_bits_under_many_schedules(problem, seeds):
    for seed in seeds:
        check(problem, schedule="random", dram="stale", seed=seed)


@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 5}], ids=str)
def test_our_gemm_reads_no_memory_that_nobody_wrote(problem, options):
    check(problem, poison=True, **options)


@pytest.mark.slow
def test_the_flagship_is_exact_under_a_schedule(flagship):
    """A part of a BitNet shape; the whole ones are below."""
    check(FilledProblem.random(flagship, 100, 300, 640), schedule="random", dram="stale", seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", BITNET, ids=lambda shape: "x".join(map(str, shape)))
def test_the_bitnet_shapes_give_the_same_bits_under_20_schedules(flagship, shape):
    problem = FilledProblem.random(flagship, *shape)
    for seed in range(20):
        check(problem, schedule="random", seed=seed)


@pytest.mark.parametrize("options", [{}, *({"schedule": "random", "seed": seed} for seed in range(8))], ids=str)
def test_a_1x4_distribute_with_one_shared_lock_works(options):
    """A channel that took the lock again before its siblings got it would send a block of the wrong round."""
    a = np.arange(1, 81, dtype=np.int32)
    result = bdforge.emulate(distribute(rounds=5), [a], **options)
    for i in range(4):
        same(result.buffers[f"got{i}"].reshape(5, 4), a.reshape(5, 4, 4)[:, i])


def write_timelines(folder: str, out: str) -> None:
    """Timelines of two designs and a GEMM, under each schedule."""
    designs = [(module(run_of("first", "a", "b"), run_of("second", "b", "c")), (3, 8)), (distribute(), (1, 48))]
    gemm = FilledProblem.random(PlannedDesign.load(Path(folder)), 17, 40, 33)
    for schedule in ("in-order", "random"):
        for number, run in enumerate([*(partial(_emulated, *design) for design in designs), gemm.run]):
            timeline = PerfettoTrace()
            run(schedule=schedule, seed=3, observers=[timeline])
            timeline.write(Path(out) / f"{number}-{schedule}.json")


def _emulated(text: str, shape: tuple[int, int], **options) -> None:
    bdforge.emulate(text, list(np.zeros(shape, np.int32)), **options)


@pytest.mark.slow
def test_the_order_of_events_does_not_depend_on_the_hash_seed(small, tmp_path):
    """Of this process, whatever it is, and of another."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    write_timelines(str(small.folder), str(here))
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests/emulator")))
    code = f"from test_schedules import write_timelines; write_timelines({str(small.folder)!r}, {str(there)!r})"
    environment = os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    traces = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (here, there)]
    assert len(traces[0]) == 6
    assert all(len(trace) > 1000 for trace in traces[0].values())
    assert traces[0] == traces[1]
