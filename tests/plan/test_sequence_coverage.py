"""Every element of A, B and C is touched as often as the algorithm says, counted from the words alone."""

import numpy as np
import pytest
from sequence_replay import Replay, replay

from bdforge.devices import device_named
from bdforge.plan import GemmSequence, Plan, load_spec, plan_gemm, sequence, spec_from
from support.built_designs import spec_content

STRIX_HALO = device_named("strix_halo")
GPT2 = [
    *((256, 768, n) for n in (2304, 768, 3072, 50304)), (256, 3072, 768), (256, 2304, 768), (256, 50304, 768),
    *((m, 256, 768) for m in (2304, 768, 3072, 50304)), (768, 256, 3072),
]  # fmt: skip
BITNET_LAYERS = [(2560, 2560), (2560, 640), (2560, 13824), (6912, 2560)]
BITNET = [(m, k, n) for m in (1, 7, 128, 256, 512, 1000, 2048, 4096) for k, n in BITNET_LAYERS]
LARGE = [(4096, 6912, 2560), (70_000, 512, 512), (64, 512, 70_001), (66, 262_143, 96), (1, 1, 1), (300, 20_004, 1000)]


@pytest.fixture(scope="module")
def flagship(pytestconfig) -> Plan:
    return plan_gemm(load_spec(pytestconfig.rootpath / "designs/gemm_i8_i2_bitnet.toml"), STRIX_HALO)


def starts(size: int, tile: int, at_once: int = 1) -> np.ndarray:
    """First positions of tiles that move back at the end: alone, or `at_once` together where so many fit."""
    if size < at_once * tile:
        return np.minimum(np.arange(at_once) * tile, size - tile)
    groups = np.minimum(np.arange(0, size, at_once * tile), size - at_once * tile)
    return (groups[:, None] + np.arange(at_once) * tile).ravel()


def multiplicity(size: int, firsts: np.ndarray, tile: int) -> np.ndarray:
    """How many tiles hold each position."""
    change = np.bincount(firsts, minlength=size + 1) - np.bincount(firsts + tile, minlength=size + 1)
    return np.cumsum(change)[:size]


def check(planned: GemmSequence) -> None:
    """Streams pair up tile by tile, and visits are what tiles, slabs and column steps say."""
    found = replay(planned.words())
    spec = planned.plan.spec
    assert found.cores == told(planned)
    firsts = Firsts(planned)
    pair_up(planned, found, firsts)
    sizes = planned.sizes
    row_tiles = multiplicity(sizes.M, firsts.rows, spec.tile.m)
    slabs = multiplicity(sizes.K, firsts.slabs, spec.k_mt)
    columns = multiplicity(sizes.N, firsts.columns, spec.tile.n)
    assert row_tiles.min() >= 1
    assert slabs.min() >= 1
    assert columns.min() >= 1
    steps = len(firsts.n_tiles) // spec.columns
    visited(found, "A", sizes.M, sizes.lda, np.outer(row_tiles, slabs * steps))
    visited(found, "C", sizes.M, 4 * sizes.ldc, np.outer(row_tiles, np.repeat(columns, 4)))
    tile_bytes = len(firsts.slabs) * spec.k_mt * spec.tile.n // 4
    n_tiles = np.bincount(firsts.n_tiles) * (len(firsts.rows) // spec.rows)
    visited(found, "B", len(n_tiles), tile_bytes, n_tiles[:, None], per_row=True)


def visited(
    found: Replay, operand: str, rows: int, row_bytes: int, expected: np.ndarray, per_row: bool = False
) -> None:
    """Counts of visits, byte for byte of rows x row_bytes: `expected` from each row's start on, 0 behind it."""
    counts, unit = found.visits(operand, rows * row_bytes)
    if row_bytes % unit:
        counts, unit = np.repeat(counts, unit), 1
    counts = counts.reshape(rows, row_bytes // unit)
    if per_row:
        np.testing.assert_array_equal(counts, np.broadcast_to(expected, counts.shape))
        return
    assert expected.shape[1] % unit == 0
    wanted = expected[:, ::unit]
    np.testing.assert_array_equal(counts[:, : wanted.shape[1]], wanted)
    assert not counts[:, wanted.shape[1] :].any()


class Firsts:
    """First rows, depths and columns of tiles in the order of the algorithm, written down once more for the test."""

    def __init__(self, planned: GemmSequence):
        spec, sizes = planned.plan.spec, planned.sizes
        self.rows = starts(sizes.M, spec.tile.m, spec.rows)
        self.slabs = starts(sizes.K, spec.k_mt)
        tiles = -(-sizes.N // spec.tile.n)
        steps = -(-tiles // spec.columns)
        first = np.minimum(np.arange(steps) * spec.columns, max(tiles - spec.columns, 0))
        self.n_tiles = np.minimum(first[:, None] + np.arange(spec.columns), tiles - 1).ravel()
        self.columns = starts(sizes.N, spec.tile.n)[self.n_tiles]


def told(planned: GemmSequence) -> dict[int, int]:
    """Register values of every core: parameters where its last buffer lies, and lock 6 at 1."""
    spec, values = planned.plan.spec, {}
    m, k, n = spec.tile.m, spec.tile.k, spec.tile.n
    parameters = spec.stack_bytes + 2 * m * k + 2 * k * n // 4 + spec.c_buffers * 4 * m * n
    panels = -(-planned.sizes.M // (spec.rows * m))
    steps = -(-planned.sizes.N // (spec.columns * n))
    k_steps = -(-planned.sizes.K // spec.k_mt) * spec.k_mt // k
    for column in range(spec.columns):
        for row in range(2, 2 + spec.rows):
            tile = column << 25 | row << 20
            values |= {tile | parameters: k_steps, tile | parameters + 4: panels * steps, tile | 0x1F060: 1}
    return values


def pair_up(planned: GemmSequence, found: Replay, firsts: Firsts) -> None:
    """Tile by tile, what a core gets of A and B belongs to where its C goes; together they are all tiles."""
    spec, sizes = planned.plan.spec, planned.sizes
    m, n = spec.tile.m, spec.tile.n
    slabs = len(firsts.slabs)
    tile_bytes = slabs * spec.k_mt * n // 4
    wide = [first_of_tiles(found, "B", column, tile_bytes) // tile_bytes for column in range(spec.columns)]
    rows = []
    for row in range(spec.rows):
        runs = found.starts("A", row * spec.columns // spec.rows).reshape(-1, slabs, m)
        first = runs[:, 0, 0] // sizes.lda
        expected = (first[:, None] + np.arange(m))[:, None, :] * sizes.lda + firsts.slabs[None, :, None]
        np.testing.assert_array_equal(runs, expected)
        rows.append(first)
    for column in range(spec.columns):
        runs = found.starts("C", column).reshape(-1, spec.rows, m)
        expected = (np.stack(rows, 1)[:, :, None] + np.arange(m)) * sizes.ldc
        expected = expected + np.minimum(wide[column] * n, sizes.N - n)[:, None, None]
        np.testing.assert_array_equal(runs, 4 * expected)
    made = {
        (r, w) for i in range(spec.rows) for j in range(spec.columns) for r, w in zip(rows[i], wide[j], strict=True)
    }
    assert made == {(r, w) for r in firsts.rows for w in firsts.n_tiles}


def first_of_tiles(found: Replay, operand: str, column: int, tile_bytes: int) -> np.ndarray:
    """Where each tile of a channel starts; its stretches must follow one another."""
    parts = found.moved[operand, column]
    begins = np.concatenate([part.starts for part in parts])
    lengths = np.concatenate([np.full(len(part.starts), part.length) for part in parts])
    position = np.cumsum(lengths) - lengths
    new = position % tile_bytes == 0
    assert (begins[1:][~new[1:]] == (begins + lengths)[:-1][~new[1:]]).all()
    assert position[-1] + lengths[-1] == new.sum() * tile_bytes
    return begins[new]


@pytest.mark.parametrize("shape", GPT2, ids=str)
def test_gpt2s_sizes_are_covered(flagship, shape):
    check(sequence(flagship, *shape))


@pytest.mark.parametrize("shape", BITNET, ids=str)
def test_bitnets_layers_are_covered(flagship, shape):
    check(sequence(flagship, *shape))


@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_extreme_sizes_are_covered(flagship, shape):
    check(sequence(flagship, *shape))


DESIGNS = [
    {"m": 16, "k": 8, "n": 32, "rows": 1, "columns": 1},
    {"m": 16, "k": 16, "n": 32, "k_mt": 32},
    {"m": 32, "k": 8, "n": 32, "rows": 2, "columns": 4, "k_mt": 24, "c_buffers": 2},
    {"m": 48, "k": 8, "n": 64, "rows": 4, "columns": 4},
    {"m": 16, "k": 24, "n": 96, "rows": 4, "columns": 8, "k_mt": 72, "stack_bytes": 2048},
    {"m": 320, "k": 8, "n": 32, "rows": 4, "columns": 4},
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: "x".join(str(d[axis]) for axis in "mkn"))
def test_random_sizes_and_leading_dimensions_are_covered(design):
    plan = plan_gemm(spec_from(spec_content(**design), "small"), STRIX_HALO)
    rng = np.random.default_rng(11)
    for _ in range(25):
        spec = plan.spec
        most = np.array([5 * spec.rows * spec.tile.m, 5 * spec.k_mt, 5 * spec.columns * spec.tile.n])
        M, K, N = (int(size) for size in rng.integers(1, most))
        check(sequence(plan, M, K, N, lda=K + int(rng.integers(0, 9)), ldc=N + int(rng.integers(0, 9))))


def test_the_check_sees_a_missing_and_a_foreign_element(flagship):
    """The check itself can fail: one offset or one length changed in the words is noticed."""
    planned = sequence(flagship, 300, 600, 700)
    good = planned.words()
    (patches,) = np.nonzero(good == 0x81)
    for at, change in ((patches[2] + 10, 4), (patches[6] + 10, 64), (patches[-1] + 10, -4)):
        words = good.copy()
        words[at] = (int(words[at]) + change) % (1 << 32)
        with pytest.raises(AssertionError):
            check(_Changed(planned, words))  # pyright: ignore[reportArgumentType]


class _Changed:
    """A sequence with other words."""

    def __init__(self, planned: GemmSequence, words: np.ndarray):
        self.plan, self.sizes, self.words = planned.plan, planned.sizes, lambda: words
