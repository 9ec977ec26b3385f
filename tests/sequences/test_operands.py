"""Where arrays stand in buffers: worked out by hand."""

import numpy as np
import pytest

from bdforge.design.sequences import Builder, ProgramError
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.operands import OperandError, fetch, place
from bdforge.devices.formats import pack_bfp16
from support.differences import same


def placed(array: np.ndarray, size_bytes: int, type_: str, bits: int, axes, dims, **facts) -> np.ndarray:
    """The buffer that `place` makes of an array, and of which `fetch` makes the same array."""
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, size_bytes)
    build.operand("X", x, "in", type_, bits, axes, dims, **facts)
    operand, values, buffer = build.program.operands[0], values_of(build.program, {}), np.zeros(size_bytes, np.uint8)
    place(operand, values, array, buffer)
    same(fetch(operand, values, buffer, array.dtype), array, f"{type_} fetched of {buffer.tolist()}")
    return buffer


def test_lines_stand_in_the_corner_of_zeros():
    array = np.arange(1, 7, dtype=np.int8).reshape(2, 3)
    axes, lines = [(2, 3, None, False), (3, 4, None, False)], [(0, 3, 1, 4), (1, 4, 1, 1)]
    same(placed(array, 12, "int8", 8, axes, lines), [1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0], "bytes")
    turned = placed(array, 12, "int8", 8, axes, [(1, 4, 1, 3), (0, 3, 1, 1)])
    same(turned, [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0], "bytes")


def test_the_last_tile_moves_back_and_may_hold_positions_once():
    array = np.arange(1, 6, dtype=np.int8)
    loop = [(0, 6, 1, 1)]
    same(placed(array, 6, "int8", 8, [(5, 5, 3, False)], loop), [1, 2, 3, 3, 4, 5], "bytes")
    same(placed(array, 6, "int8", 8, [(5, 5, 3, True)], loop), [1, 2, 3, 0, 4, 5], "bytes")
    same(placed(array[:4], 6, "int8", 8, [(4, 5, 3, False)], loop), [1, 2, 3, 3, 4, 0], "bytes")


@pytest.mark.parametrize(
    ("size", "walked", "once", "expected"),
    [
        (3, 3, True, [1, 2, 3]), (3, 3, False, [1, 2, 3]), (2, 3, False, [1, 2, 0]), (4, 4, False, [1, 2, 3, 2, 3, 4]),
        (4, 4, True, [1, 2, 3, 0, 0, 4]), (6, 6, True, [1, 2, 3, 4, 5, 6]), (3, 4, True, [1, 2, 3, 0, 0, 0]),
        (7, 7, True, [1, 2, 3, 4, 5, 6, 0, 0, 7]), (7, 8, False, [1, 2, 3, 4, 5, 6, 6, 7, 0]),
    ],
)  # fmt: skip
def test_tiles_of_three_end_where_the_walk_does(size: int, walked: int, once: bool, expected: list[int]):
    array, count = np.arange(1, size + 1, dtype=np.int8), len(expected)
    found = placed(array, count, "int8", 8, [(size, walked, 3, once)], [(0, count, 1, 1)])
    same(found, expected, f"tiles of 3 over {size} of {walked}, once: {once}")


@pytest.mark.parametrize(("walked", "tile"), [(2, 3), (3, 0), (3, -1)])
def test_tiles_that_a_walk_does_not_hold_are_refused(walked: int, tile: int):
    with pytest.raises(ProgramError, match=f"operand X has tiles of {tile} in {walked} positions"):
        placed(np.zeros(2, np.int8), 3, "int8", 8, [(2, walked, tile, False)], [(0, 3, 1, 1)])


def test_numbers_of_several_bytes_are_counted_as_such():
    array = np.array([1, -2, 3], np.int16)
    found = placed(array, 14, "int16", 16, [(3, 3, None, False)], [(0, 3, 1, 2)], offset=2)
    same(found.view(np.int16), [0, 0, 1, 0, -2, 0, 3], "numbers of 16 bits from the third on")
    floats = np.array([0.5, -1], np.float32)
    found = placed(floats, 12, "f32", 32, [(2, 2, None, False)], [(0, 2, 1, 1)], offset=1)
    same(found.view(np.float32), [0, 0.5, -1], "floats from the second on")


@pytest.mark.parametrize("blocked", ["across", "down"])
def test_block_floats_stand_by_tiles_along_their_blocks(blocked: str):
    """Of 10 x 20 values 2 x 3 tiles of 8 x 8, column by column of them; small powers of two lose nothing."""
    array = np.exp2(np.arange(200) % 5).reshape(10, 20).astype(np.float32)
    axes = [(10, 16, None, False), (20, 24, None, False)]
    found = placed(array, 6 * 72, "bfp16ebs8", 576, axes, [(1, 3, 1, 2), (0, 2, 1, 1)], blocked=blocked)
    whole = np.pad(array, ((0, 6), (0, 4)))
    tiles = [whole[8 * i : 8 * i + 8, 8 * j : 8 * j + 8] for j in range(3) for i in range(2)]
    wanted = [pack_bfp16(tile if blocked == "across" else tile.T).reshape(72) for tile in tiles]
    same(found.reshape(6, 72), np.array(wanted), f"tiles of blocks {blocked}")


def test_tiles_of_block_floats_move_back_by_values():
    """Of 8 x 12 values two tiles of eight columns, of which the second ends where the walk does."""
    array = np.exp2(np.arange(96) % 5).reshape(8, 12).astype(np.float32)
    axes = [(8, 8, 8, True), (12, 12, 8, False)]
    found = placed(array, 2 * 72, "bfp16ebs8", 576, axes, [(0, 1, 1, 2), (1, 2, 1, 1)], blocked="down")
    wanted = [pack_bfp16(array[:, first : first + 8].T).reshape(72) for first in (0, 4)]
    same(found.reshape(2, 72), np.array(wanted), "tiles of columns 0 and 4 on")


def test_codes_fill_bytes_from_the_lowest_bits():
    array = np.array([[-1, 0, 1, 1, 0, -1, 1, 0]], np.int8)
    axes = [(1, 1, None, False), (8, 8, None, False)]
    apart = placed(array, 2, "int2", 2, axes, [(0, 1, 1, 8), (1, 2, 1, 4), (1, 4, 2, 1)], bias=1)
    # byte 0 holds columns 0, 2, 4, 6, byte 1 columns 1, 3, 5, 7
    same(apart, [0 | 2 << 2 | 1 << 4 | 2 << 6, 1 | 2 << 2 | 0 << 4 | 1 << 6], "bytes")
    pairs = placed(array, 4, "int4", 4, axes, [(0, 1, 1, 8), (1, 4, 2, 2), (1, 2, 1, 1)])
    same(pairs, [0x0F, 0x11, 0xF0, 0x01], "bytes")
    later = placed(array, 6, "int4", 4, axes, [(0, 1, 1, 8), (1, 4, 2, 2), (1, 2, 1, 1)], offset=4)
    same(later, [0, 0, 0x0F, 0x11, 0xF0, 0x01], "bytes from the fourth code on")
    apart = placed(array, 4, "int2", 2, axes, [(0, 1, 1, 8), (1, 2, 1, 4), (1, 4, 2, 1)], bias=1, offset=8)
    same(apart, [0, 0, 0 | 2 << 2 | 1 << 4 | 2 << 6, 1 | 2 << 2 | 0 << 4 | 1 << 6], "bytes from the eighth code on")


@pytest.mark.parametrize(
    ("dims", "offset", "expected"),
    [
        ([(1, 8, 1, 1)], 0, [0x21, 0x43, 0x65, 0x07]),  # one loop through four bytes
        ([(1, 8, 1, 1)], 1, [0x10, 0x32, 0x54, 0x76]),  # from the middle of a byte on
        ([(1, 8, 1, 2)], 1, [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70]),  # the upper half of each byte
        ([(1, 4, 2, 1), (1, 2, 1, 4)], 0, [0x31, 0x75, 0x42, 0x06]),
        ([(1, 2, 4, 1), (1, 4, 1, 2)], 0, [0x51, 0x62, 0x73, 0x04]),  # which stays in its bytes
        ([(1, 8, 1, 3)], 0, [0x01, 0x20, 0x00, 0x03, 0x40, 0x00, 0x05, 0x60, 0x00, 0x07, 0x00]),
    ],
)
def test_codes_stand_where_their_loops_lead_across_bytes_too(dims, offset, expected):
    """Codes of 4 bits, 1 to 7 and 0."""
    array = np.array([[1, 2, 3, 4, 5, 6, 7, 0]], np.int8)
    axes = [(1, 1, None, False), (8, 8, None, False)]
    found = placed(array, 11, "int4", 4, axes, [(0, 1, 1, 8), *dims], offset=offset)
    same(found, [*expected, *[0] * (11 - len(expected))], "bytes")


def test_a_loop_that_leads_just_into_the_next_byte_fills_it():
    array, axes = np.array([[1, 2, 3, 4, 5, 6]], np.int8), [(1, 1, None, False), (6, 6, None, False)]
    found = placed(array, 4, "int4", 4, axes, [(0, 1, 1, 8), (1, 2, 3, 4), (1, 3, 1, 1)])
    same(found, [0x21, 0x03, 0x54, 0x06], "bytes")


@pytest.mark.parametrize(("type_", "bits", "low"), [("int4", 4, -8), ("int2", 2, -2), ("ternary", 2, -1)])
def test_every_code_comes_back_with_its_sign_or_bias(type_: str, bits: int, low: int):
    """Signed codes have their sign in the highest bit; with a bias they count from it."""
    biased = low == -1
    array = np.arange(low, low + (1 << bits), dtype=np.int8)
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, 8)
    build.operand("X", x, "in", type_, bits, [(len(array), len(array), None, False)], [(0, len(array), 1, 1)],
                  bias=-low if biased else 0)  # fmt: skip
    operand, values, buffer = build.program.operands[0], values_of(build.program, {}), np.zeros(8, np.uint8)
    place(operand, values, array, buffer)
    codes = [int(buffer[i * bits // 8]) >> i * bits % 8 & (1 << bits) - 1 for i in range(len(array))]
    expected = [(int(value) - (low if biased else 0)) % (1 << bits) for value in array]
    same(codes, expected, f"codes of {type_} from {low} on")
    same(fetch(operand, values, buffer, np.dtype(np.int8)), array, f"fetched {type_}")


def test_the_last_element_of_a_buffer_may_be_reached_and_none_behind():
    axes = [(4, 4, None, False)]
    same(placed(np.ones(4, np.int8), 7, "int8", 8, axes, [(0, 4, 1, 2)]), [1, 0, 1, 0, 1, 0, 1], "bytes")
    with pytest.raises(ProgramError, match="operand X reaches element 6; its buffer has 6"):
        placed(np.ones(4, np.int8), 6, "int8", 8, axes, [(0, 4, 1, 2)])


@pytest.mark.parametrize(
    ("dims", "facts", "message"),
    [
        ([(0, 4, 1, -1)], {"offset": 3}, "starts and strides begin at 0"),
        ([(0, 0, 1, 1)], {}, "with loops of .*; starts and strides begin at 0, counts at 1"),
        ([(0, 4, 1, 1)], {"offset": -1}, "operand X starts at element -1"),
        ([(0, 4, 1, 8)], {}, "operand X reaches element 24; its buffer has 4"),
    ],
)
def test_loops_that_leave_the_buffer_are_refused(dims, facts, message):
    with pytest.raises(ProgramError, match=message):
        placed(np.zeros(4, np.int8), 4, "int8", 8, [(4, 4, None, False)], dims, **facts)


def test_codes_that_leave_the_buffer_are_refused():
    array, axes = np.zeros((1, 8), np.int8), [(1, 1, None, False), (8, 8, None, False)]
    with pytest.raises(ProgramError, match="operand X reaches element 16; its buffer has 2"):
        placed(array, 2, "int2", 2, axes, [(0, 1, 1, 8), (1, 2, 1, 64), (1, 4, 2, 1)])
    with pytest.raises(ProgramError, match="operand X reaches element 21; its buffer has 8"):
        placed(array, 2, "int2", 2, axes, [(0, 1, 1, 8), (1, 8, 1, 3)])


@pytest.mark.parametrize(
    ("values", "given", "said"),
    [
        ([-1, 1], [[-1, 0, 1, 0], [0, 1, -1, 1]], None),
        ([-1, 1], [[-1, 0, 1, 0], [0, 1, 2, 1]], r"\[1, 2\] is 2; int2 holds -1 to 1: clip or"),
        ([-1, 1], [[-1, 0, 1, 0], [-2, 1, 0, 2]], r"\[1, 0\] is -2; int2 holds -1 to 1"),
        ([-2, 0], [[-2, 0, -1, 0], [0, -1, -2, -2]], None),
        ([-2, 0], [[-2, 0, -1, 0], [0, -1, -2, 1]], r"\[1, 3\] is 1; int2 holds -2 to 0"),
    ],
)
def test_a_value_that_the_operand_may_not_hold_is_named(values: list[int], given: list[list[int]], said: str | None):
    array = np.array(given, np.int8)
    axes, lines = [(2, 2, None, False), (4, 4, None, False)], [(0, 2, 1, 4), (1, 4, 1, 1)]
    if said is None:
        assert placed(array, 2, "int2", 2, axes, lines, values=values, bias=values[1]).any()
        return
    with pytest.raises(OperandError, match=f"operand X: the value at {said}"):
        placed(array, 2, "int2", 2, axes, lines, values=values, bias=values[1])
