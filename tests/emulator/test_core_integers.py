"""Integer arithmetic of core programs, of several widths, against Python's unbounded integers."""

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import MLIR_TYPES, run_core
from support.differences import same

SIGNED = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "maxsi": max,
    "minsi": min,
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if a * b >= 0 else -1),
    "remsi": lambda a, b: a - b * (abs(a) // abs(b) * (1 if a * b >= 0 else -1)),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
}
UNSIGNED = {
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
    "maxui": max,
    "minui": min,
}
WIDTHS = [np.int8, np.int16, np.int32, np.int64]


def operands(dtype) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    edges = [low, low + 1, -7, -1, 1, 3, high - 1, high]
    a = np.array([x for x in [*edges, 0] for _ in edges], dtype)
    return a, np.array(edges * (len(edges) + 1), dtype)


def wrapped(values, dtype) -> np.ndarray:
    modulus = 1 << (8 * np.dtype(dtype).itemsize)
    return np.array([v % modulus for v in values], np.uint64).astype(f"u{np.dtype(dtype).itemsize}").view(dtype)


def each(operations: list[str], dtype, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """What operations make of every pair, in a loop over two buffers."""
    kind, memref = MLIR_TYPES[np.dtype(dtype)], f"memref<{len(a)}x{MLIR_TYPES[np.dtype(dtype)]}>"
    lines = "\n".join(
        f"%{name} = arith.{name} %x, %y : {kind}\nmemref.store %{name}, %r_{name}[%i] : {memref}" for name in operations
    )
    body = f"""
      %count = arith.constant {len(a)} : index
      scf.for %i = %c0 to %count step %c1 {{
        %x = memref.load %a[%i] : {memref}
        %y = memref.load %b[%i] : {memref}
        {lines}
      }}"""
    results = {f"r_{name}": np.zeros_like(a) for name in operations}
    got = run_core(body, {"a": a, "b": b, **results})
    return {name: got[f"r_{name}"] for name in operations}


@pytest.mark.parametrize("dtype", WIDTHS)
def test_integer_operations_wrap_at_their_width(dtype):
    a, b = operands(dtype)
    modulus = 1 << (8 * np.dtype(dtype).itemsize)
    got = each([*SIGNED, *UNSIGNED], dtype, a, b)
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    for name, function in SIGNED.items():
        same(got[name], wrapped([function(x, y) for x, y in pairs], dtype), name)
    for name, function in UNSIGNED.items():
        expected = wrapped([function(x % modulus, y % modulus) for x, y in pairs], dtype)
        same(got[name], expected, name)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_shifts_move_bits(dtype):
    bits = 8 * np.dtype(dtype).itemsize
    a, _ = operands(dtype)
    b = (np.arange(len(a)) % bits).astype(dtype)
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    got = each(["shli", "shrsi", "shrui"], dtype, a, b)
    same(got["shli"], wrapped([x << y for x, y in pairs], dtype))
    same(got["shrsi"], wrapped([x >> y for x, y in pairs], dtype))
    same(got["shrui"], wrapped([(x % (1 << bits)) >> y for x, y in pairs], dtype))


@pytest.mark.parametrize("by", [-1, 32])
def test_a_shift_by_the_width_is_an_error(by):
    message = rf"core \(1, 3\): a shift of 32 bits by {by} has no defined result \(.*:\d+:\d+\)"
    with pytest.raises(CoreError, match=message):
        each(["shli"], np.int32, np.array([1, 1], np.int32), np.array([1, by], np.int32))


def test_odd_widths_and_booleans_wrap_too():
    body = """
      %x = memref.load %a[%c0] : memref<6xi32>
      %n = arith.trunci %x : i32 to i5
      %two = arith.constant 2 : i5
      %m = arith.muli %n, %two : i5
      %w = arith.extsi %m : i5 to i32
      %u = arith.extui %m : i5 to i32
      %t = arith.constant true
      %f = arith.xori %t, %t : i1
      %less = arith.cmpi slt, %t, %f : i1
      %s = arith.extsi %t : i1 to i32
      %l = arith.extsi %less : i1 to i32
      memref.store %w, %a[%c1] : memref<6xi32>
      memref.store %u, %a[%c2] : memref<6xi32>
      memref.store %s, %a[%c3] : memref<6xi32>
      memref.store %l, %a[%c4] : memref<6xi32>"""
    got = run_core(body, {"a": np.array([13, 0, 0, 0, 0, 0], np.int32)})["a"]
    assert list(got) == [13, -6, 26, -1, -1, 0]


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
