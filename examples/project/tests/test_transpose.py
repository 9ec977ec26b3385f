"""transpose against numpy: `pytest` builds it first, `scons emulate` checks what it has built."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import bdforge
from bdforge.runtime import load_kernels

ROOT = Path(__file__).resolve().parents[1]
ROWS, COLUMNS, ADDED = 64, 32, 3


def check(folder: Path) -> None:
    """The design in `folder` turns any matrix and adds to it, on the emulated array."""
    x = np.random.default_rng(1).integers(-(1 << 24), 1 << 24, (ROWS, COLUMNS), np.int32)
    y = np.zeros((COLUMNS, ROWS), np.int32)
    mlir = (folder / "transpose.mlir").read_text()
    bdforge.emulate(mlir, [x, y], load_kernels(folder / "kernels" / "libtranspose.so"), poison=True)
    np.testing.assert_array_equal(y, x.T + ADDED)


def test_the_array_computes_what_numpy_does():
    subprocess.run([sys.executable, "-m", "SCons", "-Q", "design=transpose", "host"], cwd=ROOT, check=True)
    check(ROOT / "build" / "strix_halo" / "transpose")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: every element right (emulated)")
