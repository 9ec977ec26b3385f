"""Designs of other types and layouts than the flagship's in the C++ library and in bdforge-gemm."""

from pathlib import Path
from typing import Any

import pytest
from library_builds import Done, run, sanitized_build, small_design

from bdforge.devices import device_named
from bdforge.operators.gemm import Plan, plan_gemm, spec_from
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
OFTEN = {"column-major"}
SIZES = [(33, 41, 70), (130, 17, 5)]


def plan_of(types: tuple[str, ...] = INT8, device: str = "strix_halo", **content: Any) -> Plan:
    return plan_gemm(spec_from(spec_content(16, 16, 16, types=types, **content), "small"), device_named(device))


def design(folder: Path, plan: Plan) -> Path:
    """A stand-in for an xclbin in what a build of the plan leaves."""
    return small_design(folder, plan)


@pytest.fixture(scope="module")
def build() -> Path:
    return sanitized_build()


def verified(build: Path, image: Path, sizes: tuple[int, int, int]) -> Done:
    M, K, N = map(str, sizes)
    words = ["-M", M, "-K", K, "-N", N, "-d", "emulated", "--verify", "-i", "2", "--warmup", "0"]
    return run(build / "bin" / "bdforge-gemm", "-x", image, *words)


def kept(name: str):
    """Each layout takes seconds: kernels and two arrays; operands of all are compared byte by byte elsewhere."""
    return name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [kept(name) for name in LAYOUTS])
def test_every_layout_is_run_and_verified_by_the_library(build: Path, tmp_path: Path, name: str):
    image = design(tmp_path, plan_of(**LAYOUTS[name]))
    for sizes in SIZES:
        done = verified(build, image, sizes)
        assert (done.returncode, done.stderr) == (0, ""), sizes
        assert f"verified: {sizes[0] * sizes[2]} elements" in done.stdout


@pytest.mark.parametrize("types", [INT4, BF16])
def test_other_types_are_run_and_verified_by_the_library(build: Path, tmp_path: Path, types: tuple[str, ...]):
    done = verified(build, design(tmp_path, plan_of(types, layouts="row packed row")), (33, 41, 70))
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 2310 elements" in done.stdout
