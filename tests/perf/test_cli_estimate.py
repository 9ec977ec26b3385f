"""`bdforge estimate`: what it prints, writes and refuses."""

import csv
import sys
from pathlib import Path

import pytest

from bdforge.cli import main
from bdforge.devices import DeviceError
from bdforge.devices.timing import timing_in, timing_of
from bdforge.perf.goals import goals
from bdforge.perf.rows import MEASURED
from support.built_designs import ROOT

DESIGN = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")


@pytest.fixture
def command(monkeypatch, capfd, tmp_path):
    """Runs a command line in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # a runner of tests may say how wide its own screen is

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bdforge", "estimate", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_a_table_is_written_with_modelled_columns(command):
    code, out, _ = command("--csv", str(MEASURED), "--out", "out.csv")
    assert (code, out) == (0, "wrote out.csv: 70 rows, modelled\n")
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert {"tops_modelled", "time_us_modelled", "bound"} <= set(rows[0])
    assert all(float(row["tops_modelled"]) > 0 for row in rows)
    times = [[float(row[f"time_us_{name}"]) for name in ("low", "modelled", "high")] for row in rows]
    assert all(low < time < high for low, time, high in times)
    kinds = {kind: sum(row["estimate_of"] == kind for row in rows) for kind in ("design", "fastest tile", "core")}
    assert kinds == {"design": 55, "fastest tile": 1, "core": 14}


def test_a_table_is_not_overwritten_unless_told(command):
    Path("out.csv").write_text("mine")
    code, _, err = command("--csv", str(MEASURED), "--out", "out.csv")
    assert code == 2
    assert "out.csv exists" in err
    assert Path("out.csv").read_text() == "mine"
    assert command("--csv", str(MEASURED), "--out", "out.csv", "--force")[0] == 0


def test_a_bad_row_is_reported_and_the_rest_written(command):
    lines = MEASURED.read_text().splitlines()
    Path("in.csv").write_text("\n".join([lines[0], lines[1], "," * lines[0].count(","), lines[2]]))
    code, out, err = command("--csv", "in.csv", "--out", "out.csv")
    assert (code, out) == (2, "wrote out.csv: 2 rows, modelled\n")
    assert err == "bdforge: in.csv: line 3: every field is blank; remove the line\n"
    assert len(Path("out.csv").read_text().splitlines()) == 3


def test_a_design_is_estimated_with_its_bars(command):
    code, out, _ = command(DESIGN, "--shape", "256x2560x13824")
    assert code == 0
    assert "256x2560x13824 int8 x int2 -> int32 on strix_halo" in out
    assert "TOPS" in out
    assert "(modelled), bound: " in out
    assert "█" in out
    assert "compute (overlapping)" in out
    assert "dispatch (added)" in out


def test_without_sizes_a_design_shows_its_own_problems(command):
    _, out, _ = command(DESIGN)
    assert out.count("(modelled), bound:") == 4


def test_a_rate_and_a_schedule_replace_the_fitted_kernel(command):
    sizes = ("--shape", "1024x2560x2560")
    assert "assumed: the rate that was given" in command(DESIGN, *sizes, "--rate", "400")[1]
    assert "400 MACs per cycle" in command(DESIGN, *sizes, "--rate", "400")[1]
    assert "ideal kernel schedule" in command(DESIGN, *sizes, "--kernel", "ideal")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a design, or a table with --csv"),
        ((DESIGN, "--tokens", "3"), "--tokens and --fused go with --model"),
        ((DESIGN, "--device", "toaster"), "unknown device 'toaster'"),
        ((DESIGN, "--kernel", "magic"), "'magic' is not one of compiled, ideal, fitted"),
        (("--csv", "nowhere.csv"), "nowhere.csv: cannot be read"),
        ((DESIGN, "--device", "phoenix"), "array.columns = 8, but phoenix has 4"),
        ((DESIGN, "--shape", "9999999x256x64"), "M = 9999999 is outside 1 to 1048576"),
        ((DESIGN, "--shape", "1x300000x1"), "K = 300000 could overflow the sums"),
        (
            (DESIGN, "--rate", "1e6"),
            "--rate 1e+06 is more than the 512 MACs per cycle that a core of strix_halo does at most",
        ),
        ((DESIGN, "--rate", "513"), "--rate 513 is more than the 512 MACs"),
        ((DESIGN, "--rate", "300", "--kernel", "ideal"), "--rate and --kernel ideal exclude each other"),
        ((DESIGN, "--out", "out.csv"), "--out and --force go with --csv"),
        ((DESIGN, "--csv", str(MEASURED)), "name either a design or a table"),
        (("--csv", str(MEASURED), "--tokens", "5"), "--kernel, --power and --dispatch go with a design"),
        (
            ("--csv", str(MEASURED), "--rate", "5"),
            "--kernel, --power and --dispatch go with a design",
        ),
    ],
)
def test_bad_input_is_one_message(command, arguments, said):
    code, _, err = command(*arguments)
    assert code == 2
    assert said in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


def test_a_table_without_its_columns_is_refused_by_name(command):
    Path("in.csv").write_text("device,M\nnpu2,1\n")
    code, _, err = command("--csv", "in.csv")
    assert code == 2
    assert err.startswith("bdforge: in.csv: missing columns dtype_a, dtype_b, dtype_c, m_ct,")


def test_a_job_that_a_driver_may_end_is_told(command):
    code, out, _ = command(DESIGN, "--shape", "1048576x16384x65536")
    assert code == 0
    assert "s (modelled) is more than 2 s, after which drivers stop a command; split the problem" in " ".join(
        out.split()
    )
    assert "drivers stop" not in command(DESIGN)[1]


def test_a_power_mode_slows_the_array_and_not_memory(command):
    def figures(*options: str) -> dict[str, float]:
        code, out, _ = command(DESIGN, "--shape", "256x2560x13824", *options)
        assert code == 0
        lines = [line.split("(") for line in out.splitlines() if "(overlapping)" in line]
        return {name.strip(): float(rest.split()[1]) for name, rest in lines}

    turbo, saver = figures("--power", "turbo"), figures("--power", "saver")
    assert saver["compute"] == pytest.approx(turbo["compute"] * 1.8 / 0.792, rel=0.01)
    assert saver["DRAM bandwidth"] == turbo["DRAM bandwidth"]


def test_ways_to_hand_a_run_over_differ_in_dispatch_only(command):
    def dispatch(way: str) -> float:
        _, out, _ = command(DESIGN, "--shape", "256x2560x640", "--dispatch", way)
        return next(float(line.split(")")[1].split()[0]) for line in out.splitlines() if "dispatch (added)" in line)

    assert [dispatch(way) for way in ("xrt", "elf", "raw", "runlist")] == pytest.approx([158, 158, 59, 22.5], abs=0.6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--power", "eco"), "no clock of strix_halo is published for power mode 'eco'; known: saver, balanced, turbo"),
        (("--dispatch", "mail"), "dispatch 'mail' is not one of xrt, elf, raw, runlist"),
    ],
)
def test_unknown_surroundings_are_named(command, options, message):
    code, _, err = command(DESIGN, "--shape", "256x2560x640", *options)
    assert code == 2
    assert message in err


def test_phoenix_has_one_published_clock():
    with pytest.raises(DeviceError, match="no clock of phoenix is published for power mode 'saver'; known: turbo"):
        timing_in(timing_of("phoenix"), "phoenix", power="saver")


def test_estimate_tells_how_far_models_and_measurements_differ(command):
    code, out, _ = command("--accuracy")
    assert code == 0
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    for goal in goals():
        assert f"{goal.text}: {goal.reached:.1%}, at most {goal.limit:.0%}" in out
        assert goal.text in page
