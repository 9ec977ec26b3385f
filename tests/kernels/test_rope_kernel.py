"""Rotary embeddings of heads against numpy in float64: both pairings, cancelling pairs, zeros, tiny and huge ones."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from codegen.test_assembled_kernels import call
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
CASES = [
    ("aie2p", 64, 1, "halves"), ("aie2p", 128, 3, "neighbours"),
    ("aie2", 96, 2, "halves"), ("aie2", 32, 5, "neighbours"),
]  # fmt: skip
MACHINE_CASES = [("aie2p", 128, 5, "halves"), ("aie2p", 64, 1, "halves"), ("aie2p", 128, 3, "neighbours")]


def options(dim: int, heads: int, pairs: str) -> tuple[str, ...]:
    return f"HEAD_DIM={dim}", f"TILE_ELEMENTS={dim * heads}", *(["NEIGHBOURS"] if pairs == "neighbours" else [])


def build_of(generation: str, dim: int, heads: int, pairs: str) -> Build:
    return Build(generation, ("rope_bf16",), (8, 8, 8), tuple(f"-D{option}" for option in options(dim, heads, pairs)))


BUILDS = [build_of(*case) for case in dict.fromkeys([*CASES, *MACHINE_CASES])]


def operands(dim: int, heads: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Heads, and the table's row of a position each."""
    rng, found = np.random.default_rng(dim), []
    angles = 10000.0 ** (-np.arange(dim // 2) / (dim // 2))
    for position, scale in ((0, 1), (1, 1), (4095, 3), (17, 1e-9), (131071, 1e30)):
        x = rng.normal(scale=scale, size=(heads, dim))
        found.append((x, np.concatenate([np.cos(position * angles), np.sin(position * angles)])))
    ones, zeros = np.ones((heads, dim)), np.zeros((heads, dim))
    even = np.full(dim, 0.5**0.5)  # of 45 degrees: a c = b s
    found += [(ones, even), (-3 * ones, even), (zeros, even), (-zeros, -even), (ones, np.zeros(dim))]
    mixed = rng.choice([0.0, -0.0, 1.0, -1.0, 1.9921875, -0.99609375], (heads, dim))
    return [*found, (mixed, rng.choice([0.0, 0.5, -0.5, 0.99609375], dim))]


def expected(x: np.ndarray, t: np.ndarray, pairs: str) -> tuple[np.ndarray, np.ndarray]:
    """Values, and how far results may be off."""
    dim = len(t)
    first = np.arange(dim // 2) * (2 if pairs == "neighbours" else 1)
    second = first + (1 if pairs == "neighbours" else dim // 2)
    a, b, c, s = x[:, first], x[:, second], t[: dim // 2], t[dim // 2 :]
    exact, off = np.empty_like(x), np.empty_like(x)
    exact[:, first], exact[:, second] = a * c - b * s, b * c + a * s
    off[:, first] = off[:, second] = 2.0**-16 * (abs(a) + abs(b)) * (abs(c) + abs(s))
    return exact, 2.0**-8 * abs(exact) + off + 2.0**-99


@pytest.mark.parametrize(("generation", "dim", "heads", "pairs"), CASES)
def test_heads_keep_to_their_bound(kernel_library, generation, dim, heads, pairs):
    library = kernel_library(build_of(generation, dim, heads, pairs))
    for row, angles in operands(dim, heads):
        x, t, y = row.astype(BF16), angles.astype(BF16), aligned(row.size + 32, BF16)
        y[row.size :] = 7
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call("rope_bf16", aligned_copy(x, BF16), aligned_copy(t, BF16), y)
        exact, off = expected(x.astype(float), t.astype(float), pairs)
        found = y[: row.size].reshape(row.shape).astype(float)
        assert (abs(found - exact) <= off).all()
        assert x.any() or not found.any()
        assert (y[row.size :].astype(float) == 7).all()


@pytest.mark.parametrize(("generation", "dim", "heads", "pairs"), MACHINE_CASES)
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, generation, dim, heads, pairs):
    library = kernel_library(build_of(generation, dim, heads, pairs))
    kernel = assembled("rope_bf16", generation, options(dim, heads, pairs))
    for row, angles in operands(dim, heads):
        x, t, wanted, found = row.astype(BF16), angles.astype(BF16), aligned(row.size, BF16), np.zeros(row.size, BF16)
        library.call("rope_bf16", aligned_copy(x, BF16), aligned_copy(t, BF16), wanted)
        call(kernel, generation, [x, t, found])
        same(found.view(np.uint16), wanted.view(np.uint16))


GROUPS = [
    ("aie2p", 64, ((2, True), (1, True), (3, False)), "halves", True),
    ("aie2p", 128, ((1, False), (2, True)), "neighbours", True),
    ("aie2p", 64, ((2, True), (1, False), (1, True)), "halves", False),
    ("aie2", 32, ((3, True), (2, False)), "halves", True),
]
"""Heads of groups and whether they are turned, and whether they are scaled."""
SCALES = [
    (1.0, (1.0, -1.0, 1.0)),
    (1 / 3, (1e-3, 0.0, 17.3)),
    (2.0**-40 * 1.3, (-(2.0**-20), 1.7, 2.0**40)),
    (0.0, (1, 2, 3)),
]


def group_options(dim: int, groups: tuple[tuple[int, bool], ...], pairs: str, scaled: bool) -> tuple[str, ...]:
    heads, turned = (",".join(str(int(word)) for word in some) for some in zip(*groups, strict=True))
    of_all = options(dim, sum(count for count, _ in groups), pairs)
    return (*of_all, f"OUTPUT_HEADS={heads}", f"TURNED={turned}", *(["SCALED"] if scaled else []))


def build_of_groups(generation: str, *case) -> Build:
    return Build(generation, ("rope_bf16",), (8, 8, 8), tuple(f"-D{option}" for option in group_options(*case)))


BUILDS += [build_of_groups(*case) for case in GROUPS]


def expected_of_groups(x: np.ndarray, t: np.ndarray, groups, pairs: str, factors) -> tuple[np.ndarray, np.ndarray]:
    """As `expected` has each group, times its factor."""
    found, first, none = [], 0, np.repeat([1.0, 0.0], len(t) // 2)
    for (heads, turned), factor in zip(groups, factors, strict=True):
        exact, _ = expected(x[first : first + heads], t if turned else none, pairs)
        size = abs(x[first : first + heads]).max() * 4
        found.append((exact * factor, 2.0**-8 * abs(exact * factor) + 2.0**-16 * size * abs(factor) + 2.0**-90))
        first += heads
    exact, off = (np.concatenate(some) for some in zip(*found, strict=True))
    return exact, off


@pytest.mark.parametrize("case", GROUPS)
def test_groups_of_heads_have_scales_and_some_stay_as_they_are(kernel_library, case):
    generation, dim, groups, pairs, scaled = case
    library, heads = kernel_library(build_of_groups(*case)), sum(count for count, _ in groups)
    kernel = assembled("rope_bf16", generation, group_options(*case[1:])) if generation == "aie2p" else None
    for number, (row, angles) in enumerate(operands(dim, heads)):
        s, c = SCALES[number % len(SCALES)] if scaled else (1.0, (1.0, 1.0, 1.0))
        x, t, scales = row.astype(BF16), angles.astype(BF16), np.resize(c, 16).astype(np.float32)
        given = [x, t, *([np.full(16, s, np.float32), scales] if scaled else [])]
        y, found = aligned(row.size, BF16), np.zeros(row.size, BF16)
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call("rope_bf16", *(aligned_copy(one, one.dtype) for one in given), y)
        factors = np.float32(s) * scales.astype(float)[: len(groups)]
        exact, off = expected_of_groups(x.astype(float), t.astype(float), groups, pairs, factors)
        assert (abs(y.reshape(row.shape).astype(float) - exact) <= off).all()
        if kernel is not None:
            call(kernel, generation, [*given, found])
            same(found.view(np.uint16), y.view(np.uint16))
