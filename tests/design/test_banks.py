"""Addresses and BD numbers: the search for banks against brute force, and what a design gives itself."""

import random
from dataclasses import replace
from itertools import combinations, permutations, product

import pytest

from bdforge.design import Acquire, Bd, Buffer, Channel, Core, Design, Lock, Tile, check, placed, whole
from bdforge.design.bank_search import apart
from bdforge.design.buffer_addresses import CROSSWISE, TOGETHER, TURNS, _turns, _weight, occupied
from bdforge.devices import AIE2P, TileKind

CORE = AIE2P.limits(TileKind.CORE)


def cost(addresses, sizes, weights) -> int:
    spans = [set(range(at // 0x4000, (at + size - 1) // 0x4000 + 1)) for at, size in zip(addresses, sizes, strict=True)]
    whole = sum(weights[i][i] for i, at in enumerate(addresses) if (at + sizes[i] // 2) % 0x4000)
    return whole + sum(weights[i][j] for i, j in combinations(range(len(sizes)), 2) if spans[i] & spans[j])


def brute_force(sizes: tuple[int, ...], weights, start: int) -> int:
    """The least cost over all orders and all gaps in steps of 2 KiB, with banks of 16 KiB."""
    best = 1 << 30
    slack = (0x10000 - start - sum(sizes)) // 0x800
    for order in permutations(range(len(sizes))):
        for gaps in product(range(slack + 1), repeat=len(sizes)):
            if sum(gaps) > slack:
                continue
            at, addresses = start, [0] * len(sizes)
            for index, gap in zip(order, gaps, strict=True):
                addresses[index] = at + 0x800 * gap
                at = addresses[index] + sizes[index]
            best = min(best, cost(addresses, sizes, weights))
    return best


def test_the_search_finds_what_brute_force_finds():
    rng = random.Random(5)
    for _ in range(12):
        n = rng.choice((3, 4))
        sizes = tuple(0x800 * rng.randint(1, 14) for _ in range(n))
        start = 0x800 * rng.randint(0, 3)
        if not 0x10000 - 0x800 * 6 <= start + sum(sizes) <= 0x10000:
            sizes = (*sizes[:-1], max(0x10000 - start - sum(sizes[:-1]) - 0x800 * rng.randint(0, 4), 0x800))
        if start + sum(sizes) > 0x10000:
            continue
        values = {pair: rng.choice((0, 4, 10, 100)) for pair in combinations(range(n), 2)}
        halved = {(i, i): rng.choice((0, 4, 50)) for i, size in enumerate(sizes) if size % 0x1000 == 0}
        weights = tuple(tuple((values | halved).get((min(i, j), max(i, j)), 0) for j in range(n)) for i in range(n))
        found = apart(sizes, weights, start, CORE)
        assert cost(found, sizes, weights) == brute_force(sizes, weights, start), (sizes, start)


def test_a_placement_is_found_whenever_the_sum_fits():
    rng = random.Random(11)
    weights = tuple(tuple((i != j) * (100 if i // 2 == j // 2 else 10) for j in range(6)) for i in range(6))
    for _ in range(200):
        cuts = sorted(rng.sample(range(1, 0x10000 // 64 - 64), 5))
        ends = (*cuts, 0x10000 // 64 - 64)
        sizes = tuple(64 * (end - begin) for begin, end in zip((0, *cuts), ends, strict=True))
        at = 4096
        for address, size in sorted(zip(apart(sizes, weights, 4096, CORE), sizes, strict=True)):
            assert address == at  # there is no room to leave any
            at += size


@pytest.mark.parametrize(
    ("sizes", "apart_from", "start"),
    [
        ((2, 10, 1, 1), {(0, 1), (2, 3)}, 2), ((2, 5, 6, 1), {(0, 2), (0, 3), (1, 2)}, 2),
        ((6, 1, 1, 6), {(0, 3), (1, 2), (1, 3)}, 2), ((2, 7, 3, 3), {(0, 1), (1, 2), (1, 3)}, 1),
    ],
)  # fmt: skip
def test_a_buffer_that_ends_where_a_bank_begins_does_not_share_it(sizes, apart_from, start: int):
    """Sizes and start in units of 4 KiB, four to a bank; buffers fill the memory, and no pair need share a bank."""
    weights = tuple(tuple(int((min(i, j), max(i, j)) in apart_from) for j in range(4)) for i in range(4))
    found = apart(tuple(0x1000 * size for size in sizes), weights, 0x1000 * start, CORE)
    ends = [at + 0x1000 * size for at, size in zip(found, sizes, strict=True)]
    banks = [set(range(at // 0x4000, (end - 1) // 0x4000 + 1)) for at, end in zip(found, ends, strict=True)]
    shared = {(i, j): banks[i] & banks[j] for i, j in apart_from if banks[i] & banks[j]}
    assert shared == {}, f"buffers that share banks, of those at {[*map(hex, found)]} to {[*map(hex, ends)]}"


def test_what_has_an_address_or_a_number_keeps_it():
    """The rest goes behind the last given address, and to the BDs that are left."""
    given = replace(Buffer("given", 256, "i32"), address=0x20000)
    other, unmoved = Buffer("other", 100, "i32"), Buffer("unmoved", 3, "i32")
    bds = (Bd(other, whole(other)), Bd(given, whole(given), bd_id=0), Bd(other, whole(other)))
    channels = (Channel("S2MM", 0, bds), Channel("S2MM", 1, (Bd(given, whole(given)),)))
    tile = Tile("mem", 0, 1, TileKind.MEMTILE, (other, given, unmoved), channels=channels)
    design = placed(Design("kept", "npu2", (tile,)))
    assert check(design) == []
    assert [buffer.address for buffer in design.tiles[0].buffers] == [0x20440, 0x20000, 0x20400]
    assert [[bd.bd_id for bd in channel.bds] for channel in design.tiles[0].channels] == [[1, 0, 2], [24]]
    assert [list(buffer.banks) for buffer in design.tiles[0].buffers] == [[2], [2], [2]]
    assert placed(design) == design


A0, A1, B0, B1, C0 = ("a", 0, False), ("a", 1, False), ("b", 0, False), ("b", 1, False), ("c", 1, True)
"""The lock that guards an operand, a buffer's turn there, whether it only leaves."""


@pytest.mark.parametrize(("one", "other", "weight"), [
    (A0, A1, TURNS), (A0, B0, TOGETHER), (A1, B1, TOGETHER), (A0, B1, CROSSWISE), (A1, B0, CROSSWISE),
    (C0, A0, TOGETHER), (A0, C0, TOGETHER), (C0, A1, TOGETHER),
])  # fmt: skip
def test_buffers_that_share_a_bank_cost_most_in_turn_then_together_then_crosswise(one, other, weight: int):
    """In a memtile only those in turn do; what leaves meets every other."""
    assert _weight(TileKind.CORE, one, other) == weight
    assert _weight(TileKind.MEMTILE, one, other) == (TURNS if one[0] == other[0] else 0)
    assert TURNS > 6 * TOGETHER > 6 * CROSSWISE > 0


@pytest.mark.parametrize("last", [0x3C00, 0x3C40])
def test_what_does_not_fit_lies_one_behind_the_other(last: int):
    """0x400 to the end of the memory, and the least beyond it."""
    sizes = (0x8000, 0x4000, last)
    weights = ((0, 1, 1), (1, 0, 1), (1, 1, 0))
    fits = 0x400 + sum(sizes) <= 0x10000
    found = apart(sizes, weights, 0x400, CORE)
    assert max(at + size for at, size in zip(found, sizes, strict=True)) == (0x10000 if fits else 0x10040)
    if not fits:
        assert found == (0x400, 0x8400, 0xC400)


ALL = ((0, 1, 1), (1, 0, 1), (1, 1, 0))
NONE = ((0, 0, 0),) * 3
SECOND = ((0, 1, 0, 0), (1, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 0))
THIRD = ((0, 0, 1, 0), (0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 0))


@pytest.mark.parametrize(("start", "sizes", "weights", "expected"), [
    pytest.param(0, (64, 64, 64), NONE, (0, 64, 128), id="at no cost, as they were given, without gaps"),
    pytest.param(128, (128, 64, 192), NONE, (128, 256, 320), id="from the start on"),
    pytest.param(0, (64, 64, 64), ALL, (0, 0x4000, 0x8000), id="each to the start of the next bank"),
    pytest.param(0, (0x4000, 64, 64), ALL, (0, 0x4000, 0x8000), id="what ends where a bank begins is not in it"),
    pytest.param(0, (0x4040, 64, 64), ALL, (0, 0x8000, 0xC000), id="one step further it is"),
    pytest.param(0x4000, (64, 64, 64), ALL, (0x4000, 0x8000, 0xC000), id="from a bank's start on, nothing below"),
    pytest.param(0, (0x8000, 0x4000, 0x4000), ALL, (0, 0x8000, 0xC000), id="the last bank to its last byte"),
    pytest.param(0, (0x2000, 0x4000, 0x2000, 0x8000), SECOND, (0, 0x4000, 0x2000, 0x8000), id="in another order, full"),
    pytest.param(64, (0x2000, 0x4000, 0x2000, 0x8000), SECOND, (64, 0x2040, 0x6040, 0x8040), id="too much by a step"),
    pytest.param(0, (0x4000, 64, 64, 0xBF80), THIRD, (0, 0x4000, 0x4040, 0x4080), id="nor are those before it there"),
    pytest.param(64, (128,), ((1,),), (0x3FC0,), id="with a border in its middle"),
    pytest.param(64, (128, 64), ((1, 2), (2, 0)), (0x3FC0, 0x8000), id="which takes two banks"),
    pytest.param(0x2000, (0xE000,), ((1,),), (0x2000,), id="without one where that takes too much"),
    pytest.param(0, (), (), (), id="none"),
])  # fmt: skip
def test_banks_begin_every_16_kib_and_ties_go_to_the_first(start: int, sizes, weights, expected):
    """Of placements that cost the same the one with the lowest addresses of the first buffers, found first."""
    assert apart(sizes, weights, start, CORE) == expected


def test_a_buffers_turn_is_that_of_the_lock_that_fills_it():
    """What comes in tells before what goes out; without a lock, the channel; memory of another tile has no turn."""
    full, free = Lock("full", 0), Lock("free", 1)
    ping, pong, out, far = (Buffer(name, 64, "i32") for name in ("ping", "pong", "out", "far"))

    def bds(lock: Lock | None, *held: Buffer) -> tuple[Bd, ...]:
        return tuple(Bd(b, whole(b), Acquire(lock) if lock else None) for b in held)

    channels = (Channel("MM2S", 0, bds(full, pong, ping)), Channel("MM2S", 1, bds(None, out)),
                Channel("S2MM", 0, bds(free, ping, far, pong, ping)))  # fmt: skip
    tile = Tile("core", 0, 2, TileKind.CORE, (ping, pong, out), (full, free), channels)
    assert _turns(tile) == {"ping": ("free", 0, False), "pong": ("free", 2, False), "out": ("MM2S 1", 0, True)}


def test_a_core_has_its_parameters_lowest_then_first_turns_then_the_larger():
    """The stack's 1000 bytes end at 1024; buffers of one bank's room that need no bank for themselves."""
    held = {"small": 64, "large": 128, "second": 192, "parameters": 16}
    buffers = tuple(Buffer(name, elements, "i8") for name, elements in held.items())
    small, large, second, _ = buffers
    lock = Lock("lock", 0, 1)

    def channel(index: int, *moved: Buffer) -> Channel:
        return Channel("S2MM", index, tuple(Bd(b, whole(b), Acquire(lock) if index else None) for b in moved))

    tile = Tile("core", 0, 2, TileKind.CORE, buffers, (lock,), (channel(0, small), channel(1, large, second)),
                core=Core((), 1000))  # fmt: skip
    found = {b.name: (b.address, list(b.banks)) for b in placed(Design("d", "npu2", (tile,))).tiles[0].buffers}
    assert found == {"parameters": (1024, [0]), "large": (1088, [0]), "small": (0x4000, [1]), "second": (0x8000, [2])}


def test_occupied_bytes_are_those_of_stack_and_buffers_each_aligned_to_64():
    assert occupied(0, []) == 0
    assert occupied(1, [(2, 65), (1, 64), (0, 99)]) == 64 + 2 * 128 + 64


@pytest.mark.parametrize("order", [(0x20000, 0x30000), (0x30000, 0x20000)])
def test_the_rest_lies_behind_the_highest_given_address_whatever_the_order(order: tuple[int, int]):
    given = [replace(Buffer(f"given_{at:x}", 256, "i32"), address=at) for at in order]
    tile = Tile("mem", 0, 1, TileKind.MEMTILE, (*given, Buffer("open", 100, "i32")))
    *_, found = placed(Design("kept", "npu2", (tile,))).tiles[0].buffers
    assert found.address == 0x30000 + 4 * 256


def test_an_addresss_bank_and_a_stack_below_it_are_kept_free():
    """A core's stack of 1000 bytes ends at 1024; a given address below the stack's end does not bring others down."""
    low = replace(Buffer("low", 4, "i32"), address=0x100)
    core = Tile("core", 0, 2, TileKind.CORE, (low, Buffer("open", 4, "i32")), core=Core((), 1000))
    assert placed(Design("kept", "npu2", (core,))).tiles[0].buffers[1].address == 1024
