"""AIE2P's products of bfloat16 by way of block floats as machine code: the bits of the C++ kernels, in every layout."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned_copy

from bdforge.core.codegen.kernels import assembled
from codegen.test_assembled_kernels import call
from support import micro_tiles as tiles
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
CASES = [  # C, tile, rows in so many parts and which, other options
    ("f32", (16, 24, 32), 1, 0, ("B_TRANSPOSED",)),
    ("bf16", (24, 40, 16), 1, 0, ("B_TRANSPOSED",)),
    ("f32", (40, 16, 24), 1, 0, ()),
    ("bf16", (16, 8, 8), 1, 0, ()),
    ("f32", (8, 56, 40), 1, 0, ("A_TRANSPOSED",)),
    ("bf16", (24, 32, 24), 1, 0, ("A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED")),
    ("f32", (48, 16, 16), 3, 2, ("B_TRANSPOSED",)),
    ("f32", (16, 16, 16), 1, 0, ("B_TRANSPOSED", "LOOPS=hardware")),
]  # fmt: skip


def build_of(kind: str, tile: tuple[int, int, int], rho: int, options: tuple[str, ...]) -> Build:
    given = tuple(f"-D{option}" for option in options if not option.startswith("LOOPS"))
    return Build("aie2p", (f"mm_bf16_bf16_{kind}",), tile, (*given, f"-DDIM_RHO={rho}"))


BUILDS = [build_of(kind, tile, rho, options) for kind, tile, rho, _, options in CASES[5:7]]


def operands(kind: str, tile: tuple[int, int, int], rho: int) -> list[np.ndarray]:
    """Numbers of many sizes, some of them 0, but no eight of a block."""
    m, k, n = tile
    rng = np.random.default_rng(m + k + n)
    found = [rng.normal(size=size) * 2.0 ** rng.integers(-3, 3, size) for size in (m * k // rho, k * n, m * n)]
    found[0][::11] = 0
    return [x.astype(BF16 if i < 2 or kind == "bf16" else np.float32) for i, x in enumerate(found)]


@pytest.mark.parametrize(("kind", "tile", "rho", "part", "options"), CASES)
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, kind, tile, rho, part, options):
    m, k, n = tile
    name, given = f"mm_bf16_bf16_{kind}", operands(kind, tile, rho)
    wanted = [aligned_copy(x, x.dtype) for x in given]
    kernel_library(build_of(kind, tile, rho, options)).call(name, *wanted, *([part] if rho > 1 else []))
    sizes = (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", f"DIM_RHO={rho}")
    call(assembled(name, "aie2p", (*sizes, *options)), "aie2p", given, part)
    for one, other in zip(given, wanted, strict=True):
        same(one.view(np.uint16), other.view(np.uint16))


RATES = [  # C, tile, other options, cycles
    ("f32", (64, 64, 64), ("B_TRANSPOSED",), 1160), ("f32", (64, 64, 64), (), 1231),
    ("bf16", (112, 48, 96), ("B_TRANSPOSED",), 2417),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "tile", "options", "cycles"), RATES)
def test_tiles_take_no_more_cycles_than_their_schedules_took(kind, tile, options, cycles):
    sizes = tuple(f"DIM_{name}={size}" for name, size in zip("MKN", tile, strict=True))
    assert (assembled(f"mm_bf16_bf16_{kind}", "aie2p", (*sizes, *options)).cycles or cycles + 1) <= cycles


@pytest.mark.parametrize("seed", range(12))
def test_any_tile_of_integers_equals_numpy(seed):
    """Of numbers of two bits, which block floats hold, and sums that float32 does."""
    rng = np.random.default_rng(seed)
    m, k, n = (8 * int(x) for x in rng.integers(1, 9, 3))
    layout = [operand for operand in "ABC" if rng.random() < 0.4]
    a, b, c = rng.integers(1, 4, (m, k)), rng.integers(1, 4, (k, n)), rng.integers(1, 99, (m, n))
    given = [
        tiles.micro_tiled(a, 8, 8, "A" in layout).astype(BF16), tiles.packed_b(b, 8, 8, "B" in layout).astype(BF16),
        tiles.micro_tiled(c, 8, 8, "C" in layout).astype(np.float32),
    ]  # fmt: skip
    options = (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", *(f"{operand}_TRANSPOSED" for operand in layout))
    call(assembled("mm_bf16_bf16_f32", "aie2p", options), "aie2p", given)
    same(tiles.from_micro_tiles(given[2], m, n, 8, 8, "C" in layout), (c + a @ b).astype(np.float32))
