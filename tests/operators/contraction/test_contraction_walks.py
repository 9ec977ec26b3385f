"""BDs of a walk against the loops that they stand for, element by element."""

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import pytest

from bdforge.devices.limits import SHIM
from bdforge.operators.contraction.boxes import MORE_TILES, Part, Spread, box_count, factorisations, spreads, waste
from bdforge.operators.contraction.dims import TensorDim
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
    levels.append([(0, rng.choice((2, 8, 128)), 1)])
    try:
        found = chain(levels, 16, SHIM, iterates=rng.random() < 0.5)
    except WalkReason:
        assert sum(len(level) > 1 for level in levels) or len(levels) > 3
        return
    assert walked(found) == meant(levels)
    assert all(len(bd.sizes) <= 3 for bd in found.bds)


STEP = 1 << 21
"""Elements of 16 bits in the longest step of a BD, 2^20 words."""
LINES = [(0, 5, 1 << 14)], [(0, 7, 1 << 8)], [(0, 8, 1)]
BLOCK = "5x7x8:16384,256,1"
CHAINS: dict[str, tuple[list, int, bool, str]] = {
    # loops, bits of an element, whether a task may repeat: sizes and strides of BDs, @ offset, turns x stride.
    "a line of any length is one number": ([[(0, 4, 8192)], [(0, 8192, 1)]], 16, True, "32768:1"),
    "a line of 1023 words has no more dimensions": ([[(0, 3, 4096)], [(0, 2046, 1)]], 16, True, "3x2046:4096,1"),
    "one of 1024 words has two": ([[(0, 3, 4096)], [(0, 2048, 1)]], 16, True, "3x2x1024:4096,1024,1"),
    "so in bytes: 1023 words": ([[(0, 3, 8192)], [(0, 4092, 1)]], 8, True, "3x4092:8192,1"),
    "so in bytes: 1024 words": ([[(0, 3, 8192)], [(0, 4096, 1)]], 8, True, "3x2x2048:8192,2048,1"),
    "so in words": ([[(0, 3, 4096)], [(0, 1024, 1)]], 32, True, "3x2x512:4096,512,1"),
    "1023 lines are one dimension": (
        [[(0, 2, 1 << 23)], [(0, 1023, 64)], [(0, 8, 1)]], 32, False, "1023x8:64,1 1023x8:64,1@8388608",
    ),
    "1024 lines are two": ([[(0, 1024, 64)], [(0, 8, 1)]], 32, True, "2x512x8:32768,64,1"),
    "the outermost dimension has no wrap": (
        [[(0, 5000, 999)], [(0, 9, 64)], [(0, 8, 1)]], 32, True, "5000x9x8:999,64,1",
    ),
    "neighbours that are one walk are one": ([[(0, 3, 64)], [(0, 4, 16)], [(0, 2, 8)], [(0, 8, 1)]], 16, True, "192:1"),
    "one turn is none": ([[(0, 1, 7)], [(0, 3, 64)], [(0, 8, 1)]], 16, True, "3x8:64,1"),
    "the longest step": ([[(0, 4, STEP)], [(0, 8, 1)]], 16, True, f"4x8:{STEP},1"),
    "a word more": (
        [[(0, 4, STEP + 2)], [(0, 8, 1)]], 16, True, "8:1 8:1@2097154 8:1@4194308 8:1@6291462",
    ),
    "four loops repeat": ([[(0, 3, STEP)], *LINES], 16, True, f"{BLOCK} 3 x {STEP}"),
    "four loops repeat no farther than a step": (
        [[(0, 3, STEP + 2)], *LINES], 16, True, f"{BLOCK} {BLOCK}@2097154 {BLOCK}@4194308",
    ),
    "four loops where nothing may repeat": (
        [[(0, 3, 1 << 16)], *LINES], 16, False, f"{BLOCK} {BLOCK}@65536 {BLOCK}@131072",
    ),
    "61 turns are repeated": ([[(0, 61, 1 << 17)], *LINES], 16, True, f"{BLOCK} 61 x 131072"),
    "128 turns are two of 64": ([[(0, 128, 1 << 17)], *LINES], 16, True, f"{BLOCK} {BLOCK}@131072 64 x 262144"),
    "a tile that moved back is a BD of its own": (
        [[(0, 2, 640), (1000, 1, 0)], [(0, 3, 64)], [(0, 8, 1)]], 16, True, "2x3x8:640,64,1 3x8:64,1@1000",
    ),
    "what begins later does so in every piece": (
        [[(0, 1, 0), (100, 1, 0)], [(32, 3, 64)], [(0, 8, 1)]], 16, True, "3x8:64,1@32 3x8:64,1@132",
    ),
    "six BDs": (
        [[(0, 6, 1 << 24)], [(0, 8, 1)]], 16, False, " ".join(["8:1", *(f"8:1@{i << 24}" for i in range(1, 6))]),
    ),
    "six pieces": (
        [[(0, 3, 4096)], [(0, 2, 64), (1000, 1, 0)], [(0, 8, 1)]], 16, True,
        "2x8:64,1 8:1@1000 2x8:64,1@4096 8:1@5096 2x8:64,1@8192 8:1@9192",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_the_shortest_that_the_registers_hold(name: str):
    levels, bits, iterates, wanted = CHAINS[name]
    found = chain(levels, bits, SHIM, iterates)
    bds = [
        f"{'x'.join(map(str, bd.sizes))}:{','.join(map(str, bd.strides))}" + (f"@{bd.offset}" if bd.offset else "")
        for bd in found.bds
    ]
    assert " ".join([*bds, *([f"{found.turns} x {found.stride}"] if found.turns > 1 else [])]) == wanted


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([[(0, 8, 1 << 22)], [(0, 8, 1)]], "steps 2097152 words, a BD's longest step is 1048576"),
        ([[(0, 7, STEP + 2)], [(0, 8, 1)]], "steps 1048577 words, a BD's longest step is 1048576; stage it"),
        ([[(0, 8, 2)], [(0, 3, 1)]], "steps 2, 1 elements of 16 bits, no whole words one after the other; stage it"),
        ([[(0, 8, 3)]], "no whole words"),
        ([[(0, 4, 3)], [(0, 4, 1)]], "no whole words"),
        ([[(0, 7, 1 << 17)], *LINES], "has 4 loops a tile, of which the outermost turns 7 times: too many"),
        ([[(1000 * i, 1, 0) for i in range(7)], [(0, 8, 1)]], "takes 7 BDs a tile, at most 6 leave room for the next"),
    ],
)
def test_what_no_bd_walks_is_said(levels, said):
    with pytest.raises(WalkReason, match=said):
        chain(levels, 16, SHIM, iterates=False)


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
        Part(TensorDim(name, rng.randint(1, 14) * 2, (1, None, 1)), size, 0)
        for name, size in zip("abc", (rng.choice((1, 2, 4, 8)) for _ in range(rng.randint(1, 3))), strict=False)
    )
    box = tuple(Part.of(part.dim, part.size) for part in box)
    found = spreads(box, rng.choice((2, 4, 8)), 64)
    dealt = indices(found)
    assert {tile for tiles in dealt for tile in tiles} == set(product(*(range(part.count) for part in found.box)))
    assert len({len(tiles) for tiles in dealt}) == 1
    assert MORE_TILES == 1.1
    assert found.tiles <= MORE_TILES * -(-box_count(box) // found.units)


SPREADS: dict[tuple[int, int, int], str] = {
    # tiles along a dimension, units, most turns: unit, chunk, run, turns, steps; - where tiles are only counted.
    (6, 2, 64): "a 0 a 3 1", (8, 2, 3): "a 0 a 2 2", (2, 2, 64): "a 0 a 1 1", (4, 4, 1): "a 0 a 1 1",
    (5, 2, 64): "a 3 a 3 1", (7, 4, 64): "a 2 a 2 1", (5, 2, 1): "- 0 - 1 3", (1, 2, 64): "- 0 - 1 1",
    (3, 4, 64): "- 0 - 1 1", (7, 2, 1): "- 0 - 1 4",
    # 9 for each of 8 units, 8 times 9 is one more than 71; 11 % more are too many.
    (71, 8, 64): "a 9 a 9 1", (9, 8, 64): "a 2 a 2 1", (17, 8, 64): "a 3 a 3 1", (33, 8, 64): "a 5 a 5 1",
    (134, 2, 64): "a 72 a 36 2", (128, 2, 64): "a 0 a 64 1", (130, 2, 64): "a 70 a 35 2",
}  # fmt: skip


@pytest.mark.parametrize(("tiles", "units", "most"), SPREADS)
def test_tiles_are_dealt_regularly_with_as_many_turns_as_can_be(tiles: int, units: int, most: int):
    found = spreads((Part.of(TensorDim("a", 8 * tiles, (1, None, 1)), 8),), units, most)
    shown = f"{found.unit or '-'} {found.chunk} {found.run or '-'} {found.turns} {found.steps}"
    assert shown == SPREADS[tiles, units, most]
    assert found.tiles == found.turns * found.steps


def box_of(**tiles: int) -> tuple[Part, ...]:
    return tuple(Part.of(TensorDim(name, 8 * count, (1, None, 1)), 8) for name, count in tiles.items())


@pytest.mark.parametrize(("tiles", "along", "reach", "shown"), [
    # Of several dimensions: fewest steps, then fewest tiles.
    ({"a": 4, "b": 3}, "", 99, "a 0 b 3 2"), ({"a": 3, "b": 4}, "", 99, "b 0 a 3 2"),
    ({"a": 2, "b": 5}, "", 99, "a 0 b 5 1"),
    # The dimension that must be dealt, even where more tiles are computed twice; one that cannot is not.
    ({"a": 4, "b": 3}, "b", 99, "b 2 a 4 2"), ({"a": 4, "b": 3}, "a", 99, "a 0 b 3 2"),
    ({"a": 1, "b": 4}, "a", 99, "- 0 - 1 2"),
    # Turns only where a task can move on: by a tile, or by as many as there are units.
    ({"a": 6}, "", 2, "a 0 a 3 1"), ({"a": 6}, "", 1, "a 3 a 3 1"), ({"a": 6}, "", 0, "a 0 a 1 3"),
])  # fmt: skip
def test_one_of_several_dimensions_is_dealt_to_two_units(tiles: dict[str, int], along: str, reach: int, shown: str):
    found = spreads(box_of(**tiles), 2, 64, lambda part, apart: apart <= reach, along)
    assert f"{found.unit or '-'} {found.chunk} {found.run or '-'} {found.turns} {found.steps}" == shown


@pytest.mark.parametrize(("tiles", "shown"), [({"a": 2}, "a 0 a 1 3"), ({"a": 4}, "a 0 a 2 3"), ({}, "- 0 - 1 2")])
def test_tiles_that_move_back_are_neither_dealt_nor_turns_of_a_step(tiles: dict[str, int], shown: str):
    """`b` has three tiles, of which the last one begins at 12 and not at 16."""
    back = Part.of(TensorDim("b", 20, (1, None, 1)), 8)
    found = spreads((*box_of(**tiles), back), 2, 64)
    assert f"{found.unit or '-'} {found.chunk} {found.run or '-'} {found.turns} {found.steps}" == shown


@pytest.mark.parametrize(("size", "count"), [(1, 1), (8, 1), (8, 2), (12, 3), (7, 2), (16, 4)])
def test_a_tile_is_parted_in_all_ways(size: int, count: int):
    ways = [way for way in product(range(1, size + 1), repeat=count) if prod(way) == size]
    assert list(factorisations(size, count)) == ways


@pytest.mark.parametrize(("size", "part", "padded", "facts"), [
    # tiles, whether they are regular, positions walked, first positions; what is computed over what there is.
    (16, 8, False, (2, True, 16, [0, 8], 1.0)), (20, 8, False, (3, False, 20, [0, 8, 12], 1.2)),
    (20, 8, True, (3, True, 24, [0, 8, 16], 1.2)), (8, 8, False, (1, True, 8, [0], 1.0)),
    (3, 8, True, (1, True, 8, [0], 8 / 3)), (9, 8, False, (2, False, 9, [0, 1], 16 / 9)),
])  # fmt: skip
def test_a_part_that_does_not_divide_moves_back_or_grows(size: int, part: int, padded: bool, facts: tuple):
    found = replace(Part.of(TensorDim("a", size, (1, None, 1)), part), padded=padded)
    starts = [_number(found.start(tile)) for tile in range(found.count)]
    assert (found.count, found.regular, found.walked, starts, waste((found,))) == facts
    assert found.grown(4).count == (-(-found.count // 4) * 4 if padded else found.count)
