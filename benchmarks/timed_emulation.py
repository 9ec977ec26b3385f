"""Timed emulation of BitNet's layers:

    python benchmarks/timed_emulation.py [M,K,N ...] [--design FOLDER] [--kernel-efficiency X]

Prints host seconds of the functional and the timed run, the emulated time and what the emulated shims moved, and lower
bounds that no schedule can beat: all MACs at the rate of the kernel schedule, all bytes of DRAM at its highest rate.
Without dispatch; "whole" counts dispatch and the last token, as docs/operators/gemm_speed.md does. Needs `scons host`.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.emulator import TimingOptions, TimingReport, replay
from bdforge.devices.timing import Timing
from bdforge.operators import plan_of
from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.perf.timed import scheduled_cycles, timing_options
from bdforge.runtime import BuiltDesign, run

DESIGN = Path(__file__).resolve().parents[1] / "build" / "strix_halo" / "gemm_i8_i2_bitnet"
SHAPES = ((256, 2560, 2560), (256, 2560, 640), (256, 6912, 2560), (256, 2560, 13824))
HOST = ("{:>16} {:>6} {:>6} {:>6}", "{:>16} {:6.2f} {:6.2f} {:6.2f}", ("M x K x N", "funct.", "timed", "replay"))
ARRAY = ("{:>8} {:>6} {:>6} {:>6}", "{:8.1f} {:6.2f} {:6.2f} {:6.1f}", ("us", "TOPS", "whole", "MB"))
BOUNDS = ("{:>8} {:>8} {:>6}", "{:8.1f} {:8.1f} {:6.2f}", ("compute", "DRAM", "ratio"))
BUSY = ("{:>6} {:>6} {:>6}", "{:6.1%} {:6.1%} {:6.1%}", ("kern.", "DRAM", "contr."))
PARTS = (HOST, ARRAY, BOUNDS, BUSY)
TITLE, ROW = " | ".join(title for title, _, _ in PARTS), " | ".join(row for _, row, _ in PARTS)
COLUMNS = [name for _, _, names in PARTS for name in names]


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
    """Every byte at the highest rates of reads, of writes and of both ways together."""
    return timing.port_ns(report.dram.read_bytes, report.dram.write_bytes) / 1e9


def measure(design: BuiltDesign, problem: GemmProblem, efficiency: float) -> None:
    """One row of the table."""
    plan = plan_of(design.manifest)
    assert isinstance(plan, GemmPlan)
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
        str(problem), functional, done.seconds, replayed,
        1e6 * array, 2 * problem.macs / array / 1e12, 2 * problem.macs / report.seconds / 1e12,
        (report.dram.read_bytes + report.dram.write_bytes) / 1e6,
        1e6 * compute, 1e6 * dram, array / max(compute, dram), matrix, report.dram.utilisation,
        report.controller.busy_cycles / report.cycles,
    ))  # fmt: skip
    assert array >= max(compute, dram)


def main(
    sizes: Annotated[list[str] | None, typer.Argument(metavar="M,K,N")] = None,
    design: Path = DESIGN,
    kernel_efficiency: float = 1.0,
) -> None:
    """Measure problems, by default BitNet's."""
    built = BuiltDesign.load(design)
    print(f"{built.name} on {built.device.name}, kernels at {kernel_efficiency:.0%} of their schedule")
    print("host seconds (measured): functional, timed, replay | emulated: sequence, whole, moved |")
    print("modelled lower bounds: compute, DRAM, ratio to the larger | emulated: kernels, DRAM, controller busy")
    print(TITLE.format(*COLUMNS))
    for m, k, n in [tuple(map(int, text.split(","))) for text in sizes or []] or SHAPES:
        measure(built, GemmProblem(m, k, n), kernel_efficiency)


if __name__ == "__main__":
    typer.run(main)
