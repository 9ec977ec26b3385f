"""`bdforge plot`: which points, depths, patterns and runs the options choose for a picture."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from bd_patterns import Pattern
from bdforge.cli import plot
from bdforge.operators.gemm import load_spec, plan_gemm, spec_from
from bdforge.perf import PerfError, measured_rows
from bdforge.perf.bounds.case import case_of
from bdforge.perf.plots.figure import PlotError
from bdforge.perf.plots.roofline import Point, intensity
from bdforge.perf.plots.sweep_plot import depths
from support.built_designs import ROOT, spec_content

TOML = """kind = "gemm"
types = {a = "int8", b = "int2", c = "int32"}
array = {rows = 2, columns = 2}
tile = {m = 16, k = 32, n = 64}
buffers = {k_mt = 64}
"""
PROBLEMS = "problems = [{M = 32, K = 128, N = 128}, {M = 64, K = 64, N = 64}]\n"
HALO = plot.device_named("strix_halo")


@pytest.fixture
def drawn(run, monkeypatch):
    """Runs `bdforge plot` without models, runs and drawing: what the picture would be made of."""
    Path("small.toml").write_text(TOML + PROBLEMS)
    Path("bare.toml").write_text(TOML)
    made: list[tuple[Any, ...]] = []
    for name in ("roofline", "kmt_sweep", "pattern_picture", "utilisation"):
        monkeypatch.setattr(plot, name, lambda *given: made.append(given))
    monkeypatch.setattr(plot, "save", lambda draw, out: draw())
    monkeypatch.setattr(plot, "kernel_on", lambda plan, case, basis: basis)
    monkeypatch.setattr(
        plot, "modelled_point", lambda case, name, kernel: Point("modelled", f"{name} {kernel}", 1, case.K)
    )
    monkeypatch.setattr(plot, "timed", lambda plan, one, basis: SimpleNamespace(tops=one.M, of=(str(one), basis)))

    def drawn(*arguments: str) -> tuple[Any, ...]:
        code, out, err = run("plot", *arguments, "-o", "out.svg")
        assert (code, out) == (0, "wrote out.svg\n"), err
        return made.pop()

    return drawn


SMALL = ["small 32x128x128 compiled", "small 64x64x64 compiled"]


@pytest.mark.parametrize(
    ("arguments", "peak", "found"),
    [
        ((), ("int8", "int8"), []),
        (("--types", "bf16,i2"), ("bf16", "int2"), []),
        (("--design", "small.toml"), ("int8", "int2"), SMALL),
        (("--design", "small.toml", "--types", "i8,i8"), ("int8", "int8"), SMALL),
        (("--design", "small.toml", "--shapes", "9x9x9*3"), ("int8", "int2"), ["small 9x9x9 compiled"]),
        (("--design", "bare.toml", "--shapes", "9x9x9", "--design", "small.toml", "--kernel", "ideal"),
         ("int8", "int2"), ["bare 9x9x9 ideal", "small 9x9x9 ideal"]),
    ],
)  # fmt: skip
def test_a_roofline_has_a_point_for_each_problem_of_each_design(drawn, arguments, peak, found):
    """The peak is of the first design's types unless --types names others; --shapes replace a design's problems."""
    device, a, b, points = drawn("roofline", "--no-published", *arguments)
    assert (device, (a, b), [point.name for point in points]) == ("strix_halo", peak, found)


def test_emulated_points_stand_behind_the_modelled_ones(drawn, monkeypatch):
    """At the intensity of the case, with the TOPS of the run; none where a run has no speed."""
    arguments = ("roofline", "--no-published", "--design", "small.toml", "--emulate")
    points = drawn(*arguments)[3]
    assert [(point.kind, point.tops) for point in points] == [
        ("modelled", 128), ("emulated", 32), ("modelled", 64), ("emulated", 64),
    ]  # fmt: skip
    spec = load_spec("small.toml")
    for point, problem in zip(points[1::2], spec.problems, strict=True):
        assert point.intensity == intensity(case_of(spec, HALO, problem))
    monkeypatch.setattr(plot, "timed", lambda plan, one, basis: SimpleNamespace(tops=None))
    assert [point.kind for point in drawn(*arguments)[3]] == ["modelled", "modelled"]


def test_published_points_are_left_out_when_unwanted(drawn):
    assert {point.kind for point in drawn("roofline")[3]} == {"published"}
    assert drawn("roofline", "--no-published")[3] == []


def test_depths_go_from_k_on_for_the_first_problem_or_the_given_one(drawn):
    found, published = drawn("kmt", "--design", "small.toml")
    assert (found[0].case.M, found[0].case.K, found[0].case.N, published) == (32, 128, 128, [])
    assert [each.case.k_mt for each in found] == [32, 64, 96, 128] == depths(replace(found[0].case, k_mt=32))
    assert drawn("kmt", "--design", "bare.toml", "--shape", "7x65x8")[0][-1].case.k_mt == 96


def test_a_tile_stands_for_a_design_with_the_whole_array(drawn):
    """m, k, n, the types of A, B, C, the layout of B and the problem each go to their own place."""
    options = ("--tile", "16x32x48", "--types", "i8,i4,i16", "--shape", "7x65x9", "--b-layout", "row")
    for device, columns in (("strix_halo", 8), ("phoenix", 4)):
        case = drawn("kmt", *options, "--device", device)[0][0].case
        assert (case.m, case.k, case.n, case.k_mt) == (16, 32, 48, 32)
        assert (case.a, case.b, case.c, case.b_layout) == ("int8", "int4", "int16", "row")
        assert (case.M, case.K, case.N) == (7, 65, 9)
        assert (case.device, case.rows, case.columns) == (device, 4, columns)
    assert drawn("kmt", *options[:6])[0][0].case.b_layout == "column"


MEASURED = measured_rows()
PUBLISHED = next(row for row in MEASURED if row.tops and row.case.bd_overlap and not row.core_only)


def test_published_depths_are_those_of_the_very_tile_and_problem(monkeypatch):
    """The depth itself may differ, and so may the product with the same array; nothing else."""
    monkeypatch.setattr(plot, "measured_rows", lambda: MEASURED)
    case, own = PUBLISHED.case, (PUBLISHED.case.k_mt, PUBLISHED.tops)
    assert own in plot._published_depths(replace(case, k_mt=case.k))
    for field in ("m", "k", "n", "M", "K", "N"):
        assert own not in plot._published_depths(replace(case, **{field: getattr(case, field) + 1})), field
    for field in ("a", "b", "c", "b_layout"):
        assert own not in plot._published_depths(replace(case, **dict[str, Any]({field: "other"}))), field
    other = "strix_halo" if case.array.mlir == "npu1" else "phoenix"
    assert own not in plot._published_depths(replace(case, device=other))
    later = replace(PUBLISHED, case=replace(case, bd_overlap=False))
    monkeypatch.setattr(plot, "measured_rows", lambda: [later])
    assert plot._published_depths(later.case) == []


def test_a_pattern_of_the_command_line_is_drawn_as_it_is(drawn):
    assert drawn("pattern", "--sizes", "2,3", "--strides", "4,1") == (Pattern((2, 3), (4, 1), 0), None, "")
    options = ("pattern", "--sizes", "2,3", "--strides", "4,1", "--offset", "5", "--width", "8")
    assert drawn(*options) == (Pattern((2, 3), (4, 1), 5), 8, "")


ROWS = spec_content(16, 32, 48, types=("int8", "int8", "int32"), layouts="row row row", k_mt=64)
COLUMNS = spec_content(16, 32, 48, types=("int8", "int8", "int32"), layouts="column column row", k_mt=64)


@pytest.mark.parametrize(
    ("content", "operand", "width"),
    [(ROWS, "a", 64), (COLUMNS, "a", 16), (ROWS, "b", 48), (COLUMNS, "b", 64), (ROWS, "c", 8 * 8)],
    ids=["A by rows", "A by columns", "B by rows", "B by columns", "micro-tiles of C"],
)
def test_a_designs_reorder_has_rows_as_its_slab_lies_in_the_memtile(content, operand: str, width: int):
    """A row-major slab is k_mt wide in A and n in B, a column-major one m and k_mt; C lies in micro-tiles of r x t."""
    plan = plan_gemm(spec_from(content, "small"), HALO)
    _, pattern, found = plot._reorder(plan, operand)
    assert found == width
    sizes = {"a": 16 * 32, "b": 32 * 48, "c": 16 * 48}
    assert pattern.count % sizes[operand] == 0, "slices or tiles are sent whole"


def test_a_width_of_ones_own_replaces_the_designs(drawn):
    pattern, width, title = drawn("pattern", "--design", "small.toml")
    assert (width, title.split(":")[0]) == (64, "small")
    assert drawn("pattern", "--design", "small.toml", "--width", "7")[:2] == (pattern, 7)


def test_where_b_stays_its_reorder_is_the_sequences_and_c_leaves_elsewhere():
    plan = plan_gemm(load_spec(ROOT / "designs" / "gemm_i8_i2_resident.toml"), HALO)
    with pytest.raises(PlotError, match=r"gemm_i8_i2_resident: runtime sequences send B; there is no reorder to draw"):
        plot._reorder(plan, "b")
    title, _, _ = plot._reorder(plan, "c")
    assert title.startswith("gemm_i8_i2_resident: C")


@pytest.mark.parametrize(("options", "of", "kernel"), [
    ((), "32x128x128", "compiled"), (("--shape", "1x2x3", "--kernel", "ideal"), "1x2x3", "ideal"),
])  # fmt: skip
def test_utilisation_is_of_one_timed_problem(drawn, options, of: str, kernel: str):
    report, title = drawn("utilisation", "--design", "small.toml", *options)
    assert (report.of, title) == ((of, kernel), f"small: {of} on strix_halo, {kernel} kernel")


def test_only_what_was_left_out_is_taken_from_the_design():
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    assert plot._one_problem(spec, None) == spec.problems[0]
    assert str(plot._one_problem(spec, "1x2x3")) == "1x2x3"
    with pytest.raises(PerfError, match="has no problems; give a shape"):
        plot._one_problem(replace(spec, problems=()), None)
    with pytest.raises(typer.BadParameter, match="is not MxKxN"):
        plot._one_problem(replace(spec, problems=()), "7")
