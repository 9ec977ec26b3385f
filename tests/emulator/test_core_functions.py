"""Functions with a body inside of the device, and kernels that return numbers."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, KernelError
from support.array_text import buffer, core, lock, module, tile
from support.core_bodies import design, run_core

OUT = {"d": np.arange(8, dtype=np.int32)}


def test_a_function_returns_values_and_changes_memory():
    outside = """    func.func @divmod(%m: memref<8xi32>, %a: i32, %b: i32) -> (i32, i32) {
      %c7 = arith.constant 7 : index
      %q = arith.divsi %a, %b : i32
      %r = arith.remsi %a, %b : i32
      memref.store %a, %m[%c7] : memref<8xi32>
      func.return %q, %r : i32, i32
    }"""
    body = """%a = arith.constant 47 : i32
      %b = arith.constant 6 : i32
      %q:2 = func.call @divmod(%d, %a, %b) : (memref<8xi32>, i32, i32) -> (i32, i32)
      memref.store %q#0, %d[%c0] : memref<8xi32>
      memref.store %q#1, %d[%c1] : memref<8xi32>"""
    assert run_core(body, OUT, outside)["d"].tolist() == [7, 5, 2, 3, 4, 5, 6, 47]


def test_a_function_of_several_blocks_may_return_early():
    outside = """    func.func @clamp(%x: i32) -> i32 {
      %z = arith.constant 3 : i32
      %low = arith.cmpi slt, %x, %z : i32
      cf.cond_br %low, ^small, ^other
    ^small:
      func.return %z : i32
    ^other:
      func.return %x : i32
    }"""
    body = """scf.for %i = %c0 to %c8 step %c1 {
        %x = memref.load %d[%i] : memref<8xi32>
        %y = func.call @clamp(%x) : (i32) -> i32
        memref.store %y, %d[%i] : memref<8xi32>
      }"""
    assert run_core(body, OUT, outside)["d"].tolist() == [3, 3, 3, 3, 4, 5, 6, 7]


def test_functions_call_functions_and_kernels():
    seen = []

    def probe(view: np.ndarray, number: int) -> None:
        seen.append((view.tolist(), number))

    outside = """    func.func private @probe(memref<8xi32>, i32)
    func.func @inner(%m: memref<8xi32>, %x: i32) {
      func.call @probe(%m, %x) : (memref<8xi32>, i32) -> ()
      func.return
    }
    func.func @outer(%m: memref<8xi32>) {
      %x = arith.constant 9 : i32
      func.call @inner(%m, %x) : (memref<8xi32>, i32) -> ()
      func.return
    }"""
    body = "func.call @outer(%d) : (memref<8xi32>) -> ()\nfunc.call @outer(%d) : (memref<8xi32>) -> ()"
    run_core(body, OUT, outside, kernels={"probe": probe})
    assert seen == [(list(range(8)), 9)] * 2


def test_recursion_is_refused_with_its_way():
    outside = """    func.func @a() {
      func.call @b() : () -> ()
      func.return
    }
    func.func @b() {
      func.call @a() : () -> ()
      func.return
    }"""
    with pytest.raises(CoreError, match=r":\d+:\d+: recursion is not supported: @a -> @b -> @a"):
        run_core("func.call @a() : () -> ()", {}, outside)


LOCKED = module(
    "npu2", tile(0, 2), tile(0, 3), buffer("data", "02", 2), lock("full", "02", 0),
    """func.func @take(%lock: index, %m: memref<2xi32>) {
      aie.use_lock(%lock, AcquireGreaterEqual, 2)
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = memref.load %m[%c0] : memref<2xi32>
      memref.store %x, %m[%c1] : memref<2xi32>
      func.return
    }
    func.func @give(%lock: index) {
      aie.use_lock(%lock, Release, 2)
      func.return
    }""",
    core("02", "func.call @take(%full, %data) : (index, memref<2xi32>) -> ()"),
    core(
        "03", "%v = arith.constant 6 : i32", "memref.store %v, %data[%c0] : memref<2xi32>",
        "func.call @give(%full) : (index) -> ()",
    ),
)  # fmt: skip


def test_a_function_waits_for_the_lock_that_it_is_given():
    """Core (0, 3) reaches the buffer and the lock of its southern neighbour."""
    assert bdforge.emulate(LOCKED).buffers["data"].tolist() == [6, 6]


def test_a_kernel_may_return_a_number():
    outside = "    func.func private @count(memref<8xi32>) -> i8\n    func.func private @mean(memref<8xi32>) -> f32"
    body = """%n = func.call @count(%d) : (memref<8xi32>) -> i8
      %w = arith.extsi %n : i8 to i32
      memref.store %w, %d[%c0] : memref<8xi32>
      %m = func.call @mean(%d) : (memref<8xi32>) -> f32
      memref.store %m, %f[%c0] : memref<1xf32>"""
    kernels = {"count": lambda view: 255, "mean": lambda view: view.mean()}
    got = run_core(body, OUT | {"f": np.zeros(1, np.float32)}, outside, kernels=kernels)
    assert got["d"][0] == -1
    assert got["f"][0] == np.float32((28 - 1) / 8)
    with pytest.raises(CoreError, match=r"core \(1, 3\): count returned None, not an integer \(.*:\d+:\d+\)"):
        run_core(body, OUT | {"f": np.zeros(1, np.float32)}, outside, kernels={**kernels, "count": lambda view: None})


def test_kernels_get_floats_as_floats():
    seen = []
    outside = "    func.func private @probe(f32, memref<1xbf16>)"
    buffers = {"x": np.array([1.25], np.float32), "h": np.zeros(1, np.int16)}
    body = "%v = memref.load %x[%c0] : memref<1xf32>\nfunc.call @probe(%v, %b) : (f32, memref<1xbf16>) -> ()"
    outside += '\n    %b = aie.buffer(%tile) {sym_name = "b"} : memref<1xbf16> = dense<2.0>'
    run_core(body, buffers, outside, kernels={"probe": lambda v, b: seen.append((v, int(b[0])))})
    assert seen == [(1.25, 0x4000)]


def test_a_missing_kernel_inside_of_a_function_is_named_with_its_place():
    outside = """    func.func private @probe()
    func.func @outer() {
      func.call @probe() : () -> ()
      func.return
    }"""
    text = design("func.call @outer() : () -> ()", {}, outside)
    line = next(i for i, text_line in enumerate(text.splitlines(), 1) if "call @probe" in text_line)
    with pytest.raises(KernelError, match=rf"d\.mlir:{line}:\d+: no kernel 'probe' was given; given: other"):
        bdforge.emulate(text, file="d.mlir", kernels={"other": print})


def test_constants_outside_of_the_core_are_seen_inside():
    outside = "    %outer = arith.constant 12 : i32"
    body = "memref.store %outer, %d[%c0] : memref<8xi32>"
    assert run_core(body, OUT, outside)["d"][0] == 12
