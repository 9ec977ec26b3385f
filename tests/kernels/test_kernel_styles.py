"""Kernels in styles of others, with the calls of public ones, against numpy: the stand-in takes them as they are."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import ARCH, HERE, KernelError, aligned, aligned_copy

from bdforge.devices.formats import decode, encode
from support.differences import same

BF16 = np.dtype(ml_dtypes.bfloat16)
SOURCES = [HERE / f"styles_{family}.cc" for family in ("elementwise", "rows", "products")]


@pytest.fixture(params=ARCH)
def styles(request, shared, api):
    """All of them for a generation, on a core that was just reset: it rounds down and wraps."""
    library = shared(SOURCES, *api(request.param))
    library.reset()
    return library


@pytest.fixture
def aie2p(shared, api):
    library = shared(SOURCES, *api("aie2p"))
    library.reset()
    return library


def bf16(seed, n, scale=1.0):
    return aligned_copy((np.random.default_rng(seed).normal(size=n) * scale).astype(BF16), BF16)


def integers(seed, dtype, *shape):
    info = np.iinfo(dtype)
    return aligned_copy(np.random.default_rng(seed).integers(info.min, info.max + 1, shape, np.int64), dtype)


def exact(x):
    return x.astype(np.float64)


def close(y, expected, steps=2):
    """Within so many steps of bfloat16, each of up to 2^-7 of a value under floor."""
    np.testing.assert_allclose(exact(y), expected, rtol=steps * 2.0**-7, atol=steps * 2.0**-8)


def wrapped(values, dtype):
    return np.asarray(values).astype(np.int64).astype(dtype)


def clipped(values, dtype):
    info = np.iinfo(dtype)
    return np.clip(values, info.min, info.max).astype(dtype)


# Element-wise and images


@pytest.mark.slow
def test_raw_pointers_walk_registers(styles):
    x, y = bf16(1, 96), aligned(96, BF16)
    styles.call("raw_relu", x, y, 96)
    same(y.astype(np.float32), np.maximum(x.astype(np.float32), 0))
    image, copy = integers(2, "uint8", 4, 96), aligned((4, 96), np.uint8)
    styles.call("pass_through", image, copy, 4, 96)
    same(copy, image)


@pytest.mark.daily("aie2p")
def test_raw_pointers_are_aligned(styles):
    with pytest.raises(KernelError, match=r"a vector through a pointer: 64 lanes at address .* 4 bytes past a"):
        styles.call("pass_through", aligned(64, np.uint8, 4), aligned(64, np.uint8), 1, 64)
    with pytest.raises(KernelError, match="a vector through a pointer: 64 lanes"):
        styles.call("pass_through", aligned(64, np.uint8), aligned(64, np.uint8, 16), 1, 64)


def test_scalars_are_bfloat16(styles):
    a, b, c = bf16(3, 32), bf16(4, 32), aligned(32, BF16)
    styles.call("scalar_bf16", a, b, c)
    sums = (a.astype(np.float32) + b.astype(np.float32)).astype(BF16).astype(np.float32)
    same(c.astype(np.float32), np.where(sums < 0, sums / 2, sums))


def test_products_are_narrowed_in_the_mode_of_a_reset(styles):
    a, b, c = bf16(5, 64), bf16(6, 64), aligned(64, BF16)
    styles.call("product_bf16", a, b, c)
    down = exact(a) * exact(b)
    steps = 2.0 ** (np.frexp(down)[1] - 8.0)
    same(exact(c), np.floor(down / steps) * steps)
    x, y, z = integers(7, "int16", 64), integers(8, "int16", 64), aligned(64, np.int16)
    styles.call("product_i16", x, y, z)
    same(z, wrapped(x.astype(np.int64) * y, np.int16))


def test_integers_are_scaled_blended_and_compared(styles):
    x, y, factor = integers(9, "int32", 48), aligned(48, np.int32), aligned_copy([-77], np.int32)
    styles.call("scaled_i32", x, y, factor, 48)
    same(y, wrapped(x.astype(np.int64) * -77, np.int32))
    a, b, out = integers(10, "uint8", 64), integers(11, "uint8", 64), aligned(64, np.uint8)
    styles.call("blend", a, b, out, 64, 37, -20)
    same(out, clipped(((37 * a.astype(int) - 20 * b.astype(int) + (9 << 6) + 32) >> 6), np.uint8))
    styles.call("truncated_above", a, out, 64, 130, 200)
    same(out, np.where(a > 130, 200, 0))
    bits = aligned((3, 64), np.uint8)
    styles.call("bits_raw", a, b, bits)
    same(bits, [a | b, a & b, ~a ^ b])


def test_channels_of_pixels(styles):
    gray, rgba = integers(12, "uint8", 64), aligned((64, 4), np.uint8)
    styles.call("gray_to_rgba", gray, rgba, 64)
    same(rgba, np.stack([gray, gray, gray, np.full(64, 255)], 1))
    pixels, spread, which = integers(13, "uint8", 32, 4), aligned(32, np.uint8), aligned(32, np.uint8)
    styles.call("chroma", pixels, spread, which)
    rgb = pixels[:, :3].astype(int)
    same(spread, rgb.max(1) - rgb.min(1))
    same(which, rgb.argmax(1))


def test_intrinsics_take_the_vectors_of_the_api(styles):
    x, table, out, larger = (
        integers(53, "uint8", 2, 32),
        integers(54, "uint16", 256),
        aligned((2, 32), "u2"),
        aligned(2, "u4"),
    )
    styles.call("inverted", x, table, out, larger)
    same(out, [table[x.max(0)], np.roll(table[x.max(0)], -2)])
    same(larger, [sum(1 << i for i in range(32) if higher[i]) for higher in (x[0] < x[1], x[0] > x[1])])


def test_operators_of_vectors_and_accumulators(styles):
    a, b, out = integers(14, "int16", 32), integers(15, "int16", 32), aligned((3, 32), np.int16)
    b[:4] = a[:4]
    styles.call("by_operators", a, b, out)
    x, y = a.astype(np.int64), b.astype(np.int64)
    total = wrapped(x + y - 3, np.int16)
    same(out[0], np.where(a < b, total & 0xFF, wrapped(-total.astype(int), np.int16)))
    same(out[1], wrapped((~x ^ y) << 1, np.int16))
    same(out[2], wrapped(wrapped(x * y + x - y, np.int32) >> 2, np.int16))


# Rows


def test_functions_that_come_as_tables(styles):
    x, y = bf16(20, 64, 3), aligned(64, BF16)
    styles.call("table_exp", x, y, 64)
    np.testing.assert_allclose(exact(y), np.exp(exact(x)), rtol=2.0**-7)
    styles.call("table_softmax", x, y, 64)
    close(y, np.exp(exact(x)) / np.exp(exact(x)).sum(), 3)
    styles.call("table_gelu", x, y, 64)
    cubed = exact(x) + 0.044715 * exact(x) ** 3
    np.testing.assert_allclose(exact(y), exact(x) / 2 * (1 + np.tanh(0.79788456 * cubed)), rtol=0.05, atol=0.05)


def test_layer_norm(styles):
    x, y = bf16(21, 96, 2), aligned(96, BF16)
    styles.call("layer_norm", x, y, 96)
    wide = exact(x)
    close(y, (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5), 3)


def test_rotated_pairs(styles):
    x, y = bf16(22, 48), aligned(48, BF16)
    angle = np.random.default_rng(23).uniform(-3, 3, 24)
    styles.call("rope", x, aligned_copy(np.stack([np.cos(angle), np.sin(angle)], 1).ravel(), BF16), y, 48)
    turned = (exact(x)[0::2] + 1j * exact(x)[1::2]) * np.exp(1j * angle)
    close(y, np.stack([turned.real, turned.imag], 1).ravel(), 3)


def test_gates_by_the_cores_tanh(aie2p):
    x, w, v, y = bf16(24, 48, 2), bf16(25, 48), bf16(26, 48), aligned(48, BF16)
    aie2p.call("swiglu", x, w, v, y, 48)
    gate = exact(x) * exact(w)
    np.testing.assert_allclose(exact(y), gate / (1 + np.exp(-gate)) * exact(x) * exact(v), rtol=0.08, atol=0.05)
    aie2p.call("raw_exp2", x, y)
    np.testing.assert_allclose(exact(y)[:16], 2 ** exact(x)[:16], rtol=2.0**-7)


def test_reductions(styles):
    x, out = integers(27, "int32", 64), aligned(4, np.int32)
    styles.call("reductions", x, out, 64)
    same(out[:3], [wrapped(x.sum(dtype=np.int64), np.int32), x.max(), x.min()])
    floats, sums = aligned_copy(np.random.default_rng(28).integers(-99, 99, 32), np.float32), aligned(4, np.float32)
    styles.call("sums_at_once", floats, sums)
    a, b = floats.reshape(2, 16)
    same(sums, [a.sum(), b.sum(), -a.sum(), np.abs(b).sum()])


@pytest.mark.parametrize("shift", [-2, 0, 3])
def test_floats_become_fixed_and_back(styles, shift):
    x, codes, back = aligned(16, np.float32), aligned(16, np.int8), aligned(16, np.float32)
    x[:] = [0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, 1e30, -np.inf, 0.0625, 0.1875, -7.3, 44]
    if shift >= 0:
        styles.call("codes", x, codes, back, shift)
        same(codes, clipped(np.rint(exact(x) * 2.0**shift), np.int8))
        same(back, codes / 2.0**shift)
    halves, low, wide = aligned_copy(np.clip(x, -900, 900), BF16), aligned(16, np.int16), aligned(16, np.int32)
    styles.call("floors", halves, low, wide, shift)
    same(low, wrapped(np.floor(exact(halves) * 2.0**shift), np.int16))
    same(wide, np.floor(exact(halves) * 2.0**shift))


def test_nan_has_no_code(styles):
    with pytest.raises(KernelError, match="aie::to_fixed: a lane is NaN"):
        styles.call("codes", aligned_copy(np.full(16, np.nan), np.float32), aligned(16, np.int8), aligned(16, "f4"), 0)


@pytest.mark.parametrize("generation", ARCH)
def test_tables_stand_twice_in_rows_of_a_bank(shared, api, generation):
    """The layouts that mlir-aie's own tables have: copies 16 bytes apart on AIE2, 32 on AIE2P."""
    library = shared(SOURCES, *api(generation))
    row = {"aie2": 8, "aie2p": 16}[generation]
    values = (np.arange(64) * 3 - 50).astype(BF16)
    doubled = np.repeat(values.reshape(-1, 1, row), 2, 1).ravel()
    ab, cd = aligned_copy(doubled, BF16), aligned_copy(doubled, BF16)
    x, out = integers(29, "int16", 16), aligned(32, BF16)
    x[:4] = -1, 0, 8191, -8192
    library.call("looked_up", x, ab, cd, out, 64, 7)
    wide = x.astype(int) >> 7
    same(exact(out), exact(values)[np.concatenate([wide % 64, np.clip(wide + 32, 0, 63)])])
    ab[row + 1] = 99
    with pytest.raises(KernelError, match="aie::lut: the copies of element 1 differ"):
        library.call("looked_up", aligned_copy(np.full(16, 128), np.int16), ab, cd, out, 64, 7)


# Products


@pytest.mark.parametrize(
    ("name", "dtype", "result", "tile"),
    [("bf16_f32", BF16, np.float32, (4, 8, 4)), ("i16_i32", np.int16, np.int32, (4, 4, 8))],
)
def test_blocks_two_by_one(styles, name, dtype, result, tile):
    (m, k, n), (r, s, t) = (2, 3, 3), tile
    rng = np.random.default_rng(30)
    a, b, c = (rng.integers(-9, 9, shape) for shape in ((m * r, k * s), (k * s, n * t), (m * r, n * t)))

    def tiled(x, rows, columns):
        return x.reshape(x.shape[0] // rows, rows, -1, columns).swapaxes(1, 2)

    stored = aligned_copy(tiled(c, r, t), result)
    styles.call(
        f"blocks_{name}", aligned_copy(tiled(a, r, s), dtype),
        aligned_copy(tiled(b, s, t).swapaxes(2, 3), dtype), stored,
    )  # fmt: skip
    same(stored, tiled(c + a @ b, r, t))


def test_a_matrix_times_a_vector(styles):
    rng = np.random.default_rng(31)
    a, b, c = (rng.integers(-9, 9, shape) for shape in ((8, 32), 8, 32))
    halves = np.zeros((4, 8))
    halves[:2, 2:6] = b.reshape(2, 4)  # four factors in the middle of eight lanes
    sums = aligned_copy(c, np.float32)
    styles.call("matrix_vector", aligned_copy(a, BF16), aligned_copy(halves, BF16), sums, 32, 8)
    same(sums, c + b @ a)


def test_pointwise_convolution_saturates(styles):
    x, w, out = integers(32, "int8", 3, 2, 4, 8), integers(33, "int8", 3, 8, 8), aligned((2, 4, 8), np.uint8)
    styles.call("pointwise", x, w, out, 24, 9)
    total = np.einsum("cxpi,cio->xpo", x.astype(int), w.astype(int))
    same(out, clipped(np.where(total < 0, -((-total + 256) >> 9), (total + 256) >> 9), np.uint8))
    a, b, summed = integers(34, "uint8", 32), integers(35, "int8", 32), aligned(32, np.uint8)
    styles.call("skipped", a, b, summed, 1)
    total = a.astype(int) + b
    same(summed, clipped(np.where(total < 0, -((-total + 1) >> 1), (total + 1) >> 1), np.uint8))


def test_a_convolution_of_thirteen_arguments(styles):
    lines, w = integers(50, "uint8", 3, 2, 8, 8), integers(51, "int8", 2, 3, 2, 3, 8, 8)
    out = aligned((3, 4, 8), np.uint8)
    for check in (0, 1):
        styles.call("three_by_three", *lines, w, out, 8, 16, 16, 3, 3, check, 6, 32)
        padded = np.pad(lines.astype(int), ((0, 0), (0, 0), (1, 0), (0, 0)))
        taken = w.reshape(-1, 2, 3, 8, 8)[: 2 * (3 - check)].reshape(2, 3 - check, 2, 3, 8, 8).astype(int)
        total = sum(np.einsum("lcpi,olcij->opj", padded[check:, :, t : t + 4], taken[:, :, :, t]) for t in range(3))
        same(out[1:], clipped(total >> 6, np.uint8))
        same(out[0], 0)


def test_block_floats_by_bfloat16(aie2p):
    rng = np.random.default_rng(52)
    a, b = (rng.normal(size=(8, 8)).astype(BF16).astype(np.float32) for _ in range(2))
    blocks, out = aligned_copy(encode(b), np.uint8), aligned((2, 8, 1, 9), np.uint8)
    aie2p.call("blocks_mixed", aligned_copy(a, BF16), blocks, out)
    product = 2 * exact(decode(encode(a))) @ exact(decode(encode(b))).T
    step = np.abs(product).max(1, keepdims=True) / 64
    for c in out:
        assert (np.abs(decode(c) - product) <= step).all()
    same(out[0], out[1])


def test_windows_slide_and_go_around(styles):
    rng = np.random.default_rng(36)
    x, c = (aligned_copy(rng.integers(-300, 300, n), np.int16) for n in (32, 16))
    out = aligned(32, np.int32)
    styles.call("windows", x, c, out)
    a, b = x.astype(int), c.astype(int)

    def slid(lanes, points, first, at, step=1, along=1):
        return [
            sum(b[(first + p) % 16] * a[(at + lane * step + p * along) % 32] for p in range(points))
            for lane in range(lanes)
        ]

    same(out[:16], np.add(slid(16, 3, 0, 5), slid(16, 3, 4, 8)))
    same(out[16:24], np.add(slid(8, 4, 2, 0, 2), slid(8, 4, 0, 4, 2)))
    same(out[24:], slid(8, 2, 15, 30, 1, 3))
    pixels, taps, sums = integers(37, "uint8", 64), integers(38, "int8", 16), aligned(32, np.int32)
    styles.call("raw_windows", pixels, taps, sums)
    valid = [int(pixels[i : i + 8].astype(int) @ taps[:8].astype(int)) for i in range(33)]
    same(sums, np.add(valid[:32], valid[1:]))


def test_borders_and_unaligned_lanes(styles):
    x, taps, out = integers(39, "uint8", 64), integers(40, "int8", 16), aligned(96, np.int16)
    styles.call("depthwise", x, taps, out)
    padded = np.concatenate([x[:1], x]).astype(int)
    same(out[:32], clipped(sum(int(taps[i]) * padded[i : i + 32] for i in range(3)) >> 1, np.int16))
    same(out[32:48], x[3:19])
    same(out[49:65], x[16:32])


def test_raw_products_of_lanes(styles):
    rng = np.random.default_rng(41)
    a, b = (aligned_copy(rng.integers(-9, 9, 64), BF16) for _ in range(2))
    sums = aligned(32, np.float32)
    styles.call("raw_dot", a, b, sums, 64)
    same(sums[:16], (exact(a) * exact(b)).reshape(4, 16).sum(0) - 2 * exact(a)[:16])
    same(sums[16:], exact(a)[:16] * exact(b)[16:32])
    x, y, pairs, narrow = integers(42, "int8", 64), integers(43, "int8", 64), aligned(48, np.int32), aligned(32, "i2")
    styles.call("raw_integers", x, y, pairs, narrow)
    total = (x.astype(int) * y).reshape(2, 32).sum(0)
    same(pairs[:32], total)
    same(narrow, clipped((total + 4) >> 3, np.int16))
    same(pairs[32:], -narrow[16:].astype(int) << 3)


def test_raw_products_of_blocks(styles):
    x, y, out = integers(44, "int8", 2, 4, 8), integers(45, "int8", 8, 8), aligned((4, 8), np.int32)
    rng = np.random.default_rng(46)
    a, b = (aligned_copy(rng.integers(-9, 9, shape), BF16) for shape in ((4, 8), (8, 4)))
    floats = aligned((4, 4), np.float32)
    styles.call("raw_blocks", x, y, out, a, b, floats)
    same(out, x.astype(int).sum(0) @ y.astype(int))
    same(floats, exact(a) @ exact(b))


def test_raw_lanes_move(styles):
    a, b, out = integers(48, "int16", 32), integers(49, "int16", 32), aligned((8, 32), np.int16)
    styles.call("raw_lanes", a, b, out)
    both = np.concatenate([a, b])
    put = np.concatenate([a[:16], b[:16]])
    put[2] = b[31]
    same(out, [
        both.reshape(2, 32).T.ravel()[:32], both.reshape(32, 2).T.ravel()[32:], a.reshape(4, 8).T.ravel(), both[3:35],
        put, np.roll(a, 16), np.full(32, a[7]), np.concatenate([np.zeros(16), b[:16]]),
    ])  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [("put_only", "put_mcd"), ("get_only", "get_scd"), ("word_out", "put_ms")])
def test_channels_are_refused_when_they_are_used(styles, name, call):
    with pytest.raises(KernelError, match=f"{call}: kernels in C\\+\\+ reach no cascade and no stream"):
        styles.call(name, aligned(16, np.int32))
