"""Codes of normed rows against numpy in float64: exact but near halves, whatever the rows hold; and as machine code."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from bdforge.operators.rows.norms import cycles
from codegen.test_assembled_kernels import call
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
EPSILON = 1e-6
CASES = [("aie2p", 64), ("aie2", 96), ("aie2p", 2560)]
NAME = "rmsnorm_bf16"


def options(width: int, **given: int) -> tuple[str, ...]:
    return (f"TILE_ELEMENTS={width}", f"EPSILON={EPSILON}F", *(f"{name}={value}" for name, value in given.items()))


def build_of(generation: str, width: int, **given: int) -> Build:
    return Build(generation, (NAME,), (8, 8, 8), tuple(f"-D{option}" for option in options(width, **given)))


BUILDS = [build_of(*case, **given) for case in CASES for given in ({"CODES": 1}, {"RESIDUAL": 1, "CODES": 1})]
BUILDS += [build_of("aie2p", width, RESIDUAL=1) for width in (64, 2560)]


def rows(width: int) -> list[np.ndarray]:
    """Random rows of every size; one spike, equal maxima, zeros, ties, and rows that the clamp of 1e-5 decides."""
    rng = np.random.default_rng(width)
    found = [rng.normal(scale=scale, size=width) for scale in (1, 1, 3, 1e-3, 1e-7, 1e-9, 1e-20, 1e9, 1e15)]
    spike, ties = np.zeros(width), rng.integers(-127, 128, width) / 2 + 0.0
    spike[width // 2], ties[3] = -300, 127
    late = rng.normal(size=width)
    late[-1] = 1e4
    return [*found, spike, ties, late, np.zeros(width), np.full(width, -1.0), np.where(np.arange(width) % 2, 3, -3.0)]


def check_codes(x: np.ndarray, w: np.ndarray, codes: np.ndarray, scale: float) -> None:
    """As transformers' formula in float64."""
    x, w = x.astype(float), w.astype(float)
    root = 1 / np.sqrt((x * x).mean() + EPSILON)
    most = max(abs(x * w * root).max(), 1e-5)
    exact = x * w * root * 127 / most
    near = abs(abs(exact - np.trunc(exact)) - 0.5) <= 127 * 2.0**-20
    wrong = codes.astype(float) != np.rint(exact)
    assert not (wrong & ~near).any()
    assert (abs(codes.astype(float) - exact) <= 0.5 + 127 * 2.0**-20).all()
    assert abs(scale / (most / 127) - 1) <= 2.0**-22 + (len(x) / 16 + 8) * 2.0**-25


@pytest.mark.parametrize(("generation", "width"), CASES)
def test_codes_are_exact_but_near_halves(kernel_library, generation, width):
    library, rng = kernel_library(build_of(generation, width, CODES=1)), np.random.default_rng(1)
    for number, row in enumerate(rows(width)):
        w = np.ones(width) if number > 9 else rng.normal(size=width)
        w[:2] = 0, -1
        x, w, y, scale = row.astype(BF16), w.astype(BF16), aligned(width + 64, np.int8), aligned(16, np.float32)
        y[width:], scale[1:] = 7, 7
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call(NAME, aligned_copy(x, BF16), aligned_copy(w, BF16), y, scale)
        check_codes(x, w, y[:width], scale[0])
        assert (y[width:] == 7).all()
        assert (scale[1:] == 7).all()


def summed(library, x: np.ndarray, residual: np.ndarray, w: np.ndarray, codes: bool) -> list[np.ndarray]:
    """Sum and results of the compiled kernel of a sum."""
    width = len(x)
    made = [aligned(width, np.int8), aligned(1, np.float32)] if codes else [aligned(width, BF16)]
    made.insert(0, aligned(width, BF16))
    library.call(NAME, *(aligned_copy(operand, BF16) for operand in (x, residual, w)), *made)
    return made


@pytest.mark.parametrize(("generation", "width"), CASES)
def test_codes_of_a_sum_are_those_of_the_rounded_sum(kernel_library, generation, width):
    library, rng = kernel_library(build_of(generation, width, RESIDUAL=1, CODES=1)), np.random.default_rng(2)
    w = rng.normal(size=width).astype(BF16)
    for row in rows(width):
        x, residual = row.astype(BF16), rng.permutation(row).astype(BF16)
        residual[::5] = (-row[::5]).astype(BF16)
        found, codes, scale = summed(library, x, residual, w, codes=True)
        assert (found.astype(float) == (x.astype(np.float32) + residual.astype(np.float32)).astype(BF16)).all()
        check_codes(found, w, codes, scale[0])


@pytest.mark.parametrize(
    ("given", "width"),
    [
        ({"RESIDUAL": 1, "CODES": 1}, 64),
        ({"RESIDUAL": 1, "CODES": 1, "X_F32": 1}, 64),
        ({"CODES": 1, "X_F32": 1}, 192),
        ({"RESIDUAL": 1, "CODES": 1, "X_F32": 1}, 2560),
        *(
            (given, width)
            for given in ({"CODES": 1}, {"RESIDUAL": 1}, {"RESIDUAL": 1, "CODES": 1})
            for width in (64, 2560)
        ),
    ],
)
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, given, width):
    library, rng = kernel_library(build_of("aie2p", width, **given)), np.random.default_rng(3)
    kernel, w = assembled(NAME, "aie2p", options(width, **given)), rng.normal(size=width).astype(BF16)
    w[0], of_x = 0, np.float32 if "X_F32" in given else BF16
    x_type = "f32" if "X_F32" in given else "bf16"
    of_vector, of_call = cycles("rmsnorm", "", "bf16" if "RESIDUAL" in given else "", "CODES" in given, x_type)
    assert kernel.cycles == of_vector * width // 32 + of_call
    for row in rows(width):
        x, residual = row.astype(of_x), rng.permutation(row).astype(BF16)
        operands = [x, residual, w] if "RESIDUAL" in given else [x, w]
        wanted = [aligned(width, of_x)] if "RESIDUAL" in given else []
        wanted += [aligned(width, np.int8), aligned(1, np.float32)] if "CODES" in given else [aligned(width, BF16)]
        library.call(NAME, *(aligned_copy(operand, operand.dtype) for operand in operands), *wanted)
        found = [np.zeros_like(result) for result in wanted]
        call(kernel, "aie2p", [*operands, *found])
        for one, other in zip(found, wanted, strict=True):
            same(one.view(f"u{one.itemsize}"), other.view(f"u{other.itemsize}"))
