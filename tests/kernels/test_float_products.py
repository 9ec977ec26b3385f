"""The products of bfloat16 and block floats, for every layout, part and edge, against numpy.

The stand-in's order of sums is part of its definition, so that numpy can repeat it bit by bit; the bounds that a device
must keep are checked apart from that.
"""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.devices.formats import decode, encode, error_bound, pack_bfp16, rounded, unpack_bfp16
from support.differences import same
from support.micro_tiles import from_micro_tiles, micro_tiled, packed_b

BF16 = ml_dtypes.bfloat16
MICRO = {"aie2p": (8, 8, 8), "aie2": (4, 8, 4)}
DTYPES = {"bf16": BF16, "f32": np.float32, "bfp16": np.uint8}
AS_BUILT, AS_BUILT_TILE = ("-O3", "-march=native"), (48, 24, 56)

# generation, kernel, (m, k, n), rho, macros: odd numbers of micro-tiles both ways, one micro-tile, every transpose
CASES = [
    ("aie2p", "mm_bf16_bf16_f32", (24, 40, 40), 1, ("A_TRANSPOSED",)),
    ("aie2p", "mm_bf16_bf16_f32", AS_BUILT_TILE, 2, ("B_TRANSPOSED",)),
    ("aie2p", "mm_bf16_bf16_bf16", (24, 16, 40), 1, ()),
    ("aie2p", "mm_bf16_bf16_bf16", (48, 16, 16), 3, ("A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED")),
    ("aie2p", "mm_bfp16_bfp16_f32", (24, 40, 24), 1, ()),
    ("aie2p", "mm_bfp16_bfp16_bf16", (48, 16, 8), 2, ("C_TRANSPOSED",)),
    ("aie2p", "mm_bfp16_bfp16_bfp16", (24, 16, 40), 1, ()),
    ("aie2p", "mm_bf16_bfp16_f32", (24, 16, 24), 3, ("A_TRANSPOSED",)),
    ("aie2p", "mm_bf16_bfp16_bf16", (8, 8, 8), 1, ()),
    ("aie2p", "mm_bf16_bfp16_bfp16", (16, 40, 24), 1, ("A_TRANSPOSED",)),
    ("aie2", "mm_bf16_bf16_f32", (12, 24, 20), 1, ("A_TRANSPOSED", "B_TRANSPOSED")),
    ("aie2", "mm_bf16_bf16_bf16", (24, 16, 12), 2, ("C_TRANSPOSED",)),
]


def build_of(generation, kernel, tile, rho, macros):
    """A kernel with its reference."""
    shape = [f"-DMICRO_{name}={size}" for name, size in zip("RST", MICRO[generation], strict=True)]
    speed = AS_BUILT if tile == AS_BUILT_TILE else ()
    options = (*speed, f"-DDIM_RHO={rho}", *shape, *(f"-D{macro}" for macro in macros))
    return Build(generation, (kernel, "floats"), tile, options)


BUILDS = [build_of(*case) for case in CASES if case[2] != AS_BUILT_TILE]


def anywhere(blocks):
    """Block floats, which may begin at any byte."""
    found = aligned(blocks.shape, np.uint8, skew_bytes=9)
    found[...] = blocks
    return found


class Case:
    """One kernel for one tile: its library, its layouts, its meaning."""

    def __init__(self, build, generation, kernel, tile, rho, macros):
        self.kernel, self.tile, self.rho, self.generation = kernel, tile, rho, generation
        _, self.type_a, self.type_b, self.type_c = kernel.split("_")
        self.r, self.s, self.t = MICRO[generation]
        self.turned = [f"{name}_TRANSPOSED" in macros for name in "ABC"]
        self.blocks = generation == "aie2p"
        self.library = build(build_of(generation, kernel, tile, rho, macros))

    def a_tile(self, a):
        if self.type_a == "bfp16":
            return anywhere(pack_bfp16(a))
        return aligned_copy(micro_tiled(a, self.r, self.s, self.turned[0]).astype(BF16), BF16)

    def b_tile(self, b):
        if self.type_b == "bfp16":
            return anywhere(pack_bfp16(b.T))
        return aligned_copy(packed_b(b, self.s, self.t, self.turned[1]).astype(BF16), BF16)

    def c_tile(self, c):
        if self.type_c == "bfp16":
            return anywhere(pack_bfp16(c))
        dtype = DTYPES[self.type_c]
        return aligned_copy(micro_tiled(c, self.r, self.t, self.turned[2]).astype(dtype), dtype)

    def c_matrix(self, tile):
        m, _, n = self.tile
        if self.type_c == "bfp16":
            return unpack_bfp16(tile.reshape(m // 8, n // 8, 72))
        return from_micro_tiles(tile, m, n, self.r, self.t, self.turned[2]).astype(np.float32)

    def call(self, name, a, b, c):
        """All parts of one step of K."""
        rows = self.tile[0] // self.rho
        for part in range(self.rho):
            tile = self.a_tile(a[part * rows : (part + 1) * rows])
            self.library.call(name, tile, self.b_tile(b), c, *([part] if self.rho > 1 else []))

    def stored(self, c):
        """C as memory holds it between calls."""
        if self.type_c == "bfp16":
            return decode(encode(c))
        return c.astype(DTYPES[self.type_c]).astype(np.float32)

    def step(self, c, a, b):
        """One call on whole matrices, sum by sum."""
        a, b = (rounded(a), rounded(b, 0)) if self.blocks else (a, b)
        depth = 8 if self.blocks else 1
        for start in range(0, self.tile[1], depth):
            steps = slice(start, start + depth)
            c = c + (a[:, steps].astype(np.float64) @ b[steps].astype(np.float64)).astype(np.float32)
        return self.stored(c)

    def operands(self, seed, draw):
        """A and B as matrices of values that their types hold."""
        m, k, n = self.tile
        rng = np.random.default_rng(seed)
        a, b = draw(rng, (m, k)).astype(BF16), draw(rng, (k, n)).astype(BF16)
        a = rounded(a) if self.type_a == "bfp16" else a.astype(np.float32)
        b = rounded(b, 0) if self.type_b == "bfp16" else b.astype(np.float32)
        return a, b


def normal(rng, shape):
    return rng.normal(size=shape)


def wide(rng, shape):
    """Magnitudes over 12 decades, zeros, and blocks of zeros."""
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, shape)
    values[rng.random(shape) < 0.1] = 0
    values[: shape[0] // 2, :8] = 0
    return values


def huge_and_tiny(rng, shape):
    """Products leave the range in which a block's scale is a normal float; sums do not overflow."""
    return rng.normal(size=shape) * 2.0 ** np.where(rng.random((shape[0], 1)) < 0.5, 55.0, -60.0)


def small_integers(rng, shape):
    return rng.integers(-11, 12, shape)


def kept(case):
    """A kernel compiled for speed is for the sweep: that takes as long as all others together."""
    return pytest.param(case, marks=pytest.mark.slow if case[2] == AS_BUILT_TILE else ())


@pytest.fixture(params=[*map(kept, CASES)], ids=lambda case: "-".join(map(str, case)))
def case(request, kernel_library):
    return Case(kernel_library, *request.param)


@pytest.mark.parametrize("draw", [normal, wide, huge_and_tiny])
def test_steps_of_k_follow_the_recurrence_bit_by_bit(case, draw):
    m, _, n = case.tile
    expected = np.zeros((m, n), np.float32)
    c = case.c_tile(expected)
    case.library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    for seed in range(3):
        a, b = case.operands(seed, draw)
        case.call(case.kernel, a, b, c)
        expected = case.step(expected, a, b)
        same(case.c_matrix(c), expected)


def test_sums_stay_within_their_bound(case):
    (m, k, n), steps = case.tile, 4
    c = case.c_tile(np.zeros((m, n), np.float32))
    pairs = [case.operands(seed, wide) for seed in range(steps)]
    for a, b in pairs:
        case.call(case.kernel, a, b, c)
    a, b = np.hstack([a for a, _ in pairs]), np.vstack([b for _, b in pairs])
    bound = error_bound(a, b, k=k, accumulator=case.type_c, blocks=case.blocks)
    seen = (rounded(a), rounded(b, 0)) if case.blocks else (a, b)
    error = np.abs(case.c_matrix(c) - seen[0].astype(np.float64) @ seen[1].astype(np.float64))
    assert (error <= bound).all()
    assert bound.max() < np.abs(a).max() * np.abs(b).max() * k * steps


def test_small_integers_are_exact_where_c_holds_them(case):
    a, b = case.operands(7, small_integers)
    c = case.c_tile(np.zeros((case.tile[0], case.tile[2]), np.float32))
    case.call(case.kernel, a, b, c)
    same(case.c_matrix(c), case.stored((a @ b).astype(np.float32)))


def test_kernels_agree_with_their_references_from_any_c(case):
    m, _, n = case.tile
    c = case.c_tile(np.random.default_rng(4).normal(size=(m, n)).astype(np.float32) * 50)
    plain = aligned_copy(c, c.dtype)
    a, b = case.operands(8, wide)
    case.call(case.kernel, a, b, c)
    case.call(f"{case.kernel}_ref", a, b, plain)
    same(c, plain)
