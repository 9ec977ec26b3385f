"""Every element of A, B and C is touched as often as the algorithm says, counted from the words alone."""

from typing import Any

import numpy as np
import pytest
from sequence_replay import Replay, replay

from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSequence, sequence
from support.built_designs import small_gemm
from support.differences import same
from support.gemm_problems import natural_leading

GPT2 = [
    *((256, 768, n) for n in (2304, 768, 3072, 50304)), (256, 3072, 768), (256, 2304, 768), (256, 50304, 768),
    *((m, 256, 768) for m in (2304, 768, 3072, 50304)), (768, 256, 3072),
]  # fmt: skip
BITNET_LAYERS = [(2560, 2560), (2560, 640), (2560, 13824), (6912, 2560)]
BITNET = [(m, k, n) for m in (1, 7, 128, 256, 512, 1000, 2048, 4096) for k, n in BITNET_LAYERS]
LARGE = [(4096, 6912, 2560), (70_000, 512, 512), (64, 512, 70_001), (66, 262_143, 96), (1, 1, 1), (300, 20_004, 1000)]


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


BITS = {"int2": 2, "int4": 4, "int8": 8, "int16": 16, "int32": 32, "bf16": 16, "f32": 32, "bfp16": 9}


class Lines:
    """Bytes of a row- or column-major matrix: 8 rows of block floats are a line of 9 bytes for each column."""

    def __init__(self, type_name: str, order: str, leading: int):
        self.columns, self.leading = order == "column", leading
        self.block = 8 if type_name == "bfp16" else 1
        self.position_bytes = BITS[type_name] * self.block // 8
        self.line_bytes = leading * self.position_bytes

    def starts(self, rows: np.ndarray, columns: np.ndarray, m: int, n: int) -> np.ndarray:
        """Where the lines of m x n tiles at (row, column) begin, an axis more than rows and columns have."""
        outer, inner, count = (columns, rows, n) if self.columns else (rows // self.block, columns, m // self.block)
        return (outer[..., None] + np.arange(count)) * self.line_bytes + inner[..., None] * self.position_bytes

    def bytes(self, m: int, n: int) -> int:
        """Of a line of an m x n tile."""
        return (m if self.columns else n) * self.position_bytes

    def row(self, start: np.ndarray) -> np.ndarray:
        """The row at which lines of depth 0 (or column 0) begin."""
        return start // self.position_bytes if self.columns else start // self.line_bytes * self.block

    def column(self, start: np.ndarray) -> np.ndarray:
        """The column at which lines of row 0 begin."""
        return start // self.line_bytes if self.columns else start // self.position_bytes


def lines_of(planned: GemmSequence) -> dict[str, Lines]:
    spec, sizes = planned.plan.spec, planned.walk
    return {
        name: Lines(getattr(spec, name), getattr(spec.layouts, name), getattr(sizes, f"ld{name}")) for name in "abc"
    }


def check(planned: GemmSequence) -> None:
    """Streams pair up tile by tile, and visits are what tiles, slabs and column steps say."""
    found = replay(planned.words())
    spec, sizes, lines = planned.plan.spec, planned.walk, lines_of(planned)
    assert found.cores == told(planned)
    firsts = Firsts(planned)
    pair_up(planned, found, firsts)
    steps, panels = len(firsts.n_tiles) // spec.columns, len(firsts.rows) // spec.rows
    rows = multiplicity(sizes.M, firsts.rows, spec.tile.m)
    depth = multiplicity(sizes.depth if planned.staging.a_in_slabs else sizes.K, firsts.slabs, spec.buffers.k_mt)
    columns = multiplicity(sizes.N, firsts.columns, spec.tile.n)
    assert min(rows.min(), depth.min(), columns.min()) >= 1
    visited(found, 0, lines["a"], rows, depth * steps)
    visited(found, 2, lines["c"], rows, columns)
    if spec.layouts.b != "packed":
        b_depth = multiplicity(sizes.K, starts(sizes.K, spec.buffers.k_mt), spec.buffers.k_mt)
        visited(found, 1, lines["b"], b_depth, columns * panels)
        return
    tile_bytes = packed_tile_bytes(planned, firsts)
    counts, unit = found.visits(1, planned.argument_bytes[1])
    assert tile_bytes % unit == 0
    same(counts, np.repeat(np.bincount(firsts.n_tiles) * panels, tile_bytes // unit))


def packed_tile_bytes(planned: GemmSequence, firsts: "Firsts") -> int:
    spec = planned.plan.spec
    return len(firsts.slabs) * spec.buffers.k_mt * spec.tile.n * BITS[spec.b] // 8


def visited(found: Replay, argument: int, lines: Lines, rows: np.ndarray, columns: np.ndarray) -> None:
    """Counts of visits, byte for byte: those of an element's row times those of its column, 0 behind each line."""
    across, along = (columns, rows) if lines.columns else (rows[:: lines.block], columns)
    counts, unit = found.visits(argument, len(across) * lines.line_bytes)
    along = np.repeat(along, lines.position_bytes)
    if lines.line_bytes % unit or len(along) % unit:
        counts, unit = np.repeat(counts, unit), 1
    counts = counts.reshape(len(across), -1)
    wanted = np.outer(across, along[::unit])
    same(counts[:, : wanted.shape[1]], wanted)
    same(counts[:, wanted.shape[1] :], 0)


class Firsts:
    """First rows, depths and columns of tiles in the order of the algorithm, written down once more for the test."""

    def __init__(self, planned: GemmSequence):
        spec, sizes = planned.plan.spec, planned.walk
        self.rows = starts(sizes.M, spec.tile.m, spec.rows)
        self.b_slabs = starts(sizes.K, spec.buffers.k_mt)
        in_slabs = np.arange(len(self.b_slabs)) * spec.buffers.k_mt
        self.slabs = in_slabs if planned.staging.a_in_slabs else self.b_slabs
        tiles = -(-sizes.N // spec.tile.n)
        steps = -(-tiles // spec.columns)
        first = np.minimum(np.arange(steps) * spec.columns, max(tiles - spec.columns, 0))
        self.n_tiles = np.minimum(first[:, None] + np.arange(spec.columns), tiles - 1).ravel()
        self.tile_columns = starts(sizes.N, spec.tile.n)
        self.columns = self.tile_columns[self.n_tiles]


def told(planned: GemmSequence) -> dict[int, int]:
    """Register values of every core: parameters right above its stack, and lock 6 at 1."""
    spec, values = planned.plan.spec, {}
    m, k, n, parameters = spec.tile.m, spec.tile.k, spec.tile.n, spec.buffers.stack_bytes
    panels = -(-planned.walk.M // (spec.rows * m))
    steps = -(-planned.walk.N // (spec.columns * n))
    k_steps = -(-planned.walk.K // spec.buffers.k_mt) * spec.buffers.k_mt // k
    for column in range(spec.columns):
        for row in range(2, 2 + spec.rows):
            tile = column << 25 | row << 20
            values |= {tile | parameters: k_steps, tile | parameters + 4: panels * steps, tile | 0x1F060: 1}
    return values


def pair_up(planned: GemmSequence, found: Replay, firsts: Firsts) -> None:
    """Tile by tile, what a core gets of A and B belongs to where its C goes; together they are all tiles."""
    spec = planned.plan.spec
    m, n, c = spec.tile.m, spec.tile.n, lines_of(planned)["c"]
    rows = rows_fed(planned, found, firsts)
    n_tiles = [n_tiles_fed(planned, found, firsts, column) for column in range(spec.columns)]
    for column in range(spec.columns):
        runs = found.starts("C", column, c.bytes(m, n)).reshape(len(rows[0]), spec.rows, -1)
        where = firsts.tile_columns[n_tiles[column]][:, None]
        same(runs, c.starts(np.stack(rows, 1), where, m, n))
    made = {
        (int(r), int(w))
        for row in rows
        for tiles in n_tiles
        for r, w in set(zip(row.tolist(), tiles.tolist(), strict=True))
    }
    assert made == {(r, w) for r in firsts.rows.tolist() for w in firsts.n_tiles.tolist()}


def rows_fed(planned: GemmSequence, found: Replay, firsts: Firsts) -> list[np.ndarray]:
    """First rows of the tiles that each core row gets, one after the other; all slabs of each must be there."""
    spec, a = planned.plan.spec, lines_of(planned)["a"]
    k_mt, shims = spec.buffers.k_mt, spec.buffers.a_shims
    part = spec.tile.m // shims
    by_column: dict[int, list[tuple[int, int]]] = {}
    for row in range(spec.rows):
        for i in range(shims):
            by_column.setdefault(row * spec.columns // spec.rows + i, []).append((row, i * part))
    rows: dict[int, np.ndarray] = {}
    for column, parts in by_column.items():
        runs = found.starts("A", column, a.bytes(part, k_mt)).reshape(
            -1, len(firsts.slabs), len(parts), count(a, part, k_mt)
        )
        for i, (row, offset) in enumerate(parts):
            first = a.row(runs[:, 0, i, 0]) - offset
            same(rows.setdefault(row, first), first)
            expected = a.starts(first[:, None] + offset, firsts.slabs[None, :], part, k_mt)
            same(runs[:, :, i], expected)
    return [rows[row] for row in range(spec.rows)]


def count(lines: Lines, m: int, n: int) -> int:
    """Lines of an m x n tile."""
    return n if lines.columns else m // lines.block


def n_tiles_fed(planned: GemmSequence, found: Replay, firsts: Firsts, column: int) -> np.ndarray:
    """The n-tiles that an array column gets, one after the other; all slabs of each must be there."""
    spec, b = planned.plan.spec, lines_of(planned)["b"]
    if spec.layouts.b == "packed":
        tile_bytes = packed_tile_bytes(planned, firsts)
        n_tiles = first_of_tiles(found, column, tile_bytes) // tile_bytes
        check_fed(planned, found, column, n_tiles)
        return n_tiles
    k_mt, n = spec.buffers.k_mt, spec.tile.n
    runs = found.starts("B", column, b.bytes(k_mt, n)).reshape(-1, len(firsts.b_slabs), count(b, k_mt, n))
    first = b.column(runs[:, 0, 0])
    same(runs, b.starts(firsts.b_slabs[None, :], first[:, None], k_mt, n))
    n_tiles = np.searchsorted(firsts.tile_columns, first)
    same(firsts.tile_columns[n_tiles], first)
    return n_tiles


def check_fed(planned: GemmSequence, found: Replay, column: int, n_tiles: np.ndarray) -> None:
    """Behind each n-tile come the numbers of its row panel and its own, where an epilogue is fed."""
    if not planned.plan.spec.epilogue.fed:
        assert {moved.argument for moved in found.moved["B", column]} == {1}
        return
    panel_bytes, tile_bytes = planned.plan.tiling.fed_bytes
    arguments = [moved.argument for moved in found.moved["B", column]]
    assert arguments == [1, 3, 4] * (len(arguments) // 3)
    numbers = [[m.starts[0] for m in found.of("B", column, argument)] for argument in (3, 4)]
    assert {m.length * len(m.starts) for m in found.of("B", column, 3)} == {panel_bytes}
    assert {m.length * len(m.starts) for m in found.of("B", column, 4)} == {tile_bytes}
    same(numbers[1], n_tiles * tile_bytes)
    panels = np.asarray(numbers[0]) // panel_bytes
    steps = planned.walk.column_steps
    assert sorted(panels.tolist()) == sorted(list(range(planned.walk.panels)) * steps)
    rows = np.stack(rows_fed(planned, found, Firsts(planned)), 1)
    same(starts(planned.walk.M, planned.plan.spec.tile.m, rows.shape[1]).reshape(-1, rows.shape[1])[panels], rows)


def first_of_tiles(found: Replay, column: int, tile_bytes: int) -> np.ndarray:
    """Where each tile of packed B of a channel starts; its stretches must follow one another."""
    parts = found.of("B", column, 1)
    begins = np.concatenate([part.starts for part in parts])
    lengths = np.concatenate([np.full(len(part.starts), part.length) for part in parts])
    position = np.cumsum(lengths) - lengths
    new = position % tile_bytes == 0
    same(begins[1:][~new[1:]], (begins + lengths)[:-1][~new[1:]])
    assert position[-1] + lengths[-1] == new.sum() * tile_bytes
    return begins[new]


ALL = [*GPT2, *BITNET, *LARGE]


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("shape", ALL, ids=str)
def test_sizes_of_models_and_extremes_are_covered(flagship, shape):
    check(sequence(flagship, *shape))


INT8, BF16 = ("int8", "int8", "int32"), ("bf16", "bf16", "f32")
INT8_B = {
    layout: {
        "m": 64,
        "k": 64,
        "n": 128,
        "k_mt": 256,
        "rows": 4,
        "columns": 8,
        "types": INT8,
        "layouts": f"row {layout} row",
    }
    for layout in ("row", "column")
}


@pytest.fixture(scope="module")
def int8_plans() -> dict[str, GemmPlan]:
    return {layout: small_gemm(**design) for layout, design in INT8_B.items()}


OFTEN = {*GPT2[::4], *BITNET[::7], *LARGE}


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("shape", [s if s in OFTEN else pytest.param(s, marks=pytest.mark.slow) for s in ALL], ids=str)
@pytest.mark.parametrize("layout", INT8_B)
def test_sizes_are_covered_with_int8_b_as_others_store_it(int8_plans, layout, shape):
    M, K, N = shape
    check(sequence(int8_plans[layout], M, min(K, 131_071), N))


DESIGNS: dict[str, dict[str, Any]] = {
    "one core": {"m": 16, "k": 8, "n": 32, "rows": 1, "columns": 1},
    "ternary": {"m": 16, "k": 16, "n": 32, "k_mt": 32},
    "two tiles of C": {"m": 32, "k": 8, "n": 32, "rows": 2, "columns": 4, "k_mt": 24, "c_buffers": 2},
    "4 x 4": {"m": 48, "k": 8, "n": 64, "rows": 4, "columns": 4},
    "4 x 8": {"m": 16, "k": 24, "n": 96, "rows": 4, "columns": 8, "k_mt": 72, "stack_bytes": 2048},
    "panels longer than a wrap": {"m": 320, "k": 8, "n": 32, "rows": 4, "columns": 4},
    "row-major B": {"m": 16, "k": 16, "n": 16, "k_mt": 48, "types": INT8, "layouts": "row row row"},
    "column-major B": {"m": 16, "k": 16, "n": 16, "k_mt": 48, "types": INT8, "layouts": "row column row", "rows": 3},
    "column-major A": {"m": 16, "k": 8, "n": 32, "layouts": "column packed row", "types": INT8, "k_mt": 16},
    "column-major C": {"m": 16, "k": 8, "n": 16, "layouts": "row packed column", "types": INT8, "columns": 3},
    "column-major": {"m": 16, "k": 8, "n": 16, "layouts": "column column column", "types": BF16, "k_mt": 24},
    "column-major, 4 x 8": {
        "m": 32, "k": 8, "n": 16, "layouts": "column row column", "types": INT8, "rows": 4, "columns": 8,
    },
    "two shims for A": {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "row row row", "a_shims": 2, "columns": 5},
    "two shims for column-major A": {
        "m": 32, "k": 8, "n": 16, "types": INT8, "layouts": "column column column", "a_shims": 2, "columns": 4,
    },
    "more rows than columns": {"m": 16, "k": 8, "n": 16, "types": INT8, "layouts": "row row column", "rows": 4},
    "4 x 1": {"m": 16, "k": 8, "n": 16, "types": INT8, "layouts": "row column row", "rows": 4, "columns": 1},
    "4 x 3": {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "row packed column", "rows": 4, "columns": 3},
    "parts of A": {"m": 32, "k": 8, "n": 16, "types": INT8, "layouts": "row column row", "rho": 2},
    "block floats": {"m": 32, "k": 32, "n": 32, "types": ("bfp16", "bfp16", "bfp16"), "k_mt": 64},
    "fed": {"m": 16, "k": 16, "n": 32, "types": ("int8", "int8", "bf16"), "epilogue": {"scale": True}, "columns": 3},
    "npu1": {"m": 16, "k": 8, "n": 16, "types": INT8, "layouts": "column row row", "device": "phoenix", "rows": 2},
}  # fmt: skip


@pytest.mark.daily("panels longer than a wrap", "4 x 3", "two shims for A", "column-major", "parts of A", "npu1", "fed")
@pytest.mark.parametrize("name", DESIGNS)
def test_random_sizes_and_leading_dimensions_are_covered(name):
    plan = small_gemm(**DESIGNS[name])
    rng = np.random.default_rng(11)
    spec = plan.spec
    most = np.array([5 * spec.rows * spec.tile.m, 5 * spec.buffers.k_mt, 5 * spec.columns * spec.tile.n])
    for _ in range(6):
        M, K, N = (int(size) for size in rng.integers(1, most))
        natural = natural_leading(plan, GemmProblem(M, K, N))
        gaps = dict(zip("abc", rng.integers(0, 9, 3), strict=True))
        leading = {f"ld{name}": natural[name] + int(gap) for name, gap in gaps.items()}
        if spec.layouts.b == "packed":
            del leading["ldb"]
        check(sequence(plan, M, K, N, **leading))
