"""`bdforge sweep`: sizes that an array takes whole, by layout of B; `bdforge balance`: its three steps."""

import csv
import shlex
from pathlib import Path
from statistics import median

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import load_spec, plan_gemm, sequence
from bdforge.perf.plots.layouts import layouts_picture
from bdforge.perf.size_sweep import COLUMNS, native_problems, sweep
from support.built_designs import ROOT


@pytest.mark.slow
def test_the_walk_is_told_in_three_steps_and_goes_on_with_tune(run):
    arguments = "balance --types int8,int8,int32 --shape 512x256x512 --device phoenix --stack 1024"
    code, out, _ = run(*arguments.split())
    assert code == 0
    for step in ("1. One core: the fastest of", "2. The array: ", "3. Down the depths"):
        assert step in out
    line = next(line for line in out.splitlines() if "bdforge tune" in line)
    words = shlex.split(line.partition(": bdforge ")[2])
    code, toml, _ = run(*words, "--finalists", "0")
    assert code == 0
    assert "rho = 1" in toml
    assert "stack_bytes = 1024" in toml


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


def test_one_layout_is_drawn_without_a_comparison():
    swept = list(sweep(SPEC, DEVICE, ("row",), native_problems(SPEC, (2048,)), "fitted"))
    assert len(layouts_picture(swept, "a sweep").axes) == 1


def test_a_type_that_dmas_cannot_reorder_is_swept_packed(run):
    code, _, err = run("sweep", str(DESIGN.parent / "gemm_i8_i2_bitnet.toml"), "--sizes", "1024", "-o", "s.csv")
    assert code == 0, err
    assert {row["layout_b"] for row in csv.DictReader(Path("s.csv").read_text().splitlines())} == {"packed"}


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        f"sweep {DESIGN} --sizes 1024,2048",
        "reproduce taka-fig6 air-rope casselc-int4",
        "tune --shapes 100x40x300,64x32x64*3 --finalists 3",
    ],
    ids=lambda command: command.split()[0],
)
def test_processes_print_and_write_the_same_bytes(run, monkeypatch, tmp_path, command):
    alone = run(*command.split(), "-o", "f.csv")[:2], Path("f.csv").read_bytes()
    again = run(*command.split(), "-o", "f.csv", "--force")[:2], Path("f.csv").read_bytes()
    monkeypatch.setattr("bdforge.cli.options.kept_results", lambda: tmp_path / "other")
    shared = run(*command.split(), "-o", "f.csv", "--force", "-j", "2")[:2], Path("f.csv").read_bytes()
    assert alone[0][0] == 0
    assert alone == again == shared
    assert len(list((tmp_path / "other").iterdir())) > 1


@pytest.mark.parametrize(
    "command", ["tune", f"sweep {DESIGN}", "reproduce taka-fig6"], ids=lambda command: command.split()[0]
)
def test_processes_and_a_cluster_go_each_without_the_other(refused, command):
    refused(f"{command} -j 2 --scheduler tcp://127.0.0.1:1", "-j and --scheduler go each without the other")
