"""Every comparison, reduction and extreme of core programs, scalars and lanes, at the ends of each type."""

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType

from bdforge.array.emulator import CoreError
from bdforge.array.emulator.cores.interpreted.float_ops import _to
from support.core_bodies import MLIR_TYPES, run_core
from support.differences import same

SIGNS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
         "ge": operator.ge}  # fmt: skip
PREDICATES = {name: (name, True) for name in ("eq", "ne")} | {
    f"{sign}{name}": (name, sign == "s") for sign in "su" for name in ("lt", "le", "gt", "ge")
}


def edges(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a type's ends and what lies around 0."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = [low, low + 1, -1, 0, 1, high]
    return np.repeat(values, 6).astype(dtype), np.tile(values, 6).astype(dtype)


def told(predicate: str, a: np.ndarray, b: np.ndarray, unsigned: str) -> np.ndarray:
    """What numpy says of a predicate, on the values or on the same bits without a sign."""
    name, signed = PREDICATES[predicate]
    return SIGNS[name](a, b) if signed else SIGNS[name](a.view(unsigned), b.view(unsigned))


def decided(a: np.ndarray, b: np.ndarray, vector: bool, lowest_bits: bool = False) -> tuple[str, dict[str, np.ndarray]]:
    """The type that is compared, and what a core says of each predicate, lane by lane or in one vector."""
    kind, count = MLIR_TYPES[a.dtype], len(a)
    held, bits, byte = (f"vector<{count}x{t}>" if vector else t for t in (kind, "i1", "i8"))
    place, load, store = ("%c0", "vector.load", "vector.store") if vector else ("%i", "memref.load", "memref.store")
    read, written = (f", {held}", f", {byte}") if vector else ("", "")
    lines = [f"%{n} = {load} %{n}s[{place}] : memref<{count}x{kind}>{read}" for n in "xy"]
    of, x, y = held, "%x", "%y"
    if lowest_bits:
        of, x, y = bits, "%x1", "%y1"
        lines += [f"%{n}1 = arith.trunci %{n} : {held} to {bits}" for n in "xy"]
    for name in PREDICATES:
        lines += [
            f"%b_{name} = arith.cmpi {name}, {x}, {y} : {of}",
            f"%w_{name} = arith.extui %b_{name} : {bits} to {byte}",
            f"{store} %w_{name}, %r_{name}[{place}] : memref<{count}xi8>{written}",
        ]
    body = "\n".join(lines)
    if not vector:
        body = f"%count = arith.constant {count} : index\nscf.for %i = %c0 to %count step %c1 {{\n{body}\n}}"
    got = run_core(body, {"xs": a, "ys": b, **{f"r_{name}": np.zeros(count, np.int8) for name in PREDICATES}})
    return of, {name: got[f"r_{name}"].astype(bool) for name in PREDICATES}


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_every_comparison_of_integers(dtype: type, vector: bool):
    a, b = edges(dtype)
    of, got = decided(a, b, vector)
    for name in PREDICATES:
        same(got[name], told(name, a, b, f"u{a.itemsize}"), f"arith.cmpi {name} of {of}")


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_every_comparison_of_bits(vector: bool):
    """A signed i1 is 0 or -1."""
    a, b = np.array([0, 0, 1, 1], np.int8), np.array([0, 1, 0, 1], np.int8)
    of, got = decided(a, b, vector, lowest_bits=True)
    for name, (sign, signed) in PREDICATES.items():
        wanted = SIGNS[sign](-a, -b) if signed else SIGNS[sign](a, b)
        same(got[name], wanted, f"arith.cmpi {name} of {of}")


UNSIGNED = {"remui": operator.mod, "ceildivui": lambda a, b: -(-a // b), "minui": min, "maxui": max}
SIGNED = {"floordivsi": operator.floordiv, "ceildivsi": lambda a, b: -(-a // b), "shrsi": lambda a, b: a >> (b & 7)}


def test_lanes_divide_and_choose_as_scalars_do():
    a, b = edges(np.int8)
    a, b = a[b != 0][-28:], b[b != 0][-28:]  # whole words: what starts in the middle of one is not where its name says
    count, kind = len(a), f"vector<{len(a)}xi8>"
    lines = [f"%{n} = vector.load %{n}s[%c0] : memref<{count}xi8>, {kind}" for n in "xy"]
    lines += [f"%seven = arith.constant dense<7> : {kind}", f"%by = arith.andi %y, %seven : {kind}"]
    for name in (*UNSIGNED, *SIGNED):
        lines.append(f"%z_{name} = arith.{name} %x, {'%by' if name == 'shrsi' else '%y'} : {kind}")
    lines += [f"%z_size = math.absi %x : {kind}"]
    stored = {name: f"%z_{name}" for name in (*UNSIGNED, *SIGNED, "size")}
    lines += [f"vector.store {value}, %r_{name}[%c0] : memref<{count}xi8>, {kind}" for name, value in stored.items()]
    got = run_core("\n".join(lines), {"xs": a, "ys": b, **{f"r_{name}": np.zeros(count, np.int8) for name in stored}})

    def lanes(function: Callable[[int, int], int], signed: bool = True) -> list[int]:
        pairs = [(int(x), int(y)) if signed else (int(x) % 256, int(y) % 256) for x, y in zip(a, b, strict=True)]
        return [(function(x, y) + 128) % 256 - 128 for x, y in pairs]

    wanted = {name: lanes(function) for name, function in SIGNED.items()}
    wanted |= {name: lanes(function, False) for name, function in UNSIGNED.items()}
    wanted |= {"size": lanes(lambda x, _: abs(x))}
    for name, values in wanted.items():
        same(got[f"r_{name}"].tolist(), values, f"{name} of lanes")


WORDS = [5, -3, 7, -8, 0, 12]
REDUCED = {
    "add": sum(WORDS), "mul": 0, "and": 0, "or": -1, "xor": 5 ^ -3 ^ 7 ^ -8 ^ 0 ^ 12, "minsi": -8, "maxsi": 12,
    "minui": 0, "maxui": -3,
}  # fmt: skip
REALS = [2.0, math.nan, -3.0, 5.0]
REDUCED_REALS = {"add": math.nan, "mul": math.nan, "minimumf": math.nan, "maximumf": math.nan, "minnumf": -3.0,
                 "maxnumf": 5.0}  # fmt: skip


def test_every_reduction_of_lanes():
    lines = [
        "%v = vector.load %a[%c0] : memref<6xi32>, vector<6xi32>",
        "%w = vector.load %f[%c0] : memref<4xf32>, vector<4xf32>",
    ]
    for number, name in enumerate(REDUCED):
        lines += [f"%i{number} = vector.reduction <{name}>, %v : vector<6xi32> into i32",
                  f"memref.store %i{number}, %ints[%c{number}] : memref<9xi32>"]  # fmt: skip
    for number, name in enumerate(REDUCED_REALS):
        lines += [f"%r{number} = vector.reduction <{name}>, %w : vector<4xf32> into f32",
                  f"memref.store %r{number}, %reals[%c{number}] : memref<6xf32>"]  # fmt: skip
    buffers = {"a": np.array(WORDS, np.int32), "f": np.array(REALS, np.float32)}
    got = run_core("\n".join(lines), {**buffers, "ints": np.zeros(9, np.int32), "reals": np.zeros(6, np.float32)})
    for number, (name, value) in enumerate(REDUCED.items()):
        assert got["ints"][number] == value, f"vector.reduction <{name}> gives {got['ints'][number]}, not {value}"
    for number, (name, value) in enumerate(REDUCED_REALS.items()):
        found = float(got["reals"][number])
        assert found == value or (math.isnan(found) and math.isnan(value)), f"<{name}> gives {found}, not {value}"


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16", "f64"])
@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_zeros_have_an_order(kind: str, vector: bool):
    """arith.maximumf and minimumf take -0 as less than +0, whichever comes first."""
    count, of = 16, f"vector<16x{kind}>" if vector else kind
    bits = {"f32": "i32", "bf16": "i16", "f16": "i16", "f64": "i64"}[kind]
    dtype = np.dtype({"i16": np.int16, "i32": np.int32, "i64": np.int64}[bits])
    minus = np.iinfo(dtype).min
    a, b = (np.tile(np.array(values, dtype), 4) for values in ([0, 0, minus, minus], [0, minus, 0, minus]))
    whole = f"vector<16x{bits}>" if vector else bits
    place, load, store = ("%c0", "vector.load", "vector.store") if vector else ("%i", "memref.load", "memref.store")
    behind = f", {whole}" if vector else ""
    cast = "vector.bitcast" if vector else "arith.bitcast"
    lines = []
    for n in "xy":
        lines += [
            f"%{n}b = {load} %{n}s[{place}] : memref<16x{bits}>{behind}",
            f"%{n} = {cast} %{n}b : {whole} to {of}",
        ]
    for name in ("maximumf", "minimumf"):
        lines += [f"%{name} = arith.{name} %x, %y : {of}", f"%b{name} = {cast} %{name} : {of} to {whole}",
                  f"{store} %b{name}, %{name}s[{place}] : memref<16x{bits}>{behind}"]  # fmt: skip
    body = "\n".join(lines)
    if not vector:
        body = f"%count = arith.constant {count} : index\nscf.for %i = %c0 to %count step %c1 {{\n{body}\n}}"
    outputs = {f"{name}s": np.ones(count, dtype) for name in ("maximumf", "minimumf")}
    got = run_core(body, {"xs": a, "ys": b, **outputs})
    same(got["maximumfs"], a & b, f"maximumf of zeros of {of}")
    same(got["minimumfs"], a | b, f"minimumf of zeros of {of}")


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
def test_floats_become_integers_up_to_the_ends_of_their_type(bits: int, signed: bool):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    cast = _to(IntegerType(bits), signed)
    last = float(high) if bits < 64 else math.nextafter(float(high + 1), 0)
    for value in (float(low), last, *((low - 0.99, high + 0.99) if bits < 32 else ())):
        found = cast(value, str)
        assert (found - int(value)) % (1 << bits) == 0, f"{value} as {'' if signed else 'u'}i{bits} is {found}"
    for value in (float(low) - max(1.0, math.ulp(float(low))), float(high + 1), math.nan, math.inf, -math.inf):
        with pytest.raises(CoreError, match=f"{value} does not fit i{bits} ".replace("+", r"\+")):
            cast(value, str)
