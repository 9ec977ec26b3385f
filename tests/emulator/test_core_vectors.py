"""Vectors in core programs against numpy."""

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import MLIR_TYPES, bf16, run_core, widened
from support.differences import same

RNG = np.random.default_rng(3)
GRID = RNG.integers(-100, 100, (5, 12)).astype(np.int32)


def lanes(operations: dict[str, str], dtype, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """What elementwise operations make of %x and %y, two vectors of all elements."""
    kind = MLIR_TYPES[np.dtype(dtype)]
    memref, vector = f"memref<{len(a)}x{kind}>", f"vector<{len(a)}x{kind}>"
    lines = "\n".join(
        f"%z_{name} = {text} : {vector}\nvector.store %z_{name}, %r_{name}[%c0] : {memref}, {vector}"
        for name, text in operations.items()
    )
    body = f"""
      %x = vector.load %a[%c0] : {memref}, {vector}
      %y = vector.load %b[%c0] : {memref}, {vector}
      {lines}"""
    got = run_core(body, {"a": a, "b": b, **{f"r_{name}": np.zeros_like(a) for name in operations}})
    return {name: got[f"r_{name}"] for name in operations}


INTEGER = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "divsi": lambda a, b: np.trunc(a / b).astype(a.dtype),
    "remsi": lambda a, b: np.fmod(a, b),
    "maxui": lambda a, b: np.maximum(a.view(f"u{a.itemsize}"), b.view(f"u{a.itemsize}")).view(a.dtype),
    "divui": lambda a, b: (a.view(f"u{a.itemsize}") // b.view(f"u{a.itemsize}")).view(a.dtype),
    "shli": lambda a, b: a << b,
    "shrui": lambda a, b: (a.view(f"u{a.itemsize}") >> b.view(f"u{a.itemsize}")).view(a.dtype),
}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integer_lanes_wrap_at_their_width(dtype):
    info = np.iinfo(dtype)
    a = RNG.integers(info.min, info.max, 16, dtype=dtype, endpoint=True)
    b = RNG.integers(1, 8, 16, dtype=dtype)
    got = lanes({name: f"arith.{name} %x, %y" for name in INTEGER}, dtype, a, b)
    for name, function in INTEGER.items():
        same(got[name], function(a, b), name)


@pytest.mark.parametrize("operation", ["shli", "shrsi", "shrui"])
def test_lanes_shift_by_all_but_the_width(operation):
    dtype, widest = np.int16, np.full(16, 15, np.int16)
    a = RNG.integers(-(1 << 15), 1 << 15, 16, dtype=dtype)
    exact = {"shli": a << 15, "shrsi": a >> 15, "shrui": (a.view(np.uint16) >> 15).view(dtype)}
    text = {operation: f"arith.{operation} %x, %y"}
    same(lanes(text, dtype, a, widest)[operation], exact[operation].astype(dtype))
    one_too_wide = np.where(np.arange(16) == 11, 16, widest).astype(dtype)
    with pytest.raises(CoreError, match="a shift of 16 bits by 16 has no defined result"):
        lanes(text, dtype, a, one_too_wide)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_float_lanes_round_to_their_type(dtype):
    a, b = (RNG.standard_normal(16).astype(dtype) * dtype(80) for _ in range(2))
    functions = {"addf": np.add, "mulf": np.multiply, "divf": np.divide, "maximumf": np.maximum}
    lines = {name: f"arith.{name} %x, %y" for name in functions}
    got = lanes({**lines, "tanh": "math.tanh %x"}, dtype, a, b)
    for name, function in functions.items():
        same(got[name], function(a, b), name)
    same(got["tanh"], np.tanh(a.astype(np.float64)).astype(dtype))


def test_bf16_lanes_round_like_bf16_scalars():
    x, y, w = (bf16(RNG.standard_normal(16)) for _ in range(3))
    body = """
      %x = vector.load %a[%c0] : memref<16xbf16>, vector<16xbf16>
      %y = vector.load %b[%c0] : memref<16xbf16>, vector<16xbf16>
      %w = vector.load %c[%c0] : memref<16xbf16>, vector<16xbf16>
      %p = arith.mulf %x, %y : vector<16xbf16>
      %f = vector.fma %x, %y, %w : vector<16xbf16>
      %e = arith.extf %x : vector<16xbf16> to vector<16xf32>
      %q = arith.mulf %e, %e : vector<16xf32>
      %n = arith.truncf %q : vector<16xf32> to vector<16xbf16>
      vector.store %p, %r[%c0] : memref<48xbf16>, vector<16xbf16>
      %c16 = arith.constant 16 : index
      vector.store %f, %r[%c16] : memref<48xbf16>, vector<16xbf16>
      %c32 = arith.constant 32 : index
      vector.store %n, %r[%c32] : memref<48xbf16>, vector<16xbf16>"""
    got = run_core(body, {"a": x, "b": y, "c": w, "r": bf16(np.zeros(48))})["r"]
    exact = widened(x).astype(np.float64) * widened(y)
    expected = [bf16(exact), bf16(exact + widened(w)), bf16(widened(x) * widened(x))]
    same(got, np.concatenate(expected))


def test_blocks_of_two_dimensions_are_read_and_written():
    body = """
      %v = vector.load %g[%c1, %c4] : memref<5x12xi32>, vector<3x4xi32>
      vector.store %v, %out[%c2, %c0, %c1] : memref<4x3x6xi32>, vector<3x4xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((4, 3, 6), np.int32)})["out"]
    wanted = np.zeros((4, 3, 6), np.int32)
    wanted[2, 0:3, 1:5] = GRID[1:4, 4:8]
    same(got, wanted)


@pytest.mark.parametrize(("row", "column"), [(0, 9), (-1, 0), (5, 0)])
def test_a_vector_that_leaves_its_memref_is_an_error(row, column):
    body = f"""%i = arith.constant {row} : index
      %j = arith.constant {column} : index
      %v = vector.load %g[%i, %j] : memref<5x12xi32>, vector<4xi32>"""
    with pytest.raises(CoreError, match=rf"a vector of shape \[4\] at index \[{row}, {column}\] leaves a memref"):
        run_core(body, {"g": GRID})


def test_a_transfer_pads_outside_and_follows_its_permutation():
    """A transposed read at an edge, with one dimension that is broadcast."""
    body = """
      %pad = arith.constant -7 : i32
      %v = vector.transfer_read %g[%c3, %c8], %pad
        {permutation_map = affine_map<(d0, d1) -> (d1, 0, d0)>, in_bounds = [false, true, false]}
        : memref<5x12xi32>, vector<6x2x3xi32>
      vector.transfer_write %v, %out[%c0, %c0, %c0] {in_bounds = [true, true, true]}
        : vector<6x2x3xi32>, memref<6x2x3xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((6, 2, 3), np.int32)})["out"]
    padded = np.full((6, 14), -7, np.int32)
    padded[:5, :12] = GRID
    same(got, np.broadcast_to(padded[3:6, 8:14].T[:, None, :], (6, 2, 3)))


def test_a_transfer_drops_what_lies_outside():
    body = """
      %v = arith.constant dense<9> : vector<4xi32>
      vector.transfer_write %v, %g[%c1, %ten] : vector<4xi32>, memref<5x12xi32>"""
    got = run_core(f"%ten = arith.constant 10 : index{body}", {"g": GRID})["g"]
    wanted = GRID.copy()
    wanted[1, 10:] = 9
    same(got, wanted)


def test_a_transfer_that_promised_to_stay_inside_is_an_error_outside():
    body = """%p = ub.poison : i32
      %ten = arith.constant 10 : index
      %v = vector.transfer_read %g[%c1, %ten], %p {in_bounds = [true]} : memref<5x12xi32>, vector<4xi32>"""
    with pytest.raises(CoreError, match=r"a transfer of a vector of shape \[4\] at index \[1, 10\] leaves"):
        run_core(body, {"g": GRID})


def test_vectors_are_built_and_taken_apart():
    body = """
      %x = memref.load %g[%c1, %c1] : memref<5x12xi32>
      %b = vector.broadcast %x : i32 to vector<2x3xi32>
      %y = memref.load %g[%c2, %c2] : memref<5x12xi32>
      %i = vector.insert %y, %b [1, 2] : i32 into vector<2x3xi32>
      %r = vector.extract %i[1] : vector<3xi32> from vector<2x3xi32>
      %e = vector.extract %r[%c2] : i32 from vector<3xi32>
      %f = vector.shuffle %r, %r [2, 5, 0, 1] : vector<3xi32>, vector<3xi32>
      %s = vector.shape_cast %i : vector<2x3xi32> to vector<6xi32>
      memref.store %e, %g[%c0, %c0] : memref<5x12xi32>
      vector.store %f, %g[%c1, %c0] : memref<5x12xi32>, vector<4xi32>
      vector.store %s, %g[%c2, %c0] : memref<5x12xi32>, vector<6xi32>"""
    got = run_core(body, {"g": GRID})["g"]
    x, y = GRID[1, 1], GRID[2, 2]
    assert got[0, 0] == y
    assert got[1, :4].tolist() == [y, y, x, x]
    assert got[2, :6].tolist() == [x, x, x, x, x, y]


def test_lanes_reduce_in_order():
    a = np.array([1e8, 1.0, -1e8, 3.0, 2.5], np.float32)
    body = """
      %v = vector.load %a[%c0] : memref<5xf32>, vector<5xf32>
      %s = vector.reduction <add>, %v : vector<5xf32> into f32
      %t = vector.reduction <add>, %v, %s : vector<5xf32> into f32
      %m = vector.reduction <maximumf>, %v : vector<5xf32> into f32
      %g = vector.load %i[%c0, %c0] : memref<5x12xi32>, vector<12xi32>
      %p = vector.reduction <mul>, %g : vector<12xi32> into i32
      %u = vector.reduction <minui>, %g : vector<12xi32> into i32
      memref.store %s, %a[%c0] : memref<5xf32>
      memref.store %t, %a[%c1] : memref<5xf32>
      memref.store %m, %a[%c2] : memref<5xf32>
      memref.store %p, %i[%c1, %c0] : memref<5x12xi32>
      memref.store %u, %i[%c1, %c1] : memref<5x12xi32>"""
    grid = np.where(GRID == 0, 1, GRID).astype(np.int32)
    got = run_core(body, {"a": a, "i": grid})
    total = np.float32(0)
    for value in a:
        total = np.float32(total + value)
    again = total
    for value in a:
        again = np.float32(again + value)
    assert got["a"][:3].tolist() == [total, again, 1e8]
    assert got["i"][1, 0] == np.prod(grid[0], dtype=np.int32)
    assert got["i"][1, 1] == grid[0].view(np.uint32).min().view(np.int32)


def test_lanes_are_cast():
    """int8 to int32 to float and back, and as indices."""
    a = RNG.integers(-128, 128, 16).astype(np.int8)
    body = """
      %v = vector.load %a[%c0] : memref<16xi8>, vector<16xi8>
      %s = arith.extsi %v : vector<16xi8> to vector<16xi32>
      %u = arith.extui %v : vector<16xi8> to vector<16xi32>
      %f = arith.sitofp %s : vector<16xi32> to vector<16xf32>
      %h = arith.constant dense<0.3> : vector<16xf32>
      %p = arith.mulf %f, %h : vector<16xf32>
      %t = arith.fptosi %p : vector<16xf32> to vector<16xi32>
      %q = arith.muli %t, %u : vector<16xi32>
      %n = arith.trunci %q : vector<16xi32> to vector<16xi8>
      %x = arith.index_cast %s : vector<16xi32> to vector<16xindex>
      %w = arith.index_cast %x : vector<16xindex> to vector<16xi64>
      %g = arith.uitofp %v : vector<16xi8> to vector<16xf32>
      %c = arith.fptoui %g : vector<16xf32> to vector<16xi8>
      vector.store %q, %out[%c0] : memref<16xi32>, vector<16xi32>
      vector.store %n, %low[%c0] : memref<16xi8>, vector<16xi8>
      vector.store %w, %wide[%c0] : memref<16xi64>, vector<16xi64>
      vector.store %c, %same[%c0] : memref<16xi8>, vector<16xi8>"""
    outputs = {"out": np.int32, "low": np.int8, "wide": np.int64, "same": np.int8}
    got = run_core(body, {"a": a, **{name: np.zeros(16, dtype) for name, dtype in outputs.items()}})
    wanted = np.trunc(a.astype(np.float32) * np.float32(0.3)).astype(np.int32) * a.view(np.uint8)
    same(got["out"], wanted)
    same(got["low"], wanted.astype(np.int8))
    same(got["wide"], a)
    same(got["same"], a)


def test_lanes_are_compared_and_chosen():
    a, b = GRID[0], GRID[1]
    body = """
      %x = vector.load %g[%c0, %c0] : memref<5x12xi32>, vector<12xi32>
      %y = vector.load %g[%c1, %c0] : memref<5x12xi32>, vector<12xi32>
      %less = arith.cmpi slt, %x, %y : vector<12xi32>
      %above = arith.cmpi ugt, %x, %y : vector<12xi32>
      %min = arith.select %less, %x, %y : vector<12xi1>, vector<12xi32>
      %one = arith.extui %above : vector<12xi1> to vector<12xi32>
      %minus = arith.extsi %above : vector<12xi1> to vector<12xi32>
      %f = arith.sitofp %x : vector<12xi32> to vector<12xf32>
      %z = arith.constant dense<0.0> : vector<12xf32>
      %n = arith.divf %z, %z : vector<12xf32>
      %none = arith.cmpf ole, %f, %n fastmath<contract> : vector<12xf32>
      %all = arith.cmpf ugt, %f, %n : vector<12xf32>
      %both = arith.xori %none, %all : vector<12xi1>
      %sure = arith.extui %both : vector<12xi1> to vector<12xi32>
      %yes = arith.constant true
      %same = arith.select %yes, %sure, %x : vector<12xi32>
      vector.store %min, %out[%c0, %c0] : memref<4x12xi32>, vector<12xi32>
      vector.store %one, %out[%c1, %c0] : memref<4x12xi32>, vector<12xi32>
      vector.store %minus, %out[%c2, %c0] : memref<4x12xi32>, vector<12xi32>
      vector.store %same, %out[%c3, %c0] : memref<4x12xi32>, vector<12xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((4, 12), np.int32)})["out"]
    above = (a.view(np.uint32) > b.view(np.uint32)).astype(np.int32)
    same(got, [np.minimum(a, b), above, -above, np.ones(12)])


@pytest.mark.parametrize(
    ("kind", "value", "zeros"),
    [
        ("i32", "-7", np.zeros(8, np.int32)),
        ("f32", "1.5", np.zeros(8, np.float32)),
        ("i8", "3", np.zeros(8, np.int8)),
        ("bf16", "0.5", bf16(np.zeros(8))),
    ],
)
def test_a_splat_has_its_scalar_in_each_lane(kind: str, value: str, zeros: np.ndarray):
    body = f"""
      %x = arith.constant {value} : {kind}
      %f = func.constant @kernel : () -> ()
      %v = vector.splat %x : vector<4x{kind}>
      vector.store %v, %a[%c1] : memref<8x{kind}>, vector<4x{kind}>"""
    found = run_core(body, {"a": zeros}, outside="    func.func private @kernel()")["a"]
    same(widened(found) if kind == "bf16" else found, [0, *[float(value)] * 4, 0, 0, 0])
