"""Which BDs, banks and locks a tile's channels, buffers and cores mean, worked out by hand."""

import pytest

from bdforge.devices.limits import AIE2, AIE2P, CORE, MEMTILE, SHIM, TileKind, core_lock


@pytest.mark.parametrize("channel", range(6))
def test_even_channels_of_a_memtile_have_the_lower_half_of_its_bds(channel: int):
    assert MEMTILE.bds_of_channel(channel) == (range(24, 48) if channel in (1, 3, 5) else range(24))


@pytest.mark.parametrize("limits", [SHIM, CORE])
@pytest.mark.parametrize("channel", [0, 1])
def test_channels_of_other_tiles_have_all_bds(limits, channel: int):
    assert limits.bds_of_channel(channel) == range(16)


def test_a_buffer_lies_in_the_banks_that_its_bytes_touch():
    assert (CORE.bank_bytes, MEMTILE.bank_bytes) == (0x4000, 0x10000)
    assert CORE.banks_of(0, 1) == range(1)
    assert CORE.banks_of(0, 0x4000) == range(1)
    assert CORE.banks_of(0, 0x4001) == range(2)
    assert CORE.banks_of(0x3FFF, 1) == range(1)
    assert CORE.banks_of(0x3FFF, 2) == range(2)
    assert CORE.banks_of(0x4000, 0x8000) == range(1, 3)
    assert MEMTILE.banks_of(0x6FFFC, 8) == range(6, 8)


LOCKS = {  # by a core at column 3, row 4: south, west, north, then its own
    0: (3, 3, 0), 15: (3, 3, 15), 16: (2, 4, 0), 31: (2, 4, 15), 32: (3, 5, 0), 47: (3, 5, 15), 48: (3, 4, 0),
    63: (3, 4, 15),
}  # fmt: skip


@pytest.mark.parametrize("number", LOCKS)
def test_a_core_counts_the_locks_of_its_neighbours_before_its_own(number: int):
    assert core_lock(3, 4, number) == LOCKS[number]


@pytest.mark.parametrize("number", [-1, 64])
def test_a_core_has_no_other_locks(number: int):
    with pytest.raises(ValueError, match=f"lock {number} is outside 0 to 63"):
        core_lock(3, 4, number)


@pytest.mark.parametrize("generation", [AIE2, AIE2P])
def test_a_generation_has_limits_of_every_kind(generation):
    assert {kind: generation.limits(kind).kind for kind in TileKind} == {kind: kind for kind in TileKind}
