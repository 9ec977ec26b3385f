"""An operand of a contraction in place: why it cannot be, its runs, its axes; loops over the parts of micro-tiles."""

from itertools import product
from math import prod

import pytest

from bdforge.operators.contraction.boxes import Part
from bdforge.operators.contraction.dims import TensorDim
from bdforge.operators.contraction.sides import Side, Tiles, _mixed
from bdforge.operators.contraction.walks import WalkReason
from bdforge.operators.gemm.grid import Storage

Facts = tuple[int, int, int]
"""Size, part and stride of a dimension."""


def side_of(m: dict[str, Facts], k: dict[str, Facts], bits: int = 8, order: str = "row", **facts) -> Side:
    """A of these dimensions of M and K, outermost first."""
    boxes = [
        tuple(
            Part.of(TensorDim(name, size, (stride, None, None)), part) for name, (size, part, stride) in group.items()
        )
        for group in (m, k)
    ]
    return Side(0, Tiles((), boxes[0], (), boxes[1]), Storage(bits, order), facts.pop("staged", False), **facts)  # type: ignore[arg-type]


LINES = {"m": (16, 8, 64)}
STRIDE, START = "{} has a stride of {} elements, no whole words", "a tile along {} begins at element {}, no whole word"
IN_PLACE: dict[str, tuple[dict[str, Facts], dict[str, Facts], int, list[str]]] = {
    # M, K, bits of an element: every reason why A cannot be walked in place.
    "whole words": (LINES, {"k": (32, 16, 1)}, 8, []),
    "one row never steps": ({"m": (1, 1, 33)}, {"k": (32, 16, 1)}, 8, []),
    "two rows do": ({"m": (2, 2, 33)}, {"k": (32, 16, 1)}, 8, [STRIDE.format("m", 33)]),
    "and tiles of one row": (
        {"m": (2, 1, 33)}, {"k": (32, 16, 1)}, 8, [STRIDE.format("m", 33), START.format("m", 33)],
    ),
    "odd lines of half words": ({"m": (2, 2, 33)}, {"k": (32, 16, 1)}, 16, [STRIDE.format("m", 33)]),
    "even lines of half words": ({"m": (2, 2, 34)}, {"k": (32, 16, 1)}, 16, []),
    "odd lines of words": ({"m": (2, 1, 33)}, {"k": (33, 11, 1)}, 32, []),
    "one tile ends anywhere": (LINES, {"k": (18, 18, 1)}, 8, []),
    "the second one begins there": (LINES, {"k": (36, 18, 1)}, 8, [START.format("k", 18)]),
    "the last one moved back to a word": (LINES, {"k": (36, 16, 1)}, 8, []),
    "the last one moved back elsewhere": (LINES, {"k": (38, 16, 1)}, 8, [START.format("k", 22)]),
    "less than a part": (LINES, {"k": (8, 16, 1)}, 8, ["k = 8 is below its part of a tile, 16"]),
    "just a part": (LINES, {"k": (16, 16, 1)}, 8, []),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_operand_is_walked_in_place_where_strides_and_tiles_begin_at_words(name: str):
    m, k, bits, wanted = IN_PLACE[name]
    assert list(side_of(m, k, bits).unreachable()) == wanted
    packed = side_of(m, k, bits, packed=())
    assert list(packed.unreachable()) == [*wanted, "the array takes it packed"]


@pytest.mark.parametrize(("m", "k", "order", "run"), [
    (LINES, {"k": (32, 16, 1)}, "row", 16), ({"m": (16, 8, 16)}, {"k": (16, 16, 1)}, "row", 8 * 16),
    ({"m": (16, 8, 1)}, {"k": (32, 16, 64)}, "column", 8), ({"m": (16, 8, 1)}, {"k": (32, 16, 64)}, "row", 1),
    # A part of one position is no step, wherever it stands.
    ({"m": (16, 1, 99)}, {"k": (16, 16, 1)}, "row", 16), (LINES, {"k": (16, 16, 1), "l": (4, 1, 16)}, "row", 16),
    ({"a": (4, 4, 128), "m": (8, 8, 16)}, {"k": (16, 16, 1)}, "row", 4 * 8 * 16),
    ({"a": (4, 4, 256), "m": (8, 8, 16)}, {"k": (16, 16, 1)}, "row", 8 * 16),
])  # fmt: skip
def test_a_run_goes_on_while_the_next_part_begins_at_its_end(m, k, order: str, run: int):
    assert side_of(m, k, order=order).run_elements() == run
    assert side_of(m, k, order=order, staged=True).run_elements() == prod(part for _, part, _ in (m | k).values())


def test_axes_come_from_the_longest_stride_on_and_of_equal_ones_the_larger_first():
    found = side_of({"a": (2, 1, 4), "b": (3, 1, 4)}, {"k": (5, 1, 1), "l": (2, 1, 64)})
    assert "".join(part.dim.name for part in found.axes) == "lbak"
    assert found.elements == 1 + 1 * 4 + 2 * 4 + 4 * 1 + 1 * 64
    assert side_of({"m": (10, 8, 1)}, {"k": (5, 4, 10)}, staged=True).elements == 2 * 8 * 2 * 4


@pytest.mark.parametrize(("sizes", "count", "step", "loops"), [
    # Positions 0, step, 2 step ... of a box as loops over its parts: (part, turns, positions, elements apart).
    ((32,), 4, 8, [(0, 4, 8, 100)]), ((4, 8), 4, 8, [(0, 4, 1, 100)]), ((4, 8), 8, 4, [(0, 4, 1, 200), (1, 2, 4, 100)]),
    ((2, 4, 4), 8, 1, [(1, 2, 1, 400), (2, 4, 1, 100)]), ((2, 4, 4), 2, 16, [(0, 2, 1, 100)]),
    ((2, 16), 1, 8, []), ((1, 8), 8, 1, [(1, 8, 1, 100)]),
    ((4, 6), 3, 8, "part 4 of a cuts a micro-tile"), ((8, 3), 8, 1, "part 8 of a cuts a micro-tile"),
    ((3, 12), 4, 8, "part 3 of a cuts a micro-tile"), ((2, 4), 16, 1, "parts cut a micro-tile"),
])  # fmt: skip
def test_micro_tiles_of_several_labels_are_loops_over_their_parts(sizes: tuple, count: int, step: int, loops):
    box = tuple(Part(TensorDim(name, size, (None, 1, 1)), size, 1) for name, size in zip("abc", sizes, strict=False))
    axes = {part.dim.name: number for number, part in enumerate(box)}
    if isinstance(loops, str):
        with pytest.raises(WalkReason, match=loops):
            list(_mixed(box, axes, count, step, 100))
        return
    found = list(_mixed(box, axes, count, step, 100))
    assert found == loops
    weights = [prod(sizes[number + 1 :]) for number in range(len(sizes))]
    turns = [range(n) for _, n, _, _ in found if isinstance(n, int)]
    for number, place in enumerate(product(*turns)):
        assert sum(i * far * weights[axis] for i, (axis, _, far, _) in zip(place, found, strict=True)) == number * step
        assert sum(i * apart for i, (*_, apart) in zip(place, found, strict=True)) == number * 100
