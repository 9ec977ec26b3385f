"""Core programs: what each operation means, against Python and numpy."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import BudgetExceeded, CoreError, KernelError
from support.differences import same
from support.small_designs import core


def result_of(body: str, **design) -> np.ndarray:
    return bdforge.emulate(core(body + "\naie.end", **design)).buffers["data"]


def test_a_branch_yields_its_value():
    data = result_of(
        """%x = memref.load %data[%c7] : memref<8xi32>
        %y = memref.load %data[%c2] : memref<8xi32>
        %more = arith.cmpi sgt, %x, %y : i32
        %r = scf.if %more -> (i32) {
          scf.yield %y : i32
        } else {
          scf.yield %x : i32
        }
        %s = arith.select %more, %x, %r : i32
        memref.store %r, %data[%c0] : memref<8xi32>
        memref.store %s, %data[%c1] : memref<8xi32>"""
    )
    assert list(data[:2]) == [2, 7]


def test_a_while_loop_halves_until_nothing_is_left():
    data = result_of(
        """%x = memref.load %data[%c7] : memref<8xi32>
        %two = arith.constant 2 : i32
        %none = arith.constant 0 : i32
        %r:2 = scf.while (%v = %x, %n = %none) : (i32, i32) -> (i32, i32) {
          %go = arith.cmpi sgt, %v, %none : i32
          scf.condition(%go) %v, %n : i32, i32
        } do {
        ^bb0(%v: i32, %n: i32):
          %h = arith.divsi %v, %two : i32
          %m = arith.addi %n, %two : i32
          scf.yield %h, %m : i32, i32
        }
        memref.store %r#1, %data[%c0] : memref<8xi32>""",
        values="0, 0, 0, 0, 0, 0, 0, 37",
    )
    assert data[0] == 12


def test_a_kernel_gets_views_and_numbers():
    seen = []

    def probe(data: np.ndarray, factor: int) -> None:
        seen.append((data.shape, data.dtype, factor))
        data *= factor

    body = """%f = memref.load %data[%c2] : memref<8xi32>
        func.call @probe(%data, %f) : (memref<8xi32>, i32) -> ()
        aie.end"""
    result = bdforge.emulate(core(body), kernels={"probe": probe})
    assert seen == [((8,), np.dtype(np.int32), 2)]
    same(result.buffers["data"], 2 * np.arange(8))


def test_a_missing_kernel_is_named():
    body = "%f = arith.constant 1 : i32\nfunc.call @probe(%data, %f) : (memref<8xi32>, i32) -> ()\naie.end"
    with pytest.raises(KernelError, match=r"no kernel 'probe' was given; given: other"):
        bdforge.emulate(core(body), kernels={"other": print})


def test_a_failing_kernel_is_named_with_its_core():
    def probe(data: np.ndarray, factor: int) -> None:
        raise ValueError("not today")

    body = "%f = arith.constant 1 : i32\nfunc.call @probe(%data, %f) : (memref<8xi32>, i32) -> ()\naie.end"
    with pytest.raises(KernelError, match=r"probe on core \(0, 2\): ValueError: not today"):
        bdforge.emulate(core(body), kernels={"probe": probe})


def test_division_by_zero_is_an_error():
    with pytest.raises(CoreError, match="division by zero"):
        result_of("%v = memref.load %data[%c0] : memref<8xi32>\n%r = arith.divsi %v, %v : i32")


def test_an_endless_loop_is_named():
    with pytest.raises(BudgetExceeded, match=r"core \(0, 2\): no end after 1000 loop iterations"):
        bdforge.emulate(core("cf.br ^again\n^again:\ncf.br ^again\n^never:\naie.end"), budget=1000)


def test_a_core_waits_for_its_lock_and_takes_it():
    body = """%nine = arith.constant 9 : i32
        aie.use_lock(%lock, AcquireGreaterEqual, 2)
        memref.store %nine, %data[%c0] : memref<8xi32>
        aie.end"""
    assert bdforge.emulate(core(body, init=1)).buffers["data"][0] == 0
    assert bdforge.emulate(core(body, init=2)).buffers["data"][0] == 9


def test_an_unsupported_operation_is_named_with_its_place():
    body = '"memref.atomic_rmw"(%one, %data, %c0) <{kind = 0 : i64}> : (i32, memref<8xi32>, index) -> i32\naie.end'
    with pytest.raises(CoreError, match=r"design\.mlir:15:1: memref\.\w+ is not supported in a core program"):
        bdforge.emulate(core(f"%one = arith.constant 1 : i32\n{body}"), file="design.mlir")
