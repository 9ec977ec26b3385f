"""LayerNorm of rows against numpy in float64: random rows, large means, one spike, zeros, huge and tiny ones."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

BF16 = ml_dtypes.bfloat16
EPSILON = 1e-5
CASES = [("aie2p", 32, 0), ("aie2", 48, 1), ("aie2p", 2560, 1)]


def build_of(generation: str, width: int, residual: int) -> Build:
    options = (f"-DTILE_ELEMENTS={width}", f"-DEPSILON={EPSILON}F", f"-DRESIDUAL={residual}")
    return Build(generation, ("layernorm_bf16",), (8, 8, 8), options)


BUILDS = [build_of(*case) for case in CASES[:1]]  # those of each day


def rows(width: int) -> list[np.ndarray]:
    rng = np.random.default_rng(width)
    spike = np.zeros(width)
    spike[width // 2] = -300
    normal = [rng.normal(mean, scale, width) for mean, scale in ((0, 1), (100, 1), (-3, 1e-3), (0, 1e9), (1e-9, 1e-9))]
    return [*normal, spike, np.zeros(width), np.full(width, 2.5), np.arange(width)]


@pytest.mark.daily("aie2p-32-0")
@pytest.mark.parametrize(("generation", "width", "residual"), CASES)
def test_rows_keep_to_their_bound(kernel_library, generation, width, residual):
    library, rng = kernel_library(build_of(generation, width, residual)), np.random.default_rng(1)
    w, b = rng.normal(size=(2, width)).astype(BF16)
    for row in rows(width):
        x, more = row.astype(BF16), rng.permutation(row).astype(BF16)
        y, total = aligned(width + 32, BF16), aligned(width, BF16)
        y[width:] = 7
        given = [aligned_copy(operand, BF16) for operand in ([x, more] if residual else [x])]
        made = [total, y] if residual else [y]
        library.call("layernorm_bf16", *given, aligned_copy(w, BF16), aligned_copy(b, BF16), *made)
        if residual:
            assert (total.astype(float) == (x.astype(np.float32) + more.astype(np.float32)).astype(BF16)).all()
        wide = (total if residual else x).astype(float)
        root = 1 / np.sqrt(wide.var() + EPSILON)
        scaled = (wide - wide.mean()) * root * w.astype(float)
        exact = scaled + b.astype(float)
        lost = width * 2.0**-24 * abs(wide).max() * root * abs(w.astype(float))
        bound = (2**-8 + 2**-11) * abs(scaled) + 2**-8 * abs(exact) + 1.01 * lost + 2.0**-120
        assert (abs(y[:width].astype(float) - exact) <= bound).all()
        assert (y[width:].astype(float) == 7).all()
