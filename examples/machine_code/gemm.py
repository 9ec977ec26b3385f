"""A GEMM design whose cores run machine code written by hand, on the emulated array, compared with numpy.

`gemm.toml` describes the design and `gemm.s` is what each core does. From the command line, step by step:

    bdforge render examples/machine_code/gemm.toml -o gemm.mlir
    bdforge asm examples/machine_code/gemm.s -o core.elf --design gemm.mlir --core 0,2 \
        --define TILE_M=64 --define TILE_K=64 --define TILE_N=64
    bdforge emulate gemm.mlir --elf core.elf --arg a.npy --arg b.npy --arg c.npy --profile

Here with operands made up, brought into the order of the design's DMAs, and for any shape:

    python examples/machine_code/gemm.py 256x2560x2560
"""

import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.array.core_bodies.core_program import core_symbols
from bdforge.array.emulator import Result, emulate
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.isa.assembler import Assembled, assemble
from bdforge.core.isa.hazards import check_source
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem, plan_gemm, spec_from

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Run:
    """What the array and numpy made of random operands, the emulator's result, and the seconds that it took."""

    c: np.ndarray
    expected: np.ndarray
    result: Result
    seconds: float


def plan(tables: Mapping[str, Any]) -> GemmPlan:
    """The design that tables like those of `gemm.toml` describe."""
    return plan_gemm(spec_from(dict(tables), "gemm", "gemm.toml"), device_named("strix_halo"))


def program(planned: GemmPlan, mlir: str) -> tuple[Assembled, list[tuple[int, int]]]:
    """The program of a design's cores, and the cores that run it: all, as their memories are laid out alike."""
    (device,) = (op for op in parse(mlir).walk() if isinstance(op, DeviceOp))
    cores = [(op.tile.column, op.tile.row) for op in device.walk() if isinstance(op, CoreOp)]
    tile = planned.spec.tile
    symbols = {"TILE_M": tile.m, "TILE_K": tile.k, "TILE_N": tile.n} | core_symbols(device, *cores[0])
    return assemble((HERE / "gemm.s").read_text(encoding="utf-8"), "aie2p", "gemm.s", symbols), cores


def run(planned: GemmPlan, problem: GemmProblem, operands_seed: int = 0, **options: Any) -> Run:
    """Multiply random matrices on the emulated array; `options` are those of `emulate`."""
    rng = np.random.default_rng(operands_seed)
    a = rng.integers(-128, 128, (problem.M, problem.K), np.int8)
    b = rng.integers(-128, 128, (problem.K, problem.N), np.int8)
    steps = planned.sequence(problem)
    buffers = arguments(steps, placed(steps, {"A": a, "B": b}))
    mlir = render(planned, [problem])
    assembled, cores = program(planned, mlir)
    assert not check_source(assembled)
    with tempfile.TemporaryDirectory() as folder:
        elf = Path(folder) / "gemm.elf"
        elf.write_bytes(assembled.elf())
        start = time.perf_counter()
        result = emulate(mlir, buffers, sequence=problem.sequence, elfs=dict.fromkeys(cores, elf), **options)
        seconds = time.perf_counter() - start
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)  # exact, and faster than in integers
    return Run(fetched(steps, buffers)["C"], expected, result, seconds)


def main() -> None:
    """Print what a run took."""
    m, k, n = map(int, (sys.argv[1] if sys.argv[1:] else "256x2560x2560").split("x"))
    done = run(plan(tomllib.loads((HERE / "gemm.toml").read_text(encoding="utf-8"))), GemmProblem(m, k, n))
    bundles = sum(core.bundles for core in done.result.cores)
    verdict = "equals numpy" if np.array_equal(done.c, done.expected) else "is not what numpy says"
    print(f"{m}x{k}x{n} on {len(done.result.cores)} cores of machine code {verdict}: {bundles / 1e6:.1f} M bundles")
    busiest = max(core.cycles for core in done.result.cores)
    print(f"{done.seconds:.1f} s on this host (measured); the busiest core issued {busiest} cycles (emulated)")


if __name__ == "__main__":
    main()
