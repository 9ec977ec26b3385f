"""A few figures of this tree's speed, followed from commit to commit: `./go bench FILE [--runs N] [--page PAGE]`.

Each run appends one line of JSON to FILE: commit, machine, versions, and for each figure the least and the median of
CPU seconds of this process and its children (measured), so that other work beside takes little away. With --page, what
FILE has is drawn over commits; `--runs 0` only draws. Figures of different machines are never on one line.
"""

import argparse
import json
import os
import platform
import resource
import runpy
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import machine_code
import numpy as np
import sequence_generation
import tracked_page
from lowered_design import design

import bdforge
from bdforge.array.mlir import parse
from bdforge.core.exact.translated import Translated
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem, load_spec, plan_gemm

ROOT = Path(__file__).resolve().parents[1]
LINES, PASSES, RUNS = 2_500, 2_000_000, 5


def _flagship() -> GemmPlan:
    return plan_gemm(load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml"), device_named("strix_halo"))


def _started() -> None:
    subprocess.run([sys.executable, "-m", "bdforge.cli", "--version"], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


def _multiplied() -> None:
    machine_code.measured(Translated, machine_code.MULTIPLIES.format(passes=PASSES))


def _emulated() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "machine_code" / "gemm.py"))
    tables = tomllib.loads((ROOT / "examples" / "machine_code" / "gemm.toml").read_text(encoding="utf-8"))
    done = example["run"](example["plan"](tables), GemmProblem(256, 512, 512))
    assert np.array_equal(done.c, done.expected)


FIGURES: dict[str, Callable[[], object]] = {
    "start of a command": _started,
    "parse 2,500 lines": lambda: parse(design(LINES), "design.mlir"),
    "plan and render BitNet's GEMM": lambda: render(_flagship(), [GemmProblem(256, 2560, 2560)]),
    "21 sequences of it": lambda: sequence_generation.python_seconds(_flagship(), (256, 2560, 13824)),
    "a core: 8 M bundles": _multiplied,
    "emulate 256x512x512 on 32 cores": _emulated,
}


def cpu_seconds() -> float:
    """Of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(figure: Callable[[], object], runs: int) -> dict[str, float]:
    """Least and median CPU seconds of some runs, behind one that is not counted."""
    figure()
    seconds = []
    for _ in range(runs):
        start = cpu_seconds()
        figure()
        seconds.append(cpu_seconds() - start)
    return {"min_s": round(min(seconds), 4), "median_s": round(statistics.median(seconds), 4), "runs": runs}


def _told(*words: str) -> str:
    """What a program prints; nothing where it is missing."""
    try:
        return subprocess.run(words, text=True, capture_output=True, check=False, cwd=ROOT).stdout.strip()
    except OSError:
        return ""


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def line_of(figures: Mapping[str, dict[str, float]]) -> dict[str, Any]:
    """What is written of a run."""
    return {
        "commit": _told("git", "rev-parse", "HEAD"), "changed": bool(_told("git", "status", "--porcelain")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": _processor(), "processors": os.cpu_count(), "system": platform.system()},
        "versions": {
            "bdforge": bdforge.__version__, "python": platform.python_version(), "numpy": np.__version__,
            "g++": _told("g++", "-dumpfullversion"),
        },
        "figures": dict(figures),
    }  # fmt: skip


def main() -> None:
    """Measure, append, draw."""
    parser = argparse.ArgumentParser(prog="./go bench", description="Measure a few figures and append them to a file.")
    parser.add_argument("file", type=Path, help="JSON lines; made when needed")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each figure; 0 only draws [{RUNS}]")
    parser.add_argument("--page", type=Path, help="HTML page to write of all lines")
    chosen = parser.parse_args()
    if chosen.runs < 0:
        parser.error(f"--runs {chosen.runs}: 0 or more")
    if chosen.runs:
        found = {}
        for name, figure in FIGURES.items():
            found[name] = measured(figure, chosen.runs)
            print(f"{name:32} {found[name]['min_s']:8.3f} s, median {found[name]['median_s']:.3f} (measured)")
        with chosen.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line_of(found)) + "\n")
    if chosen.page:
        try:
            chosen.page.write_text(tracked_page.page(tracked_page.read(chosen.file)), encoding="utf-8")
        except (OSError, ValueError) as error:
            parser.error(str(error))
        print(f"wrote {chosen.page}")


if __name__ == "__main__":
    main()
