"""Integer arithmetic of core programs, scalars and lanes of each width, against Python's unbounded integers."""

import operator
from collections.abc import Callable

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import MLIR_TYPES, computed, run_core
from support.differences import same

VECTOR = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "andi": operator.and_, "ori": operator.or_,
    "xori": operator.xor, "maxsi": max, "minsi": min, "floordivsi": operator.floordiv,
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if a * b >= 0 else -1),
    "remsi": lambda a, b: a - b * (abs(a) // abs(b) * (1 if a * b >= 0 else -1)), "ceildivsi": lambda a, b: -(-a // b),
}  # fmt: skip
UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv, "remui": operator.mod, "ceildivui": lambda a, b: -(-a // b), "maxui": max, "minui": min,
}  # fmt: skip
SHIFTS = {"shli": (operator.lshift, True), "shrsi": (operator.rshift, True), "shrui": (operator.rshift, False)}
SIGNS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
         "ge": operator.ge}  # fmt: skip
PREDICATES = {name: (SIGNS[name], True) for name in ("eq", "ne")} | {
    f"{sign}{name}": (SIGNS[name], sign == "s") for sign in "su" for name in ("lt", "le", "gt", "ge")
}


def decisions(of: Callable[[str], str], operands: str, element: str) -> list[str]:
    """Lines that compare two values by every predicate; results are bytes."""
    return [
        line for name in PREDICATES for line in (
            f"%b_{name} = arith.cmpi {name}, {operands} : {of(element)}",
            f"%{name} = arith.extui %b_{name} : {of('i1')} to {of('i8')}",
        )
    ]  # fmt: skip


@VECTOR
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap_at_their_width_and_are_compared_with_their_sign_or_without(dtype, vector):
    bits, kind = 8 * np.dtype(dtype).itemsize, MLIR_TYPES[np.dtype(dtype)]
    low, high, modulus = -(1 << bits - 1), (1 << bits - 1) - 1, 1 << bits
    edges = [low, low + 1, -7, -1, 1, 3, high - 1, high]
    x, y = ([a for a in [*edges, 0] for _ in edges], edges * (len(edges) + 1))
    by = [place % bits for place in range(len(x))]
    two = {**{name: (f, True) for name, f in SIGNED.items()}, **{name: (f, False) for name, f in UNSIGNED.items()}}

    def lines(of: Callable[[str], str]) -> list[str]:
        made = [f"%{name} = arith.{name} %x, {'%by' if name in SHIFTS else '%y'} : {of(kind)}" for name in two | SHIFTS]
        return [*made, f"%absi = math.absi %x : {of(kind)}", *decisions(of, "%x, %y", kind)]

    results = dict.fromkeys([*two, *SHIFTS, "absi"], np.zeros(len(x), dtype))
    results |= dict.fromkeys(PREDICATES, np.zeros(len(x), np.int8))
    inputs = {name: np.array(values, dtype) for name, values in (("x", x), ("y", y), ("by", by))}
    got = computed(lines, inputs, results, vector)
    for table, others in ((two, y), (SHIFTS, by), (PREDICATES, y), ({"absi": (lambda a, _: abs(a), True)}, y)):
        for name, (function, signed) in table.items():
            pairs = zip(x, others, strict=True)
            exact = [function(a, b) if signed else function(a % modulus, b % modulus) for a, b in pairs]
            same(got[name], [(int(value) - low) % modulus + low for value in exact], f"{name} of {kind}")


BITS = {name: (SIGNED[name], True) for name in ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi")}
BITS |= {name: (UNSIGNED[name], False) for name in ("maxui", "minui")}


@VECTOR
def test_arithmetic_and_comparisons_of_bits(vector):
    """A signed i1 is 0 or -1."""

    def lines(of: Callable[[str], str]) -> list[str]:
        made = [f"%{n}1 = arith.trunci %{n} : {of('i8')} to {of('i1')}" for n in "xy"]
        for name in BITS:
            made.append(f"%b_{name} = arith.{name} %x1, %y1 : {of('i1')}")
            made.append(f"%{name} = arith.extui %b_{name} : {of('i1')} to {of('i8')}")
        return [*made, *decisions(of, "%x1, %y1", "i1")]

    x, y = [0, 0, 1, 1], [0, 1, 0, 1]
    inputs = {"x": np.array(x, np.int8), "y": np.array(y, np.int8)}
    got = computed(lines, inputs, dict.fromkeys([*BITS, *PREDICATES], np.zeros(4, np.int8)), vector)
    for name, (function, signed) in (BITS | PREDICATES).items():
        wanted = [function(-a, -b) if signed else function(a, b) for a, b in zip(x, y, strict=True)]
        same(got[name], [int(value) % 2 for value in wanted], f"{name} of bits")


@VECTOR
@pytest.mark.parametrize("operation", SHIFTS)
@pytest.mark.parametrize("by", [-1, 32])
def test_a_shift_by_the_width_is_an_error(operation, by, vector):
    inputs = {"x": np.array([1, 1], np.int32), "y": np.array([1, by], np.int32)}
    told = by % (1 << 32) if vector and operation == "shrui" else by  # lanes are read without their sign
    message = rf"core \(1, 3\): a shift of 32 bits by {told} has no defined result \(.*:\d+:\d+\)"
    with pytest.raises(CoreError, match=message):
        computed(lambda of: [f"%z = arith.{operation} %x, %y : {of('i32')}"], inputs, {"z": inputs["x"]}, vector)


@VECTOR
def test_integers_are_cast(vector):
    """Bytes to words with and without their sign, as indices, and back."""

    def lines(of: Callable[[str], str]) -> list[str]:
        byte, word, index = of("i8"), of("i32"), of("index")
        return [
            f"%s = arith.extsi %x : {byte} to {word}", f"%u = arith.extui %x : {byte} to {word}",
            f"%q = arith.muli %s, %u : {word}", f"%n = arith.trunci %q : {word} to {byte}",
            f"%i1 = arith.index_cast %s : {word} to {index}", f"%w = arith.index_cast %i1 : {index} to {of('i64')}",
        ]  # fmt: skip

    x = np.arange(-128, 124, 7).astype(np.int8)
    kinds = {"s": np.int32, "u": np.int32, "n": np.int8, "w": np.int64}
    got = computed(lines, {"x": x}, {name: np.zeros(len(x), dtype) for name, dtype in kinds.items()}, vector)
    wide, bare = x.astype(np.int32), x.view(np.uint8).astype(np.int32)
    for name, wanted in {"s": wide, "u": bare, "n": (wide * bare).astype(np.int8), "w": wide}.items():
        same(got[name], wanted, name)


def test_odd_widths_wrap_too():
    body = """
      %x = memref.load %a[%c0] : memref<3xi32>
      %n = arith.trunci %x : i32 to i5
      %two = arith.constant 2 : i5
      %m = arith.muli %n, %two : i5
      %w = arith.extsi %m : i5 to i32
      %u = arith.extui %m : i5 to i32
      memref.store %w, %a[%c1] : memref<3xi32>
      memref.store %u, %a[%c2] : memref<3xi32>"""
    assert list(run_core(body, {"a": np.array([13, 0, 0], np.int32)})["a"]) == [13, -6, 26]


def test_index_counts_in_64_bits():
    body = """
      %big = arith.constant 9223372036854775807 : index
      %sum = arith.addi %big, %c1 : index
      %word = arith.index_cast %sum : index to i64
      %half = arith.index_cast %big : index to i32
      %back = arith.index_castui %half : i32 to index
      %wide = arith.index_cast %back : index to i64
      memref.store %word, %a[%c0] : memref<2xi64>
      memref.store %wide, %a[%c1] : memref<2xi64>"""
    got = run_core(body, {"a": np.zeros(2, np.int64)})["a"]
    assert list(got) == [-(2**63), 2**32 - 1]


def test_unsigned_memory_keeps_its_values():
    body = """
      %x = memref.load %u[%c0] : memref<2xui32>
      %s = builtin.unrealized_conversion_cast %x : ui32 to i32
      %h = arith.shrsi %s, %s1 : i32
      %y = builtin.unrealized_conversion_cast %h : i32 to ui32
      memref.store %y, %u[%c1] : memref<2xui32>"""
    outside = '    %u = aie.buffer(%tile) {sym_name = "u"} : memref<2xui32> = dense<[4294967295, 0]>'
    got = run_core(f"%s1 = arith.constant 1 : i32\n{body}", {}, outside)["u"]
    assert got.dtype == np.uint32
    assert list(got) == [2**32 - 1, 2**32 - 1]
