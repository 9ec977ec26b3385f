"""Pictures: what is on them, in both formats."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from bd_patterns import Pattern
from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.types import Order
from bdforge.operators.gemm import GemmProblem, load_spec
from bdforge.perf import BOUNDS, GemmCase, estimate, measured_rows
from bdforge.perf.bounds.case import case_of
from bdforge.perf.plots import pattern_plot as pattern_module
from bdforge.perf.plots.figure import PlotError
from bdforge.perf.plots.pattern_plot import natural_width, order_grid
from bdforge.perf.plots.roofline import guessed, intensity, modelled_point, published_points, roofs
from bdforge.perf.plots.sweep_plot import BOUND_COLORS, depths
from bdforge.perf.plots.timeline_plot import read_timeline, state_shares
from bdforge.perf.plots.utilisation import tile_shares
from bdforge.perf.size_sweep import Swept
from bdforge.perf.tune.choice_reasons import LIFTS
from support.differences import as_reviewed, same
from support.drawn import drawn

DESIGN = Path(__file__).parents[2] / "designs" / "gemm_i8_i2_bitnet.toml"
LARGEST = 64  # elements that a picture of a test may show
SMALL_TOML = """kind = "gemm"
types = {a = "int8", b = "int2", c = "int32"}
array = {rows = 2, columns = 2}
tile = {m = 16, k = 32, n = 32}
buffers = {k_mt = 64}
problems = [{M = 32, K = 128, N = 64}]
"""


@pytest.mark.daily("arguments1-words1")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("roofline", "--design", "small.toml", "--emulate"), ["modelled (1)", "emulated (1)", "published", "GB/s"]),
        (("pattern", "--design", "small.toml", "--operand", "c"), ["first of 4 BDs", "element of a row of 64"]),
        (("utilisation", "--design", "small.toml"), ["emulated:", "2: core", "0: shim", "share of the run"]),
    ],
)
def test_pictures_say_what_they_show(run, monkeypatch, arguments, words):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    Path("small.toml").write_text(SMALL_TOML)
    assert run("plot", arguments[0], "-o", "out.svg", *arguments[1:])[:2] == (0, "wrote out.svg\n")
    text = Path("out.svg").read_text()
    for word in words:
        assert word in text, word


def test_pngs_are_pngs_and_the_same_every_time(run):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    for name in ("one.png", "two.png"):
        assert run("plot", "pattern", "-o", name, "--sizes", "4,4", "--strides", "1,4")[0] == 0
    first = Path("one.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert first == Path("two.png").read_bytes()


def test_a_missing_matplotlib_is_one_sentence(run, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _, told = run("plot", "pattern", "-o", "out.png", "--sizes", "4", "--strides", "1")
    assert code == 2
    assert told == "bdforge: pictures need matplotlib, which is not installed; pip install 'bdforge[plot]'\n"


def test_the_order_grid_is_the_order_of_visits():
    pattern = Pattern((2, 3, 2), (1, 4, 2), 1)
    order, visits = order_grid(pattern, 4)
    expected = np.full(order.shape, -1)
    for i, at in enumerate(pattern.offsets()):
        expected[at // 4, at % 4] = i
    same(order, expected)
    same(visits, expected >= 0)
    assert order_grid(Pattern((3, 2), (0, 1)), 2)[1].tolist() == [[3, 3]]


@pytest.mark.parametrize(
    ("pattern", "drawn"),
    [
        (Pattern((2,), (LARGEST - 1,)), True), (Pattern((2,), (LARGEST,)), False),
        (Pattern((1,), (1,), LARGEST - 1), True), (Pattern((1,), (1,), LARGEST), False),
        (Pattern((LARGEST // 2, 2), (0, 1)), True), (Pattern((LARGEST // 2 + 1, 2), (0, 1)), False),
    ],
)  # fmt: skip
def test_patterns_are_drawn_from_0_to_the_last_cell_and_visit(monkeypatch, pattern: Pattern, drawn: bool):
    monkeypatch.setattr(pattern_module, "LARGEST", LARGEST)
    if drawn:
        assert order_grid(pattern, LARGEST)[1].sum() == pattern.count
        return
    with pytest.raises(PlotError, match=f"reaches beyond 0 and the {LARGEST} elements that can be drawn"):
        order_grid(pattern, LARGEST)


@pytest.mark.parametrize(
    ("pattern", "width"),
    [
        (Pattern((2, 4, 4, 8), (128, 8, 32, 1)), 32), (Pattern((48,), (1,)), 48), (Pattern((64,), (1,)), 64),
        (Pattern((65,), (1,)), 1), (Pattern((96,), (1,)), 32), (Pattern((128,), (1,)), 64),
        # The largest stride with four rows; with fewer the largest of all, also where none divides another.
        (Pattern((2, 2, 8), (16, 8, 1)), 8), (Pattern((2, 7), (16, 1)), 16), (Pattern((2, 2), (6, 4)), 6),
        (Pattern((1, 3, 4), (64, 4, 1)), 4), (Pattern((4, 8, 8), (64, 8, 1)), 64), (Pattern((3, 8, 8), (64, 8, 1)), 8),
    ],
    ids=str,
)  # fmt: skip
def test_rows_of_the_picture_are_rows_of_the_buffer(pattern, width):
    assert natural_width(pattern) == width, f"of {pattern}, {pattern.span[1] + 1} elements long"


@pytest.mark.parametrize(
    ("numbers", "arrows", "texts", "lines"), [(8, 8, 8, 0), (7, 8, 0, 2), (7, 7, 0, 0), (9, 7, 8, 0)]
)
def test_an_order_is_drawn_as_numbers_or_else_as_a_path(monkeypatch, numbers, arrows, texts, lines):
    """Eight cells and visits: numbers in up to so many cells, a path and its first dot for up to so many visits."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    monkeypatch.setattr(pattern_module, "NUMBERS", numbers)
    monkeypatch.setattr(pattern_module, "ARROWS", arrows)
    pattern, figure, axes = Pattern((2, 4), (4, 1)), MagicMock(), MagicMock()
    pattern_module._draw_order(figure, axes, order_grid(pattern, 4)[0], pattern)
    assert (axes.text.call_count, axes.plot.call_count) == (texts, lines)
    (label, *_), _ = figure.colorbar().set_label.call_args
    assert label == f"order of the visit (0 is first{', the dot' if lines else ''})"


def test_points_of_the_roofline_are_those_of_the_models():
    case = case_of(load_spec(DESIGN), device_named("strix_halo"), GemmProblem(1024, 2560, 2560))
    a, b, c = 1024 * 2560 * 2560 / 512, 1024 * 2560 * 2560 / 4 / 256, 1024 * 2560 * 4
    assert intensity(case) == pytest.approx(2 * 1024 * 2560 * 2560 / (a + b + c))
    assert modelled_point(case, "x").tops == estimate(case).tops
    found = published_points(measured_rows(), "phoenix")
    assert {"taka-table2"} <= {point.name for point in found}
    assert not any("table3" in point.name for point in found), "those are of another array"


def test_every_bound_has_a_colour_of_its_own_and_something_that_lifts_it():
    assert len({BOUND_COLORS[bound] for bound in BOUNDS}) == len(BOUNDS)
    assert all(LIFTS[bound] for bound in BOUNDS)
    assert set(BOUND_COLORS) | set(LIFTS) == set(BOUNDS)


def test_depths_of_a_sweep_end_behind_k_or_with_the_bds_of_a_channel():
    case = GemmCase(device="krackan", a="int8", b="int8", c="int8", m=64, k=64, n=64, k_mt=64, rows=4, columns=8,
                    M=256, K=128, N=512)  # fmt: skip
    assert depths(case) == [64, 128]
    assert depths(replace(case, K=129)) == [64, 128, 192]
    assert depths(replace(case, K=4096)) == [64 * slices for slices in range(1, 13)]


def test_a_tile_shows_its_busiest_channel_and_a_core_its_kernels():
    channels = [SimpleNamespace(tile_kind="shim", place=(0, 0), name=f"MM2S {i}", busy_cycles=b) for i, b in
                enumerate((30, 50, 40, 50))]  # fmt: skip
    channels.append(SimpleNamespace(tile_kind="core", place=(0, 2), name="S2MM 0", busy_cycles=100))
    core = SimpleNamespace(place=(0, 2), name="core", busy={"mm": 20, "zero": 5, "kernel calls": 9, "core program": 9})
    report: Any = SimpleNamespace(cycles=100, channels=channels, cores=[core])
    assert tile_shares(report) == {(0, 0): ("shim", "MM2S 1", 0.5), (0, 2): ("core", "core", 0.25)}
    with pytest.raises(PlotError, match="the run took no time"):
        tile_shares(SimpleNamespace(cycles=0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "types", "peak"),
    [("strix_halo", ("int8", "int8"), 2 * 512 * 32 * 1.8e9), ("phoenix", ("int8", "int8"), 2 * 256 * 16 * 1e9)],
)
def test_the_roof_is_what_all_cores_multiply(device, types, peak):
    assert roofs(device, *types) == (pytest.approx(peak / 1e12), timing_of(device).dram_read_gb_s)


def test_published_points_are_whole_problems_of_known_tiles():
    rows = [row for row in measured_rows() if row.tops and not row.core_only and row.case.array.columns == 8]
    known = [replace(row, case=replace(row.case, assumed=())) for row in rows if row.source == "taka-table3"][:1]
    known = [replace(row, case=replace(row.case, device="strix_halo")) for row in known]
    assert len(published_points(known, "strix_halo")) == 1
    told = {name: guessed(replace(known[0], case=replace(known[0].case, assumed=("rows=4", f"{name}=64"))))
            for name in ("M", "K", "N", "tile", "k_mt", "b_layout", "kernel rate")}  # fmt: skip
    assert [name for name, guess in told.items() if guess] == ["M", "K", "N", "tile"]
    guess = replace(known[0], case=replace(known[0].case, assumed=("M=4096",)))
    others = [replace(known[0], core_only=True), replace(known[0], tops=None), guess]
    assert [published_points([row], "strix_halo") for row in others] == [[]] * 3
    assert published_points(known, "phoenix") == []


def figures() -> dict[str, Any]:
    """One small picture of each kind, of facts that are given here."""
    from bdforge.perf.plots.layouts import layouts_picture
    from bdforge.perf.plots.pattern_plot import pattern_picture
    from bdforge.perf.plots.roofline import Point, roofline
    from bdforge.perf.plots.sweep_plot import kmt_sweep
    from bdforge.perf.plots.utilisation import utilisation

    case = GemmCase(device="krackan", a="int8", b="int8", c="int8", m=64, k=64, n=64, k_mt=64, rows=4, columns=8,
                    M=256, K=256, N=512, core_macs_per_cycle=300.0)  # fmt: skip
    deep = [replace(estimate(replace(case, k_mt=64 * i)), time_us=float(t)) for i, t in enumerate((40, 20, 10), 1)]
    layouts: tuple[tuple[Order, tuple[int, int]], ...] = (("row", (8, 20)), ("packed", (4, 40)))
    swept = [
        Swept(layout, replace(estimate(replace(case, M=256 * i, b_layout=layout)), time_us=float(us)))
        for layout, times in layouts
        for i, us in enumerate(times, 1)
    ]
    channels = [SimpleNamespace(tile_kind="shim", place=(0, 0), name="MM2S 0", busy_cycles=900)]
    cores = [SimpleNamespace(place=(1, 2), name="core", busy={"mm": 250, "kernel calls": 9})]
    report: Any = SimpleNamespace(cycles=1000, channels=channels, cores=cores, array_tops=1.25)
    points = [
        Point("published", "paper", 9, 1.0),
        Point("modelled", "slow", 40, 2.0),
        Point("emulated", "fast", 50, 9.0),
    ]
    return {
        "layouts": layouts_picture(swept, "two layouts"),
        "numbers": pattern_picture(Pattern((2, 3), (1, 4)), 4, "a title"),
        "path": pattern_picture(Pattern((2, 11, 8), (8, 16, 1), 3)),
        "visits": pattern_picture(Pattern((3, 2), (0, 1)), 2),
        "roofline": roofline("phoenix", "int8", "int8", points),
        "depths": kmt_sweep(deep, [(64, 3.0)]),
        "utilisation": utilisation(report, "a run"),
    }


def test_pictures_are_drawn_as_reviewed(file_regression):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    text = "\n".join(f"# {name}\n{drawn(figure)}" for name, figure in figures().items())
    file_regression.check(text, check_fn=as_reviewed)


TIMELINE = [
    *({"ph": "M", "name": "thread_name", "tid": number, "args": {"name": name}} for number, name in enumerate(
        ["controller: steps", "core (0, 2)", "core (1, 2)", "memtile (0, 1) S2MM 3"])),
    {"ph": "X", "tid": 0, "name": "norm", "cat": "work", "ts": 0, "dur": 8, "args": {"cycles": 16}},
    {"ph": "X", "tid": 0, "name": "change to B", "cat": "wait", "ts": 8, "dur": 2, "args": {"cycles": 4}},
    {"ph": "X", "tid": 1, "name": "mm", "cat": "work", "ts": 2, "dur": 4, "args": {"cycles": 8}},
    {"ph": "X", "tid": 2, "name": "lock 1 of core", "cat": "wait", "ts": 0, "dur": 10, "args": {"cycles": 20}},
    {"ph": "X", "tid": 1, "name": "no task", "cat": "wait", "ts": 6, "dur": 4, "args": {"cycles": 8}},
    {"ph": "X", "tid": 3, "name": "receive 4 words", "cat": "work", "ts": 0, "dur": 10,
     "args": {"cycles": 20, "moving": 4, "dram": 8}},
]  # fmt: skip


def test_a_timeline_says_what_each_kind_of_party_spends_its_time_with(tmp_path: Path):
    """Two cores, of which one works for 4 us of 10 and the other waits for a lock; a transfer in its three parts."""
    kinds, steps = read_timeline(TIMELINE)
    assert steps == [("norm", 0.0, 8.0)]
    assert {name: len(kind.parties) for name, kind in kinds.items()} == {"core": 2, "memtile S2MM 3": 1}
    edges = np.array([0.0, 2.0, 5.0, 10.0])
    same(state_shares(kinds["core"], "works", edges), np.array([0, 0.5, 0.1]))
    same(state_shares(kinds["core"], "waits for a lock", edges), np.array([0.5, 0.5, 0.5]))
    transfer = {
        state: state_shares(kinds["memtile S2MM 3"], state, np.array([0.0, 4.0, 8.0, 10.0])).tolist()
        for state in ("waits for words or room", "waits for DRAM or a token", "works")
    }
    assert list(transfer.values()) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("content", ["{}", "[]", '{"traceEvents": [{"ph": "X"}]}', '{"traceEvents": []}'])
def test_other_files_are_no_timelines(run, content: str):
    Path("other.json").write_text(content)
    code, _, err = run("plot", "timeline", "other.json", "-o", "out.png")
    assert (code, Path("out.png").exists()) == (2, False)
    assert "other.json: " in err
