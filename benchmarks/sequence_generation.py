"""How fast instruction streams are made, and how long they are: `python benchmarks/sequence_generation.py`.

For BitNet's layers and GPT-2's GEMM sizes, with packed ternary B and with row- and column-major int8 B: median time of
a generation in Python (the plan's addresses known, BD words seen before) and in C++ (needs g++), operations, bytes,
words per output tile of a core. Then how a stream grows with the number of tiles M*N/(m*n). Measured on this host.
"""

import statistics
import time
from pathlib import Path

from contractions import cpp_seconds

from bdforge.devices import device_named
from bdforge.operators.gemm import AXES, GemmPlan, load_spec, plan_gemm, sequence, spec_from

ROOT = Path(__file__).resolve().parents[1]
LAYERS = {
    "attention q, o": (2560, 2560),
    "attention k, v": (2560, 640),
    "gate and up": (2560, 13824),
    "down": (6912, 2560),
}
ROWS = (1, 7, 128, 256, 512, 1000, 2048, 4096)
GPT2 = [
    *((256, 768, n) for n in (2304, 768, 3072, 50304)), (256, 3072, 768), (256, 2304, 768), (256, 50304, 768),
    *((m, 256, 768) for m in (2304, 768, 3072, 50304)), (768, 256, 3072),
]  # fmt: skip
GROWTH = [(256 * f, 2560, 512 * f) for f in (1, 2, 4, 8, 16, 32, 64)]
RUNS = 21
ROW = "{:>18} {:>10} {:>8} {:>6} {:>10} {:>9} {:>8} {:>10}"

Shape = tuple[int, int, int]


def python_seconds(plan: GemmPlan, shape: Shape) -> float:
    """Median time from sizes to words."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        sequence(plan, *shape).words()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table(plan: GemmPlan, title: str, shapes: list[Shape]) -> list[tuple[float, float | None]]:
    """Print one row for each shape and return the times."""
    print(f"\n{title}")
    print(ROW.format("M x K x N", "Python ms", "C++ ms", "steps", "operations", "bytes", "tiles", "words/tile"))
    times = list(
        zip(
            [python_seconds(plan, s) for s in shapes],
            cpp_seconds([plan], [(0, dict(zip(AXES, s, strict=True))) for s in shapes]),
            strict=True,
        )
    )
    for shape, (python, cpp) in zip(shapes, times, strict=True):
        c = sequence(plan, *shape).counts()
        milliseconds = f"{1e3 * python:.2f}", "-" if cpp is None else f"{1e3 * cpp:.3f}"
        sizes = c.steps, c.operations, c.bytes, c.output_tiles, f"{c.words / c.output_tiles:.2f}"
        print(ROW.format("x".join(map(str, shape)), *milliseconds, *sizes))
    return times


def int8_plan(layout: str) -> GemmPlan:
    """A design with B as others store it."""
    content = {
        "kind": "gemm",
        "types": {"a": "int8", "b": "int8", "c": "int32"},
        "layouts": {"b": layout},
        "tile": {"m": 64, "k": 64, "n": 64},
        "buffers": {"k_mt": 256},
    }
    return plan_gemm(spec_from(content, f"int8_{layout}"), device_named("strix_halo"))


def main() -> None:
    """Print the tables and the medians over BitNet's shapes."""
    plan = plan_gemm(load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml"), device_named("strix_halo"))
    sequence(plan, 256, 2560, 2560).words()
    times = table(plan, "BitNet-b1.58-2B-4T", [(m, *layer) for m in ROWS for layer in LAYERS.values()])
    table(plan, "GPT-2", GPT2)
    table(plan, "Growth with M*N/(m*n)", GROWTH)
    for layout in ("row", "column"):
        table(int8_plan(layout), f"{layout}-major int8 B", [*[(4096, *layer) for layer in LAYERS.values()], *GPT2])
    python = statistics.median(p for p, _ in times)
    compiled = [c for _, c in times if c is not None]
    print(f"\nmedian over BitNet's shapes (measured on this host): Python {1e3 * python:.2f} ms", end="")
    print(f", C++ {1e3 * statistics.median(compiled):.3f} ms" if compiled else "; no g++ for C++")


if __name__ == "__main__":
    main()
