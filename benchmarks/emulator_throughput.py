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

from bdforge.emulator.dma import Channel
from bdforge.mlir import parse
from bdforge.operators.gemm import Problem
from bdforge.runtime import BuiltDesign, first_mismatch, random_operands, reference, run_gemm

DESIGN = Path(__file__).resolve().parents[1] / "build" / "strix_halo" / "gemm_i8_i2_bitnet"
ROWS_IN_PROFILE = 25


def received_words(design: BuiltDesign, a, weights) -> int:
    """Words that S2MM channels write during one run."""
    total = 0
    receive = Channel._receive

    def counting(self: Channel, words) -> None:
        nonlocal total
        total += len(words)
        receive(self, words)

    Channel._receive = counting
    try:
        run_gemm(design, a, weights)
    finally:
        Channel._receive = receive
    return total


def main() -> None:
    """Measure one problem."""
    sizes = [argument for argument in sys.argv[1:] if argument[0].isdigit()]
    m, k, n = map(int, sizes[0].split(",")) if sizes else (256, 2560, 13824)
    design, problem = BuiltDesign.load(DESIGN), Problem(m, k, n)
    a, weights = random_operands(design.plan, problem, 0)
    start = time.perf_counter()
    parse(design.mlir_for(problem), "design.mlir")
    parsing = time.perf_counter() - start
    profiler = cProfile.Profile()
    run = profiler.runcall(run_gemm, design, a, weights) if "--profile" in sys.argv else run_gemm(design, a, weights)
    assert first_mismatch(run.c, reference(a, weights)) is None
    words = received_words(design, a, weights)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{problem} emulated in {run.seconds:.2f} s on this host (measured), {parsing:.2f} s of it parsing")
    print(f"{problem.macs / run.seconds / 1e9:.2f} G emulated MAC/s, {4 * words / run.seconds / 1e6:.0f} MB/s of DMA")
    print(f"peak memory {peak:.0f} MiB")
    if "--profile" in sys.argv:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(ROWS_IN_PROFILE)


if __name__ == "__main__":
    main()
