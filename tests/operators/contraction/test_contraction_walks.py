"""BDs of a walk against the loops that they stand for, element by element."""

from itertools import product
from random import Random

import pytest

from bdforge.devices.limits import SHIM
from bdforge.operators.contraction.boxes import MORE_TILES, Part, Spread, box_count, spreads
from bdforge.operators.contraction.dims import Dim
from bdforge.operators.contraction.walks import Chain, WalkReason, chain


def walked(found: Chain) -> list[int]:
    """Elements in the order in which a task moves them."""
    return [
        turn * found.stride + bd.offset + sum(i * stride for i, stride in zip(place, bd.strides, strict=True))
        for turn in range(found.turns)
        for bd in found.bds
        for place in product(*map(range, bd.sizes))
    ]


def meant(levels, offset=0) -> list[int]:
    """Elements of nested loops of segments."""
    if not levels:
        return [offset]
    starts = (start + turn * stride for start, count, stride in levels[0] for turn in range(count))
    return [element for start in starts for element in meant(levels[1:], offset + start)]


@pytest.mark.parametrize("seed", range(60))
def test_chains_walk_what_loops_walk(seed):
    rng = Random(seed)
    levels = [
        [(64 * rng.randint(0, 9), rng.randint(1, 4), 32 * rng.randint(1, 90)) for _ in range(rng.choice((1, 1, 1, 2)))]
        for _ in range(rng.randint(1, 4))
    ]
    levels.append([(0, rng.choice((2, 8, 2048)), 1)])
    try:
        found = chain(levels, 16, SHIM, iterates=rng.random() < 0.5)
    except WalkReason:
        assert sum(len(level) > 1 for level in levels) or len(levels) > 3
        return
    assert walked(found) == meant(levels)
    assert all(len(bd.sizes) <= 3 for bd in found.bds)


def test_a_long_line_needs_no_dimensions():
    assert chain([[(0, 4, 8192)], [(0, 8192, 1)]], 16, SHIM).bds[0].sizes == (32768,)


def test_lines_longer_than_a_wrap_become_two_dimensions():
    (bd,) = chain([[(0, 3, 8192)], [(0, 4096, 1)]], 16, SHIM).bds
    assert (bd.sizes, bd.strides) == ((3, 4, 1024), (8192, 1024, 1))


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([[(0, 8, 1 << 22)], [(0, 8, 1)]], "steps 2097152 words, a BD's longest step is 1048576"),
        ([[(0, 8, 2)], [(0, 3, 1)]], "no whole words"),
        ([[(0, 8, 3)]], "no whole words"),
    ],
)
def test_what_no_bd_walks_is_said(levels, said):
    with pytest.raises(WalkReason, match=said):
        chain(levels, 16, SHIM, iterates=False)


def test_steps_too_long_for_a_bd_become_several_bds():
    found = chain([[(0, 4, 1 << 24)], [(0, 8, 64)], [(0, 8, 1)]], 16, SHIM)
    assert [bd.offset for bd in found.bds] == [0, 1 << 24, 2 << 24, 3 << 24]


def test_a_chain_has_six_bds_and_no_seventh():
    assert len(chain([[(0, 6, 1 << 24)], [(0, 8, 1)]], 16, SHIM, iterates=False).bds) == 6
    with pytest.raises(WalkReason, match="a BD's longest step"):
        chain([[(0, 7, 1 << 24)], [(0, 8, 1)]], 16, SHIM, iterates=False)


def indices(spread: Spread) -> list[list[tuple[int, ...]]]:
    """Tiles of each unit, in order."""
    run = [part.dim.name for part in spread.box].index(spread.run) if spread.run else 0
    found = []
    for unit in range(spread.units):
        tiles = []
        for step, turn in product(range(spread.steps), range(spread.turns)):
            place = [_number(spread.indices(step, unit)[part.dim.name]) for part in spread.box]
            place[run] += turn * spread.run_stride
            tiles.append(tuple(place))
        found.append(tiles)
    return found


def _number(value) -> int:
    return value if isinstance(value, int) else value.constant


@pytest.mark.parametrize("seed", range(25))
def test_every_tile_is_dealt_and_no_unit_has_more_than_another(seed):
    rng = Random(seed)
    box = tuple(
        Part(Dim(name, rng.randint(1, 14) * 2, (1, None, 1)), size, 0)
        for name, size in zip("abc", (rng.choice((1, 2, 4, 8)) for _ in range(rng.randint(1, 3))), strict=False)
    )
    box = tuple(Part.of(part.dim, part.size) for part in box)
    found = spreads(box, rng.choice((2, 4, 8)), 64)
    dealt = indices(found)
    assert {tile for tiles in dealt for tile in tiles} == set(product(*(range(part.count) for part in found.box)))
    assert len({len(tiles) for tiles in dealt}) == 1
    assert MORE_TILES == 1.1
    assert found.tiles <= MORE_TILES * -(-box_count(box) // found.units)
