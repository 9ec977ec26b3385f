"""`bdforge sweep`: sizes that an array takes whole, by layout of B; `bdforge balance`: its three steps."""

import csv
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.types import Order
from bdforge.operators.gemm import load_spec, plan_gemm, sequence
from bdforge.perf import PerfError, estimate
from bdforge.perf.bounds.case import case_of
from bdforge.perf.plots.layouts import layouts_picture
from bdforge.perf.size_sweep import COLUMNS, native_problems, ratios, sweep
from support.built_designs import ROOT


def test_the_walk_is_told_in_three_steps_and_goes_on_with_tune(run):
    arguments = ("balance", "--types", "int8,int8,int32", "--shape", "512x256x512", "--device", "phoenix")
    code, out, _ = run(*arguments)
    assert code == 0
    for step in ("1. One core: the fastest of", "2. The array: ", "3. Down the ranking"):
        assert step in out
    line = next(line for line in out.splitlines() if "bdforge tune" in line)
    words = shlex.split(line.partition(": bdforge ")[2])
    code, toml, _ = run(*words, "--finalists", "0", "--state", "search.jsonl")
    assert code == 0
    assert "rho = 1" in toml


DESIGN = ROOT / "designs" / "gemm_i8_i8_i32_96x64x96.toml"
SPEC, DEVICE = load_spec(DESIGN), device_named("strix_halo")


@pytest.mark.parametrize("name", ["gemm_i8_i8_i32_96x64x96", "gemm_i8_i2_tuned", "gemm_i8_i8_i32_one_core"])
def test_native_sizes_need_no_padding(name):
    """The sequence, which hosts run, has to compute exactly what was asked for."""
    spec = load_spec(ROOT / "designs" / f"{name}.toml")
    plan = plan_gemm(spec, DEVICE)
    problems = native_problems(spec, (1, 700, 2048))
    assert len({str(problem) for problem in problems}) == len(problems)
    for problem in problems:
        assert sequence(plan, problem.M, problem.K, problem.N).processed == (problem.M, problem.K, problem.N)


def test_sizes_go_to_the_nearest_multiple_and_equal_ones_count_once():
    unit = 96 * 4
    found = native_problems(SPEC, (unit + 190, unit - 1, 1, unit + 200))
    assert sorted({problem.M for problem in found}) == [unit, 2 * unit]
    assert len(found) == 2 * len({p.K for p in found}) * len({p.N for p in found})


@pytest.mark.parametrize("sizes", [(), (0, 64), (1 << 21,), range(512, 1 << 15, 512)])
def test_sizes_out_of_bounds_are_refused(sizes):
    with pytest.raises(PerfError, match=r"sizes of a sweep lie within|problems exceed the 10000 of one sweep"):
        native_problems(SPEC, sizes)


def test_each_point_is_the_estimate_of_the_design_with_that_layout():
    problems = native_problems(SPEC, (1024, 4096))
    found = list(sweep(SPEC, DEVICE, ("row", "column"), problems, "fitted"))
    assert [one.layout for one in found] == ["row"] * len(problems) + ["column"] * len(problems)
    spec = replace(SPEC, layouts=replace(SPEC.layouts, b="column"))
    alone = [estimate(case_of(spec, DEVICE, problem)).tops for problem in problems]
    assert [one.found.tops for one in found[len(problems) :]] == alone
    assert min(ratios(found, "row", "column")) > 1  # runs of k_mt are longer than runs of n


def test_a_picture_draws_every_point_of_one_and_of_many():
    drawings: tuple[tuple[tuple[int, ...], tuple[Order, ...]], ...]
    drawings = (((2048,), ("row", "column", "packed")), ((512, 1024, 2048, 4096, 8192), ("row",)))
    for sizes, layouts in drawings:
        problems = native_problems(SPEC, sizes)
        swept = list(sweep(SPEC, DEVICE, layouts, problems, "fitted"))
        left, *others = layouts_picture(swept, "a sweep").axes
        drawn = [np.asarray(collection.get_offsets()) for collection in left.collections]
        assert [len(points) for points in drawn] == [len(problems)] * len(layouts)
        assert len(others) == (len(layouts) > 1)
        for points, layout in zip(drawn, layouts, strict=True):
            tops = sorted(one.found.tops for one in swept if one.layout == layout)
            assert sorted(points[:, 1]) == pytest.approx(tops)


def test_a_sweep_is_printed_written_and_drawn(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("sweep", str(DESIGN), "--sizes", "1024,2048", "-o", "s.csv", "--picture", "s.png")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    rows = list(csv.DictReader(Path("s.csv").read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert f"wrote s.csv: {len(rows)} rows, modelled" in out
    for layout in ("row", "column"):
        tops = [float(row["tops_modelled"]) for row in rows if row["layout_b"] == layout]
        assert f"{median(tops):.2f}" in out
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")
