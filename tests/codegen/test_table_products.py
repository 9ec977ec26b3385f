"""Products by tables of sums, equal to numpy: `lut_i8_i2_i32`."""

import numpy as np
import pytest
from test_assembled_kernels import call

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels import assembled, refusal
from support.differences import same

NAME = "lut_i8_i2_i32"


def sizes(m: int, k: int, n: int) -> tuple[str, ...]:
    return f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}"


def packed_a(a: np.ndarray) -> np.ndarray:
    """64 x k as the contract has it: chunk, half, group, column of the group, then rows 8 r + 4 h + d at 4 r + d."""
    return np.ascontiguousarray(a.reshape(8, 2, 4, -1, 8, 3).transpose(3, 1, 4, 5, 0, 2), np.int8)


def codes(b: np.ndarray) -> np.ndarray:
    """k x n of -1, 0, 1 as bytes: chunk, column, group."""
    k, n = b.shape
    found = np.empty((k // 24, n, 8), np.uint8)
    for chunk in range(k // 24):
        for g in range(8):
            w = b[24 * chunk + 3 * g : 24 * chunk + 3 * g + 3] + 1
            found[chunk, :, g] = 32 * g + w[0] + 3 * w[1] + 9 * w[2]
    return found


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, *options: str) -> tuple[np.ndarray, int]:
    """What the kernel makes of C, and its cycles."""
    kernel = assembled(NAME, "aie2p", (*sizes(len(a), *b.shape), *options))
    left, tables = np.array(c.T, order="C"), np.zeros(1 << 15, np.uint8)
    cycles = call(kernel, "aie2p", [packed_a(a), codes(b), left, tables])
    assert kernel.cycles is not None
    assert cycles - kernel.cycles < 30, "what calls it"
    return left.T, kernel.cycles


@pytest.mark.parametrize(("k", "n", "options"), [(24, 1, ()), (48, 5, ()), (72, 6, ("LOOPS=hardware",))])
def test_sums_are_numpys(k, n, options):
    rng = np.random.default_rng(k + n)
    a, b = rng.integers(-128, 128, (64, k)), rng.integers(-1, 2, (k, n))
    c = rng.integers(-(1 << 31), 1 << 31, (64, n)).astype(np.int32)
    found, _ = product(a, b, c, *options)
    same(found, (c + a @ b).astype(np.int32), f"{k} x {n}")


def test_every_code_and_the_largest_sums_are_right():
    """All 27 codes in each of the eight groups; -128 by -1 throughout is what fills 16 bits most."""
    codes_of_weights = np.stack(np.meshgrid(*3 * [[-1, 0, 1]], indexing="ij"), -1).reshape(27, 3).T
    b = np.concatenate([np.tile(codes_of_weights, (8, 1)), np.full((24, 1), -1)], axis=1)
    a = np.random.default_rng(5).integers(-128, 128, (64, 24))
    a[:32] = -128
    found, _ = product(a, b, np.zeros((64, 28), np.int32))
    same(found, (a @ b).astype(np.int32), "all codes")


@pytest.mark.slow
def test_a_lookup_is_slower_than_a_product():
    """A column of 24 k takes 14 cycles, eight tables twice 27 stores each; what comes besides is little."""
    cycles = assembled(NAME, "aie2p", sizes(64, 72, 64)).cycles
    assert cycles is not None
    assert 0 < cycles - 3 * (64 * 14 + 16 * 27) < 300
    multiplied = assembled("mm_i8_i2_i32", "aie2p", sizes(64, 72, 64)).cycles
    assert multiplied is not None
    assert 5 < cycles / multiplied < 7


@pytest.mark.parametrize(
    ("generation", "tile", "reason"),
    [
        ("aie2", (64, 24, 8), "not assembled for aie2, only for aie2p"), ("aie2p", (32, 24, 8), "m is to be 64"),
        ("aie2p", (64, 40, 8), "k a multiple of 24"), ("aie2p", (64, 24, 0), "m, k, n = 64, 24, 0"),
    ],
)  # fmt: skip
def test_what_it_does_not_take_is_refused(generation, tile, reason):
    assert reason in (refusal(NAME, generation, sizes(*tile)) or "")
    with pytest.raises(CodegenError, match=NAME):
        assembled(NAME, generation, sizes(*tile))
