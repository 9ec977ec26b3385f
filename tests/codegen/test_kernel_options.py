"""Options of assembled kernels: what each means, the last value that is taken and the first that is not."""

import numpy as np
import pytest
from test_assembled_kernels import call, finished

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels import assembled, refusal
from bdforge.core.codegen.kernels.attention import KERNELS as ATTENTION
from bdforge.core.codegen.kernels.convert_floats import CONVERSIONS
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Options
from bdforge.devices.formats.narrowing import MODES, shifted
from support import micro_tiles as tiles
from support.differences import same

SUMS = np.arange(-64, 64).reshape(8, 16) * 3  # ties and all others, of both signs


@pytest.mark.parametrize("generation", ["aie2p", "aie2"])
@pytest.mark.parametrize("mode", MODES)
def test_results_are_rounded_as_the_mode_says(mode, generation):
    found = finished("finish_i32_i8", generation, SUMS, ("SHIFT=2", f"ROUNDING={mode}"))
    same(found, shifted(SUMS, 2, mode, np.dtype(np.int8)), f"{mode} of {generation}")


def test_every_mode_has_a_code():
    assert set(ROUNDINGS) == set(MODES)


@pytest.mark.parametrize("mode", ["floor", "positive_inf"])
def test_sums_and_narrow_products_are_rounded_likewise(mode):
    a = np.arange(-32, 32)
    y = np.zeros(64, np.int8)
    options = ("FUNCTION=add", "TILE_ELEMENTS=64", "SHIFT=3", f"ROUNDING={mode}")
    call(assembled("elementwise_i8", "aie2p", options), "aie2p", [a.astype(np.int8), a.astype(np.int8), y])
    same(y, shifted(2 * a, 3, mode, np.dtype(np.int8)), f"{mode} of elementwise_i8")
    left, right = SUMS.reshape(16, 8)[:8].clip(-128, 127), np.eye(8, dtype=int) * 3
    given = [tiles.micro_tiled(left, 8, 8).astype(np.int8), tiles.packed_b(right, 8, 8, False).astype(np.uint8)]
    c = np.zeros(64, np.int16)
    options = ("DIM_M=8", "DIM_K=8", "DIM_N=8", "SHIFT=1", f"ROUNDING={mode}")
    call(assembled("mm_i8_i8_i16", "aie2p", options), "aie2p", [*given, c])
    expected = shifted(left @ right, 1, mode, np.dtype(np.int16))
    same(tiles.from_micro_tiles(c, 8, 8, 8, 8), expected, f"{mode} of mm_i8_i8_i16")


def test_options_are_numbers_words_and_what_stands_where_none_are_given():
    told = Options.of(("DIM_M=24", "C_IN_PARTS", "DIM_RHO=3", "LOOPS=hardware", "BLOCKS=4x1", "ROUNDING=floor",
                       "MEETS=26,0,100"))  # fmt: skip
    assert (told.number("DIM_M"), told.number("SHIFT", 5)) == (24, 5)
    assert (told.has("C_IN_PARTS"), told.has("RELU")) == (True, False)
    assert (told.parts, told.hardware_loops, told.shape, told.rounding) == (3, True, (4, 1), 0)
    assert told.met == (26, 0, 100)
    plain = Options.of(("DIM_RHO=3",))
    assert (plain.parts, plain.hardware_loops, plain.shape, plain.rounding) == (1, False, None, 12)
    assert plain.met == (0, 0, 0)
    assert Options.of(("C_IN_PARTS",)).parts == 1
    assert Options.of(("LOOPS=jnz",)).hardware_loops is False
    for word in ("4", "x4", "4x", "ax1", "4x1x1", "-1x1"):
        with pytest.raises(CodegenError, match=f"BLOCKS={word} is no ROWSxCOLUMNS"):
            print(Options.of((f"BLOCKS={word}",)).shape)
    for word in ("", "1", "1,2", "1,2,3,4", "1,2,101", "1,2,-3", "1,,3", "a,b,c"):
        with pytest.raises(CodegenError, match=f"MEETS={word} is no three shares"):
            print(Options.of((f"MEETS={word}",)).met)
    with pytest.raises(CodegenError, match="no blocks have 4x4"):
        assembled("mm_i8_i8_i32", "aie2p", (*TILE, "BLOCKS=4x4"))


def sizes(m: int, k: int, n: int, *more: str) -> tuple[str, ...]:
    return (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", *more)


TILE = sizes(32, 16, 32)
MULTIPLES = "are no multiples of"
TAKEN = [
    ("mm_i8_i8_i32", "aie2p", sizes(8, 8, 8)), ("mm_i8_i8_i8", "aie2p", TILE), ("mm_i8_i4_i16", "aie2p", TILE),
    ("mm_i8_i2_i32", "aie2p", sizes(8, 8, 32)), ("mm_i8_i8_i32", "aie2p", (*TILE, "C_TRANSPOSED")),
    ("mm_i8_i8_i32", "aie2", sizes(4, 8, 8)), ("mm_i8_i4_i32", "aie2", sizes(4, 16, 8)),
    ("mm_i8_i2_i32", "aie2", sizes(4, 8, 32)), ("mm_bf16_bf16_f32", "aie2", sizes(4, 8, 4)),
    ("mm_bf16_bf16_bf16", "aie2", (*sizes(4, 8, 4), "C_TRANSPOSED")), ("mm_bf16_bf16_f32", "aie2p", TILE),
    ("mm_i8_i8_i32", "aie2p", sizes(16, 8, 8, "DIM_RHO=2")),
    ("zero_i8", "aie2p", sizes(8, 0, 8)), ("zero_i16", "aie2p", sizes(4, 0, 8)), ("zero_i32", "aie2p", sizes(2, 0, 8)),
    ("zero_f32", "aie2p", sizes(2, 0, 8)), ("zero_bf16", "aie2p", sizes(4, 0, 8)), ("zero_i8", "aie2", sizes(4, 0, 8)),
    ("zero_i32", "aie2p", sizes(4, 0, 8, "C_IN_PARTS", "DIM_RHO=2")),
    ("unscale_i32", "aie2p", sizes(8, 0, 32)), ("unscale_i32", "aie2", sizes(4, 0, 32)),
    ("finish_i32_i8", "aie2p", sizes(8, 0, 8)), ("finish_i32_i16", "aie2", sizes(4, 0, 8)),
    ("finish_i32_i32", "aie2p", sizes(16, 0, 8, "C_IN_PARTS", "DIM_RHO=2")),
    ("finish_i32_i8", "aie2p", sizes(8, 0, 32, "FIELD_SCALED", "RELU")), ("finish_f32_bf16", "aie2", sizes(4, 0, 4)),
    ("finish_f32_bf16", "aie2p", sizes(8, 0, 8)),
    *((f"mm_{a}_bfp16_{c}", "aie2p", sizes(8, 8, 8)) for a in ("bf16", "bfp16") for c in ("bf16", "f32", "bfp16")),
    ("mm_bfp16_bfp16_f32", "aie2p", sizes(16, 8, 8, "DIM_RHO=2", "BLOCKS=2x2")),
    ("mm_bf16_bfp16_f32", "aie2p", sizes(8, 8, 8, "C_TRANSPOSED")),
    ("finish_bf16_bfp16", "aie2p", sizes(8, 0, 8)), ("finish_f32_bfp16", "aie2p", sizes(8, 0, 8, "RELU")),
    ("zero_bfp16", "aie2p", sizes(8, 0, 8)), ("zero_bfp16", "aie2p", sizes(16, 0, 64, "C_IN_PARTS", "DIM_RHO=2")),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 8, "ARRAY_ROWS=4", "BIAS", "RELU")),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 32, "ARRAY_ROWS=4", "SCALE", "FIELD_SCALED")),
    ("finish_i32_bf16", "aie2p", sizes(16, 0, 8, "ARRAY_ROWS=4", "SCALE", "C_IN_PARTS", "DIM_RHO=2")),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 8)), ("finish_i32_bf16", "aie2p", sizes(8, 0, 32, "FIELD_SCALED", "RELU")),
    ("finish_i32_bf16", "aie2p", sizes(16, 0, 24, "C_IN_PARTS", "DIM_RHO=2")),
    ("elementwise_i8", "aie2p", ("FUNCTION=add", "TILE_ELEMENTS=64")),
    ("elementwise_i8", "aie2p", ("FUNCTION=mul", "TILE_ELEMENTS=64")),
    ("elementwise_i8", "aie2", ("FUNCTION=add", "TILE_ELEMENTS=32")),
    ("elementwise_bf16", "aie2p", ("FUNCTION=add", "TILE_ELEMENTS=32")),
    ("elementwise_bf16", "aie2p", ("FUNCTION=gelu", "TILE_ELEMENTS=32", "OPERANDS=1")),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=32", "EPSILON=1e-06F")),
    ("softmax_bf16", "aie2p", ("TILE_ELEMENTS=32", "FACTOR=0.125F")),
    *((name, "aie2p", ("TILE_ELEMENTS=64",)) for name in CONVERSIONS),
    ("residual_bf16", "aie2p", ("TILE_ELEMENTS=32", "X_F32=1")),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=128", "HEAD_DIM=64")),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=128", "HEAD_DIM=128", "NEIGHBOURS")),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=128", "HEAD_DIM=64", "OUTPUT_HEADS=1,1", "TURNED=1,0", "SCALED")),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=64", "EPSILON=1e-06F", "RESIDUAL=1", "CODES=1")),
    *((f"transpose_i{bits}", "aie2p", ("TILE_ELEMENTS=64",)) for bits in (8, 16, 32)),
    *((name, "aie2p", sizes(16, 16, 16, "SCORE_SCALE=0.25")) for name in ATTENTION),
]  # fmt: skip
REFUSED = [
    ("mm_i8_i8_i32", "aie2p", sizes(4, 8, 8), f"4, 8, 8 {MULTIPLES} 8, 8, 8"),
    ("mm_i8_i8_i32", "aie2p", sizes(8, 4, 8), f"8, 4, 8 {MULTIPLES} 8, 8, 8"),
    ("mm_i8_i8_i32", "aie2p", sizes(8, 8, 4), f"8, 8, 4 {MULTIPLES} 8, 8, 8"),
    ("mm_i8_i8_i32", "aie2p", sizes(8, 8, 8, "DIM_RHO=2"), f"4, 8, 8 {MULTIPLES} 8, 8, 8"),
    ("mm_i8_i2_i32", "aie2p", sizes(8, 8, 24), f"8, 8, 24 {MULTIPLES} 8, 8, 32"),
    ("mm_i8_i8_i32", "aie2", sizes(2, 8, 8), f"2, 8, 8 {MULTIPLES} 4, 8, 8"),
    ("mm_i8_i4_i32", "aie2", sizes(4, 8, 8), f"4, 8, 8 {MULTIPLES} 4, 16, 8"),
    ("mm_bf16_bf16_f32", "aie2", sizes(4, 8, 2), f"4, 8, 2 {MULTIPLES} 4, 8, 4"),
    ("mm_bf16_bf16_f32", "aie2p", sizes(8, 4, 8), f"8, 4, 8 {MULTIPLES} 8, 8, 8"),
    ("mm_bf16_bfp16_f32", "aie2", TILE, "not assembled for aie2, only for aie2p"),
    ("mm_bfp16_bf16_f32", "aie2p", TILE, "not assembled for aie2p"),
    ("mm_bfp16_bfp16_f32", "aie2p", (*TILE, "A_TRANSPOSED"), "not assembled with A_TRANSPOSED"),
    ("mm_bfp16_bfp16_bfp16", "aie2p", (*TILE, "C_TRANSPOSED"), "not assembled with C_TRANSPOSED"),
    ("mm_bfp16_bfp16_f32", "aie2p", (*TILE, "BLOCKS=4x1"), "no blocks have 4x1 micro-tiles: there are 2x2"),
    ("mm_bfp16_bfp16_f32", "aie2p", sizes(8, 8, 8, "DIM_RHO=2"), f"4, 8, 8 {MULTIPLES} 8, 8, 8"),
    ("mm_bf16_bf16_i32", "aie2", TILE, "not assembled for aie2"),
    ("mm_i8_i8_f32", "aie2", TILE, "not assembled for aie2"),
    ("mm_i16_i8_i32", "aie2p", TILE, "not assembled for aie2p"), ("mm_i8_i16_i32", "aie2p", TILE, "not assembled"),
    ("mm_i8_i8_i32", "aie2", (*TILE, "C_TRANSPOSED"), "transposed micro-tiles of C"),
    ("zero_i4", "aie2p", sizes(8, 0, 16), "elements are i8, i16, i32, f32, bf16"),
    ("zero_i8", "aie2p", sizes(4, 0, 8), "32 bytes are no multiple of 64"),
    ("zero_bfp16", "aie2", sizes(8, 0, 8), "elements are i8, i16, i32, f32, bf16"),
    ("zero_bfp16", "aie2p", sizes(4, 0, 8), "32 elements are no multiple of 64"),
    ("zero_bfp16", "aie2p", sizes(16, 0, 8, "C_IN_PARTS", "DIM_RHO=2"), "72 bytes are no multiple of 64"),
    ("zero_i16", "aie2p", sizes(2, 0, 8), "32 bytes are no multiple of 64"),
    ("zero_i8", "aie2", sizes(2, 0, 8), "16 bytes are no multiple of 32"),
    ("zero_i32", "aie2p", sizes(2, 0, 8, "C_IN_PARTS", "DIM_RHO=2"), "32 bytes are no multiple of 64"),
    ("unscale_i32", "aie2p", sizes(8, 0, 24), "192 elements are no multiple of 256"),
    ("unscale_i32", "aie2", sizes(4, 0, 24), "96 elements are no multiple of 128"),
    ("finish_i32_i8", "aie2p", sizes(4, 0, 8), "32 elements are no multiple of 64"),
    ("finish_i32_i8", "aie2p", sizes(8, 0, 24, "FIELD_SCALED"), "192 elements are no multiple of 256"),
    ("finish_i32_i8", "aie2p", sizes(16, 0, 8, "C_IN_PARTS", "DIM_RHO=2"), "not assembled with C_IN_PARTS"),
    ("finish_i32_i8", "aie2p", sizes(8, 0, 8, "SCALE"), "not assembled with SCALE"),
    ("finish_f32_bf16", "aie2", sizes(4, 0, 4, "RELU"), "not assembled with RELU"),
    ("finish_f32_bf16", "aie2", sizes(4, 0, 2), "8 elements are no multiple of 16"),
    ("finish_f32_bfp16", "aie2", sizes(8, 0, 8), "not assembled for aie2, only for aie2p"),
    ("finish_f32_bfp16", "aie2p", sizes(8, 0, 8, "SCALE"), "not assembled with SCALE"),
    ("finish_bf16_bfp16", "aie2p", sizes(4, 0, 8), "32 elements are no multiple of 64"),
    ("finish_f32_i8", "aie2", sizes(8, 0, 8), "not assembled for aie2"),
    ("finish_i32_i4", "aie2p", sizes(8, 0, 8), "int8, int16"),
    ("finish_i32_bf16", "aie2", sizes(8, 0, 8, "ARRAY_ROWS=4"), "not assembled for aie2, only for aie2p"),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 8, "ARRAY_ROWS=4"), "ARRAY_ROWS is for scales and biases"),
    ("finish_i32_bf16", "aie2p", sizes(4, 0, 8, "ARRAY_ROWS=4"), "4, 8 are no multiples of 8, 8"),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 24, "ARRAY_ROWS=4", "FIELD_SCALED"), "8, 24 are no multiples of 8, 32"),
    ("finish_i32_bf16", "aie2p", sizes(8, 0, 8, "ARRAY_ROWS=4", "C_IN_PARTS", "DIM_RHO=2"), "4, 8 are no multiples"),
    ("elementwise_i8", "aie2p", ("FUNCTION=add", "TILE_ELEMENTS=96"), "96 elements are no multiple of 64"),
    ("elementwise_i8", "aie2p", ("FUNCTION=add", "TILE_ELEMENTS=0"), "0 elements are no multiple of 64"),
    ("elementwise_i8", "aie2p", ("FUNCTION=add",), "0 elements are no multiple of 64"),
    ("elementwise_i8", "aie2", ("FUNCTION=add", "TILE_ELEMENTS=48"), "48 elements are no multiple of 32"),
    ("elementwise_i8", "aie2", ("FUNCTION=mul", "TILE_ELEMENTS=64"), "for aie2 as mul: of int8 there is add"),
    ("elementwise_i8", "aie2p", ("TILE_ELEMENTS=64",), "for aie2p as nothing: of int8 there is add and mul"),
    ("rmsnorm_bf16", "aie2", ("TILE_ELEMENTS=32", "EPSILON=1e-6F"), "not assembled for aie2, only for aie2p"),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=48", "EPSILON=1e-6F"), "48 elements are no multiple of 32"),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=96", "EPSILON=1e-6F", "CODES=1"), "96 codes are no multiple of 64"),
    ("layernorm_bf16", "aie2", ("TILE_ELEMENTS=64", "EPSILON=1e-6F"), "not assembled for aie2, only for aie2p"),
    ("layernorm_sum_bf16", "aie2p", ("TILE_ELEMENTS=96", "EPSILON=1F", "CODES=1"), "96 codes are no multiple of 64"),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=32800", "EPSILON=1e-6F"), "32800 elements are no multiple"),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=32",), "EPSILON='' is no number"),
    ("rmsnorm_bf16", "aie2p", ("TILE_ELEMENTS=32", "EPSILON=0F"), "EPSILON=0 is not above 0"),
    ("rmsnorm_results_bf16", "aie2p", ("TILE_ELEMENTS=64", "ROW_ELEMENTS=96", "EPSILON=1F"), "a row of 96"),
    ("softmax_sum_bf16", "aie2", ("TILE_ELEMENTS=64", "FACTOR=1F"), "not assembled for aie2, only for aie2p"),
    ("transpose_i8", "aie2", ("TILE_ELEMENTS=64",), "not assembled for aie2, only for aie2p"),
    ("transpose_i16", "aie2p", ("TILE_ELEMENTS=96",), "96 elements are no multiple of 64"),
    ("quantise_bf16", "aie2", ("TILE_ELEMENTS=64",), "not assembled for aie2; for aie2p there is quantise_bf16"),
    ("cast_i8_bf16", "aie2p", ("TILE_ELEMENTS=32",), "32 elements are no multiple of 64"),
    ("attention_end_bf16", "aie2", sizes(16, 16, 16), "not assembled for aie2, only for aie2p"),
    ("attention_end_bf16", "aie2p", sizes(24, 16, 16), "queries, dimensions, keys = 24, 16, 16 are no multiples of 16"),
    ("attention_end_bf16", "aie2p", sizes(16, 16, 16), "SCORE_SCALE=0.0 is not above 0"),
    ("attention_end_bf16", "aie2p", sizes(16, 16, 16, "DIGITS=3"), "DIGITS=3 is not 1 or 2"),
    ("softmax_bf16", "aie2", ("TILE_ELEMENTS=32", "FACTOR=1F"), "not assembled for aie2, only for aie2p"),
    ("softmax_bf16", "aie2p", ("TILE_ELEMENTS=48", "FACTOR=1F"), "48 elements are no multiple of 32"),
    ("softmax_bf16", "aie2p", ("TILE_ELEMENTS=32",), "FACTOR='' is no number"),
    ("softmax_bf16", "aie2p", ("TILE_ELEMENTS=32", "FACTOR=0F"), "FACTOR=0 is not from 1e-06 to"),
    ("residual_bf16", "aie2", ("TILE_ELEMENTS=32",), "not assembled for aie2, only for aie2p"),
    ("residual_bf16", "aie2p", ("TILE_ELEMENTS=48",), "48 elements are no multiple of 32"),
    ("rope_bf16", "aie2", ("TILE_ELEMENTS=64", "HEAD_DIM=64"), "not assembled for aie2, only for aie2p"),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=96", "HEAD_DIM=96"), "HEAD_DIM=96 is no multiple of 64"),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=96", "HEAD_DIM=64"), "96 elements are no whole heads of 64"),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=128", "HEAD_DIM=64", "OUTPUT_HEADS=1,2", "TURNED=1,0"), "2 in all"),
    ("rope_bf16", "aie2p", ("TILE_ELEMENTS=128", "HEAD_DIM=64", "OUTPUT_HEADS=1,1", "TURNED=1"), "2 in all"),
    ("elementwise_bf16", "aie2", ("FUNCTION=add",), "elementwise_bf16 is not assembled for aie2 as add"),
    ("elementwise_bf16", "aie2p", ("FUNCTION=tanh",), "not assembled for aie2p as tanh: for aie2p there is add, mul"),
    ("elementwise_bf16", "aie2p", ("FUNCTION=mul", "TILE_ELEMENTS=48"), "48 elements are no multiple of 32"),
    ("elementwise_bf16", "aie2p", ("FUNCTION=silu", "TILE_ELEMENTS=32"), "OPERANDS=1 says so"),
    ("mm_i8_i8_i32", "aie2p", ("DIM_M=8",), "DIM_K is missing"), ("gemv_bf16", "aie2p", (), "there are mm_"),
    ("finish_i32_i8", "aie2p", ("BIAS",), "not assembled with BIAS"),
    ("finish_f32_bf16", "aie2", sizes(4, 0, 4, "SCALE"), "not assembled with SCALE"),
    ("mm_other", "aie2p", (), "mm_other is not assembled for aie2p"),
    ("mm_i8_i8_i32_fast", "aie2p", (), "mm_i8_i8_i32_fast is not assembled for aie2p"),
    ("mm_bf16_bf16_bfp16", "aie2", (), "mm_bf16_bf16_bfp16 is not assembled for aie2"),
    ("zero_i32", "aie2p", (*TILE, "IN_REVERSE"), "no kernel is assembled with IN_REVERSE"),
    ("mm_i8_i8_i8", "aie2p", (*TILE, "ROUNDING=odd"), "ROUNDING=odd is unknown"),
    ("mm_i8_i8_i8", "aie2p", (*TILE, "LOOPS=none"), "LOOPS=none is unknown; there are jnz, hardware"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "generation", "options"), TAKEN)
def test_the_smallest_tiles_of_every_kernel_are_assembled(name, generation, options):
    assert refusal(name, generation, options) is None


@pytest.mark.parametrize(("name", "generation", "options", "reason"), REFUSED)
def test_a_tile_or_a_type_less_is_refused_with_its_limit(name, generation, options, reason):
    assert reason in (refusal(name, generation, options) or "assembled")


IGNORED = [
    ("unscale_i32", "aie2p", sizes(8, 0, 32), "SHIFT=3"), ("unscale_i32", "aie2p", sizes(8, 0, 32), "ROUNDING=ceil"),
    ("finish_f32_bf16", "aie2", sizes(4, 0, 4), "ROUNDING=floor"),
    ("mm_bf16_bf16_bf16", "aie2", sizes(4, 8, 4), "ROUNDING=floor"),
    ("mm_i8_i8_i32", "aie2p", sizes(8, 8, 8), "B_TOP_SIGNED"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "generation", "options", "more"), IGNORED)
def test_options_of_other_kernels_change_nothing(name, generation, options, more):
    """Fields are whole multiples, which need no shift and no rounding; floats become the nearest bfloat16."""
    assert assembled(name, generation, (*options, more)).text == assembled(name, generation, options).text


@pytest.mark.parametrize(("name", "cycles"), [("zero_i32", 263), ("unscale_i32", 405)], ids=["zero", "unscale"])
def test_passes_over_c_take_an_access_a_cycle(name, cycles):
    """64 x 64 sums are 256 vectors; unscaled, 192 of them are read and written, those of the first field are not."""
    assert assembled(name, "aie2p", sizes(64, 0, 64)).cycles == cycles
