"""Views, copies, constants and local memory of core programs, against numpy's own views."""

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from support.core_bodies import bf16, run_core, widened
from support.differences import same

GRID = np.arange(48, dtype=np.int32).reshape(6, 8)


def filled(view: str, type_: str, shape: tuple[int, ...]) -> np.ndarray:
    """The grid after -1 - (row-major number) was stored to every element of `view`, a value %v of `type_`."""
    loops = "".join(f"scf.for %i{k} = %c0 to %n{k} step %c1 {{\n" for k in range(len(shape)))
    sizes = "\n".join(f"%n{k} = arith.constant {n} : index" for k, n in enumerate(shape))
    number = "%k0 = arith.addi %i0, %c0 : index\n"
    for k in range(1, len(shape)):
        number += f"%m{k} = arith.muli %k{k - 1}, %n{k} : index\n%k{k} = arith.addi %m{k}, %i{k} : index\n"
    last = len(shape) - 1
    body = f"""{view}
      %minus = arith.constant -1 : i32
      {sizes}
      {loops}{number}
      %w = arith.index_cast %k{last} : index to i32
      %x = arith.subi %minus, %w : i32
      memref.store %x, %v[{", ".join(f"%i{k}" for k in range(len(shape)))}] : {type_}
      {"}" * len(shape)}"""
    return run_core(body, {"g": GRID})["g"]


def expected(view) -> np.ndarray:
    grid = GRID.copy()
    part = view(grid)
    part[...] = -1 - np.arange(part.size).reshape(part.shape)
    return grid


def test_a_subview_is_the_strided_part():
    type_ = "memref<2x3xi32, strided<[24, 2], offset: 9>>"
    view = f"%v = memref.subview %g[1, 1] [2, 3] [3, 2] : memref<6x8xi32> to {type_}"
    same(filled(view, type_, (2, 3)), expected(lambda g: g[1:5:3, 1:6:2]))


def test_a_subview_may_depend_on_values_and_drop_dimensions():
    type_ = "memref<?xi32, strided<[?], offset: ?>>"
    view = f"%v = memref.subview %g[%c4, %c2] [1, %c3] [1, %c2] : memref<6x8xi32> to {type_}"
    same(filled(view, type_, (3,)), expected(lambda g: g[4, 2:8:2]))


def test_a_subview_of_a_subview_counts_from_it():
    outer, inner = "memref<4x4xi32, strided<[8, 1], offset: 10>>", "memref<2x2xi32, strided<[16, 1], offset: 19>>"
    view = f"""%u = memref.subview %g[1, 2] [4, 4] [1, 1] : memref<6x8xi32> to {outer}
      %v = memref.subview %u[1, 1] [2, 2] [2, 1] : {outer} to {inner}"""
    same(filled(view, inner, (2, 2)), expected(lambda g: g[1:5, 2:6][1:4:2, 1:3]))


def test_a_reinterpreted_memref_counts_from_the_base_of_its_memory():
    """The offset of the subview in between is ignored, as MLIR says."""
    part = "memref<2x8xi32, strided<[8, 1], offset: 16>>"
    type_ = "memref<3x2xi32, strided<[4, 1], offset: 5>>"
    view = f"""%u = memref.subview %g[2, 0] [2, 8] [1, 1] : memref<6x8xi32> to {part}
      %v = memref.reinterpret_cast %u to offset: [5], sizes: [3, 2], strides: [4, 1] : {part} to {type_}"""
    strided = lambda g: np.lib.stride_tricks.as_strided(g.ravel()[5:], (3, 2), (16, 4))  # noqa: E731
    same(filled(view, type_, (3, 2)), expected(strided))


BYTES = np.arange(-20, 44, dtype=np.int8)


def test_bytes_are_seen_as_elements_of_any_type():
    """A view, one whose begin and size follow from data, and one of a view."""
    body = """%v = memref.view %b[%c8][] : memref<64xi8> to memref<2x4xi32>
      %n = memref.load %at[%c0] : memref<2xi32>
      %shift = arith.index_cast %n : i32 to index
      %w = memref.view %b[%shift][%c3] : memref<64xi8> to memref<?xbf16>
      %inner = memref.view %b[%c4][] : memref<64xi8> to memref<16xi8>
      %x = memref.view %inner[%c2][] : memref<16xi8> to memref<3xi16>
      %k = arith.constant 7 : i16
      %one = arith.constant 1.0 : bf16
      memref.store %n, %v[%c1, %c2] : memref<2x4xi32>
      memref.store %one, %w[%c2] : memref<?xbf16>
      memref.store %k, %x[%c0] : memref<3xi16>"""
    wanted = BYTES.copy()
    wanted[8 + 24 : 8 + 28].view(np.int32)[:] = 50
    wanted[50 + 4 : 50 + 6].view(np.uint16)[:] = bf16([1.0])[0]
    wanted[6:8].view(np.int16)[:] = 7
    same(run_core(body, {"b": BYTES, "at": np.array([50, 0], np.int32)})["b"], wanted)


@pytest.mark.parametrize(("shift", "size", "reason"), [
    (-2, 2, "a view of 4 bytes from byte -2 on leaves a memref of 64"), (60, 3, "a view of 6 bytes from byte 60 on"),
    (3, 2, "a view begins at byte 3, inside an element of 2 bytes"), (2, -1, "a view of -2 bytes"),
])  # fmt: skip
def test_a_view_stays_in_its_memory(shift, size, reason):
    body = """%n = memref.load %at[%c0] : memref<2xi32>
      %m = memref.load %at[%c1] : memref<2xi32>
      %shift = arith.index_cast %n : i32 to index
      %size = arith.index_cast %m : i32 to index
      %v = memref.view %b[%shift][%size] : memref<64xi8> to memref<?xi16>"""
    with pytest.raises(CoreError, match=rf"{reason}.* \(.*:\d+:\d+\)"):
        run_core(body, {"b": BYTES, "at": np.array([shift, size], np.int32)})
    run_core(body, {"b": BYTES, "at": np.array([58, 3], np.int32)})


def test_shapes_collapse_and_expand():
    view = """%f = memref.collapse_shape %g [[0, 1]] : memref<6x8xi32> into memref<48xi32>
      %v = memref.expand_shape %f [[0, 1, 2]] output_shape [4, 3, 4] : memref<48xi32> into memref<4x3x4xi32>"""
    same(filled(view, "memref<4x3x4xi32>", (4, 3, 4)), expected(lambda g: g.reshape(48).reshape(4, 3, 4)))


def test_casts_check_sizes():
    good = """%u = memref.cast %g : memref<6x8xi32> to memref<?x?xi32>
      %v = memref.cast %u : memref<?x?xi32> to memref<6x8xi32>"""
    same(filled(good, "memref<6x8xi32>", (6, 8)), expected(lambda g: g))
    bad = """%u = memref.cast %g : memref<6x8xi32> to memref<?x?xi32>
      %v = memref.cast %u : memref<?x?xi32> to memref<8x6xi32>"""
    with pytest.raises(CoreError, match=r"a memref of shape \(6, 8\) is no memref<8x6xi32>"):
        run_core(bad, {"g": GRID})


@pytest.mark.parametrize("index", [-1, 6])
def test_an_index_from_data_is_checked(index):
    body = """%w = memref.load %at[%c0] : memref<1xi32>
      %i = arith.index_cast %w : i32 to index
      %x = memref.load %g[%i, %c0] : memref<6x8xi32>"""
    with pytest.raises(CoreError, match=rf"index \[{index}, 0\] is outside a memref of shape \[6, 8\] \(.*:\d+:\d+\)"):
        run_core(body, {"g": GRID, "at": np.array([index], np.int32)})


def test_memory_is_copied_between_views():
    part = "memref<2x4xi32, strided<[16, 2], offset: 1>>"
    body = f"""%s = memref.subview %g[0, 1] [2, 4] [2, 2] : memref<6x8xi32> to {part}
      memref.copy %s, %out : {part} to memref<2x4xi32>"""
    got = run_core(body, {"g": GRID, "out": np.zeros((2, 4), np.int32)})
    same(got["out"], GRID[0:3:2, 1:8:2])


def test_constants_of_the_design_can_be_read_but_not_written():
    outside = """    memref.global "private" constant @table : memref<2x3xbf16>
      = dense<[[1.5, 2.0, -3.0], [0.25, 1.0, 7.0]]>
    memref.global "private" @state : memref<2xi32> = uninitialized"""
    body = """%t = memref.get_global @table : memref<2x3xbf16>
      %x = memref.load %t[%c1, %c0] : memref<2x3xbf16>
      %y = memref.load %t[%c0, %c2] : memref<2x3xbf16>
      %z = arith.mulf %x, %y : bf16
      memref.store %z, %out[%c0] : memref<1xbf16>"""
    assert widened(run_core(body, {"out": bf16([0])}, outside)["out"])[0] == -0.75
    with pytest.raises(CoreError, match=r"core \(1, 3\): .*read-only.* \(.*:\d+:\d+\)"):
        run_core(f"{body}\nmemref.store %z, %t[%c0, %c0] : memref<2x3xbf16>", {"out": bf16([0])}, outside)
    keep = """%one = arith.constant 1 : i32
      scf.for %i = %c0 to %c3 step %c1 {
        %s = memref.get_global @state : memref<2xi32>
        %x = memref.load %s[%c1] : memref<2xi32>
        %y = arith.addi %x, %one : i32
        memref.store %y, %s[%c1] : memref<2xi32>
        memref.store %y, %out[%c0] : memref<1xi32>
      }"""
    assert run_core(keep, {"out": np.zeros(1, np.int32)}, outside)["out"][0] == 3


def test_local_memory_lives_on_the_stack():
    body = """%local = memref.alloca() : memref<4x8xi32>
      scf.for %i = %c0 to %c4 step %c1 {
        %x = memref.load %g[%i, %i] : memref<6x8xi32>
        memref.store %x, %local[%c3, %i] : memref<4x8xi32>
      }
      %y = memref.load %local[%c3, %c2] : memref<4x8xi32>
      memref.store %y, %g[%c0, %c0] : memref<6x8xi32>"""
    assert run_core(body, {"g": GRID})["g"][0, 0] == GRID[2, 2]
    with pytest.raises(CoreError, match=r"4100 bytes of memref.alloca do not fit the stack of 4096"):
        run_core("%a = memref.alloca() : memref<1024xi32>\n%b = memref.alloca() : memref<1xi32>", {})


def test_a_memref_without_dimensions_holds_one_value():
    outside = '    %cell = aie.buffer(%tile) {sym_name = "cell"} : memref<i32> = dense<41>'
    body = """%x = memref.load %cell[] : memref<i32>
      %one = arith.constant 1 : i32
      %y = arith.addi %x, %one : i32
      memref.store %y, %cell[] : memref<i32>"""
    assert run_core(body, {}, outside)["cell"][()] == 42
