"""Vectors in core programs against numpy."""

import math

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import bf16, run_core, widened
from support.differences import same

RNG = np.random.default_rng(3)
GRID = RNG.integers(-100, 100, (5, 12)).astype(np.int32)


def test_blocks_of_two_dimensions_are_read_and_written():
    body = """
      %v = vector.load %g[%c1, %c4] : memref<5x12xi32>, vector<3x4xi32>
      vector.store %v, %out[%c2, %c0, %c1] : memref<4x3x6xi32>, vector<3x4xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((4, 3, 6), np.int32)})["out"]
    wanted = np.zeros((4, 3, 6), np.int32)
    wanted[2, 0:3, 1:5] = GRID[1:4, 4:8]
    same(got, wanted)


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


def test_lanes_reduce_in_order():
    a = np.array([1e8, 1.0, -1e8, 3.0, 2.5], np.float32)
    body = """
      %v = vector.load %a[%c0] : memref<5xf32>, vector<5xf32>
      %s = vector.reduction <add>, %v : vector<5xf32> into f32
      %t = vector.reduction <add>, %v, %s : vector<5xf32> into f32
      memref.store %s, %a[%c0] : memref<5xf32>
      memref.store %t, %a[%c1] : memref<5xf32>"""
    total, *_, again = np.cumsum([*a, *a], dtype=np.float32)[[4, 9]]
    assert run_core(body, {"a": a})["a"][:2].tolist() == [total, again]


def test_lanes_are_chosen_one_by_one_or_all_at_once():
    body = """
      %x = vector.load %g[%c0, %c0] : memref<5x12xi32>, vector<12xi32>
      %y = vector.load %g[%c1, %c0] : memref<5x12xi32>, vector<12xi32>
      %less = arith.cmpi slt, %x, %y : vector<12xi32>
      %min = arith.select %less, %x, %y : vector<12xi1>, vector<12xi32>
      %no = arith.constant false
      %all = arith.select %no, %x, %y : vector<12xi32>
      vector.store %min, %out[%c0, %c0] : memref<2x12xi32>, vector<12xi32>
      vector.store %all, %out[%c1, %c0] : memref<2x12xi32>, vector<12xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((2, 12), np.int32)})["out"]
    same(got, [np.minimum(GRID[0], GRID[1]), GRID[1]])


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
