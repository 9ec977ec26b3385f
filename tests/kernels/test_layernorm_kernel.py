"""LayerNorm of rows against numpy in float64: random rows, large means, one spike, zeros, huge and tiny ones."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from bdforge.operators.rows.norms import PASSES, cycles
from codegen.test_assembled_kernels import call
from support.differences import same

BF16 = ml_dtypes.bfloat16
EPSILON = 1e-5
CASES = [("aie2p", 32, 0), ("aie2", 48, 1), ("aie2p", 2560, 1)]
WIDTH = 160


def build_of(generation: str, width: int, residual: int, x_type: str = "bf16", residual_type: str = "bf16") -> Build:
    options = (f"-DTILE_ELEMENTS={width}", f"-DEPSILON={EPSILON}F", f"-DRESIDUAL={int(residual)}")
    options += (f"-DX_F32={int(x_type == 'f32')}", f"-DRESIDUAL_F32={int(residual_type == 'f32')}")
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


FORMS = [("bf16", ""), ("bf16", "bf16"), ("f32", ""), ("f32", "bf16"), ("bf16", "f32"), ("f32", "f32")]
"""Types of rows and of residuals."""
TYPES = {"bf16": BF16, "f32": np.float32}


@pytest.mark.parametrize(
    ("x_type", "residual"), [FORMS[0], *(pytest.param(*form, marks=pytest.mark.slow) for form in FORMS[1:])]
)
def test_machine_code_gives_the_bits_of_the_compiled_function(kernel_library, x_type, residual):
    build, rng = build_of("aie2p", WIDTH, residual != "", x_type, residual), np.random.default_rng(3)
    kernel = assembled("layernorm_bf16", "aie2p", [option.removeprefix("-D") for option in build.options])
    for row in rows(WIDTH):
        given = [row.astype(TYPES[x_type]), *([rng.permutation(row).astype(TYPES[residual])] if residual else [])]
        given += [rng.normal(size=WIDTH).astype(BF16) for _ in "wb"]
        made = [*([aligned(WIDTH, TYPES[x_type])] if residual else []), aligned(WIDTH, BF16)]
        mine = [array.copy() for array in made]
        kernel_library(build).call("layernorm_bf16", *(aligned_copy(one, one.dtype) for one in given), *made)
        call(kernel, "aie2p", [*given, *mine])
        for one, wanted in zip(mine, made, strict=True):
            same(one.view(np.uint16), wanted.view(np.uint16), str(row[:3]))


PARTS = [
    (function, part, codes)
    for function, codes in (("layernorm", 0), ("rmsnorm", 0), ("rmsnorm", 1))
    for part in ("", *PASSES[function])
]


@pytest.mark.parametrize(("function", "part", "codes"), PARTS)
def test_plans_tell_the_cycles_of_machine_code(function, part, codes):
    name = f"{function}_{part}_bf16".replace("__", "_")
    for (x_type, residual), width in zip(FORMS, (512, 1024, 2560) * 2, strict=True):
        of_vector, of_call = cycles(function, part, residual, bool(codes), x_type)
        options = [f"TILE_ELEMENTS={width}", "EPSILON=1e-5F", f"CODES={codes}", f"X_F32={int(x_type == 'f32')}"]
        options += [f"RESIDUAL={int(residual != '')}", f"RESIDUAL_F32={int(residual == 'f32')}"]
        counted = assembled(name, "aie2p", options).cycles
        assert counted is not None
        told = of_vector * width // 32 + of_call
        assert abs(told - counted) <= 1, (x_type, residual)  # some sizes take longer constants
