"""What the words of a BD mean, by themselves: addresses, orders, banks and chains, worked out by hand."""

import numpy as np
import pytest

from bdforge.array.emulator.bd_access import Order, chain, decode_bd, words_by_bank
from bdforge.array.emulator.dma import base_outside
from bdforge.devices import TileKind
from bdforge.devices.registers import TILE_REGISTERS

SHIM, MEMTILE, CORE = TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE


def decoded(kind: TileKind, **fields: int):
    return decode_bd(kind, tuple(TILE_REGISTERS[kind].bd.encode({"length": 4} | fields)))


def offsets(kind: TileKind, **fields: int) -> list[int]:
    order = decoded(kind, **fields).order
    return list(range(order.length)) if order.offsets is None else order.offsets.tolist()


def test_a_run_without_gaps_has_no_offsets_and_one_with_gaps_has():
    assert decoded(CORE).order.offsets is None
    assert decoded(CORE, d0_wrap=2, d1_step=1).order.offsets is None  # 2 by 2, side by side
    assert decoded(CORE, d0_wrap=2, d1_step=2).order.offsets is not None
    assert decoded(CORE, length=1, d0_step=5).order.high == 0


@pytest.mark.parametrize(
    ("base", "length", "banks"),
    [
        (0, 4096, {0: 4096}), (0, 4097, {0: 4096, 1: 1}), (4095, 2, {0: 1, 1: 1}), (4096, 4096, {1: 4096}),
        (8000, 5000, {1: 192, 2: 4096, 3: 712}),
    ],
)  # fmt: skip
def test_words_are_counted_by_the_bank_in_which_they_lie(base: int, length: int, banks: dict[int, int]):
    """A bank has 16 KiB: 4096 words."""
    assert words_by_bank(Order(length, None, 0, length - 1), base) == banks


def test_words_with_gaps_are_counted_by_bank_too():
    order = decoded(CORE, length=4, d0_step=4095).order
    assert words_by_bank(order, 0) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert words_by_bank(order, 4095) == {0: 1, 1: 1, 2: 1, 3: 1}


def test_a_chain_has_each_bd_once_and_ends_where_no_other_follows():
    following = {0: 3, 3: 1, 1: None, 2: 2, 5: 6, 6: 5}
    bds = {bd: decoded(CORE, use_next=after is not None, next=after or 0) for bd, after in following.items()}
    assert chain(bds.__getitem__, 0) == [0, 3, 1]
    assert chain(bds.__getitem__, 2) == [2]
    assert chain(bds.__getitem__, 6) == [6, 5]


@pytest.mark.parametrize(("base", "outside"), [(-1, True), (0, False), (6, False), (7, True)])
def test_a_transfer_stays_in_its_memory_to_the_word(base: int, outside: bool):
    assert base_outside(base, Order(4, None, 0, 3), np.zeros(10, np.uint32)) == outside
