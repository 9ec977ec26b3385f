"""Parts of memrefs and vectors that core programs take: the last that fits, and the first that does not."""

import numpy as np
import pytest

from bdforge.array.emulator import CoreError
from bdforge.array.emulator.cores.interpreted.memref_ops import _dropped, _strided, _subview
from bdforge.array.emulator.cores.interpreted.vector_ops import _inside, _window

GRID = np.arange(48, dtype=np.int32).reshape(6, 8)


def shape_of(function, *arguments) -> tuple[int, ...] | str:
    """The shape of what a function gives, or the sentence by which it refuses."""
    try:
        return np.shape(function(*arguments, lambda: " (here)"))
    except CoreError as error:
        return str(error)


SUBVIEWS = {  # offsets, sizes, strides: shape, or words
    ((4, 0), (2, 8), (1, 1)): (2, 8),
    ((5, 0), (2, 8), (1, 1)): "offset 5, size 2, stride 1 in dimension 0 leave",
    ((0, 1), (6, 4), (1, 2)): (6, 4),
    ((0, 2), (6, 4), (1, 2)): "offset 2, size 4, stride 2 in dimension 1 leave",
    ((0, 0), (1, 8), (99, 1)): (1, 8),
    ((0, 0), (1, 8), (0, 1)): "offset 0, size 1, stride 0 in dimension 0 leave",
    ((-1, 0), (1, 8), (1, 1)): "offset -1, size 1, stride 1 in dimension 0 leave",
    ((6, 0), (0, 8), (1, 1)): (0, 8),
    ((7, 0), (0, 8), (1, 1)): "offset 7, size 0, stride 1 in dimension 0 leave",
    ((0, 0), (-1, 8), (1, 1)): "offset 0, size -1, stride 1 in dimension 0 leave",
}


@pytest.mark.parametrize("part", SUBVIEWS, ids=str)
def test_a_subview_ends_with_its_memref(part):
    found, wanted = shape_of(_subview, GRID, *part, ()), SUBVIEWS[part]
    assert found == wanted or (isinstance(found, str) and str(wanted) in found), f"{part}: {found}, not {wanted}"


@pytest.mark.parametrize(
    ("sizes", "shape", "dropped"),
    [((2, 1, 3), (2, 3), (1,)), ((1, 1, 3), (1, 3), (1,)), ((1, 1), (), (0, 1)), ((2, 3), (2, 3), ()),
     ((2, 3), (3,), None), ((2, 3), (2, 3, 1), None), ((1, 2), (2, 1), None)],
)  # fmt: skip
def test_a_subview_may_leave_out_dimensions_of_size_1(sizes, shape, dropped):
    assert _dropped(sizes, shape) == dropped, f"{sizes} as {shape}"


STRIDED = {  # offset, sizes, strides: shape, or words
    (0, (6, 8), (8, 1)): (6, 8),
    (1, (6, 8), (8, 1)): "reach elements 1 to 48 of a memref of 48",
    (47, (48,), (-1,)): (48,),
    (46, (48,), (-1,)): "reach elements -1 to 46 of a memref of 48",
    (0, (2, 3), (45, 1)): (2, 3),
    (0, (2, 3), (46, 1)): "reach elements 0 to 48 of a memref of 48",
    (99, (0, 3), (1, 1)): (0, 3),
    (0, (-1,), (1,)): "sizes [-1]",
}


@pytest.mark.parametrize("part", STRIDED, ids=str)
def test_a_reinterpreted_memref_ends_with_its_memory(part):
    found, wanted = shape_of(_strided, GRID, *part), STRIDED[part]
    assert found == wanted or (isinstance(found, str) and str(wanted) in found), f"{part}: {found}, not {wanted}"


@pytest.mark.parametrize(
    ("index", "shape", "fits"),
    [((0, 0), (8,), True), ((5, 4), (4,), True), ((5, 5), (4,), False), ((6, 0), (4,), False), ((-1, 0), (4,), False),
     ((0, -1), (4,), False), ((3, 4), (3, 4), True), ((4, 4), (3, 4), False), ((3, 5), (3, 4), False)],
)  # fmt: skip
def test_a_block_of_a_memref_lies_in_it(index, shape, fits):
    try:
        found: object = GRID[_window(GRID, index, shape, str)].shape
    except CoreError as error:
        found = str(error)
    leaves = f"a vector of shape {list(shape)} at index {list(index)} leaves a memref of shape [6, 8]"
    assert found == (shape if fits else leaves), f"{index}, {shape}"


@pytest.mark.parametrize(("place", "fits"), [((0, 0), True), ((2, 3), True), ((3, 0), False), ((0, 4), False),
                                             ((-1, 0), False), ((2,), True), ((3,), False)])  # fmt: skip
def test_a_position_lies_in_its_vector(place, fits):
    try:
        found: object = _inside(place, (3, 4), str)
    except CoreError as error:
        found = str(error)
    assert found == (place if fits else f"position {list(place)} is outside a vector of shape [3, 4]")
