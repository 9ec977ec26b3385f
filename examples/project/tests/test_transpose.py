"""transpose against numpy, at several sizes on one loaded array: `pytest` builds it first."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bdforge

ROOT = Path(__file__).resolve().parents[1]
ADDED = 3


def transposed(X: np.ndarray) -> np.ndarray:
    """What the design computes; it names this function as its `reference`."""
    return X.T + np.int32(ADDED)


@pytest.fixture(scope="module")
def built() -> Path:
    subprocess.run([sys.executable, "-m", "SCons", "-Q", "design=transpose", "host"], cwd=ROOT, check=True)
    return ROOT / "build" / "strix_halo" / "transpose"


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (64, 32), (48, 80)])
def test_the_array_computes_what_numpy_does(built: Path, rows: int, columns: int):
    x = np.random.default_rng(1).integers(-(1 << 24), 1 << 24, (rows, columns), np.int32)
    with bdforge.load(built, device="emulated") as transpose:
        np.testing.assert_array_equal(transpose(x), x.T + ADDED)
