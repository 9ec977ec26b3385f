"""The affine dialect in core programs, against the same loops in Python."""

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import run_core
from support.differences import same

A = np.arange(60, dtype=np.int32).reshape(6, 10)


def test_loops_with_expressions_reorder_a_matrix():
    body = """affine.for %i = 0 to 6 {
        affine.for %j = 1 to 10 step 3 {
          %x = affine.load %a[%i, %j] : memref<6x10xi32>
          affine.store %x, %out[%i * 3 + (%j - 1) floordiv 3] : memref<18xi32>
        }
      }"""
    got = run_core(body, {"a": A, "out": np.zeros(18, np.int32)})["out"]
    same(got, A[:, 1:10:3].ravel())


def test_divisions_round_as_affine_maps_do():
    """floordiv, ceildiv and mod of negative numbers."""
    body = """affine.for %i = 0 to 9 {
        %f = affine.apply affine_map<(d0) -> ((d0 - 4) floordiv 3)>(%i)
        %c = affine.apply affine_map<(d0) -> ((d0 - 4) ceildiv 3)>(%i)
        %m = affine.apply affine_map<(d0)[s0] -> ((d0 - s0) mod 3)>(%i)[%c4]
        %fw = arith.index_cast %f : index to i32
        %cw = arith.index_cast %c : index to i32
        %mw = arith.index_cast %m : index to i32
        affine.store %fw, %out[0, %i] : memref<3x9xi32>
        affine.store %cw, %out[1, %i] : memref<3x9xi32>
        affine.store %mw, %out[2, %i] : memref<3x9xi32>
      }"""
    got = run_core(body, {"out": np.zeros((3, 9), np.int32)})["out"]
    x = np.arange(9) - 4
    same(got, [np.floor(x / 3), np.ceil(x / 3), x % 3])


def test_bounds_are_the_tightest_of_their_maps():
    body = """%z = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %n = affine.for %i = max affine_map<(d0) -> (d0, 2)>(%c1) to min affine_map<(d0) -> (d0 + 1, 9)>(%c7)
          iter_args(%k = %z) -> (i32) {
        %m = arith.addi %k, %one : i32
        affine.yield %m : i32
      }
      memref.store %n, %out[%c0] : memref<1xi32>"""
    assert run_core(body, {"out": np.zeros(1, np.int32)})["out"][0] == len(range(max(1, 2), min(8, 9)))


def test_conditions_are_sets():
    body = """affine.for %i = 0 to 6 {
        affine.for %j = 0 to 10 {
          affine.if affine_set<(d0, d1) : (d1 - d0 >= 0, 7 - d1 >= 0, d0 mod 2 == 0)>(%i, %j) {
            %x = affine.load %a[%i, %j] : memref<6x10xi32>
            affine.store %x, %out[%i, %j] : memref<6x10xi32>
          } else {
            %m = arith.constant -1 : i32
            affine.store %m, %out[%i, %j] : memref<6x10xi32>
          }
        }
      }"""
    got = run_core(body, {"a": A, "out": np.zeros_like(A)})["out"]
    i, j = np.indices(A.shape)
    same(got, np.where((j >= i) & (j <= 7) & (i % 2 == 0), A, -1))


def test_an_access_outside_of_its_memref_is_an_error():
    body = "affine.for %i = 0 to 6 {\n%x = affine.load %a[%i, %i * 2] : memref<6x10xi32>\n}"
    with pytest.raises(CoreError, match=r"index \[5, 10\] is outside a memref of shape \[6, 10\] \(.*:\d+:\d+\)"):
        run_core(body, {"a": A})
