"""What it gains to run cores of one array on all processors: `python benchmarks/cores_at_once.py [RUNS]`.

GEMMs of int8 x int2, of block floats and of bfloat16 x block floats, attention, and scalars that count for long between
two locks: 32 cores of machine code each, on one processor and on all that there are, in turn. Of each: bundles, which
part of the CPU time on one processor they take, the least seconds of the clock, and the median of the ratio, all to
one, run by run. All numbers are measured; a machine that does other work too tells little.
"""

import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bdforge.array.emulator import Result, emulate
from bdforge.core.exact import translated
from bdforge.core.isa.assembler import assemble
from bdforge.design.sequences.buffers import arguments, placed
from bdforge.devices import device_named
from bdforge.operators import plan, render, spec_from
from bdforge.runtime.toolchain.assembled import built_image

PROCESSORS = translated.processors()
DESIGNS = Path(__file__).resolve().parents[1] / "designs"
CASES = {
    "gemm_i8_i2_bitnet": {"M": 256, "K": 2560, "N": 1280},
    "gemm_bfp16_bfp16_bfp16_96x128x64": {"M": 768, "K": 2048, "N": 512},
    "gemm_bf16_bfp16_bf16_64x88x64": {"M": 256, "K": 2816, "N": 512},
    "attention_bf16_bitnet": {"queries": 256, "keys": 256},
}
SCALARS = """
        movxm r8, #48
        movx r9, #-1
        movxm r7, #15
        .p2align 4
round:  acq r8, r9
        movxm r1, #20000
        .p2align 4
again:  add r2, r2, #1
        jnz r1, #again
        add r1, r1, #-1
        add r3, r3, r2
        nop
        mul r4, r2, r2
        xor r5, r5, r2
        jnz r7, #round
        add r7, r7, #-1
        nop
        nop
        nop
        nop
        done
"""
"""16 rounds of 120,000 bundles."""


def of_design(name: str, sizes: dict[str, int]) -> Callable[[], Result]:
    """Runs a problem of a design on random operands."""
    tables = tomllib.loads((DESIGNS / f"{name}.toml").read_text(encoding="utf-8"))
    planned = plan(spec_from(tables | {"problems": [sizes]}, name), device_named("strix_halo"))
    (problem,) = planned.spec.problems
    image = built_image(render(planned, [problem]), name, planned.kernels.defines, [problem.sequence])
    inputs, sequence = planned.random(problem, seed=0), planned.sequence(problem)

    def run() -> Result:
        buffers = arguments(sequence, placed(sequence, inputs))
        return emulate("", buffers, instructions=image.streams[problem.sequence], image=image.xclbin)

    return run


def of_scalars(folder: str) -> Callable[[], Result]:
    """Runs scalars on 32 cores."""
    places = [(column, row) for column in range(8) for row in range(2, 6)]
    tiles = [
        f"%t{c}_{r} = aie.tile({c}, {r})\n%l{c}_{r} = aie.lock(%t{c}_{r}, 0) {{init = 16 : i32}}\n"
        f"%c{c}_{r} = aie.core(%t{c}_{r}) {{ aie.end }}" for c, r in places
    ]  # fmt: skip
    text, elf = "aie.device(npu2) {\n" + "\n".join(tiles) + "\n}\n", Path(folder) / "scalars.elf"
    elf.write_bytes(assemble(SCALARS, "aie2p", "scalars.s").elf())
    return lambda: emulate(text, elfs=dict.fromkeys(places, elf))


def measured(run: Callable[[], Result], processors: int) -> float:
    """Seconds of the clock."""
    translated.processors = lambda: processors
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def share_of_bundles(run: Callable[[], Result]) -> tuple[float, Result]:
    """Of the CPU time on one processor, where what is kept of programs is there already."""
    spent = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal spent
            start = time.thread_time()
            found = function(*arguments)
            spent += time.thread_time() - start
            return found

        return call

    translated.processors = lambda: 1
    run()
    library = translated.compiled()
    run_one, run_some = map(timed, (library.engine_run, library.engine_run_beside))
    with patch.object(library, "engine_run", run_one), patch.object(library, "engine_run_beside", run_some):
        start = time.process_time()
        result = run()
        return spent / (time.process_time() - start), result


def report(name: str, run: Callable[[], Result], runs: int) -> None:
    """One line of a case."""
    share, result = share_of_bundles(run)
    all_, one = zip(*((measured(run, PROCESSORS), measured(run, 1)) for _ in range(runs)), strict=True)
    ratio = statistics.median(a / b for a, b in zip(all_, one, strict=True))
    bundles = sum(core.bundles for core in result.cores)
    print(
        f"{name:34} {bundles / 1e6:5.1f} M bundles, {share:4.0%} of CPU time; at least {min(one):.2f} s on one "
        f"processor, {min(all_):.2f} on {PROCESSORS}; ratio {ratio:.2f} (measured)",
        flush=True,
    )


def main() -> None:
    """Print a line for each case."""
    runs = int(sys.argv[1]) if sys.argv[1:] else 9
    with tempfile.TemporaryDirectory() as folder:
        report("scalars", of_scalars(folder), runs)
    for name, sizes in CASES.items():
        report(name, of_design(name, sizes), runs)


if __name__ == "__main__":
    main()
