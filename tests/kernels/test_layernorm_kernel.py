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


def build_of(
    generation: str, width: int, residual: int, x_type: str = "bf16", residual_type: str = "bf16", codes: int = 0
) -> Build:
    options = (f"-DTILE_ELEMENTS={width}", f"-DEPSILON={EPSILON}F", f"-DRESIDUAL={int(residual)}", f"-DCODES={codes}")
    options += (f"-DX_F32={int(x_type == 'f32')}", f"-DRESIDUAL_F32={int(residual_type == 'f32')}")
    return Build(generation, ("layernorm_bf16",), (8, 8, 8), options)


CODED = [("aie2p", 192, 0, "bf16", "bf16"), ("aie2", 96, 1, "f32", "bf16"), ("aie2p", 2560, 1, "f32", "f32")]
BUILDS = [build_of(*CASES[0]), *(build_of(*case, codes=1) for case in CODED[:2])]  # those of each day


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
        lost = (width / 16 + 16) * 2.0**-24 * abs(wide).mean() * root * abs(w.astype(float))
        bound = (2**-8 + 2**-11) * abs(scaled) + 2**-8 * abs(exact) + 1.01 * lost + 2.0**-120
        assert (abs(y[:width].astype(float) - exact) <= bound).all()
        assert (y[width:].astype(float) == 7).all()


def arrays_of_codes(width: int, residual: bool, x_type) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What a kernel fills, and the sum, codes and scale in it: of sums all three are one behind the other."""
    if not residual:
        made = [aligned(width, np.int8), aligned(1, np.float32)]
        return made, made
    size = width * np.dtype(x_type).itemsize
    room = aligned(size + width + 4, np.uint8)
    ends = room[:size].view(x_type), room[size:-4].view(np.int8), room[-4:].view(np.float32)
    return [room], list(ends)


def lost_of(x: np.ndarray, w: np.ndarray, b: np.ndarray, lanes: int) -> float:
    """How far the norm of a row is off at most, as the kernel's contract has it."""
    width, root = len(x), 1 / np.sqrt(x.var() + EPSILON)
    mean = (width / lanes + 16) * 2.0**-24 * abs(x).mean() * root
    of_root = 2.0**-22 + (width / lanes + 8) * 2.0**-25 + mean**2
    return max(abs(w) * mean + 2.0**-22 * (abs((x - x.mean()) * root * w) + abs(b)) + abs(b) * of_root)


@pytest.mark.daily("aie2p-192-0-bf16-bf16", "aie2-96-1-f32-bf16")
@pytest.mark.parametrize(("generation", "width", "residual", "x_type", "residual_type"), CODED)
def test_codes_are_those_of_the_formula(kernel_library, generation, width, residual, x_type, residual_type):
    build = build_of(generation, width, residual, x_type, residual_type, 1)
    library, rng = kernel_library(build), np.random.default_rng(1)
    for number, row in enumerate(rows(width)):
        w, b = rng.normal(size=(2, width)).astype(BF16)
        if number % 3 == 1:
            b[:] = 0
        given = [row.astype(TYPES[x_type]), *([rng.permutation(row).astype(TYPES[residual_type])] if residual else [])]
        made, found = arrays_of_codes(width, residual, TYPES[x_type])
        library.call("layernorm_bf16", *(aligned_copy(one, one.dtype) for one in (*given, w, b)), *made)
        x = (found[0] if residual else given[0]).astype(float)
        wide, shift = w.astype(float), b.astype(float)
        h = (x - x.mean()) / np.sqrt(x.var() + EPSILON) * wide + shift
        most = max(abs(h).max(), 1e-5)
        lost = lost_of(x, wide, shift, 32 if generation == "aie2p" else 16) / most
        assert (abs(found[-2] - 127 * h / most) <= 0.5 + 127 * (2.0**-20 + 2 * lost)).all()
        of_root = 2.0**-22 + (width / (32 if generation == "aie2p" else 16) + 8) * 2.0**-25
        assert abs(found[-1][0] * 127 / most - 1) <= of_root + lost


FORMS = [("bf16", ""), ("bf16", "bf16"), ("f32", ""), ("f32", "bf16"), ("bf16", "f32"), ("f32", "f32")]
"""Types of rows and of residuals."""
TYPES = {"bf16": BF16, "f32": np.float32}


@pytest.mark.daily("bf16--1")
@pytest.mark.parametrize("codes", [0, 1])
@pytest.mark.parametrize(
    ("x_type", "residual"), [FORMS[0], *(pytest.param(*form, marks=pytest.mark.slow) for form in FORMS[1:])]
)
def test_machine_code_gives_the_bits_of_the_compiled_function(kernel_library, x_type, residual, codes):
    width = WIDTH + 32 * codes
    build, rng = build_of("aie2p", width, residual != "", x_type, residual, codes), np.random.default_rng(3)
    kernel = assembled("layernorm_bf16", "aie2p", [option.removeprefix("-D") for option in build.options])
    for row in rows(width):
        given = [row.astype(TYPES[x_type]), *([rng.permutation(row).astype(TYPES[residual])] if residual else [])]
        given += [rng.normal(size=width).astype(BF16) for _ in "wb"]
        made = [*([aligned(width, TYPES[x_type])] if residual else []), aligned(width, BF16)]
        if codes:
            made, _ = arrays_of_codes(width, residual != "", TYPES[x_type])
        mine = [array.copy() for array in made]
        kernel_library(build).call("layernorm_bf16", *(aligned_copy(one, one.dtype) for one in given), *made)
        call(kernel, "aie2p", [*given, *mine])
        for one, wanted in zip(mine, made, strict=True):
            same(one.view(np.uint8), wanted.view(np.uint8), str(row[:3]))


PARTS = [
    (function, part, codes)
    for function, codes in (("layernorm", 0), ("layernorm", 1), ("rmsnorm", 0), ("rmsnorm", 1))
    for part in ("", *PASSES[function, bool(codes)])
]


@pytest.mark.daily("rmsnorm--0")
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
        # some sizes take longer constants
        assert abs(told - counted) <= (3 if codes and function == "layernorm" else 1), (x_type, residual)
