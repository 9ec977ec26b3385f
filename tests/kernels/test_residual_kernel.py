"""Sums of rows with scaled ones against numpy in float64, and in float32 step by step; and as machine code."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from bdforge.operators.rows.norms import SCALED_SUM_CYCLES
from bdforge.operators.scaled_rows import scaled_sum
from codegen.test_assembled_kernels import call
from support.differences import same

BF16 = ml_dtypes.bfloat16
NAME = "residual_bf16"
CASES = [("aie2p", 96, BF16), ("aie2p", 64, np.float32), ("aie2", 80, BF16)]
SCALES = [(1.0, 1.0), (1 / 3, 1.7), (0.0, 2.0), (-0.007874016, 2.0**-40 / 3), (2.0**45, -(2.0**44) * 0.7), (3e-5, 0.0)]


def options(width: int, x_type: type) -> tuple[str, ...]:
    return (f"TILE_ELEMENTS={width}", *(["X_F32=1"] if x_type is np.float32 else []))


def build_of(generation: str, width: int, x_type: type) -> Build:
    return Build(generation, (NAME,), (8, 8, 8), tuple(f"-D{option}" for option in options(width, x_type)))


BUILDS = [build_of(*case) for case in CASES]


def rows(width: int, x_type: type) -> list[tuple[np.ndarray, np.ndarray]]:
    """x and r: random ones, those of other sizes, zeros of both signs, and sums that cancel."""
    rng = np.random.default_rng(width)
    found = [(rng.normal(scale=size, size=width), rng.normal(size=width) * 300) for size in (1, 1e3, 1e-6)]
    found += [(np.zeros(width), np.full(width, -0.0)), (-np.zeros(width), rng.normal(size=width))]
    same_sizes = rng.choice([1.0, -1.0, 0.0, 1.9921875], width)
    found += [(same_sizes, -same_sizes), (same_sizes, rng.permutation(same_sizes))]
    return [(x.astype(x_type), r.astype(BF16)) for x, r in found]


def compiled(library, x: np.ndarray, r: np.ndarray, scales: tuple[float, float]) -> np.ndarray:
    found = aligned(x.size + 32, x.dtype)
    found[x.size :] = 7
    library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
    given = [aligned_copy(np.array([scale]), np.float32) for scale in scales]
    library.call(NAME, aligned_copy(x, x.dtype), aligned_copy(r, BF16), *given, found)
    assert (found[x.size :].astype(float) == 7).all()
    return found[: x.size]


@pytest.mark.parametrize(("generation", "width", "x_type"), CASES)
def test_sums_are_numpys_and_within_their_bound(kernel_library, generation, width, x_type):
    library, ulp = kernel_library(build_of(generation, width, x_type)), 2.0**-9 if x_type is BF16 else 2.0**-24
    for x, r in rows(width, x_type):
        for scales in SCALES:
            found = compiled(library, x, r, scales).astype(float)
            s, c = map(np.float32, scales)
            wanted = scaled_sum(x[None], r[None], np.array([s]), np.array([c]))[0].astype(x_type)
            same(found, wanted.astype(float))
            terms = r.astype(float) * float(s) * float(c)
            exact = x.astype(float) + terms
            lost = 2 * ulp * abs(exact) + 2.0**-21 * (abs(x.astype(float)) + abs(terms)) + 2.0**-120
            assert (abs(found - exact) <= lost).all()


@pytest.mark.parametrize(("width", "x_type"), [case[1:] for case in CASES[:2]])
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, width, x_type):
    library = kernel_library(build_of("aie2p", width, x_type))
    kernel = assembled(NAME, "aie2p", options(width, x_type))
    of_vector, of_row = SCALED_SUM_CYCLES
    assert x_type is np.float32 or kernel.cycles == of_vector * width // 32 + of_row
    for x, r in rows(width, x_type):
        for s, c in SCALES:
            found = np.zeros_like(x)
            call(kernel, "aie2p", [x, r, np.full(16, s, np.float32), np.full(16, c, np.float32), found])
            wanted = compiled(library, x, r, (s, c))
            if x_type is np.float32:
                found, wanted = found + 0, wanted + 0  # zeros are of either sign
            same(found.view(f"u{found.itemsize}"), wanted.view(f"u{found.itemsize}"))
