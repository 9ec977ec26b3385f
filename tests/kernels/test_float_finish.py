"""What becomes of float sums after the last step of K, the kernels that clear C, and what float kernels refuse."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import KERNELS, Build, KernelError, aligned, aligned_copy, tile_options

from bdforge.devices.formats import encode
from support.differences import same
from support.micro_tiles import micro_tiled

BF16 = ml_dtypes.bfloat16
SIDE = {"aie2p": 8, "aie2": 4}
ARRAY_ROWS = 3
EXTREMES = [0.0, -0.0, 1e38, -3e38, 3.4e38, 1e-39, -1e-45, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, np.inf, -np.inf]

# generation, (m, k, n), macros
CASES = [
    ("aie2p", (24, 8, 40), ()),
    ("aie2p", (8, 8, 24), ("RELU", "C_TRANSPOSED")),
    ("aie2p", (16, 8, 24), ("SCALE", "BIAS", "RELU")),
    ("aie2p", (8, 8, 8), ("SCALE",)),
    ("aie2p", (16, 8, 8), ("BIAS",)),
    ("aie2p", (24, 8, 16), ("SCALE", "BIAS", "C_TRANSPOSED", "C_IN_PARTS", "DIM_RHO=3")),
    ("aie2", (12, 8, 20), ()),
    ("aie2", (4, 8, 12), ("SCALE", "BIAS", "RELU")),
]


# generation, tile, names, parts
ZEROS = [
    ("aie2p", (24, 8, 8), ("zero_i8", "zero_i16", "zero_i32", "zero_bf16", "zero_f32", "zero_bfp16"), 1),
    ("aie2", (12, 8, 8), ("zero_i8", "zero_i16", "zero_i32", "zero_bf16", "zero_f32"), 3),
]
BLOCKS = [(name, *case) for name in ("bf16", "f32") for case in (((8, 8, 8), ()), ((24, 8, 40), ("-DRELU",)))]
PRODUCT = Build("aie2p", ("mm_bf16_bf16_f32",), (8, 8, 8))


def build_of(generation, tile, macros):
    options = (f"-DARRAY_ROWS={ARRAY_ROWS}", *(f"-D{name}" for name in macros))
    return Build(generation, ("finish_f32_bf16",), tile, options)


def zeros_of(generation, tile, names, parts):
    return Build(generation, names, tile, (f"-DDIM_RHO={parts}", "-DC_IN_PARTS"))


def blocks_of(name, tile, macros):
    return Build("aie2p", (f"finish_{name}_bfp16",), tile, macros)


BUILDS = [build_of(*case) for case in CASES] + [zeros_of(*case) for case in ZEROS]
BUILDS += [*(blocks_of(*case) for case in BLOCKS), PRODUCT]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_finish_rounds_in_the_stated_places_and_touches_nothing_else(kernel_library, case):
    generation, tile, macros = case
    (m, _, n), t, rng = tile, SIDE[generation], np.random.default_rng(5)
    c = rng.normal(size=(m, n)).astype(np.float32) * 100
    if not macros:
        c.ravel()[: len(EXTREMES)] = EXTREMES
    numbers = [rng.uniform(0.1, 2, ARRAY_ROWS * m), rng.uniform(0.1, 2, n), rng.normal(size=n) * 50]
    scales, columns, biases = (x.astype(np.float32) for x in numbers)
    library = kernel_library(build_of(*case))
    fed = {"SCALE", "BIAS"} & set(macros)
    for core_row in (0, ARRAY_ROWS - 1) if fed else (0,):
        in_memory = micro_tiled(c, t, t, "C_TRANSPOSED" in macros)
        buffer = aligned_copy(np.append(in_memory, np.full(16, 7)), np.float32)
        epilogue = aligned_copy(np.concatenate([scales, columns, biases]), np.float32)
        passes, found = 3 if "C_IN_PARTS" in macros else 1, []
        for part in range(passes):  # of the rows, each from its beginning
            library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
            numbers = (epilogue, buffer, core_row) if fed else (buffer,)
            library.call("finish_f32_bf16", *numbers, *([part] if passes > 1 else []))
            rows = slice(part * m * n // passes, (part + 1) * m * n // passes)
            found.append(buffer[rows].view(BF16)[: m * n // passes])

        expected = c
        if "SCALE" in macros:
            expected = expected * scales[core_row * m :][:m, None]
            # float64 holds product and sum but for bits far below the last of a float32
            expected = expected.astype(np.float64) * columns + (biases if "BIAS" in macros else 0)
        elif "BIAS" in macros:
            expected = expected + biases
        expected = expected.astype(np.float32)
        with np.errstate(over="ignore"):
            expected = expected.astype(BF16)
        if "RELU" in macros:
            expected = np.maximum(expected, BF16(0))
        same(np.concatenate(found), micro_tiled(expected, t, t, "C_TRANSPOSED" in macros))
        same(buffer[m * n :], 7)


def test_relu_leaves_no_sign_behind(kernel_library):
    _, tile, _ = CASES[1]
    size = tile[0] * tile[2]
    buffer = aligned_copy(np.full(size, 5), np.float32)
    buffer[:4] = -1e-45, -0.0, 1e-45, -np.inf  # the first and third are nothing in bfloat16
    kernel_library(build_of(*CASES[1])).call("finish_f32_bf16", buffer)
    same(buffer.view(np.uint16)[:4], 0)
    same(buffer.view(BF16)[4:size], 5)


@pytest.mark.parametrize(("name", "tile", "macros"), BLOCKS)
def test_finish_makes_blocks_along_n_and_touches_nothing_else(kernel_library, name, tile, macros):
    (m, _, n), dtype, rng = tile, {"bf16": BF16, "f32": np.float32}[name], np.random.default_rng(5)
    c = (rng.normal(size=(m, n)) * 2.0 ** rng.integers(-40, 40, (m, n))).astype(dtype)
    c[0, :8] = 0
    library = kernel_library(blocks_of(name, tile, macros))
    buffer = aligned_copy(np.append(micro_tiled(c, 8, 8), np.full(64, 7, dtype)), dtype)
    library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    library.call(f"finish_{name}_bfp16", buffer)
    c = np.maximum(c, dtype(0)) if macros else c
    blocks = encode(c.astype(np.float32)).reshape(m // 8, 8, n // 8, 9).swapaxes(1, 2)
    same(buffer.view(np.uint8)[: blocks.size], blocks.ravel())
    same(buffer[m * n :], 7)


@pytest.mark.daily("SCALE")
@pytest.mark.parametrize("macro", ["SCALE", "BIAS"])
def test_fed_numbers_need_the_rows_of_the_array(refusal, macro):
    told = refusal("aie2p", "finish_f32_bf16", *tile_options(8, 8, 8), f"-D{macro}")
    assert "define the rows of the array with -DARRAY_ROWS=rows" in told


@pytest.mark.parametrize(("generation", "tile", "names", "parts"), ZEROS)
def test_zero_clears_the_tile_or_a_part_and_nothing_else(kernel_library, generation, tile, names, parts):
    library = kernel_library(zeros_of(generation, tile, names, parts))
    for name in names:
        bits = {"i8": 8, "i16": 16, "i32": 32, "bf16": 16, "f32": 32, "bfp16": 9}[name[5:]]  # of an element
        size = tile[0] * tile[2] * bits // 8 // parts
        c = aligned_copy(np.full(parts * size + 64, 77), np.uint8)
        library.call(name, c, *([1] if parts > 1 else []))
        first = size if parts > 1 else 0
        same(c[first : first + size], 0, name)
        same(np.delete(c, slice(first, first + size)), 77, name)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("operand", [0, 1])
def test_infinity_and_nan_have_no_block_form(kernel_library, operand, value):
    library = kernel_library(PRODUCT)
    operands = [aligned(64, BF16), aligned(64, BF16)]
    operands[operand][11] = value
    with pytest.raises(KernelError, match="a value is infinite or NaN, which bfp16ebs8 cannot hold"):
        library.call("mm_bf16_bf16_f32", *operands, aligned(64, np.float32))


def test_misaligned_bfloat16_is_refused(kernel_library):
    library = kernel_library(PRODUCT)
    a, b, c = aligned(128, BF16), aligned(128, BF16), aligned(64, np.float32)
    with pytest.raises(KernelError, match=r"64 lanes at .*, which is 32 bytes past a 64-byte"):
        library.call("mm_bf16_bf16_f32", a[16:], b, c)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("mm_bf16_bf16_f32", tile_options(12, 8, 8), "m must be a multiple of rho * r"),
        ("mm_bf16_bf16_f32", tile_options(8, 12, 8), "k must be a multiple of s"),
        ("mm_bfp16_bfp16_f32", [*tile_options(8, 8, 8), "-DA_TRANSPOSED"], "blocks lie along K"),
        ("mm_bf16_bfp16_f32", [*tile_options(8, 8, 8), "-DB_TRANSPOSED"], "blocks lie along K"),
        ("mm_bf16_bfp16_bfp16", [*tile_options(8, 8, 8), "-DC_TRANSPOSED"], "blocks of C lie along N"),
        ("finish_f32_bfp16", [*tile_options(8, 8, 8), "-DC_TRANSPOSED"], "blocks of C lie along N"),
        ("finish_f32_bfp16", [*tile_options(8, 8, 8), "-DSCALE"], "SCALE and BIAS are for finish_f32_bf16"),
        ("zero_bfp16", tile_options(8, 8, 12), "m and n must be multiples of 8"),
    ],
)
def test_what_a_float_kernel_cannot_do_does_not_compile(refusal, name, options, sentence):
    assert sentence in refusal("aie2p", name, *options)


def test_generations_and_layouts_of_block_floats_are_told_apart(refusal):
    tile = tile_options(8, 8, 8)
    assert refusal("aie2p", "mm_bf16_bfp16_f32", *tile, "-DA_TRANSPOSED") == ""
    assert "AIE2 has no block floating point" in refusal("aie2", "mm_bfp16_bfp16_f32", *tile)


def test_sources_name_the_kernel_that_they_hold():
    sources = list((KERNELS / "aie2p").glob("*.cc"))
    assert sources
    for source in sources:
        text = source.read_text()
        assert text.startswith(f"// {source.stem}"), source
        assert f'extern "C" void {source.stem}(' in text, source
