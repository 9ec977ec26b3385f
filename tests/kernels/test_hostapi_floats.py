"""Floats of the stand-in: conversions, products and streams, against numpy and the host's own formats."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_library import HERE, PLAIN, KernelError, aligned, aligned_copy

from bdforge.devices.formats import decode, encode
from support.differences import same
from support.family_oracle import ROUND

BF16 = ml_dtypes.bfloat16
PROBE = HERE / "floats_probe.cc"
CONV_EVEN = 12
MODES = {
    "floor": 0, "ceil": 1, "symmetric_floor": 2, "symmetric_ceil": 3, "negative_inf": 8, "positive_inf": 9,
    "symmetric_zero": 10, "symmetric_inf": 11, "conv_even": 12, "conv_odd": 13,
}  # fmt: skip
QUICK = settings(deadline=None, derandomize=True, max_examples=40)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
near_the_edge = st.sampled_from([127.25, 127.5, 127.75, -127.5, -127.75, -128.0, 63.5, 0.5, 1.5, -0.0, 0.0, 1e-39])
SCALES = [2.0**-149, 2.0**-126, 2.0**-120, 2.0**-112, 1.0, 2.0**100, 2.0**120, 2.0**121]
block = st.one_of(
    st.lists(singles, min_size=8, max_size=8),
    st.lists(st.floats(-4, 4, width=32), min_size=8, max_size=8),
    st.tuples(st.lists(near_the_edge, min_size=8, max_size=8), st.sampled_from(SCALES)).map(
        lambda drawn: [value * drawn[1] for value in drawn[0]]
    ),
)


@pytest.fixture(
    scope="session", params=[pytest.param(("-O2", "-march=native"), marks=pytest.mark.slow), PLAIN], ids=str
)
def floats(request, shared, api):
    library = shared([PROBE], *(api("aie2p", PLAIN) if request.param == PLAIN else request.param))
    library.call("set_modes", CONV_EVEN, 0)
    return library


@pytest.mark.slow
@QUICK
@given(st.lists(block, min_size=8, max_size=8))
def test_blocks_are_those_of_the_host_bit_by_bit(floats, values):
    values = np.clip(np.array(values), -3.4028234e38, 3.4028234e38).astype(np.float32)
    out, back = aligned(72, np.uint8, skew_bytes=9), aligned(64, np.float32)
    floats.call("to_blocks", aligned_copy(values.ravel(), np.float32), out)
    same(out.reshape(8, 1, 9), encode(values))
    floats.call("from_blocks", out, back)
    same(back.reshape(8, 8), decode(out.reshape(8, 1, 9)))


def test_any_block_is_read_as_the_host_reads_it(floats):
    tiles = np.random.default_rng(1).integers(0, 256, (100, 72), dtype=np.uint8)
    tiles[:4, ::9] = np.array([[0], [1], [254], [255]])
    for tile in tiles:
        back = aligned(64, np.float32)
        floats.call("from_blocks", aligned_copy(tile, np.uint8), back)
        same(back, decode(tile.reshape(8, 1, 9)).ravel())


@QUICK
@given(st.lists(st.integers(0, 2**32 - 1), min_size=16, max_size=16))
def test_bfloat16_is_rounded_as_ml_dtypes_does(floats, bits):
    values = np.array(bits, np.uint32).view(np.float32)
    out = aligned(16, BF16)
    floats.call("to_bfloat16", aligned_copy(values, np.float32), out)
    same(out, values.astype(BF16))


def test_block_floats_are_rounded_down_after_a_reset_and_refused_in_other_modes(floats):
    values, out = aligned(64, np.float32), aligned((8, 9), np.uint8)
    values[:] = np.random.default_rng(7).normal(size=64) * 2.0 ** np.repeat(np.arange(-60, 68, 16), 8)
    values[:5] = -0.0, 1e-39, -1e-39, -1e-9, 0
    values[8:10] = -1.999, 1.999  # far above their block; the first is a mantissa of -128
    floats.call("to_blocks", values, out, core=1)
    for row, block in zip(values.reshape(8, 8).astype(np.float64), out, strict=True):
        whole = np.where(np.abs(row) < 2.0**-126, 0, row)
        shared = np.frexp(np.abs(whole).max())[1] + 126
        same(block[0], shared)
        same(block[1:].view(np.int8), np.floor(whole * 2.0 ** (133.0 - shared)))
    floats.call("set_modes", MODES["ceil"], 0, core=30)
    with pytest.raises(KernelError, match="the rounding mode is neither conv_even nor floor"):
        floats.call("to_blocks", values, out, core=30)


@pytest.mark.slow
def test_bfloat16_products_by_way_of_block_floats(shared, api):
    """As the AIE API's macro asks for: both operands lose what blocks along K cannot hold."""
    library = shared([PROBE], "-O0", "-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")
    library.call("set_modes", CONV_EVEN, 0)
    rng = np.random.default_rng(8)
    for m in (4, 8):
        a, b = (rng.normal(size=size).astype(BF16).astype(np.float32) for size in ((m, 8), (8, 8)))
        left, right = decode(encode(a)), decode(encode(np.ascontiguousarray(b.T))).T
        c = aligned((m, 8), np.float32)
        library.call(f"product_{m}x8x8", aligned_copy(a, BF16), aligned_copy(b, BF16), c)
        np.testing.assert_allclose(c, 2 * (left.astype(np.float64) @ right), rtol=1e-6, atol=1e-6)
        assert np.abs(c - 2 * a.astype(np.float64) @ b).max() > 1e-3


@pytest.mark.parametrize(("mode", "code"), MODES.items())
def test_bfloat16_is_rounded_by_the_mode(floats, mode, code):
    """As signed numbers; a core begins with floor."""
    rng = np.random.default_rng(code)
    values = rng.normal(size=16).astype(np.float32) * np.float32(2.0) ** rng.integers(-120, 120, 16)
    values.view(np.uint32)[4:8] = values.view(np.uint32)[4:8] & 0xFFFF0000 | 0x8000  # halves between two
    values[:4] = -0.0, np.inf, -np.inf, 1.0
    out = aligned(16, BF16)
    if mode != "floor":
        floats.call("set_modes", code, 0, core=2 + code)
    floats.call("to_bfloat16", aligned_copy(values, np.float32), out, core=2 + code)
    expected = values.copy()
    for i in range(3, 16):
        step = 2.0 ** (np.frexp(values[i])[1] - 8)
        expected[i] = ROUND[mode](Fraction(float(values[i])) / Fraction(step)) * step
    same(out.view(np.uint16), expected.astype(BF16).view(np.uint16))


def test_nan_stays_nan_in_every_mode(floats):
    out = aligned(16, BF16)
    floats.call("to_bfloat16", aligned_copy(np.full(16, np.nan), np.float32), out, core=1)
    assert np.isnan(out.astype(np.float32)).all()


@pytest.mark.parametrize("shape", [(4, 8, 4), (4, 8, 8), (8, 8, 4), (8, 8, 8), (8, 1, 8)], ids=str)
def test_bfloat16_products_add_up_in_the_order_of_k(floats, shape):
    m, k, n = shape
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=size).astype(BF16) for size in ((m, k), (k, n)))
    expected = np.zeros((m, n), np.float32)
    for step in range(2 * k):
        expected = expected + a[:, step % k, None].astype(np.float32) * b[step % k].astype(np.float32)
    c = aligned((m, n), np.float32)
    floats.call(f"product_{m}x{k}x{n}", aligned_copy(a, BF16), aligned_copy(b, BF16), c)
    same(c, expected)


@pytest.mark.parametrize("shape", [(4, 8, 4), (4, 1, 8)], ids=str)
def test_float_products_round_like_floats(floats, shape):
    m, k, n = shape
    rng = np.random.default_rng(4)
    a, b = rng.integers(-99, 99, (m, k)).astype(np.float32), rng.integers(-99, 99, (k, n)).astype(np.float32)
    c = aligned((m, n), np.float32)
    floats.call(f"product_of_floats_{m}x{k}x{n}", aligned_copy(a, np.float32), aligned_copy(b, np.float32), c)
    same(c, 2 * (a @ b))


def test_a_product_of_sixteen_columns_is_two_of_eight(floats):
    rng = np.random.default_rng(5)
    a, b = rng.integers(-60, 60, (8, 8)), rng.integers(-60, 60, (16, 8))
    blocks = [aligned_copy(encode(x.astype(np.float32)).ravel(), np.uint8) for x in (a, b)]
    c = aligned((8, 16), np.float32)
    floats.call("product_8x8x16", *blocks, c)
    same(c, a @ b.T)


def test_bfloat16_lanes_are_added_in_float_and_narrowed(floats):
    rng = np.random.default_rng(6)
    a, b = (rng.normal(size=16).astype(BF16) for _ in range(2))
    out = aligned((9, 16), BF16)
    floats.call("arithmetic", aligned_copy(a, BF16), aligned_copy(b, BF16), out)
    x, y = a.astype(np.float32), b.astype(np.float32)
    products = x.astype(float) * y - x.astype(float) ** 2
    expected = [x + y, x - y, -x, abs(x), np.minimum(np.maximum(x, y), 1), products]
    expected += [x - y, np.maximum(x, y), np.minimum(x, y)]  # of accumulators, and of float32
    same(out, np.array(expected, np.float32).astype(BF16))


def test_integers_of_any_width_become_floats(floats):
    rng = np.random.default_rng(7)
    words, packed = rng.integers(-(2**31), 2**31, 16).astype(np.int32), rng.integers(0, 256, 16).astype(np.uint8)
    out, halves = aligned(32, np.float32), aligned(16, BF16)
    floats.call("from_integers", aligned_copy(words, np.int32), aligned_copy(packed, np.uint8), out, halves)
    low_first = np.stack([packed & 15, packed >> 4], axis=1).ravel().astype(int)
    same(out, ((low_first ^ 8) - 8) / 2)
    same(halves, (words.astype(np.float32) / 8).astype(BF16))


def test_streams_walk_tiles_of_72_bytes(floats):
    tiles = encode(np.random.default_rng(3).normal(size=(6, 8, 8)).astype(np.float32)).reshape(6, 72)
    out = aligned((6, 72), np.uint8, skew_bytes=5)
    floats.call("walk_tiles", aligned_copy(tiles, np.uint8), out)
    for source, target in ((0, 1), (3, 2), (2, 4), (5, 0)):
        same(out[target], tiles[source], f"tile {target}")
    same(out[[3, 5]], 0)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("undefined_product", "the accumulator is uninitialised"), ("undefined_blocks", "the block vector was never")],
)
def test_undefined_floats_are_faults(floats, name, sentence):
    with pytest.raises(KernelError, match=sentence):
        floats.call(name, aligned(72, np.float32))
