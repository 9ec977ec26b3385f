"""Timed emulation of BitNet's layers: `python benchmarks/timed_emulation.py [M,K,N ...] [--kernel-efficiency X]`.

Prints host seconds of the functional and the timed run, the emulated time, and lower bounds that no schedule can beat:
all MACs at the rate of the kernel schedule, and all bytes of DRAM at its highest rate. Needs `scons host`.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from bdforge.devices.timing import Timing
from bdforge.emulator import TimingOptions, TimingReport, replay
from bdforge.operators import plan_of
from bdforge.operators.gemm import Plan, Problem
from bdforge.perf.timed import scheduled_cycles, timing_options
from bdforge.runtime import BuiltDesign, run

DESIGN = Path(__file__).resolve().parents[1] / "build" / "strix_halo" / "gemm_i8_i2_bitnet"
SHAPES = ((256, 2560, 2560), (256, 2560, 640), (256, 6912, 2560), (256, 2560, 13824))
TITLE = "{:>16} {:>6} {:>6} {:>6} | {:>8} {:>7} | {:>8} {:>8} {:>6} | {:>6} {:>6} {:>6}"
COLUMNS = (
    "M x K x N",
    "funct.",
    "timed",
    "replay",
    "us",
    "TOPS",
    "compute",
    "DRAM",
    "ratio",
    "kern.",
    "DRAM",
    "contr.",
)
ROW = "{:>16} {:6.2f} {:6.2f} {:6.2f} | {:8.1f} {:7.2f} | {:8.1f} {:8.1f} {:6.2f} | {:6.1%} {:6.1%} {:6.1%}"


def compute_seconds(options: TimingOptions, calls: dict[str, int], cores: int) -> float:
    """Every kernel call of the busiest core at its cost, with nothing in between."""
    cycles = 0.0
    for name, count in calls.items():
        cost = options.kernels[name]
        assert not callable(cost)
        cycles += count / cores * cost
    assert options.timing is not None
    return cycles / options.timing.array_hz


def dram_seconds(timing: Timing, report: TimingReport) -> float:
    """Every byte at the highest rates."""
    return (report.dram.read_bytes / timing.dram_read_gb_s + report.dram.write_bytes / timing.dram_write_gb_s) / 1e9


def measure(design: BuiltDesign, problem: Problem, efficiency: float) -> None:
    """One row of the table."""
    plan = plan_of(design.manifest)
    assert isinstance(plan, Plan)
    inputs = plan.random(problem, 0)
    cycles = scheduled_cycles(plan, efficiency=efficiency)
    options = replace(timing_options(plan, problem, "ideal"), kernels=cycles)
    functional = min(run(design, inputs).seconds for _ in range(2))
    done = run(design, inputs, options)
    report = done.timing
    assert report is not None
    assert done.trace is not None
    assert options.timing is not None
    start = time.perf_counter()
    replay(done.trace, options)
    replayed = time.perf_counter() - start
    calls = done.trace.kernels()
    array = report.cycles / report.array_hz
    compute = compute_seconds(options, calls, len(report.cores))
    dram = dram_seconds(options.timing, report)
    matrix = sum(report.core_share(name) for name in calls)
    print(ROW.format(
        str(problem), functional, done.seconds, replayed, 1e6 * array, 2 * problem.macs / array / 1e12,
        1e6 * compute, 1e6 * dram, array / max(compute, dram), matrix, report.dram.utilisation,
        report.controller.busy_cycles / report.cycles,
    ))  # fmt: skip
    assert array >= max(compute, dram)


def main() -> None:
    """Measure the problems of the command line, by default BitNet's."""
    arguments = sys.argv[1:]
    efficiency = (
        float(arguments[arguments.index("--kernel-efficiency") + 1]) if "--kernel-efficiency" in arguments else 1.0
    )
    given = [tuple(map(int, text.split(","))) for text in arguments if "," in text]
    design = BuiltDesign.load(DESIGN)
    print(f"{design.name} on {design.device.name}, kernels at {efficiency:.0%} of their schedule")
    print("host seconds (measured): functional, timed, replay | emulated: sequence without dispatch and sync |")
    print("modelled lower bounds: compute, DRAM, ratio to the larger | emulated: kernels, DRAM, controller busy")
    print(TITLE.format(*COLUMNS))
    for m, k, n in given or SHAPES:
        measure(design, Problem(m, k, n), efficiency)


if __name__ == "__main__":
    main()
