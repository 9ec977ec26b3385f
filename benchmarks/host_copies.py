"""How fast one core copies floats to bf16 and results back, as they stand and transposed: measured on this machine.

Rates are bytes read and written in a second of a core's own time, so that other work beside takes little away. What it
prints are the lines of bdforge/perf/data/host_copies.csv, without their source.
"""

import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Compile the driver beside this file, and run it."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Path(folder, "driver")
        includes = [f"-I{ROOT / 'host' / name}" for name in ("include", "src")]
        sources = [Path(__file__).with_suffix(".cpp"), ROOT / "host/src/float_matrices.cpp"]
        subprocess.run(["g++", "-std=c++20", "-O2", *includes, *sources, "-pthread", "-o", driver], check=True)
        subprocess.run([driver], check=True)


if __name__ == "__main__":
    main()
