"""The tuner's legality against `plan_gemm`, and what the search space holds."""

import random
from dataclasses import replace

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem, SpecError, plan_gemm
from bdforge.operators.gemm.mapping import kept_share
from bdforge.perf.tune.legal import legal
from bdforge.perf.tune.space import B_LAYOUTS, Candidate, SearchSpace, candidates_of, search_space
from bdforge.perf.tune.time_model import case_at

CASES = [
    ("strix_halo", "i8,i2,i32", "row", "row"),
    ("strix_halo", "i8,i8,i8", "row", "row"),
    ("strix_halo", "i8,i8,i32", "column", "column"),
    ("strix", "bfp16,bfp16,bfp16", "row", "row"),
    ("strix", "bf16,bfp16,bf16", "row", "row"),
    ("krackan", "i8,i4,i16", "column", "row"),
    ("phoenix", "i8,i2,i32", "row", "row"),
    ("phoenix", "bf16,bf16,bf16", "row", "column"),
]
DRAWS = 12


def drawn(space: SearchSpace, rng: random.Random) -> Candidate:
    """A random candidate, near the limits and sometimes beyond them or off the multiples."""
    r, s, t = space.kernel.multiples
    rho, shims = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 1, 2])
    m = r * (rng.choice([1, rho, 2 * rho, shims * rho]) * rng.randint(1, 6) + rng.choice([0, 0, 0, 1]))
    k = s * rng.choice([1, 2, 4, 8, rng.randint(1, 30)])
    n = t * rng.choice([1, 2, 4, rng.randint(1, 20)]) + rng.choice([0] * 9 + [1])
    k_mt = k * rng.choice([1, 2, rng.randint(1, 12), rng.randint(1, 40)]) + rng.choice([0] * 9 + [4])
    layout = B_LAYOUTS.index(rng.choice(space.b_layouts))
    return Candidate(m, k, n, k_mt, rng.choice([1, 2]), rng.choice([1, 2]), rho, shims, layout)


def can_be_planned(space: SearchSpace, candidate: Candidate) -> bool:
    try:
        plan_gemm(space.spec(candidate), space.device)
    except SpecError:
        return False
    return True


@pytest.mark.daily("phoenix-i8,i2,i32-row-row-12")
@pytest.mark.parametrize("draws", [DRAWS, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("device", "types", "a", "c"), CASES)
def test_tuner_and_plan_agree_on_every_random_candidate(device, types, a, c, draws):
    space = search_space(device_named(device), types, 4096, a_layout=a, c_layout=c)
    rng = random.Random(f"{device} {types} 7")
    candidates = Candidate.of([drawn(space, rng) for _ in range(draws)])
    judged = legal(space, candidates)
    for index in range(draws):
        assert judged[index] == can_be_planned(space, candidates.row(index)), candidates.row(index)
    assert 0 < judged.sum() < draws, "the draw should meet both answers"


@pytest.mark.slow
@pytest.mark.parametrize("types", ["i8,i2,i32", "i8,i8,i32", "bf16,bfp16,bfp16"])
def test_tuner_and_plan_agree_where_b_stays(types):
    draws = DRAWS if types == "i8,i2,i32" else 40
    space = search_space(device_named("strix_halo"), types, 4096, residency="b")
    rng = random.Random(types)
    candidates = Candidate.of([drawn(space, rng) for _ in range(draws)])
    judged = legal(space, candidates)
    for index in range(draws):
        assert judged[index] == can_be_planned(space, candidates.row(index)), candidates.row(index)
    assert 0 < judged.sum() < draws, "the draw should meet both answers"
    for index in np.flatnonzero(judged & (candidates.c_memtile_buffers == 1))[:8]:
        spec = space.spec(candidates.row(int(index)))
        kept = case_at(space, candidates.row(int(index)), GemmProblem(512, 3000, 512)).b_kept
        assert kept == kept_share(spec, space.device, -(-3000 // spec.buffers.k_mt) * spec.buffers.k_mt)


I8, I16, I2, BF16 = (types.split() for types in ("i8 i8 i8", "i8 i8 i16", "i8 i2 i32", "bf16 bf16 bf16"))
ODD, EVEN, SIZE = (
    "26 BDs for channels that share BD 24 to 47",
    "26 BDs for channels that share BD 0 to 23",
    "512 that aie",
)
ENDS = [  # device, types, layouts of A and C, residency; a candidate, the field that goes on, what is beyond, why
    # Slabs that may not leave whole: of two parts, of two shims.
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 144, 1, 2, 2, 1, 0), "k_mt", 160, ODD),
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 160, 1, 1, 2, 1, 0), "k_mt", 176, ODD),
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 64, 1, 2, 1, 2, 0), "k_mt", 80, ODD),
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 80, 1, 1, 1, 2, 0), "k_mt", 96, "28 BDs for channels"),
    *(("strix_halo", I8, "row row", "none", (16, 16, 16, last, 1, c, 2, 1, b), "k_mt", last + 16, EVEN)
      for b in (1, 2) for c, last in ((1, 128), (2, 80))),
    # Whole slabs, whose slices are a dimension, end with it or with memory.
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 8192, 1, 1, 1, 1, 0), "k_mt", 8208, "MM2S 1 .*513 .*" + SIZE),
    ("strix_halo", I8, "column row", "none", (16, 8, 16, 4096, 1, 1, 2, 1, 1), "k_mt", 4104, "MM2S 0 .*513 .*" + SIZE),
    ("strix_halo", I8, "row row", "none", (16, 16, 16, 8176, 1, 1, 1, 1, 2), "k_mt", 8192, "memtile .*of 524288"),
    ("strix_halo", I2, "row row", "b", (16, 64, 32, 512, 1, 1, 1, 1, 0), "k_mt", 576, ODD),
    ("strix_halo", I2, "row row", "b", (16, 64, 32, 128, 1, 2, 1, 2, 0), "k_mt", 192, ODD),
    ("strix_halo", I8, "row row", "none", (4096, 8, 8, 8, 1, 1, 512, 1, 0), "m", 8192, "core .* bytes of 65536"),
    ("strix_halo", I8, "column row", "none", (4096, 8, 8, 8, 1, 1, 64, 1, 0), "m", 4608, "MM2S 1 .*576 .*" + SIZE),
    ("phoenix", I8, "row row", "none", (2048, 16, 8, 16, 1, 1, 8, 1, 0), "m", 2080, "MM2S 1 .*520 .*" + SIZE),
    ("strix_halo", I8, "row column", "none", (4096, 8, 8, 8, 1, 1, 64, 2, 0), "m", 4608, "MM2S 2 .*576 .*" + SIZE),
    ("phoenix", BF16, "column row", "none", (2048, 8, 8, 8, 1, 1, 8, 1, 0), "m", 2080, "MM2S 1 .*520 .*" + SIZE),
    # Two slabs of A, two of B and eight tiles of C, or four, are 512 KiB to the last byte.
    ("strix_halo", I8, "row row", "none", (336, 64, 64, 512, 1, 2, 2, 1, 0), "n", 72, "memtile .*bytes of 524288"),
    ("strix_halo", I8, "row row", "none", (448, 64, 64, 320, 1, 2, 4, 1, 0), "k_mt", 384, "memtile .*bytes of 524288"),
    ("strix_halo", I8, "row row", "none", (448, 160, 64, 480, 1, 2, 14, 2, 0), "k_mt", 640, "memtile .*of 524288"),
    ("strix_halo", I16, "row row", "none", (128, 256, 32, 1536, 1, 1, 2, 1, 1), "n", 40, "memtile .*bytes of 524288"),
    ("phoenix", BF16, "row row", "none", (192, 80, 8, 640, 1, 1, 2, 1, 2), "m", 200, "memtile .*bytes of 524288"),
    ("strix_halo", I2, "row row", "b", (64, 464, 32, 3712, 1, 1, 2, 1, 0), "m", 80, "room for . tiles .* takes 4"),
    ("phoenix", I8, "row row", "none", (16, 16, 16, 16, 1, 1, 1, 1, 0), "a_shims", 2, "needs 8 columns for 4 rows"),
    ("strix_halo", I8, "row row", "none", (48, 16, 16, 16, 1, 1, 2, 1, 0), "rho", 4, "tile.m = 48 .* multiple of 32"),
    ("strix_halo", I8, "row row", "none", (32, 16, 16, 16, 1, 1, 4, 2, 0), "m", 48, "tile.m = 48 .* multiple of 32"),
]  # fmt: skip


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(("device", "types", "layouts", "residency", "last", "field", "beyond", "why"), ENDS)
def test_each_limit_takes_its_last_candidate_and_refuses_the_next(
    device, types, layouts, residency, last, field, beyond, why
):  # fmt: skip
    a, c = layouts.split()
    space = search_space(device_named(device), ",".join(types), 4096, a_layout=a, c_layout=c, residency=residency)
    both = Candidate.of([last, Candidate(*last)._replace(**{field: beyond})])
    assert plan_gemm(space.spec(both.row(0)), space.device), "the mapping takes the last candidate"
    with pytest.raises(SpecError, match=why):
        plan_gemm(space.spec(both.row(1)), space.device)
    assert legal(space, both).tolist() == [True, False], (
        f"{both.row(0)} is the last, {field} = {beyond} is refused: {why}"
    )


def test_a_stack_that_ends_within_a_vector_is_no_design():
    space = search_space(device_named("strix_halo"), "i8,i8,i8", 4096)
    candidate = Candidate.of([(16, 16, 16, 16, 1, 1, 1, 1, 0)])
    taken = {size: bool(legal(replace(space, stack_bytes=size), candidate)[0]) for size in (4096, 4064, 4097)}
    assert taken == {4096: True, 4064: False, 4097: False}


def test_search_holds_every_legal_tile_of_brute_force():
    space = search_space(device_named("strix_halo"), "i8,i2,i32", 64)
    m = 48
    found: set[tuple[int, ...]] = set()
    for candidates in candidates_of(space, m):
        found |= {candidates.row(int(i)) for i in np.flatnonzero(legal(space, candidates))}
    tried = [
        (m, k, n, k * slices, c_buffers, 2, rho, shims, 0)
        for k in range(8, 65, 8) for n in range(32, 353, 32) for slices in range(1, 17) if k * (slices - 1) < 64
        for c_buffers in (1, 2) for rho in (1, 2, 3, 4, 6) for shims in (1, 2)
    ]  # fmt: skip
    everything = Candidate.of(tried)
    assert found == {everything.row(int(i)) for i in np.flatnonzero(legal(space, everything))}
