"""How long C++ packs the weights of a BitNet layer, 2560 x 13824, beside Python's place: measured on this machine.

Runs alternate, so that both see the same load; the ratio of medians is told. With another tree's folder its library is
measured too, where it has host/src/layout.hpp.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from bdforge.design.sequences import place
from bdforge.design.sequences.interpret import values_of
from bdforge.devices import device_named
from bdforge.operators import Plan, load_spec, manifest, plan

ROOT = Path(__file__).resolve().parents[1]
K, N, ROUNDS = 2560, 13824, 9
SOURCES = (
    "layout", "layout_copies", "json", "messages", "sequence_program", "program_check", "evaluation", "sequencer",
    "manifest", "files",
)  # fmt: skip
DRIVER = """
#include <chrono>
#include <cstdio>
#include <vector>
#include "layout.hpp"
#include "manifest.hpp"
using namespace bdforge::sequence;
int main(int, char **argv) {
    const Sequencer sequencer(bdforge::load_manifest(argv[1]).source);
    const Program& program = sequencer.source().program;
    const auto values = sequencer.values(Parameters{1, %(K)d, %(N)d});
    const Layout layout(program.operands[1], program.arguments[1], values);
    std::vector<signed char> weights(%(K)dL * %(N)d), packed(layout.reach());
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<signed char>(i * 7 / 5 %% 3) - 1;
    while (std::getchar() != EOF) {
        const auto start = std::chrono::steady_clock::now();
        if (layout.fault(weights.data(), %(N)d)) return 1;
        layout.place(weights.data(), %(N)d, packed.data());
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        std::printf("%%.3f\\n", took.count());
        std::fflush(stdout);
    }
}
"""


def flagship() -> Plan:
    """The ternary design."""
    return plan(load_spec(ROOT / "designs/gemm_i8_i2_bitnet.toml"), device_named("strix_halo"))


def driver(folder: Path, tree: Path) -> subprocess.Popen[str]:
    """A process that packs once for each line it gets, and says the milliseconds."""
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest(flagship(), ())))
    (folder / "driver.cc").write_text(DRIVER % {"K": K, "N": N})
    sources = [folder / "driver.cc", *filter(Path.exists, (tree / "host/src" / f"{name}.cpp" for name in SOURCES))]
    include = [f"-I{tree / 'host/include'}", f"-I{tree / 'host/src'}"]
    words = ["g++", "-std=c++20", "-O2", *include, *map(str, sources), "-o", str(folder / "driver")]
    subprocess.run(words, check=True)
    return subprocess.Popen(
        [folder / "driver", folder / "manifest.json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def asked(process: subprocess.Popen[str]) -> float:
    """Milliseconds of one packing."""
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018
    process.stdin.write("x")
    process.stdin.flush()
    return float(process.stdout.readline())


def in_python() -> float:
    """Milliseconds of one packing by numpy."""
    program = flagship().program
    given = dict.fromkeys(program.parameters, 0) | {"M": 1, "K": K, "N": N}
    weights = (np.arange(K * N) * 7 // 5 % 3 - 1).astype(np.int8).reshape(K, N)
    elements = values_of(program, given)[program.arguments[1].elements]
    buffer = np.zeros(elements * program.arguments[1].bits // 8, np.uint8)
    start = time.perf_counter()
    place(program.operands[1], values_of(program, given), weights, buffer)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trees = [ROOT, *map(Path, sys.argv[1:])]
        drivers = [driver(Path(folder, str(i)), tree) for i, tree in enumerate(trees)]
        rounds = [[*map(asked, drivers), in_python()] for _ in range(ROUNDS)]
        for process in drivers:
            process.communicate("")
    first, *others = (median(times) for times in zip(*rounds, strict=True))
    print(f"{ROOT}: {first:.1f} ms for {K} x {N} ternary weights (measured, median of {ROUNDS})")
    for name, took in zip([*map(str, trees[1:]), "Python"], others, strict=True):
        print(f"{name}: {took:.1f} ms, {took / first:.2f} times as long")


if __name__ == "__main__":
    main()
