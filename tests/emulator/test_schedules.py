"""Results do not depend on the order in which legal things happen, and that order does not depend on hash seeds."""

import os
import subprocess
import sys

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock
from support.built_designs import ROOT
from support.differences import same
from support.distribute import distribute
from support.gemm_problems import FilledProblem

BITNET = [(256, 2560, 2560), (256, 2560, 640), (256, 2560, 13824), (256, 6912, 2560)]


@pytest.fixture(scope="module")
def problem(small) -> FilledProblem:
    """Two row panels, odd K steps, ragged in every direction."""
    return FilledProblem.random(small, 41, 50, 100)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 50), marks=pytest.mark.slow)])
def test_our_gemm_gives_the_same_bits_under_many_schedules(problem, seeds):
    for seed in seeds:
        c, result = problem.run(schedule="random", seed=seed)
        same(c, problem.expected, f"seed {seed}")
        assert result.warnings == ()


def test_our_gemm_reads_no_memory_that_nobody_wrote(problem):
    for options in ({}, {"schedule": "random", "seed": 5}):
        c, result = problem.run(poison=True, **options)
        same(c, problem.expected)
        assert result.warnings == ()


def check_bitnet(flagship, shape, seeds) -> None:
    problem = FilledProblem.random(flagship, *shape)
    for seed in seeds:
        c, result = problem.run(schedule="random", seed=seed)
        same(c, problem.expected, f"seed {seed}")
        assert result.warnings == ()


@pytest.mark.parametrize("shape", BITNET[1:2], ids=lambda shape: "x".join(map(str, shape)))
def test_a_bitnet_shape_is_exact_under_a_schedule(flagship, shape):
    check_bitnet(flagship, shape, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("shape", BITNET, ids=lambda shape: "x".join(map(str, shape)))
def test_the_bitnet_shapes_give_the_same_bits_under_20_schedules(flagship, shape):
    check_bitnet(flagship, shape, range(20))


@pytest.mark.parametrize("options", [{}, *({"schedule": "random", "seed": seed} for seed in range(8))], ids=str)
def test_a_1x4_distribute_with_one_shared_lock_works(options):
    """A channel that took the lock again before its siblings got it would send a block of the wrong round."""
    a = np.arange(1, 81, dtype=np.int32)
    result = bdforge.emulate(distribute(rounds=5), [a], **options)
    for i in range(4):
        same(result.buffers[f"got{i}"].reshape(5, 4), a.reshape(5, 4, 4)[:, i])


ORDER = """
import hashlib, sys
from pathlib import Path
import numpy as np
import bdforge
from bdforge.array.emulator.observe import PerfettoTrace
from support.built_designs import PlannedDesign
from support.distribute import distribute
from support.gemm_problems import FilledProblem
from support.two_devices import module, run_of

folder, out = Path(sys.argv[1]), Path(sys.argv[2])
texts = [module(run_of("first", "a", "b"), run_of("second", "b", "c")), distribute()]
arrays = [np.zeros((3, 8), np.int32), np.zeros((1, 48), np.int32)]
gemm = FilledProblem.random(PlannedDesign.load(folder), 41, 50, 100)
for schedule in ("in-order", "random"):
    for number, (text, given) in enumerate(zip(texts, arrays)):
        timeline = PerfettoTrace()
        bdforge.emulate(text, list(given), schedule=schedule, seed=3, observers=[timeline])
        timeline.write(out / f"{number}-{schedule}.json")
    timeline = PerfettoTrace()
    gemm.run(schedule=schedule, seed=3, observers=[timeline])
    timeline.write(out / f"gemm-{schedule}.json")
"""


def test_the_order_of_events_does_not_depend_on_the_hash_seed(small, tmp_path):
    traces = []
    for hash_seed in ("0", "4711"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        subprocess.run([sys.executable, "-c", ORDER, str(small.folder), str(folder)], env=environment, check=True)
        traces.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(traces[0]) == 6
    assert all(len(trace) > 1000 for trace in traces[0].values())
    assert traces[0] == traces[1]


def fault_of(problem: FilledProblem) -> str:
    with pytest.raises(Deadlock) as fault:
        problem.run(file="broken.mlir")
    return str(fault.value)


FILL = r"(aie.use_lock\(%mem_1_a1_)free(, AcquireGreaterEqual, 1\)\n *aie.dma_bd\(.*\n *aie.use_lock\(%mem_1_a1_)full"


def test_a_swapped_lock_order_in_one_memtile_is_a_named_cycle_of_waits(problem):
    """The first BD that fills A takes `full` and gives `free`: the memtile's channels wait for each other."""
    text = fault_of(problem.mutated(FILL, r"\1full\2free"))
    head, *ring = text.partition("\n  ... and so back to")[0].splitlines()
    assert head == "deadlock: these wait for each other in a circle:"
    assert any("memtile (1, 1) S2MM 1 waits for lock mem_1_a1_full" in line and "which is 0" in line for line in ring)
    assert all("broken.mlir:" in line for line in ring)
    assert "which was reached from:" in text
    assert "runtime sequence awaits a token of shim" in text


def test_a_lock_that_nobody_releases_ends_the_chain_of_waits(problem):
    """Both BDs that fill A are swapped, so nobody gives `full` any more."""
    text = fault_of(problem.mutated(FILL, r"\1full\2free", count=2))
    assert text.startswith("deadlock: nothing can move:\n  runtime sequence awaits a token of shim")
    last = text.splitlines()[-1]
    assert "memtile (1, 1) MM2S 1 waits for lock mem_1_a1_full" in last or "S2MM 1 waits for lock mem_1_a1_full" in last
    assert "which is 0 and which nobody releases (broken.mlir:" in last


def test_locks_that_start_at_zero_are_a_cycle_of_two(problem):
    text = fault_of(problem.mutated(r"(%mem_1_b_free = aie.lock\(%mem_1(, \d+)?\) \{init = )2", r"\g<1>0"))
    ring = text.partition("\n  ... and so back to")[0].splitlines()[1:]
    assert {line.split(" waits for ")[0].strip() for line in ring} == {"memtile (1, 1) S2MM 0", "memtile (1, 1) MM2S 0"}
