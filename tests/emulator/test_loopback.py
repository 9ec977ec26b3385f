"""Data movement through a memtile: every value against numpy."""

import numpy as np
import pytest

import bdforge
from support.differences import same
from support.small_designs import loopback


def run(text: str, elements: int = 96, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    a = np.random.default_rng(seed).integers(-(2**31), 2**31, elements, np.int32)
    b = np.zeros(elements, np.int32)
    bdforge.emulate(text, [a, b])
    return a, b


@pytest.mark.parametrize("device", ["npu1", "npu2", "npu1_1col", "npu2_3col"])
def test_a_copy_through_a_memtile_is_exact(device):
    a, b = run(loopback(device=device))
    same(a, b)


def test_fill_and_send_of_different_lengths_share_one_stream():
    """Three fills of 32 words feed sends of 16 from the upper half: half of the words return."""
    sequence = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 48][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    a, b = run(loopback(send="16, 16", sequence=sequence))
    same(b[:48].reshape(3, 16), a.reshape(3, 32)[:, 16:])
    same(b[48:], 0)


def test_unread_tokens_are_a_warning():
    text = loopback(
        sequence="""
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>"""
    )
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    assert bdforge.emulate(text, [a, b]).warnings == ("1 token of S2MM 0 of tile (0, 0) nobody awaited",)
