"""The tuner's arrays against the models of one case."""

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import estimate
from bdforge.perf.tune.legal import legal
from bdforge.perf.tune.space import Candidate, SearchSpace, candidates_of, rows_of_tiles, search_space
from bdforge.perf.tune.time_model import BASES, case_at, kernel_of, modelled_us

CASES = [
    ("strix_halo", "i8,i2,i32", "row", "row"),
    ("strix_halo", "i8,i8,i16", "column", "column"),
    ("phoenix", "bf16,bf16,bf16", "row", "row"),
    ("strix", "bfp16,bfp16,bfp16", "row", "row"),
]
PROBLEMS = [(GemmProblem(300, 1000, 2100), 1), (GemmProblem(1024, 2560, 640), 3)]


def some_candidates(space: SearchSpace, count: int, seed: int) -> Candidate:
    """Legal candidates of a few tile heights."""
    rng = np.random.default_rng(seed)
    rows = []
    for m in rng.choice(rows_of_tiles(space)[:24], 3, replace=False):
        for candidates in candidates_of(space, int(m)):
            good = np.flatnonzero(legal(space, candidates))
            rows += [candidates.row(int(i)) for i in rng.choice(good, min(count, len(good)), replace=False)]
    return Candidate.of(rows)


@pytest.mark.daily("strix_halo-i8,i2,i32-row-row-compiled", "strix-bfp16,bfp16,bfp16-row-row-compiled")
@pytest.mark.parametrize("basis", sorted({*BASES} - {"assembled"}))  # which not all types have: test_assembled_forms
@pytest.mark.parametrize(("device", "types", "a", "c"), CASES)
def test_many_designs_at_once_take_what_each_takes_alone(device, types, a, c, basis):
    space = search_space(device_named(device), types, 2560, a_layout=a, c_layout=c)
    candidates = some_candidates(space, 2, seed=3)
    found = modelled_us(space, basis, candidates, PROBLEMS)
    for index in range(candidates.length):
        cases = [(case_at(space, candidates.row(index), problem), count) for problem, count in PROBLEMS]
        expected = sum(count * estimate(case, kernel=kernel_of(case, basis)).time_us for case, count in cases)
        assert found[index] == pytest.approx(expected, rel=1e-9), candidates.row(index)


def test_compiled_kernels_are_never_faster_than_ideal_ones():
    space = search_space(device_named("strix_halo"), "i8,i2,i32", 2560)
    candidates = some_candidates(space, 20, seed=5)
    ideal, compiled = (modelled_us(space, basis, candidates, PROBLEMS) for basis in ("ideal", "compiled"))
    assert (compiled >= ideal).all()
    assert (compiled > ideal).any()
