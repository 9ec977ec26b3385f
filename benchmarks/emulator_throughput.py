"""How fast the emulated array runs a BitNet layer: `python benchmarks/emulator_throughput.py [M,K,N] [--profile]`.

Prints host seconds of parsing, loading and running, emulated MAC/s and DMA bytes/s (words received by S2MM channels,
counted in a second, untimed run), peak memory, and with --profile where the time goes. Needs `scons host`.
"""

import cProfile
import pstats
import resource
import sys
import time
from pathlib import Path

from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.mlir import parse
from bdforge.operators import plan_of
from bdforge.operators.gemm import GemmProblem
from bdforge.runtime import BuiltDesign, first_mismatch, run

DESIGN = Path(__file__).resolve().parents[1] / "build" / "strix_halo" / "gemm_i8_i2_bitnet"
ROWS_IN_PROFILE = 25


def received_words(design: BuiltDesign, inputs) -> int:
    """Words that S2MM channels write during one run."""
    total = 0
    receive = DmaChannel._receive

    def counting(self: DmaChannel, words) -> None:
        nonlocal total
        total += len(words)
        receive(self, words)

    DmaChannel._receive = counting
    try:
        run(design, inputs)
    finally:
        DmaChannel._receive = receive
    return total


def main() -> None:
    """Measure one problem."""
    sizes = [argument for argument in sys.argv[1:] if argument[0].isdigit()]
    m, k, n = map(int, sizes[0].split(",")) if sizes else (256, 2560, 13824)
    design, problem = BuiltDesign.load(DESIGN), GemmProblem(m, k, n)
    plan = plan_of(design.manifest)
    inputs = plan.random(problem, 0)
    start = time.perf_counter()
    parse(design.mlir, "design.mlir")
    parsing = time.perf_counter() - start
    profiler = cProfile.Profile()
    done = profiler.runcall(run, design, inputs) if "--profile" in sys.argv else run(design, inputs)
    assert first_mismatch(done.outputs["C"], plan.reference(inputs)["C"].values) is None
    words = received_words(design, inputs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{problem} emulated in {done.seconds:.2f} s on this host (measured), {parsing:.2f} s of it parsing")
    print(f"{problem.macs / done.seconds / 1e9:.2f} G emulated MAC/s, {4 * words / done.seconds / 1e6:.0f} MB/s of DMA")
    print(f"peak memory {peak:.0f} MiB")
    if "--profile" in sys.argv:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(ROWS_IN_PROFILE)


if __name__ == "__main__":
    main()
