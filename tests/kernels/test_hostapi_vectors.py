"""Vector operations of the stand-in against numpy."""

import numpy as np
import pytest
from kernel_library import KernelError, aligned, aligned_copy

from support.differences import same

SATURATE, SYMMETRIC = 1, 3


def random(dtype, count, seed=0):
    info = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(info.min, info.max + 1, count, np.int64)
    values[:3] = info.min, info.max, 3
    return aligned_copy(values, dtype)


def nibbles(data, signed):
    """Low nibble first."""
    values = np.stack([data & 15, data >> 4], axis=-1).ravel().astype(np.int16)
    return (values ^ 8) - 8 if signed else values


def packed_nibbles(values):
    values = np.asarray(values).astype(np.int64) & 15
    return (values[0::2] | values[1::2] << 4).astype(np.uint8)


def lanes(dtype):
    return 64 // np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_arithmetic_wraps_in_the_element_type(probe, dtype):
    n = lanes(dtype)
    a, b = random(dtype, n, 1), random(dtype, n, 2)
    out = aligned((14, n), dtype)
    probe.call(f"arithmetic_{dtype}", a, b, out)
    x, y = a.astype(np.int64), b.astype(np.int64)
    mask = (1 << 8 * a.itemsize) - 1
    expected = [
        x + y, x - y, x - 1, np.maximum(x, y), np.minimum(x, y), np.where((x < y) & (x != 3), y, x),
        x << 3, x >> 3, (x & mask) >> 3, np.full(n, x.sum()), np.full(n, x.max()), np.full(n, x.min()), -x, np.abs(x),
    ]  # fmt: skip
    same(out, np.array(expected).astype(dtype))


def test_bitwise_operations(probe):
    a, b = random("uint8", 64, 1), random("uint8", 64, 2)
    out = aligned((5, 64), np.uint8)
    probe.call("bitwise", a, b, out)
    same(out, np.array([a & b, a | b, a ^ b, a & 0x30, ~a]))


@pytest.mark.parametrize(("mode", "low", "high"), [(0, None, None), (SATURATE, -128, 127), (SYMMETRIC, -127, 127)])
def test_upshift_clamps_only_when_saturation_is_on(probe, mode, low, high):
    probe.call("set_modes", 0, mode)
    a, out = random("int8", 64), aligned(64, np.int8)
    probe.call("upshift_int8", a, out, 2)
    wide = a.astype(np.int64) << 2
    same(out, (wide if low is None else np.clip(wide, low, high)).astype(np.int8))


def test_masks_combine_and_count(probe):
    a, b, out = random("int8", 64, 1), random("int8", 64, 2), aligned(2, np.uint32)
    probe.call("count_less", a, b, out)
    assert list(out) == [(a < b).sum(), ((a >= 0) | (np.arange(64) < 2)).sum()]


def as_bits(lanes):
    return sum(1 << i for i, lane in enumerate(lanes) if lane)


def test_comparisons_and_masks_are_bits_of_lanes(probe):
    a, b, out = random("int8", 64, 1), random("int8", 64, 2), aligned(11, np.uint64)
    b[:24] = a[:24]  # equal lanes, the lowest and the highest values among them
    probe.call("comparisons", a, b, out)
    same(out, [as_bits(x) for x in (
        a < b, a <= b, a > b, a >= b, a == b, a != b, (a < b) & (a != b), (a < b) | (a == b), (a <= b) ^ (a >= b),
        ~(a < b),
    )] + [0x80000005])  # fmt: skip


def test_iterators_go_both_ways(probe):
    data, out, distance = random("int16", 160).reshape(5, 32), aligned((7, 32), np.int16), aligned(1, np.int64)
    probe.call("walked", data, out, distance)
    same(distance, 4)
    same(out, data[[4, 3, 1, 2, 0, 3, 1]])


def test_whole_parts_are_put_in_other_places(probe):
    v, out = random("int16", 32), aligned((3, 32), np.int16)
    probe.call("reordered", v, out)
    same(out, [v[::-1], v.reshape(4, 8)[::-1].ravel(), np.concatenate([v[16:], v[:16]])])
    wide, floats = aligned((2, 32), np.int32), aligned(16, np.float32)
    probe.call("parts_of_accums", v, wide, floats)
    same(wide, [np.concatenate([v[16:], v[:16]])] * 2)
    same(floats, np.concatenate([v[8:16], v[:8]]))


def test_products_of_32_bits_have_64(probe):
    a, b, out = random("int32", 16, 1), random("int32", 16, 2), aligned(16, np.int32)
    probe.call("wide_products", a, b, out)
    same(out, (a.astype(object) * b.astype(object) >> 31).astype(np.int64).astype(np.int32))


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("upshift_int8", lambda a: a.astype(np.int64) << 31),
        ("downshift_int8", lambda a: a.astype(np.int64) >> 31),
        ("logical_downshift_int8", lambda a: a.view(np.uint8).astype(np.int64) >> 31),
        ("to_float_int8", lambda a: a[:16] / 2.0**31),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lanes_are_shifted_by_31_at_most(probe, name, last):
    a, out = random("int8", 64), aligned(64, np.float32 if "float" in name else np.int8)
    probe.call(name, a, out, 31)
    expected = last(a)
    same(out[: expected.size], expected.astype(out.dtype))
    for shift in (32, -1):
        with pytest.raises(KernelError, match=rf"aie::{name.removesuffix('_int8')}: shift {shift} is outside 0 to 31"):
            probe.call(name, a, out, shift)


@pytest.mark.parametrize(
    ("name", "signed"), [("unpack_int4", True), ("unpack_uint4", False), ("unpack_bytes_as_int4", True)]
)
def test_nibbles_unpack_low_first(probe, name, signed):
    data, out = random("uint8", 64), aligned(128, np.int8)
    probe.call(name, data, out)
    same(out, nibbles(data, signed))


def test_wider_lanes_unpack_by_the_sign_of_their_type(probe):
    small, out = random("int8", 64), aligned(64, np.int16)
    probe.call("unpack_int8", small, out)
    same(out, small)
    unsigned, wide = random("uint16", 32), aligned(32, np.uint32)
    probe.call("unpack_uint16", unsigned, wide)
    same(wide, unsigned)


@pytest.mark.parametrize(("mode", "low", "high"), [(0, None, None), (SATURATE, -128, 127), (SYMMETRIC, -127, 127)])
def test_pack_keeps_low_bits_or_clamps(probe, mode, low, high):
    probe.call("set_modes", 0, mode)
    a, out = random("int16", 32), aligned(32, np.int8)
    probe.call("pack_int16", a, out)
    same(out, (a if low is None else np.clip(a, low, high)).astype(np.int8))


@pytest.mark.parametrize(("mode", "low", "high"), [(0, None, None), (SATURATE, -8, 7), (SYMMETRIC, -7, 7)])
def test_pack_to_nibbles_puts_the_even_lane_low(probe, mode, low, high):
    probe.call("set_modes", 0, mode)
    a, out = random("int8", 64), aligned(32, np.uint8)
    probe.call("pack_int8", a, out)
    same(out, packed_nibbles(a if low is None else np.clip(a, low, high)))


def test_unsigned_pack_clamps_to_its_own_range(probe):
    probe.call("set_modes", 0, SATURATE)
    a, out = random("uint32", 16), aligned(16, np.uint16)
    probe.call("pack_uint32", a, out)
    same(out, np.minimum(a, 65535))


def test_casts_are_little_endian(probe):
    a, out = random("int32", 16), aligned(64, np.uint8)
    probe.call("cast_int32_to_uint8", a, out)
    assert out.tobytes() == a.astype("<i4").tobytes()


def test_a_4_bit_pointer_steps_in_bytes(probe):
    data, out = random("uint8", 192), aligned(64, np.uint8)
    for steps in (0, 64, 128):
        probe.call("step_int4", data, out, steps)
        same(out, data[steps : steps + 64])


def test_iterators_step_whole_vectors_of_nibbles(probe):
    data, out = random("uint8", 160), aligned(160, np.uint8)
    probe.call("copy_with_iterators", data, out, 5)
    same(out, data)
    numbers, last = random("int16", 96), aligned(32, np.int16)
    probe.call("last_vector", numbers, last, 3)
    same(last, numbers[64:])


def test_single_nibbles_are_read_and_written(probe):
    data, out, read = random("uint8", 16), aligned(16, np.uint8), aligned(32, np.int32)
    probe.call("get_and_set_int4", data, out, read)
    same(read, nibbles(data, signed=True))
    same(out, packed_nibbles(read[::-1]))


def moved(probe, name, dtype, arrays, *numbers):
    """Call with values of numpy type `dtype`, or 4-bit values for int4; returns values again."""
    if dtype != "int4":
        out = aligned(arrays[0].size * len(arrays), dtype)
        probe.call(f"{name}_{dtype}", *(aligned_copy(a, dtype) for a in arrays), out, *numbers)
        return out
    out = aligned(arrays[0].size * len(arrays) // 2, np.uint8)
    probe.call(f"{name}_int4", *(aligned_copy(packed_nibbles(a), np.uint8) for a in arrays), out, *numbers)
    return nibbles(out, signed=True)


def lane_values(dtype, seed=0):
    if dtype == "int4":
        return np.random.default_rng(seed).integers(-8, 8, 128)
    return random(dtype, lanes(dtype), seed)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int4"])
def test_transpose_swaps_rows_and_columns(probe, dtype):
    v = lane_values(dtype)
    for rows in (2, 4, 16):
        columns = v.size // rows
        same(moved(probe, "transpose", dtype, [v], rows, columns), v.reshape(rows, columns).T.ravel())


@pytest.mark.parametrize(("dtype", "steps"), [("int8", (1, 4, 64)), ("int16", (1, 8)), ("int4", (2, 16))])
def test_zip_unzip_and_filter_move_chunks(probe, dtype, steps):
    a, b = lane_values(dtype, 1), lane_values(dtype, 2)
    for step in steps:
        zipped = np.stack([a.reshape(-1, step), b.reshape(-1, step)], axis=1).ravel()
        same(moved(probe, "zip", dtype, [a, b], step), zipped)
        chunks = np.concatenate([a, b]).reshape(-1, 2, step)
        same(moved(probe, "unzip", dtype, [a, b], step), chunks.transpose(1, 0, 2).ravel())
        if step <= a.size // 2:
            filtered = a.reshape(-1, 2, step).transpose(1, 0, 2).ravel()
            same(moved(probe, "filter", dtype, [a], step), filtered)


def test_parts_move_without_reading_undefined_lanes(probe):
    v, out = random("int16", 32), aligned(32, np.int16)
    probe.call("swap_halves", v, out)
    same(out, np.concatenate([v[16:], v[:16]]))


@pytest.mark.parametrize("mode", [0, SATURATE])
def test_elementwise_products_accumulate_and_wrap(probe, mode):
    """In 32 bits, which are copied whatever the mode."""
    probe.call("set_modes", 0, mode)
    a, b, out = random("int16", 32, 1), random("int16", 32, 2), aligned(32, np.int32)
    probe.call("multiply_add", a, b, out)
    x, y = a.astype(np.int64), b.astype(np.int64)
    same(out, (3 * (2 * x * y + x * x - y * y)).astype(np.int32))


@pytest.mark.parametrize(("mode", "low", "high"), [(0, None, None), (SATURATE, -8, 7)])
def test_nibbles_are_shifted_as_bytes_and_packed(probe, mode, low, high):
    probe.call("set_modes", 0, mode)
    values, out = lane_values("int4"), aligned((3, 64), np.uint8)
    probe.call("shift_int4", aligned_copy(packed_nibbles(values), np.uint8), out, 2)
    up, down, logical = (nibbles(row, signed=True) for row in out)
    clamped = np.clip(values << 2, low, high)
    same(up, nibbles(packed_nibbles(clamped), signed=True))
    same(down, values >> 2)
    same(logical, (values & 15) >> 2)


def test_sums_saturate_when_asked_to(probe):
    a, b, out = random("int8", 64, 1), random("int8", 64, 2), aligned((3, 64), np.int8)
    probe.call("set_modes", 0, SATURATE)
    probe.call("saturating_int8", a, b, out)
    x, y = a.astype(int), b.astype(int)
    same(out, [np.clip(x + y, -128, 127), np.clip(x - y, -128, 127), np.clip(x, -3, 100)])
    probe.call("set_modes", 0, 0)
    probe.call("saturating_int8", a, b, out)
    same(out[:2], [(x + y).astype(np.int8), (x - y).astype(np.int8)])


def test_bytes_times_nibbles(probe):
    a, b, out = random("int8", 64), lane_values("int4")[:64], aligned(64, np.int32)
    probe.call("multiply_int8_int4", a, aligned_copy(packed_nibbles(b), np.uint8), out)
    same(out, a.astype(int) * b)


def test_accumulators_are_recast_bit_by_bit(probe):
    values, words, floats = random("int32", 16), aligned(16, np.int32), aligned(16, np.float32)
    probe.call("cast_accum", values, words, floats)
    same(words, values)
    same(floats.view(np.int32), values)


def test_scalars_pass_as_registers(probe):
    out = aligned(3, np.int64)
    probe.call("scalars", -5, 4_000_000_000, -(2**40), out)
    assert list(out) == [-5, 4_000_000_000, -(2**40)]


SHAPES = {
    "aie2": """
8x8 acc32: 4x8x8 8x8x8 2x8x8 1x16x8 2x16x8 4x16x8
8x8 acc64: 4x8x4 4x16x4 8x8x4
8x4 acc32: 4x16x8 8x16x8 4x32x8
16x8 acc32: 4x4x8 8x4x8 8x4x4 4x4x4
16x8 acc64: 4x8x4 2x8x8
8x16 acc64: 4x4x8 4x4x4
16x16 acc32: 4x2x8 8x2x8 8x1x8
16x16 acc64: 2x4x8 4x4x8 4x4x4
32x32 acc64: 4x2x4 4x4x4 8x2x4 4x1x8
""",
    "aie2p": """
8x8 acc32: 8x8x8 4x8x8 2x8x8
8x4 acc32: 4x16x16
16x8 acc32: 8x4x8 4x4x8
16x8 acc64: 4x8x8
8x16 acc32: 8x2x8
8x16 acc64: 4x4x8
16x16 acc32: 4x2x8 8x2x8 8x1x8
16x16 acc64: 2x4x8 4x4x8
32x32 acc64: 4x2x8 4x4x8 4x4x4 8x2x8 4x1x8
""",
}
"""Bits of A and B, the accumulator, m x k x n: the dense integer modes that releases 2025.1 and 2026.1 share (AIE API
User Guide, matrix multiplication; aie::detail::mmul_*.hpp)."""


@pytest.mark.slow
@pytest.mark.parametrize("generation", SHAPES)
def test_shapes_of_mmul_are_those_of_the_api(mmul_library, generation):
    library, found = mmul_library(generation), set()
    for index in range(library.library.shape_count()):
        shape = aligned(6, np.uint32)
        library.call("shape", index, shape)
        found.add(tuple(map(int, shape)))
    expected = set()
    for line in SHAPES[generation].strip().splitlines():
        kind, _, shapes = line.partition(":")
        bits, accumulator = kind.split(" acc")
        expected |= {
            (*map(int, bits.split("x")), *map(int, mkn.split("x")), int(accumulator)) for mkn in shapes.split()
        }
    assert found == expected, f"too many {found - expected}, missing {expected - found}"


@pytest.mark.daily("aie2p-()")
@pytest.mark.parametrize(
    ("generation", "options"),
    [
        ("aie2", ()), ("aie2p", ()),
        pytest.param("aie2p", ("-DHOSTAPI_PLAIN",), marks=pytest.mark.slow),  # daily one kernel is, and all floats are
        pytest.param("aie2p", ("-march=native",), marks=pytest.mark.slow),  # as kernels are built elsewhere
    ],
    ids=str,
)  # fmt: skip
def test_every_mmul_shape_multiplies_row_major_blocks(mmul_library, generation, options):
    library = mmul_library(generation, *options)
    for index in range(library.library.shape_count()):
        shape = aligned(6, np.uint32)
        library.call("shape", index, shape)
        check_shape(library, index, *map(int, shape))


def check_shape(library, index, bits_a, bits_b, m, k, n, accumulator_bits):
    for signed_a in (True, False):
        a, stored_a = operand(bits_a, signed_a, m * k, 1)
        b, stored_b = operand(bits_b, not signed_a, k * n, 2)
        c, wide = aligned(m * n, np.int32), aligned(m * n, np.int64)
        library.call("multiply", index, signed_a, stored_a, stored_b, c, wide)
        exact = 2 * (a.astype(object).reshape(m, k) @ b.astype(object).reshape(k, n)).ravel()
        where = f"{bits_a}x{bits_b} {m}x{k}x{n} signed_a={signed_a}"
        assert [wrapped(x, 32) for x in exact] == list(c), where
        assert [wrapped(x, accumulator_bits) for x in exact] == list(wide), where


def operand(bits, signed, count, seed):
    """Values and their storage."""
    if bits != 4:
        values = random(f"{'' if signed else 'u'}int{bits}", count, seed)
        return values, values
    low = -8 if signed else 0
    values = np.random.default_rng(seed).integers(low, low + 16, count)
    return values, aligned_copy(packed_nibbles(values), np.uint8)


def wrapped(value, bits):
    return (int(value) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
