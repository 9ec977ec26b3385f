"""Designs of other types and layouts than the flagship's in the C++ library and in bdforge-gemm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library_builds import Done, run, sanitized_build, write_manifest

from bdforge.devices import device_named
from bdforge.operators.gemm import Plan, plan_gemm, spec_from
from bdforge.runtime import b_operand
from support.built_designs import spec_content

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
SIZES = [(64, 64, 64), (1, 1, 1), (33, 41, 70), (70, 100, 33), (130, 17, 5)]


def plan_of(types: tuple[str, ...] = INT8, device: str = "strix_halo", **content: Any) -> Plan:
    return plan_gemm(spec_from(spec_content(16, 16, 16, types=types, **content), "small"), device_named(device))


def design(folder: Path, plan: Plan) -> Path:
    """A stand-in for an xclbin with the plan's manifest beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "small.xclbin").write_bytes(b"no xclbin")
    write_manifest(folder, plan)
    return folder / "small.xclbin"


@pytest.fixture(scope="module")
def build() -> Path:
    return sanitized_build()


def verified(build: Path, image: Path, sizes: tuple[int, int, int]) -> Done:
    M, K, N = map(str, sizes)
    words = ["-M", M, "-K", K, "-N", N, "-d", "software", "--verify", "-i", "2", "--warmup", "0"]
    return run(build / "bin" / "bdforge-gemm", "-x", image, *words)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_run_and_verified_by_the_library(build: Path, tmp_path: Path, name: str):
    image = design(tmp_path, plan_of(**LAYOUTS[name]))
    for sizes in SIZES:
        done = verified(build, image, sizes)
        assert (done.returncode, done.stderr) == (0, ""), sizes
        assert f"verified: {sizes[0] * sizes[2]} elements" in done.stdout


@pytest.mark.parametrize(
    ("types", "layout"),
    [(INT4, "packed"), *((types, layout) for types in (INT8, BF16) for layout in ("row", "column", "packed"))],
)
def test_b_is_what_python_makes_of_it(build: Path, tmp_path: Path, types: tuple[str, ...], layout: str):
    plan = plan_of(types, layouts=f"row {layout} row", k_mt=48)
    words: list[Path | str] = [write_manifest(tmp_path, plan)]
    rng = np.random.default_rng(8)
    matrices = [rng.integers(-8, 8, size[1:], np.int8) * (1 if types == INT4 else 12) for size in SIZES]
    for i, b in enumerate(matrices):
        np.save(tmp_path / f"{i}.npy", np.ascontiguousarray(b.T if layout == "column" else b))
        words += [tmp_path / f"{i}.npy", str(b.shape[0]), str(b.shape[1]), tmp_path / f"{i}.b"]
    done = run(build / "tests" / "pack_probe", *words)
    assert (done.returncode, done.stderr) == (0, "")
    for i, b in enumerate(matrices):
        values = _bf16(b) if types == BF16 else b
        expected = np.ascontiguousarray(b_operand(plan, values)).view(np.uint8).ravel()
        np.testing.assert_array_equal(np.fromfile(tmp_path / f"{i}.b", np.uint8), expected)


def _bf16(values: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("types", "layouts", "sentence"),
    [
        (INT4, "row packed row", "small computes int8 x int4 to int32; the software device knows"),
        (
            ("int8", "int8", "int16"),
            "row row row",
            "the software device knows int8 x int8 and int8 x int2 to int32 only",
        ),
        (BF16, "row row row", "small computes bf16 x bf16 to f32; the software device knows"),
    ],
)
def test_what_the_program_cannot_do_is_refused_by_name(
    build: Path, tmp_path: Path, types: tuple[str, ...], layouts: str, sentence: str
):
    done = verified(build, design(tmp_path, plan_of(types, layouts=layouts)), (16, 16, 16))
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("types", "value", "sentence"),
    [
        (("bf16", "bfp16", "f32"), 0, "this library does not pack B of type bfp16; make it with Python's"),
        (INT4, 8, "the weight at row 0, column 0 is 8, expected -8 to 7"),
    ],
)
def test_b_that_cannot_be_packed_is_refused(
    build: Path, tmp_path: Path, types: tuple[str, ...], value: int, sentence: str
):
    np.save(tmp_path / "b.npy", np.full((32, 32), value, np.int8))
    content = spec_content(32, 32, 32, types=types, layouts="row packed row")
    manifest = write_manifest(tmp_path, plan_gemm(spec_from(content, "small"), device_named("strix_halo")))
    done = run(build / "tests" / "pack_probe", manifest, tmp_path / "b.npy", "32", "32", tmp_path / "b")
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr


def test_a_design_that_is_fed_scales_is_refused(build: Path, tmp_path: Path):
    plan = plan_of(("int8", "int8", "bf16"), layouts="row packed row", epilogue={"scale": True})
    done = verified(build, design(tmp_path, plan), (16, 16, 16))
    assert done.returncode == 2
    assert (
        "spec.epilogue.scale is true, expected false: this library brings no scales or biases to cores" in done.stderr
    )
