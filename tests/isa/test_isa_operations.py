"""Operations of instructions at the ends of their operands, against numpy's integers of each width."""

from collections.abc import Callable

import numpy as np
import pytest

from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning.semantics import OPERATIONS
from support.differences import same

EDGES = [0, 1, 2, 31, 32, 33, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFE0, 0xFFFFFFFE, 0xFFFFFFFF]
WORD = 1 << 32


def int32(value: int) -> int:
    return int(np.uint32(value).astype(np.int32))


def shifted(value: int, count: int, arithmetic: bool) -> int:
    """Left by a positive count, right by a negative one, by its low five bits."""
    if int32(count) >= 0:
        return value << (count & 31)
    return (int32(value) if arithmetic else value) >> (-int32(count) & 31)


PAIRS: dict[str, tuple[tuple[int, ...], Callable[[int, int], int]]] = {
    "add_nc": ((), lambda a, b: a + b), "mul": ((), lambda a, b: a * b), "and": ((), lambda a, b: a & b),
    "or": ((), lambda a, b: a | b), "xor": ((), lambda a, b: a ^ b), "eq": ((), lambda a, b: a == b),
    "ne": ((), lambda a, b: a != b), "shift": ((0,), lambda a, b: shifted(a, b, False)),
}  # fmt: skip
MORE = [
    ("shift", (1,), lambda a, b: shifted(a, b, True)), ("lt", (1, 0), lambda a, b: int32(a) < int32(b)),
    ("lt", (0, 0), lambda a, b: a < b), ("lt", (1, 1), lambda a, b: int32(a) >= int32(b)),
    ("lt", (0, 1), lambda a, b: a >= b),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "function"), [(n, *rest) for n, rest in PAIRS.items()] + MORE)
def test_operations_on_two_words(name: str, options: tuple[int, ...], function: Callable[[int, int], int]):
    for a in EDGES:
        for b in EDGES:
            found, wanted = OPERATIONS[name](options, a, b), int(function(a, b)) % WORD
            assert found == wanted, f"{name} {options} of {a:#x} and {b:#x} is {found:#x}, not {wanted:#x}"


def test_sums_tell_their_carry():
    for a in EDGES:
        for b in EDGES:
            for carry in (0, 1):
                sums = {
                    "add": a + b,
                    "adc": a + b + carry,
                    "sub": a + (WORD - 1 - b) + 1,
                    "sbc": a + WORD - 1 - b + carry,
                }
                for name, total in sums.items():
                    operands = (a, b, carry) if name in ("adc", "sbc") else (a, b)
                    found = OPERATIONS[name]((), *operands)
                    assert found == (total % WORD, total >> 32), f"{name} of {list(map(hex, operands))}: {found}"
        assert OPERATIONS["decrement"]((), a) == ((a - 1) % WORD, int(a >= 1)), hex(a)
        for minus in (0, 1):
            assert OPERATIONS["mac"]((minus,), 5, a, 3) == (5 + (-3 * a if minus else 3 * a)) % WORD, hex(a)


def bits(value: int) -> str:
    return f"{value:032b}"


def test_operations_on_one_word():
    for a in EDGES:
        text = bits(a)
        wanted = {
            "abs": abs(int32(a)), "clz": len(text) - len(text.lstrip("0")),
            "clb": len(text) - len(text.lstrip(text[0])) - 1, "popcount": text.count("1"),
        }  # fmt: skip
        for name, value in wanted.items():
            assert OPERATIONS[name]((), a) == value, f"{name} of {a:#x}: {OPERATIONS[name]((), a)}, not {value}"
        assert [OPERATIONS["eqz"]((negate,), a) for negate in (0, 1)] == [int(a == 0), int(a != 0)]
        assert [OPERATIONS["select"]((negate,), 7, 9, a) for negate in (0, 1)] == ([7, 9] if a == 0 else [9, 7])
        for width, dtype in ((8, np.int8), (16, np.int16)):
            narrow = int(np.uint32(a).astype(dtype))
            assert OPERATIONS["extend"]((width, 1), a) == narrow % WORD, hex(a)
            assert OPERATIONS["extend"]((width, 0), a) == narrow % (1 << width), hex(a)


WIDTHS = [8, 16, 32]


def edges(width: int, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two registers of lanes: all pairs of the ends of a width, as far as there are lanes."""
    top = 1 << width
    values = [0, 1, top // 2 - 1, top // 2, top - 1, 5]
    pairs = [
        (a, b) for a in values for b in values if width == 8 or abs(a - b) <= 1 or {a, b} <= {0, top // 2, top - 1}
    ]
    pairs = (pairs * 64)[: 512 // width]
    dtype = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    return tuple(np.array(side, f"u{width // 8}").view(dtype) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


def register(lanes: np.ndarray) -> int:
    return int.from_bytes(np.ascontiguousarray(lanes).tobytes(), "little")


def lanes_of(value: int, like: np.ndarray) -> np.ndarray:
    return np.frombuffer(value.to_bytes(64, "little"), like.dtype)


def mask(conditions: np.ndarray) -> int:
    return sum(1 << i for i, holds in enumerate(conditions) if holds)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_are_compared_and_chosen_at_the_ends_of_their_width(width: int, signed: bool):
    a, b = edges(width, signed)
    s1, s2 = register(a), register(b)
    for negate, holds in ((0, a < b), (1, a >= b)):
        assert OPERATIONS["vcompare"]((width, negate), s1, s2, signed) == mask(holds), f"{width} bits, negate {negate}"
        found, taken = OPERATIONS["vchoose"]((width, negate), s1, s2, signed)
        same(lanes_of(found, a), np.minimum(a, b) if negate else np.maximum(a, b), f"choice, negate {negate}")
        assert taken == mask(holds)
    for subtract, wanted in ((0, a + b), (1, a - b)):
        same(lanes_of(OPERATIONS["vadd"]((width, subtract), s1, s2), a), wanted, f"sum, subtract {subtract}")
    assert OPERATIONS["veqz"]((width,), s2) == mask(b == 0)
    chosen = OPERATIONS["vselect"]((width,), s1, s2, mask(a < b))
    same(lanes_of(chosen, a), np.where(a < b, b, a), "selection")


MARKED = {  # which: result of lanes a and b
    0: lambda a, b: a - b, 1: lambda a, b: np.maximum(a - b, 0), 2: lambda a, b: np.abs(b), 3: lambda a, b: -b,
    4: lambda a, b: ~b,
}  # fmt: skip
CONDITIONS = {0: lambda a, b: a < b, 1: lambda a, b: a >= b, 2: lambda a, b: b > 0, 3: lambda a, b: b < 0}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("which", MARKED)
def test_marked_lanes_have_a_condition_and_end_with_their_width(which: int, condition: int):
    values = [-127, -1, 0, 1, 126]
    a, b = (np.array((side * 64)[:64], np.int8) for side in ([x for x in values for _ in values], values * 5))
    fits = np.abs(a.astype(int) - b) < 128 if which == 1 else np.ones(64, bool)
    a, b = np.where(fits, a, 0).astype(np.int8), np.where(fits, b, 0).astype(np.int8)
    found, marks = OPERATIONS["vmarked"]((8, which, condition), register(a), register(b), 1)
    same(lanes_of(found, a), MARKED[which](a.astype(int), b.astype(int)).astype(np.int8), f"lanes of {which}")
    assert marks == mask(CONDITIONS[condition](a, b)), f"condition {condition}"


@pytest.mark.parametrize(
    ("which", "pair", "sign", "known"),
    [(1, (127, 0), 1, True), (1, (127, -1), 1, False), (2, (0, -127), 1, True), (2, (0, -128), 1, False),
     (3, (0, -127), 1, True), (3, (0, -128), 1, False), (0, (127, -1), 1, True), (1, (-1, 0), 0, True),
     (2, (0, -1), 0, False)],
)  # fmt: skip
def test_marked_lanes_beyond_their_greatest_number_are_open(which: int, pair: tuple[int, int], sign: int, known: bool):
    a, b = (register(np.full(64, value, np.int8)) for value in pair)
    try:
        OPERATIONS["vmarked"]((8, which, 0), a, b, sign)
        told = "known"
    except OpenError as error:
        told = str(error)
    name = ("a - b", "a - b above 0", "|b|", "-b", "~b")[which]
    wanted = "known" if known else "a lane beyond the greatest number is open"
    assert told == wanted, f"{name} of (a, b) = {pair}, {'signed' if sign else 'unsigned'} 8 bits: {told}"


@pytest.mark.parametrize("negate", [0, 1])
def test_bf16_lanes_are_compared_up_to_infinity_with_one_zero(negate: int):
    ordered = [0xFF80, 0xBF80, 0x8001, 0x8000, 0x0000, 0x0001, 0x3F80, 0x7F80]
    ranks = [0, 1, 2, 3, 3, 4, 5, 6]
    pairs = [(i, j) for i in range(8) for j in range(8)]
    for half in (pairs[:32], pairs[32:]):
        a, b = (np.array([ordered[p] for p in side], np.uint16) for side in zip(*half, strict=True))
        holds = np.array([(ranks[i] < ranks[j]) != bool(negate) for i, j in half])
        assert OPERATIONS["vcompare_bf16"]((negate,), register(a), register(b)) == mask(holds)
        found, marks = OPERATIONS["vchoose_bf16"]((negate,), register(a), register(b))
        same(lanes_of(found, a), np.where(holds, b, a), f"choice of bf16, negate {negate}")
        assert marks == mask(holds)
    with pytest.raises(OpenError, match="comparisons with a NaN are open"):
        OPERATIONS["vcompare_bf16"]((negate,), 0x7F81, 0)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_lanes_are_moved_up_to_the_last(width: int):
    count = 512 // width
    a = np.arange(1, count + 1).astype(f"u{width // 8}")
    s1, other = register(a), (1 << width) - 2
    for index in (0, count - 1):
        assert OPERATIONS["vextract"]((width,), s1, index, 0) == index + 1
        inserted = a.copy()
        inserted[index] = other
        same(lanes_of(OPERATIONS["vinsert"]((width,), s1, other, index), a), inserted, f"insertion at {index}")
        same(lanes_of(OPERATIONS["vextract_broadcast"]((width,), s1, index), a), np.full_like(a, index + 1), f"{index}")
    for index in (-1, count):
        for name, operands in (
            ("vextract", (s1, index, 0)),
            ("vinsert", (s1, 9, index)),
            ("vextract_broadcast", (s1, index)),
        ):
            with pytest.raises(OpenError, match=f"lane {index} of {count}: "):
                OPERATIONS[name]((width,), *operands)
    assert OPERATIONS["vextract"]((width,), other, 0, 1) == (1 << 64) - 2
    high, low = (
        OPERATIONS[f"vpush_{end}"]((width,), *pair) for end, pair in (("high", (s1, other)), ("low", (other, s1)))
    )
    same(lanes_of(high, a), np.append(a[1:], a.dtype.type(other)), "push on top")
    same(lanes_of(low, a), np.insert(a[:-1], 0, other), "push below")


def test_bytes_are_shifted_by_a_whole_register_at_most():
    both = bytes(range(128))
    s1, s2 = (int.from_bytes(half, "little") for half in (both[:64], both[64:]))
    for shift in (0, 1, 63, 64):
        assert OPERATIONS["vshift"]((), s1, s2, shift).to_bytes(64, "little") == both[shift : shift + 64], shift
    with pytest.raises(OpenError, match="shifts by more than 64 bytes are open, this one is by 65"):
        OPERATIONS["vshift"]((), s1, s2, 65)


ROUNDED = {  # crRnd: eighths -12, -4, -3, 3, 4, 12, 20 as whole numbers (2^-3)
    0: (-2, -1, -1, 0, 0, 1, 2), 1: (-1, 0, 0, 1, 1, 2, 3), 2: (-1, 0, 0, 0, 0, 1, 2), 3: (-2, -1, -1, 1, 1, 2, 3),
    8: (-2, -1, 0, 0, 0, 1, 2), 9: (-1, 0, 0, 0, 1, 2, 3), 10: (-1, 0, 0, 0, 0, 1, 2), 11: (-2, -1, 0, 0, 1, 2, 3),
    12: (-2, 0, 0, 0, 0, 2, 2), 13: (-1, -1, 0, 0, 1, 1, 3),
}  # fmt: skip


@pytest.mark.parametrize("rounding", range(16))
def test_accumulators_are_rounded_by_every_mode(rounding: int):
    eighths = np.array([-12, -4, -3, 3, 4, 12, 20, 8], np.int32)
    source = register(np.tile(eighths, 2))
    if rounding not in ROUNDED:
        with pytest.raises(OpenError, match=f"crRnd is {rounding}, which no source assigns"):
            OPERATIONS["srs"]((512, 256), source, 3, rounding, 0, 0, 1)
        return
    found = OPERATIONS["srs"]((512, 256), source, 3, rounding, 0, 0, 1)
    lanes = np.frombuffer(found.to_bytes(32, "little"), np.int16)
    same(lanes[:8].tolist(), [*ROUNDED[rounding], 1], f"rounding {rounding} of {eighths.tolist()} eighths")


SATURATED = {  # crSat and sign: what -40000, -32769, -32768, -1, 32767, 32768, 65535, 65536 become
    (0, 1): (25536, 32767, -32768, -1, 32767, -32768, -1, 0), (0, 0): (25536, 32767, -32768, -1, 32767, -32768, -1, 0),
    (1, 1): (-32768, -32768, -32768, -1, 32767, 32767, 32767, 32767), (1, 0): (0, 0, 0, 0, 32767, -32768, -1, -1),
    (3, 1): (-32767, -32767, -32767, -1, 32767, 32767, 32767, 32767), (3, 0): (0, 0, 0, 0, 32767, -32768, -1, -1),
}  # fmt: skip


@pytest.mark.parametrize("modes", SATURATED, ids=str)
def test_accumulators_are_clamped_at_the_ends_of_their_lanes(modes: tuple[int, int]):
    values = np.array([-40000, -32769, -32768, -1, 32767, 32768, 65535, 65536], np.int32)
    found = OPERATIONS["srs"]((512, 256), register(np.tile(values, 2)), 0, 0, modes[0], 0, modes[1])
    lanes = np.frombuffer(found.to_bytes(32, "little"), np.int16)
    same(lanes[:8].tolist(), list(SATURATED[modes]), f"crSat {modes[0]}, sign {modes[1]} of {values.tolist()}")
    with pytest.raises(OpenError, match="crSat is 2, which no source explains"):
        OPERATIONS["srs"]((512, 256), 0, 0, 0, 2, 0, 1)


@pytest.mark.parametrize(
    ("value", "shift", "overflows"), [(127, 24, False), (1, 31, True), (-1, 31, False), (2, 30, True)]
)
def test_a_widening_shift_that_overflows_is_open_where_it_would_saturate(value: int, shift: int, overflows: bool):
    source = register(np.full(16, value, np.int8)) & ((1 << 128) - 1)
    lanes = (value << shift) & 0xFFFFFFFF
    assert OPERATIONS["ups"]((128, 512), source, shift, 0, 0, 1) & 0xFFFFFFFF == lanes
    try:
        OPERATIONS["ups"]((128, 512), source, shift, 1, 0, 1)
        told = ""
    except OpenError as error:
        told = str(error)
    assert bool(told) == overflows, f"{value} << {shift}: {told}"
