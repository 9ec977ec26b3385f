"""rowscale against numpy, on the emulated array: `pip install -e .`, then `pytest`."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bdforge
from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from

DESIGN = Path(__file__).resolve().parents[1] / "designs" / "rowscale.toml"


def command(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "bdforge.cli", *map(str, words)], check=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The design, built for the emulated array."""
    folder = tmp_path_factory.mktemp("build")
    command("build", DESIGN, "--out", folder)
    return folder / "strix_halo" / "rowscale"


def test_runs_of_other_sizes_are_as_the_reference_has_them(built):
    command("run", built, "--shape", "1", "--shape", "7")


@pytest.mark.parametrize("rows", [1, 2, 33])
def test_the_array_computes_what_numpy_does(built, rows: int):
    rng = np.random.default_rng(rows)
    x, w = (rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((rows, 256), 256))
    with bdforge.load(built, device="emulated") as scale:
        found = scale(x, w)
    np.testing.assert_array_equal(found, (x.astype(np.float32) * w.astype(np.float32)).astype(ml_dtypes.bfloat16))


def test_a_width_of_no_whole_vectors_is_refused():
    spec = spec_from({"kind": "rowscale", "width": 100}, "odd")
    with pytest.raises(SpecError, match="odd: width = 100 is no multiple of 32"):
        plan(spec, device_named("strix_halo"))
