"""Our GEMM kernels against numpy and against their plain references."""

from collections.abc import Callable

import numpy as np
import pytest
from kernel_library import KERNELS, PLAIN, Build, KernelError, aligned, aligned_copy, gxx, tile_options

from support.differences import same
from support.micro_tiles import MICRO, from_micro_tiles, micro_tiled

TILES = [(8, 8, 32), (40, 24, 64), (24, 72, 96)]
Operands = Callable[[np.random.Generator, int, int, int], tuple[np.ndarray, np.ndarray]]
AS_BUILT = ("-O3", "-march=native")
# generation, (m, k, n), rho, macros
CASES = [("aie2", (24, 24, 64), 2, ("A_TRANSPOSED",)), ("aie2p", (24, 16, 32), 3, ("C_TRANSPOSED",))]


def ternary(tile, *options):
    """All that a tile needs with the references, or the product alone with further options."""
    others = () if options else ("unscale_i32", "zero_i32", "reference")
    return Build("aie2p", ("mm_i8_i2_i32", *others), tile, options)


def build_of(generation, tile, rho, macros):
    options = (f"-DMICRO_R={MICRO[generation, 'i2'][0]}", f"-DDIM_RHO={rho}", *(f"-D{macro}" for macro in macros))
    return Build(generation, ("mm_i8_i2_i32", "reference"), tile, options)


BUILDS = [*map(ternary, TILES[:2]), *(build_of(*case) for case in CASES)]
EXTREME: dict[str, Operands] = {
    "random": lambda rng, m, k, n: (rng.integers(-128, 128, (m, k)), rng.integers(-1, 2, (k, n))),
    "lowest activations, all +1": lambda rng, m, k, n: (np.full((m, k), -128), np.ones((k, n), int)),
    "lowest activations, all -1": lambda rng, m, k, n: (np.full((m, k), -128), -np.ones((k, n), int)),
    "highest activations, all 0": lambda rng, m, k, n: (np.full((m, k), 127), np.zeros((k, n), int)),
}


def packed(weights):
    """Byte by byte, from the contract's words."""
    k, n = weights.shape
    out = np.zeros((n // 32, k // 8, 8, 8), np.uint8)
    for row in range(k):
        for column in range(n):
            q, j, within = column // 32, column % 32 // 8, column % 8
            out[q, row // 8, row % 8, within] |= (int(weights[row, column]) + 1) << (2 * j)
    return out.ravel()


def scale(n):
    return 4 ** (np.arange(n) // 8 % 4)


def operands(tile, kind="random", seed=1):
    activations, weights = EXTREME[kind](np.random.default_rng(seed), *tile)
    return (
        activations,
        weights,
        aligned_copy(micro_tiled(activations, 8, 8), np.int8),
        aligned_copy(packed(weights), np.uint8),
    )


@pytest.mark.parametrize("kind", EXTREME)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_product_is_exact(kernel_library, tile, kind):
    m, _, n = tile
    library = kernel_library(ternary(tile, *(AS_BUILT if tile == TILES[-1] else ())))
    activations, weights, a, b = operands(tile, kind)
    c = aligned(m * n, np.int32)
    library.call("mm_i8_i2_i32", a, b, c)
    same(from_micro_tiles(c, m, n, 8, 8), activations @ weights * scale(n))


@pytest.mark.parametrize("options", [(), (PLAIN,)], ids=str)
def test_calls_accumulate_over_steps_of_k(kernel_library, options):
    m, _, n = tile = 40, 24, 64
    library = kernel_library(ternary(tile, *options))
    c, expected = aligned(m * n, np.int32), np.zeros((m, n), np.int64)
    for seed in range(5):
        activations, weights, a, b = operands(tile, seed=seed)
        library.call("mm_i8_i2_i32", a, b, c)
        expected += activations @ weights
    same(from_micro_tiles(c, m, n, 8, 8), expected * scale(n))


@pytest.mark.parametrize("tile", TILES[:2], ids=str)
def test_kernels_agree_with_their_references_on_any_bytes(kernel_library, tile):
    m, k, n = tile
    library = kernel_library(ternary(tile))
    rng = np.random.default_rng(7)
    a = aligned_copy(rng.integers(-128, 128, m * k), np.int8)
    b = aligned_copy(sum(rng.integers(0, 3, k * n // 4) << shift for shift in (0, 2, 4, 6)), np.uint8)
    c = aligned_copy(rng.integers(-(2**31), 2**31, m * n), np.int32)
    for name, inputs in (("mm_i8_i2_i32", (a, b)), ("unscale_i32", ()), ("zero_i32", ())):
        plain = aligned_copy(c, np.int32)
        library.call(name, *inputs, c)
        library.call(f"{name}_ref", *inputs, plain)
        same(c, plain, name)


def test_sums_stay_in_int32_up_to_the_stated_depth(kernel_library):
    m, k, n = tile = 8, 8, 32
    library = kernel_library(ternary(tile))
    _, _, a, b = operands(tile, "lowest activations, all -1")
    c = aligned_copy(np.full(m * n, 128 * (262144 - 2 * k)) * micro_tiled(np.tile(scale(n), (m, 1)), 8, 8), np.int32)
    library.call("mm_i8_i2_i32", a, b, c)
    library.call("unscale_i32", c)
    same(c, 128 * (262144 - k))


def test_modes_left_by_another_kernel_do_not_change_the_result(kernel_library):
    m, _, n = tile = 8, 8, 32
    library = kernel_library(ternary(tile))
    library.call("set_modes", 1, 3)  # ceil, symmetric
    c = aligned_copy(np.arange(m * n) - 200, np.int32)
    expected = from_micro_tiles(c, m, n, 8, 8) // scale(n)
    library.call("unscale_i32", c)
    same(from_micro_tiles(c, m, n, 8, 8), expected)


@pytest.mark.parametrize(("generation", "tile", "rho", "macros"), CASES)
def test_parts_transposes_and_both_generations_are_exact(kernel_library, generation, tile, rho, macros):
    (m, k, n), (r, s, t) = tile, MICRO[generation, "i2"]
    library = kernel_library(build_of(generation, tile, rho, macros))
    rng = np.random.default_rng(11)
    c, plain, expected = aligned(m * n, np.int32), aligned(m * n, np.int32), np.zeros((m, n), int)
    for _ in range(2):
        activations, weights = EXTREME["random"](rng, m, k, n)
        b = aligned_copy(packed(weights), np.uint8)
        for part, rows in enumerate(np.split(activations, rho)):
            a = aligned_copy(micro_tiled(rows, r, s, "A_TRANSPOSED" in macros), np.int8)
            for name, target in (("mm_i8_i2_i32", c), ("mm_i8_i2_i32_ref", plain)):
                library.call(name, a, b, target, *([part] if rho > 1 else []))
        expected += activations @ weights
    same(c, plain)
    same(c, micro_tiled(expected * scale(n), r, t, "C_TRANSPOSED" in macros))


@pytest.mark.parametrize("place", ["a", "b", "c"])
def test_misaligned_operands_are_refused(kernel_library, place):
    m, k, n = 8, 8, 32
    skew = {name: 16 if name == place else 0 for name in "abc"}
    a = aligned(m * k, np.int8, skew["a"])
    b = aligned(k * n // 4, np.uint8, skew["b"])
    c = aligned(m * n, np.int32, skew["c"])
    with pytest.raises(KernelError, match=r"aie::load_v: 64 lanes at .*, which is 16 bytes past a 64-byte"):
        kernel_library(ternary((m, k, n))).call("mm_i8_i2_i32", a, b, c)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (tile_options(16, 8, 32)[:2], "define the tile with -DDIM_M=m -DDIM_K=k -DDIM_N=n"),
        (tile_options(20, 8, 32), "m must be a multiple of rho * r"),
        ([*tile_options(24, 8, 32), "-DDIM_RHO=2"], "m must be a multiple of rho * r"),
        ([*tile_options(25, 8, 32), "-DDIM_RHO=3"], 'm must be a multiple of rho"'),
        (tile_options(16, 12, 32), "k must be a multiple of s"),
        (tile_options(16, 8, 48), "n must be a multiple of 4 t"),
        (tile_options(0, 8, 32), "m, k and n must be positive"),
        ([*tile_options(8, 8, 32), "-DB_TRANSPOSED"], "packed weights come in the kernel's own order"),
    ],
)
def test_illegal_tiles_do_not_compile(refusal, options, sentence):
    assert sentence in refusal("aie2p", "mm_i8_i2_i32", *options)


def preprocessed(name: str, *options: str) -> str:
    result = gxx("-E", "-P", *options, *tile_options(16, 40, 32), KERNELS / "aie2p" / name)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_loop_promises_follow_the_tile_for_peano_and_vanish_on_hosts():
    assert "#pragma clang loop min_iteration_count(40 / (Tile::K * B::run))" in preprocessed(
        "mm_i8_i2_i32.cc", "-D__AIECC__"
    )
    assert "#pragma clang" not in preprocessed("mm_i8_i2_i32.cc")
