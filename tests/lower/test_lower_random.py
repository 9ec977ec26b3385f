"""Random DMA programs in registers, by two descriptions of them."""

import pytest

from bdforge.array.lower import configuration
from support.decoded import device_of
from support.random_lowered import Draw

FEW, ALL = range(24), range(24, 600)


def check(seed: int) -> None:
    drawn = Draw(seed)
    assert list(configuration(device_of(drawn.text), lambda *_: []).operations) == drawn.operations, seed


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", FEW)
def test_random_dma_programs_have_the_registers_that_their_text_says(seed):
    check(seed)


@pytest.mark.slow
def test_many_random_dma_programs_have_the_registers_that_their_text_says():
    for seed in ALL:
        check(seed)


def test_every_kind_of_tile_and_of_bd_is_drawn():
    drawn = [Draw(seed) for seed in FEW]
    assert {draw.kind for draw in drawn} == {"core", "mem", "shim"}
    texts = "".join(draw.text for draw in drawn)
    for word in ("const_pad_before", "dma_bd_packet", "stride", "Acquire,", "%b0_", "%b2_", "repeat_count = 255"):
        assert word in texts
