"""AIE2P's products of block floats in memory as machine code: the bits of the C++ kernels."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned_copy

from bdforge.core.codegen.kernels import assembled, expected
from bdforge.core.codegen.kernels.kernel_options import Options
from bdforge.devices.formats import pack_bfp16
from codegen.test_assembled_kernels import call
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
CASES = [  # kernel, tile, rows in so many parts and which, other options
    ("mm_bfp16_bfp16_bfp16", (32, 32, 32), 1, 0, ()),
    ("mm_bfp16_bfp16_bfp16", (24, 40, 24), 1, 0, ()),
    ("mm_bfp16_bfp16_bfp16", (48, 16, 48), 3, 1, ("LOOPS=hardware",)),
    ("mm_bfp16_bfp16_bfp16", (8, 8, 8), 1, 0, ()),
    ("mm_bfp16_bfp16_bf16", (40, 16, 24), 1, 0, ()),
    ("mm_bfp16_bfp16_f32", (24, 24, 16), 1, 0, ()),
    ("mm_bf16_bfp16_bf16", (32, 56, 40), 2, 1, ()),
    ("mm_bf16_bfp16_bfp16", (24, 32, 16), 1, 0, ()),
    ("mm_bf16_bfp16_f32", (16, 8, 24), 1, 0, ()),
    ("mm_bf16_bfp16_bf16", (24, 16, 40), 1, 0, ("C_TRANSPOSED",)),
    ("mm_bfp16_bfp16_bf16", (16, 24, 24), 2, 0, ("C_TRANSPOSED",)),
    ("mm_bfp16_bfp16_f32", (24, 16, 16), 1, 0, ("C_TRANSPOSED",)),
    ("mm_bf16_bfp16_bf16", (48, 32, 24), 2, 1, ("A_TRANSPOSED",)),
    ("mm_bf16_bfp16_bfp16", (40, 24, 16), 1, 0, ("A_TRANSPOSED", "LOOPS=hardware")),
    ("mm_bf16_bfp16_bf16", (24, 16, 40), 1, 0, ("A_TRANSPOSED", "C_TRANSPOSED")),
    ("mm_bf16_bfp16_f32", (16, 24, 16), 1, 0, ("A_TRANSPOSED",)),
    ("mm_bf16_bfp16_bf16", (8, 16, 32), 1, 0, ("A_TRANSPOSED",)),  # blocks of one step, behind each other
]  # fmt: skip


def build_of(name: str, tile: tuple[int, int, int], rho: int, options: tuple[str, ...]) -> Build:
    turned = [f"-D{option}" for option in options if option.endswith("TRANSPOSED")]
    return Build("aie2p", (name,), tile, (f"-DDIM_RHO={rho}", *turned))


BUILDS = [build_of(*case[:3], case[4]) for case in CASES]
each_case = pytest.mark.parametrize(
    ("name", "tile", "rho", "part", "options"),
    CASES,
)


def stored(values: np.ndarray, kind: str) -> np.ndarray:
    """A matrix as a core's memory holds it; blocks lie along its rows."""
    if kind == "bfp16":
        return pack_bfp16(values.astype(np.float32))
    m, n = values.shape
    tiles = values.reshape(m // 8, 8, n // 8, 8).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(tiles.astype(BF16 if kind == "bf16" else np.float32))


def operands(name: str, tile: tuple[int, int, int], rho: int) -> list[np.ndarray]:
    """Numbers of many sizes, some of them 0, and blocks of zeros."""
    m, k, n = tile
    rng = np.random.default_rng(m + k + n)
    found = []
    for shape in ((m // rho, k), (n, k), (m, n)):
        values = rng.normal(size=shape) * 2.0 ** rng.integers(-3, 3, shape)
        values.ravel()[::11] = 0
        values[1, :8] = 0
        found.append(values)
    kinds = name.split("_")[1:]
    return [stored(values, kind) for values, kind in zip(found, kinds, strict=True)]


@each_case
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, name, tile, rho, part, options):
    given = operands(name, tile, rho)
    wanted = [aligned_copy(x, x.dtype) for x in given]
    kernel_library(build_of(name, tile, rho, options)).call(name, *wanted, *([part] if rho > 1 else []))
    sizes = tuple(f"DIM_{axis}={size}" for axis, size in zip("MKN", tile, strict=True))
    call(assembled(name, "aie2p", (*sizes, f"DIM_RHO={rho}", *options)), "aie2p", given, part)
    for one, other in zip(given, wanted, strict=True):
        same(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("seed", range(24))
def test_any_tile_of_integers_equals_numpy(seed):
    """Of numbers that block floats hold, and sums that float32 does."""
    rng = np.random.default_rng(seed)
    name = sorted({case[0] for case in CASES})[seed % 6]
    rho, (m, k, n) = int(rng.integers(1, 3)), (8 * int(x) for x in rng.integers(1, 10, 3))
    a, b, c = (rng.integers(-11, 12, shape) for shape in ((m, k), (n, k), (rho * m, n)))
    part, kinds = int(rng.integers(rho)), name.split("_")[1:]
    given = [stored(values, kind) for values, kind in zip((a, b, c), kinds, strict=True)]
    sizes = [f"DIM_M={rho * m}", f"DIM_K={k}", f"DIM_N={n}", f"DIM_RHO={rho}"]
    if kinds[0] == "bf16" and seed % 4 < 2:
        given[0], sizes = np.ascontiguousarray(given[0].swapaxes(-1, -2)), [*sizes, "A_TRANSPOSED"]
    call(assembled(name, "aie2p", sizes), "aie2p", given, part)
    c[part * m : (part + 1) * m] += a @ b.T
    same(given[2].view(np.uint8), stored(c, kinds[2]).view(np.uint8))


RATES = [  # kernel, tile, parts, cycles: those of published designs, and of one with A turned
    ("mm_bfp16_bfp16_bfp16", (96, 128, 64), 1, (), 1717), ("mm_bfp16_bfp16_bfp16", (256, 64, 128), 8, (), 655),
    ("mm_bfp16_bfp16_bf16", (96, 64, 128), 1, (), 1777), ("mm_bf16_bfp16_bf16", (64, 224, 64), 4, (), 550),
    ("mm_bf16_bfp16_bf16", (64, 88, 64), 1, (), 1004), ("mm_bf16_bfp16_bf16", (64, 88, 64), 1, ("A_TRANSPOSED",), 1885),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tile", "rho", "options", "cycles"), RATES)
def test_tiles_take_no_more_cycles_than_their_schedules_took(name, tile, rho, options, cycles):
    sizes = tuple(f"DIM_{axis}={size}" for axis, size in zip("MKN", tile, strict=True))
    given = (*sizes, f"DIM_RHO={rho}", *options)
    assert (assembled(name, "aie2p", given).cycles or cycles + 1) <= cycles
    assert expected(name, "aie2p", Options.of(given)) == pytest.approx(cycles, rel=0.03)


@pytest.mark.parametrize("rows", [8, 40, 72])
def test_tiles_of_blocks_are_cleared_to_their_last_byte(rows):
    """Three tiles, 15, and 27 in whole lines."""
    c = np.full((rows * 24 // 64, 72), 0xA5, np.uint8)
    call(assembled("zero_bfp16", "aie2p", (f"DIM_M={rows}", "DIM_N=24")), "aie2p", [c])
    same(c, 0)


@pytest.mark.parametrize("relu", [(), ("RELU",)])
@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize("rows", [8, 40, 64])
def test_sums_become_blocks_in_place(kind, rows, relu):
    """Fewer tiles than are flushed at once, some more, and a multiple of them; numpy's blocks."""
    sums = np.random.default_rng(rows).normal(size=(rows, 24)) * 2.0 ** np.random.default_rng(1).integers(-9, 9, 24)
    sums[1, :8], sums[2, 3] = 0, 0
    memory = stored(sums, kind)
    exact = memory.astype(np.float32).transpose(0, 2, 1, 3).reshape(rows, 24)
    wanted = pack_bfp16(np.maximum(exact, 0) if relu else exact)
    call(assembled(f"finish_{kind}_bfp16", "aie2p", (f"DIM_M={rows}", "DIM_N=24", *relu)), "aie2p", [memory])
    same(memory.view(np.uint8).ravel()[: wanted.size], wanted.ravel())
