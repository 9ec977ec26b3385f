"""How many bundles a second one core of machine code runs: `python benchmarks/machine_code.py`.

Three loops of AIE2P: multiplications in every bundle beside loads, as the inner loop of an int8 GEMM has them;
the GEMM of the tests, which waits for its results in NOPs; and scalars. Then our own kernels at their full rate: 8,000
calls of int8 x int2, 64x128x64, and of int8 x int8, 64x64x64, in the program of a core. Each is run by the plain
interpreter, by the fast executor, and by that with compiled states, in seconds of this process. Last, the GEMM of
`examples/machine_code` on 32 cores with all its DMA, 256x2560x2560 or the shape that is given, in seconds of the clock.
All numbers are measured.
"""

import runpy
import time
from pathlib import Path

import numpy as np

from bdforge.array.core_bodies.core_program import core_program, core_symbols
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.core import isa
from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.exact.translated_program import translated
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import core_segments
from bdforge.core.python_kernel import AcquireLock
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.operators.gemm.core_tiles import K_STEPS, OUTPUT_TILES

ROOT = Path(__file__).resolve().parents[1]
GEMM = ROOT / "tests" / "emulator" / "cores" / "isa" / "data" / "gemm_aie2p.s"
FULL = "nopa ; nopb ; nops ; nopx ; nopm ; "
NOPS = "nop\n" * 6
MULTIPLIES = f"""
        movxm ls, #loop
        movxm le, #last
        movxm r0, #0x308
        movxm p0, #0x70400
        movxm p1, #0x71400
        movxm lc, #{{passes}}
        {NOPS}
        .p2align 4
loop:   vlda x0, [p0], #64 ; vldb x1, [p1], #64 ; vmac dm0, dm0, x4, x6, r0
        vlda x2, [p0], #-64 ; vldb x3, [p1], #-64 ; vmac dm1, dm1, x4, x7, r0
        {FULL} vmac dm2, dm2, x5, x6, r0
        .p2align 4
last:   {FULL} vmac dm3, dm3, x5, x7, r0
        done
"""
SCALARS = """
        movxm r1, #{passes}
        .p2align 4
again:  add r2, r2, #1
        jnz r1, #again
        add r1, r1, #-1
        add r3, r3, r2
        nop
        mul r4, r2, r2
        xor r5, r5, r2
        done
"""
OWN = {
    "kind": "gemm", "types": {"a": "int8", "b": "int2", "c": "int32"}, "tile": {"m": 64, "k": 128, "n": 64},
    "layouts": {"a": "row", "b": "packed", "c": "row"}, "problems": [],
}  # fmt: skip
BYTES = {
    "kind": "gemm", "types": {"a": "int8", "b": "int8", "c": "int32"}, "tile": {"m": 64, "k": 64, "n": 64},
    "layouts": {"a": "row", "b": "row", "c": "row"}, "problems": [],
}  # fmt: skip
STEPS, TILES = 80, {Interpreter: 1, Translated: 100}
_WORD, _LINE = 4, 64
PASSES = {Interpreter: 1500, Translated: 2_000_000}


def measured(executor: type, text: str, products: int | None = None) -> float:
    """Bundles a second of a program until DONE, or until it has waited for its operands `products` times."""
    ((_, code),) = assemble(text, "aie2p", "benchmark.s").code
    core = executor(isa.load("aie2p"), code, memory())
    start = time.process_time()
    waits = 0
    for request in core.run(1 << 40):
        waits += isinstance(request, AcquireLock)
        if products is not None and waits > 3 * products:
            break
    return core.bundles / (time.process_time() - start)


def memory() -> DataMemory:
    """Zeros, where vectors do not reach over lines of this machine's cache either."""
    every = np.zeros(4 * WINDOW_BYTES + _LINE, np.uint8)
    first = -every.ctypes.data % _LINE
    return DataMemory(list(every[first : first + 4 * WINDOW_BYTES].reshape(4, WINDOW_BYTES)))


def own_kernel(executor: type, spec: dict) -> tuple[bytes, float]:
    """A core's program with our kernel, and its bundles a second: `STEPS` calls for each of `TILES` tiles of C."""
    planned = plan_gemm(spec_from(spec, "own"), device_named("strix_halo"))
    op = next(op for op in parse(render(planned, [])).walk() if isinstance(op, CoreOp))
    kernels = {name: assembled(name, "aie2p", planned.kernels.defines) for name in planned.kernels.symbols}
    ((segment,), *_) = core_segments(core_program(op, kernels).elf)
    symbols = core_symbols(op.tile.device_op, op.tile.column, op.tile.row)
    held = memory()
    held.store(symbols["rtp"] + _WORD * K_STEPS, _WORD, STEPS)
    held.store(symbols["rtp"] + _WORD * OUTPUT_TILES, _WORD, TILES[executor])
    core = executor(isa.load("aie2p"), segment.data, held)
    start, turns = time.process_time(), 0
    for request in core.run(1 << 40):
        turns += isinstance(request, AcquireLock) and request.lock == symbols["go"]
        if turns > 1:
            break
    return segment.data, core.bundles / (time.process_time() - start)


def compile_states(code: bytes) -> None:
    """Let what a program has run most be compiled, if it is not yet."""
    states = translated(isa.load("aie2p"), code).compiled
    if not states.attached:
        states.start()
        states.wait()


def main() -> None:
    """Print one line for each program."""
    measured(Translated, "done")  # compile
    for name, text in (("multiplications", MULTIPLIES), ("scalars", SCALARS)):
        plain, fast = (measured(e, text.format(passes=PASSES[e])) for e in (Interpreter, Translated))
        print(f"{name:16} {fast / 1e6:6.1f} M bundles/s, {fast / plain:6.0f} x the interpreter's (measured)")
    source = GEMM.read_text(encoding="utf-8")
    plain, fast = measured(Interpreter, source, 1), measured(Translated, source, 1000)
    print(f"{'GEMM of 64 cubed':16} {fast / 1e6:6.1f} M bundles/s, {fast / plain:6.0f} x the interpreter's (measured)")
    for name, spec in (("own int8 x int2", OWN), ("own int8 x int8", BYTES)):
        (_, plain), (code, fast) = own_kernel(Interpreter, spec), own_kernel(Translated, spec)
        compile_states(code)
        _, compiled = own_kernel(Translated, spec)
        for title, rate in ((name, fast), ("  compiled", compiled)):
            print(f"{title:16} {rate / 1e6:6.1f} M bundles/s, {rate / plain:6.0f} x the interpreter's (measured)")
    runpy.run_path(str(ROOT / "examples" / "machine_code" / "gemm.py"), run_name="__main__")


if __name__ == "__main__":
    main()
