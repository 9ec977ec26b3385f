"""Designs of other types and layouts than the flagship's in the C++ library and in bdforge-run."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from library_builds import Done, run, small_design

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmPlan, GemmProblem, plan_gemm, spec_from
from support.built_designs import spec_content
from support.differences import same

pytestmark = pytest.mark.slow

INT8, INT4, BF16 = ("int8", "int8", "int32"), ("int8", "int4", "int32"), ("bf16", "bf16", "f32")
LAYOUTS: dict[str, dict[str, Any]] = {
    "packed int8": {"layouts": "row packed row"},
    "row-major": {"layouts": "row row row", "k_mt": 32},
    "column-major B": {"layouts": "row column row", "k_mt": 48},
    "column-major": {"layouts": "column column column", "k_mt": 32},
    "two shims for A": {"layouts": "row row column", "a_shims": 2, "columns": 4},
    "more rows than columns": {"layouts": "row column column", "rows": 4, "columns": 1},
    "three columns": {"layouts": "row packed row", "rows": 4, "columns": 3},
    "the other generation": {"layouts": "column row column", "device": "phoenix"},
}
SIZES = [(33, 41, 70), (130, 17, 5)]


def plan_of(types: tuple[str, ...] = INT8, device: str = "strix_halo", **content: Any) -> GemmPlan:
    return plan_gemm(spec_from(spec_content(16, 16, 16, types=types, **content), "small"), device_named(device))


def ran(build: Path, image: Path, sizes: tuple[int, int, int], *more: Path | str) -> Done:
    M, K, N = map(str, sizes)
    words = ["-M", M, "-K", K, "-N", N, "-d", "emulated", "-i", "1", "--warmup", "0"]
    return run(build / "bin" / "bdforge-run", "-x", image, *words, *more)


def check_files(build: Path, folder: Path, image: Path, types: tuple[str, ...]) -> None:
    """A and B come from files and C goes to one, all row by row, whatever the design's order. bf16 as NumPy's words."""
    M, K, N = sizes = SIZES[1]
    rng, low = np.random.default_rng(3), -8 if types[1] == "int4" else -120
    a, b = rng.integers(-9, 10, (M, K)), rng.integers(low, -low, (K, N))
    dtype = np.dtype(ml_dtypes.bfloat16 if types[0] == "bf16" else np.int8)
    words = np.dtype(np.uint16 if types[0] == "bf16" else np.int8)
    files = {name: folder / f"{name}.npy" for name in "ABC"}
    np.save(files["A"], a.astype(dtype).view(words))
    np.save(files["B"], b.astype(dtype))
    named = [word for name in "AB" for word in ("--in", f"{name}={files[name]}")]
    done = ran(build, image, sizes, *named, "--out", f"C={files['C']}")
    assert (done.returncode, done.stderr) == (0, "")
    c = np.load(files["C"])
    assert (c.dtype, c.shape) == (np.float32 if types[2] == "f32" else np.int32, (M, N))
    same(c, a @ b)
    turned = np.ascontiguousarray(a.T.astype(dtype)).view(words)
    refused = {"its elements are <i2, A takes": a.astype(np.int16), "A has 130 x 17 elements": turned}
    for sentence, array in refused.items():
        np.save(files["A"], array)
        done = ran(build, image, sizes, *named)
        assert done.returncode == 2, done.stderr
        assert sentence in done.stderr
    done = ran(build, image, sizes, "--in", f"C={files['C']}")
    assert (done.returncode, done.stderr.count("small has no input C")) == (2, 1), done.stderr


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_run_and_verified_by_the_library(build: Path, tmp_path: Path, name: str):
    image = small_design(tmp_path, plan_of(**LAYOUTS[name]))
    done = ran(build, image, SIZES[0], "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 2310 elements" in done.stdout
    check_files(build, tmp_path, image, INT8)


@pytest.mark.parametrize("types", [INT4, BF16])
def test_other_types_are_run_and_verified_by_the_library(build: Path, tmp_path: Path, types: tuple[str, ...]):
    image = small_design(tmp_path, plan_of(types, layouts="row packed row"))
    done = ran(build, image, SIZES[0], "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 2310 elements" in done.stdout
    check_files(build, tmp_path, image, types)


PARTS = {"q": 32, "k": 64}


@pytest.mark.parametrize("facts", [{"epilogue": {"gate": "relu2"}}, {"outputs": PARTS}])
def test_gated_products_and_those_of_several_arrays_go_by_files(build: Path, tmp_path: Path, facts: dict[str, Any]):
    """By the manifest alone: nothing in C++ knows of gates, nor of outputs beside C."""
    planned = plan_gemm(
        spec_from(spec_content(16, 32, 32, types=("int8", "int2", "bf16"), **facts), "small"),
        device_named("strix_halo"),
    )
    image, (M, K, N) = small_design(tmp_path, planned), SIZES[0]
    N = N if "epilogue" in facts else sum(PARTS.values())
    inputs = planned.random(GemmProblem(M, K, N), 8)
    for name, array in inputs.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = [word for name in inputs for word in ("--in", f"{name}={tmp_path / name}.npy")]
    words = ["-M", str(M), "-K", str(K), "-N", str(N), "-d", "emulated", "-i", "1", "--warmup", "0"]
    wanted = planned.reference(inputs)
    out = [word for name in wanted for word in ("--out", f"{name}={tmp_path / name}.npy")]
    done = run(build / "bin" / "bdforge-run", "-x", image, *words, *files, *out)
    assert (done.returncode, done.stderr) == (0, "")
    for name, expected in wanted.items():
        found = np.load(tmp_path / f"{name}.npy").view(ml_dtypes.bfloat16).astype(float)
        assert found.shape == (M, PARTS.get(name, N))
        assert (np.abs(found - expected.values) <= (0 if expected.bound is None else expected.bound)).all()
