"""What the words of a BD mean, by themselves: addresses, orders, banks and chains, worked out by hand."""

import numpy as np
import pytest

from bdforge.array.emulator.bd_access import PAD, Order, chain, decode_bd, words_by_bank
from bdforge.array.emulator.dma import base_outside
from bdforge.devices import TileKind
from bdforge.devices.registers import TILE_REGISTERS

SHIM, MEMTILE, CORE = TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE


def decoded(kind: TileKind, **fields: int):
    return decode_bd(kind, tuple(TILE_REGISTERS[kind].bd.encode({"length": 4} | fields)))


def offsets(kind: TileKind, **fields: int) -> list[int]:
    order = decoded(kind, **fields).order
    return list(range(order.length)) if order.offsets is None else order.offsets.tolist()


def test_a_shims_address_is_of_whole_words_and_of_48_bits():
    assert decoded(SHIM, address_low=0x1007).address == 0x1004
    assert decoded(SHIM, address_low=8, address_high=0xFFFF).address == 0xFFFF_0000_0008
    assert decoded(CORE, address=7).address == 7
    assert decoded(MEMTILE, address=9).address == 9


def test_steps_and_iterations_count_from_one():
    bd = decoded(CORE, iteration_wrap=2, iteration_step=4)
    assert (bd.iteration_wrap, bd.iteration_step) == (3, 5)
    assert offsets(CORE, d0_step=2) == [0, 3, 6, 9]


@pytest.mark.parametrize("kind", [SHIM, MEMTILE, CORE])
def test_a_wrap_ends_its_dimension_and_none_never_does(kind: TileKind):
    assert offsets(kind, length=6, d0_wrap=2, d0_step=0, d1_wrap=2, d1_step=9, d2_step=99) == [0, 1, 10, 11, 100, 101]
    assert offsets(kind, length=5, d0_wrap=2, d0_step=3, d1_step=9) == [0, 4, 10, 14, 20]


def test_only_a_memtile_has_a_fourth_dimension():
    fields = {"d0_wrap": 1, "d1_wrap": 1, "d2_wrap": 2, "d2_step": 4, "d3_step": 99}
    assert offsets(MEMTILE, **fields) == [0, 5, 100, 105]


def test_a_run_without_gaps_has_no_offsets_and_one_with_gaps_has():
    assert decoded(CORE).order.offsets is None
    assert decoded(CORE, d0_wrap=2, d1_step=1).order.offsets is None  # 2 by 2, side by side
    assert decoded(CORE, d0_wrap=2, d1_step=2).order.offsets is not None
    assert decoded(CORE, length=1, d0_step=5).order.high == 0


def test_padding_stands_before_and_behind_each_dimension():
    fields = {"d0_wrap": 2, "d0_pad_before": 1, "d0_pad_after": 2, "d1_wrap": 2, "d1_step": 9}
    assert offsets(MEMTILE, length=10, **fields) == [PAD, 0, 1, PAD, PAD, PAD, 10, 11, PAD, PAD]
    found = decoded(MEMTILE, length=10, **fields).order
    assert (found.low, found.high, found.padded) == (0, 11, True)
    assert offsets(MEMTILE, length=5, d0_pad_before=2) == [PAD, PAD, 0, 1, 2]


@pytest.mark.parametrize(("length", "fields"), [(4, {"d0_wrap": 2, "d1_pad_after": 1}), (4, {"d0_pad_after": 1})])
def test_padding_behind_what_never_ends_is_refused(length: int, fields: dict[str, int]):
    assert "which has no wrap and never ends" in decoded(MEMTILE, length=length, **fields).refusal
    assert decoded(MEMTILE, length=length, **(fields | {"d0_wrap": 2, "d1_wrap": 2})).refusal == ""


def test_locks_and_packets_are_there_where_they_are_enabled():
    bd = decoded(CORE, acquire_enable=1, acquire_id=5, acquire_value=-1, release_id=6, release_value=2)
    assert (bd.acquire, bd.release) == ((5, -1), (6, 2))
    assert decoded(CORE, acquire_id=5, acquire_value=-1, release_id=6).acquire is None
    assert decoded(CORE, release_id=6).release is None
    assert decoded(CORE, release_id=6, release_value=-1).release == (6, -1)  # lowers it
    assert decoded(CORE, packet_enable=1, packet_type=3, packet_id=31).packet == (3, 31)
    assert decoded(CORE, packet_type=3, packet_id=31).packet is None
    assert decoded(CORE).ends_packet
    assert not decoded(CORE, suppress_tlast=1).ends_packet


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
    layout = TILE_REGISTERS[CORE].bd
    following = {0: 3, 3: 1, 1: None, 2: 2, 5: 6, 6: 5}
    words = {
        bd: tuple(layout.encode({"length": 1} if after is None else {"length": 1, "use_next": 1, "next": after}))
        for bd, after in following.items()
    }
    assert chain(CORE, words.__getitem__, 0) == [0, 3, 1]
    assert chain(CORE, words.__getitem__, 2) == [2]
    assert chain(CORE, words.__getitem__, 6) == [6, 5]


@pytest.mark.parametrize(("base", "outside"), [(-1, True), (0, False), (6, False), (7, True)])
def test_a_transfer_stays_in_its_memory_to_the_word(base: int, outside: bool):
    assert base_outside(base, Order(4, None, 0, 3), np.zeros(10, np.uint32)) == outside
