"""What gate_i32_bf16 makes of a C tile of two matrices' sums, in place: squares exactly, SiLU near float64."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned_copy, tile_options

from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from codegen.test_assembled_kernels import call
from support.differences import same
from support.micro_tiles import MICRO, field_scale, from_micro_tiles, micro_tiled

pytestmark = pytest.mark.slow

ARRAY_ROWS = 4
# generation, (m, k, n), macros
SQUARES = [
    ("aie2p", (16, 8, 64), ("FIELD_SCALED", "C_IN_PARTS", "DIM_RHO=2")),
    ("aie2p", (8, 8, 48), ("C_TRANSPOSED",)),
    ("aie2", (12, 8, 64), ("FIELD_SCALED",)),
]
SILU = [("aie2p", (24, 8, 64), ("FIELD_SCALED", "C_IN_PARTS", "DIM_RHO=3")), ("aie2", (8, 8, 16), ())]


def square_of(generation, tile, macros):
    return Build(generation, ("gate_i32_bf16",), tile, ("-DFUNCTION=relu2", *(f"-D{x}" for x in macros)))


def silu_of(generation, tile, macros):
    options = ("-DFUNCTION=silu", "-DSCALE", f"-DARRAY_ROWS={ARRAY_ROWS}", *(f"-D{x}" for x in macros))
    return Build(generation, ("gate_i32_bf16",), tile, options)


TURNED = ("aie2p", (8, 8, 48), ("C_TRANSPOSED",))
BUILDS = [*(square_of(*case) for case in SQUARES), *(silu_of(*case) for case in (*SILU, TURNED))]


def hostile_sums(rng, m, n, most):
    """Of every size and both signs, with zeros, ones, powers of two and their neighbours, and the largest."""
    c = rng.integers(-most, most + 1, (m, n)) >> rng.integers(0, most.bit_length(), (m, n))
    edges = [0, 1, -1, 2, 255, 256, 257, -257, 511, 513, 65535, -65537, most, -most]
    return np.where(rng.random((m, n)) < 0.3, rng.choice(edges, (m, n)), c)


def halves(c):
    """Columns of the gate, and of up: blocks of 8 in turn."""
    blocks = c.reshape(len(c), -1, 2, 8)
    return blocks[:, :, 0].reshape(len(c), -1), blocks[:, :, 1].reshape(len(c), -1)


def compiled(library):
    """Calls the kernel of a library, where another left its modes."""

    def run(before, buffer, *after):
        library.call("set_modes", 1, 3)  # ceil, symmetric
        library.call("gate_i32_bf16", *before, buffer, *after)

    return run


def finished(run, c, case, *numbers):
    """What a kernel makes of sums, part by part, and nothing of what is behind them."""
    generation, (m, _, n), macros = case
    r, _, t = MICRO[generation, "i8"]
    turned = "C_TRANSPOSED" in macros
    passes = next((int(macro[8:]) for macro in macros if macro.startswith("DIM_RHO=")), 1)
    scale = field_scale(n) if "FIELD_SCALED" in macros else np.ones(n, int)
    buffer = aligned_copy(np.concatenate([micro_tiled(c * scale, r, t, turned), np.full(64, 7)]), np.int32)
    parts = []
    for part in reversed(range(passes)):
        run(numbers[:1], buffer, *numbers[1:], *([part] if passes > 1 else []))
        rows = slice(part * m * n // passes, (part + 1) * m * n // passes)
        parts.insert(0, buffer[rows].view(np.uint16)[: m * n // passes // 2].copy())
    same(buffer[m * n :], 7)
    bits = np.concatenate(parts).astype(np.uint32) << 16
    return from_micro_tiles(bits.view(np.float32), m, n // 2, r, t, turned).astype(np.float64)


def bf16(numbers):
    return numbers.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.parametrize("case", SQUARES, ids=lambda case: "-".join(map(str, case)))
def test_the_square_of_the_rounded_gate_times_rounded_up(kernel_library, case):
    _, (m, _, n), macros = case
    rng = np.random.default_rng(11)
    c = hostile_sums(rng, m, n, (1 << 21) - 1 if "FIELD_SCALED" in macros else (1 << 27) - 1)
    gate, up = (bf16(half) for half in halves(c))
    found = finished(compiled(kernel_library(square_of(*case))), c, case)
    wanted = bf16(bf16(np.maximum(gate, 0) ** 2) * up)
    same(found.astype(np.float32).view(np.uint32), wanted.view(np.uint32))
    assert (wanted == 0).any()
    assert (wanted < 0).any()


@pytest.mark.parametrize("case", SQUARES[:2], ids=lambda case: "-".join(map(str, case)))
def test_machine_code_gives_the_bits_of_the_compiled_square(kernel_library, case):
    _, (m, _, n), macros = case
    c = hostile_sums(np.random.default_rng(13), m, n, (1 << 25) - 1)
    code = assembled("gate_i32_bf16", "aie2p", (f"DIM_M={m}", f"DIM_N={n}", "FUNCTION=relu2", *macros))
    wanted = finished(compiled(kernel_library(square_of(*case))), c, case)
    for executor in (Translated, Interpreter):
        found = finished(lambda _, buffer, *part: call(code, "aie2p", [buffer], *part, executor=executor), c, case)  # noqa: B023
        same(found.astype(np.float32).view(np.uint32), wanted.astype(np.float32).view(np.uint32))


def silu_numbers(rng, m, n):
    """Scales of both signs, so that gates are of both, near and far from 0 but not where floats are subnormal."""
    rows = rng.uniform(-2, 2, ARRAY_ROWS * m).astype(np.float32)
    columns = (10.0 ** rng.uniform(-7, -5.3, n)).astype(np.float32)
    return aligned_copy(np.concatenate([rows, columns]), np.float32)


@pytest.mark.parametrize("case", [SILU[0], TURNED], ids=lambda case: "-".join(map(str, case)))
def test_machine_code_gives_the_bits_of_the_compiled_silu(kernel_library, case):
    _, (m, _, n), macros = case
    rng, core_row = np.random.default_rng(14), 1
    c, numbers = hostile_sums(rng, m, n, (1 << 21) - 1), silu_numbers(rng, m, n)
    defines = (f"DIM_M={m}", f"DIM_N={n}", "FUNCTION=silu", "SCALE", f"ARRAY_ROWS={ARRAY_ROWS}", *macros)
    code = assembled("gate_i32_bf16", "aie2p", defines)
    wanted = finished(compiled(kernel_library(silu_of(*case))), c, case, numbers, core_row)
    found = finished(lambda given, *rest: call(code, "aie2p", [*given, rest[0]], *rest[1:]), c, case, numbers, core_row)
    same(found.astype(np.float32).view(np.uint32), wanted.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("case", SILU, ids=lambda case: "-".join(map(str, case)))
def test_silu_of_a_scaled_gate_times_scaled_up(kernel_library, case):
    """Beside what three roundings and the sigmoid cost, the gate's own rounding counts by how steep silu is there."""
    _, (m, _, n), _ = case
    rng, core_row = np.random.default_rng(12), 2
    c = hostile_sums(rng, m, n, (1 << 21) - 1)
    rows = rng.uniform(-2, 2, ARRAY_ROWS * m).astype(np.float32)
    columns = rng.uniform(1e-6, 1e-5, n).astype(np.float32)
    numbers = aligned_copy(np.concatenate([rows, columns]), np.float32)
    found = finished(compiled(kernel_library(silu_of(*case))), c, case, numbers, core_row)
    scaled = c * rows[core_row * m :][:m, None].astype(float) * columns
    gate, up = halves(scaled)
    sigmoid = 1 / (1 + np.exp(-gate))
    exact, slope = gate * sigmoid * up, np.abs(gate * (1 - sigmoid))
    assert (np.abs(found - exact) <= 2.0**-8 * (4.25 + slope) * np.abs(exact)).all()
    assert np.abs(gate).max() > 10


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([*tile_options(8, 8, 16)], "say what becomes of the gate"),
        ([*tile_options(8, 8, 8), "-DFUNCTION=relu2"], "n must be a multiple of 2 t"),
        ([*tile_options(8, 8, 16), "-DFUNCTION=relu2", "-DFIELD_SCALED"], "4 t when FIELD_SCALED"),
        ([*tile_options(8, 8, 16), "-DFUNCTION=sine"], "sine"),
    ],
)
def test_what_the_gate_cannot_do_does_not_compile(refusal, options, sentence):
    assert sentence in refusal("aie2p", "gate_i32_bf16", *options)


def test_a_pair_of_micro_tiles_takes_20_cycles():
    defines = ("DIM_M=64", "DIM_N=160", "FIELD_SCALED", "FUNCTION=relu2")
    assert 0 < (assembled("gate_i32_bf16", "aie2p", defines).cycles or 0) <= 80 * 20 + 180
