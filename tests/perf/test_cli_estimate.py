"""`bdforge estimate`: what it prints, writes and refuses."""

import csv
from pathlib import Path

import pytest

from bdforge.devices import DeviceError
from bdforge.devices.timing import timing_in, timing_of
from bdforge.perf.goals import goals
from bdforge.perf.rows import ADDED, MEASURED
from support.built_designs import ROOT

DESIGN = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")


def test_a_table_is_written_with_modelled_columns(run):
    code, out, _ = run("estimate", "--csv", str(MEASURED), "--out", "out.csv")
    assert (code, out) == (0, "wrote out.csv: 113 rows, modelled\n")
    given, rows = (list(csv.DictReader(path.read_text().splitlines())) for path in (MEASURED, Path("out.csv")))
    assert list(rows[0]) == [*given[0], *ADDED]
    assert [{name: row[name] for name in given[0]} for row in rows] == given
    assert all(float(row["tops_modelled"]) > 0 for row in rows)
    times = [[float(row[f"time_us_{name}"]) for name in ("low", "modelled", "high")] for row in rows]
    assert all(low < time < high for low, time, high in times)
    kinds = {kind: sum(row["estimate_of"] == kind for row in rows) for kind in ("design", "fastest tile", "core")}
    assert kinds == {"design": 98, "fastest tile": 1, "core": 14}


def test_a_bad_row_is_reported_and_the_rest_written(run):
    lines = MEASURED.read_text().splitlines()
    Path("in.csv").write_text("\n".join([lines[0], lines[1], "," * lines[0].count(","), lines[2]]))
    code, out, err = run("estimate", "--csv", "in.csv", "--out", "out.csv")
    assert (code, out) == (2, "wrote out.csv: 2 rows, modelled\n")
    assert err == "bdforge: in.csv: line 3: every field is blank; remove the line\n"
    assert len(Path("out.csv").read_text().splitlines()) == 3


def test_without_sizes_a_design_shows_its_own_problems(run):
    _, out, _ = run("estimate", DESIGN)
    assert out.count("(modelled), bound:") == 4


def test_a_rate_and_a_schedule_replace_the_fitted_kernel(run):
    sizes = ("--shape", "1024x2560x2560")
    assert "assumed: the rate that was given" in run("estimate", DESIGN, *sizes, "--rate", "400")[1]
    assert "400 MACs per cycle" in run("estimate", DESIGN, *sizes, "--rate", "400")[1]
    assert "ideal kernel schedule" in run("estimate", DESIGN, *sizes, "--kernel", "ideal")[1]


def test_a_power_mode_slows_the_array_and_not_memory(run):
    def figures(*options: str) -> dict[str, float]:
        code, out, _ = run("estimate", DESIGN, "--shape", "256x2560x13824", *options)
        assert code == 0
        lines = [line.split("(") for line in out.splitlines() if "(overlapping)" in line]
        return {name.strip(): float(rest.split()[1]) for name, rest in lines}

    turbo, saver = figures("--power", "turbo"), figures("--power", "saver")
    assert saver["compute"] == pytest.approx(turbo["compute"] * 1.8 / 0.792, rel=0.01)
    assert saver["DRAM bandwidth"] == turbo["DRAM bandwidth"]


def test_ways_to_hand_a_run_over_differ_in_dispatch_only(run):
    def dispatch(way: str) -> float:
        _, out, _ = run("estimate", DESIGN, "--shape", "256x2560x640", "--dispatch", way)
        return next(float(line.split(")")[1].split()[0]) for line in out.splitlines() if "dispatch (added)" in line)

    assert [dispatch(way) for way in ("xrt", "elf", "raw", "runlist")] == pytest.approx([158, 158, 59, 22.5], abs=0.6)


def test_phoenix_has_one_published_clock():
    with pytest.raises(DeviceError, match="no clock of phoenix is published for power mode 'saver'; known: turbo"):
        timing_in(timing_of("phoenix"), "phoenix", power="saver")


def test_estimate_tells_how_far_models_and_measurements_differ(run):
    code, out, _ = run("estimate", "--accuracy")
    assert code == 0
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    mean, middle, *_ = goals()
    assert (mean.text, middle.text) == tuple(f"every second row left out: {what} error" for what in ("mean", "median"))
    assert f"{mean.reached:.1%} off on average, {middle.reached:.1%} in the median" in out
    for goal in goals():
        assert f"{goal.text}: {goal.reached:.1%}, at most {goal.limit:.0%}" in out
        assert goal.text in page
