"""The 24 contractions of the TCCG set at full size: `python benchmarks/contractions.py [DEVICE]`.

How long planning takes in Python and the stream in C++ (measured on this host; needs g++), what is staged, how much of
the cores' work is the answer's, and the time on a product (modelled, our kernel's cycles, inputs staged before).
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bdforge.devices import device_named
from bdforge.operators import Plan, manifest
from bdforge.operators.contraction import contraction, plan_contraction
from bdforge.operators.contraction.price import useful
from bdforge.operators.gemm import load_spec, plan_gemm
from bdforge.perf import estimate
from bdforge.perf.bounds.contraction import contraction_case

ROOT = Path(__file__).resolve().parents[1]
DESIGN = ROOT / "designs" / "gemm_bf16_bf16_f32_64x64x64.toml"
ROW = "{:>3} {:<22} {:>8} {:>7} {:>8} {:>8} {:>9} {:>9} {:>7} {}"
READERS = ("json", "messages", "sequence_program", "program_check", "evaluation", "sequencer", "manifest", "files")
"""Of the library: what the driver makes designs with."""


def cases() -> list[tuple[str, str, dict[str, int]]]:
    """Number, expression and sizes of each."""
    with (ROOT / "benchmarks" / "tccg.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(r["id"], r["einsum"], {p[0]: int(p[2:]) for p in r["sizes"].split()}) for r in rows]


def cpp_seconds(plans: Sequence[Plan], runs: Sequence[tuple[int, Mapping[str, int]]]) -> list[float | None]:
    """Median times from sizes to words of runs, (number of a plan, sizes); None without g++."""
    if shutil.which("g++") is None:
        return [None] * len(runs)
    host = ROOT / "host"
    with tempfile.TemporaryDirectory() as folder:
        manifests, program = Path(folder) / "manifests", Path(folder) / "driver"
        manifests.write_text("".join(f"{json.dumps(manifest(plan, ()))}\n" for plan in plans))
        sources = [Path(__file__).with_name("sequence_driver.cc"), *(host / "src" / f"{name}.cpp" for name in READERS)]
        options = ["-std=c++20", "-O2", "-pthread", f"-I{host / 'include'}", f"-I{host / 'src'}"]
        subprocess.run(["g++", *options, *map(str, sources), "-o", str(program)], check=True)
        lines = [
            " ".join(map(str, (number, *(sizes.get(name, 0) for name in plans[number].program.parameters))))
            for number, sizes in runs
        ]
        printed = subprocess.run(
            [program, manifests], input="\n".join(lines), text=True, capture_output=True, check=True
        ).stdout
    return [float(line) / 1e6 for line in printed.split()]


def main() -> None:
    """Print a row for each contraction."""
    device = device_named(sys.argv[1] if len(sys.argv) > 1 else "hawk_point")
    gemm = plan_gemm(load_spec(DESIGN), device)
    plans, seconds = [], []
    for _, expression, sizes in cases():
        start = time.perf_counter()
        plans.append(plan_contraction(contraction(expression, sizes), gemm, once="AB"))
        seconds.append(time.perf_counter() - start)
    times = cpp_seconds(plans, [(number, plan.problem.sizes) for number, plan in enumerate(plans)])
    print(ROW.format("#", "einsum", "plan ms", "C++ ms", "steps", "KiB", "us", "GFLOPS", "useful", "staged"))
    for (number, expression, _), plan, took, cpp in zip(cases(), plans, seconds, times, strict=True):
        found, sequence = estimate(contraction_case(plan)), plan.sequence(plan.problem)
        staged = "".join(side.name for side in plan.sides if side.staged) or "none"
        print(
            ROW.format(
                number, expression, f"{1e3 * took:.0f}", "-" if cpp is None else f"{1e3 * cpp:.2f}",
                plan.choice.mapped.steps, len(sequence.words()) * 4 // 1024, f"{found.time_us:.0f}",
                f"{found.tops * 1e3:.0f}", f"{useful(plan.choice.mapped):.0%}", staged,
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
