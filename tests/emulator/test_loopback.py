"""Data movement through a memtile: every value against numpy."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, LockError
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


def test_a_strided_send_transposes_each_block():
    a, b = run(loopback(send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]"))
    same(b.reshape(3, 8, 4), a.reshape(3, 4, 8).transpose(0, 2, 1))


def test_a_strided_fill_scatters_and_a_linear_send_shows_it():
    a, b = run(loopback(fill="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]"))
    same(b.reshape(3, 4, 8), a.reshape(3, 8, 4).transpose(0, 2, 1))


def test_fill_and_send_of_different_lengths_share_one_stream():
    """Three fills of 32 words feed sends of 16 from the upper half: half of the words return."""
    sequence = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 48][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    a, b = run(loopback(send="16, 16", sequence=sequence))
    same(b[:48].reshape(3, 16), a.reshape(3, 32)[:, 16:])
    same(b[48:], 0)


def test_a_repeated_shim_transfer_steps_by_its_outer_stride():
    sequence = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][3, 2, 4, 4][4, 48, 8, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    a, b = run(loopback(sequence=sequence))
    expected = [a[4 * i + 48 * j + 8 * k + x] for i in range(3) for j in range(2) for k in range(4) for x in range(4)]
    same(b, expected)


def test_a_lock_above_its_register_is_an_error():
    with pytest.raises(LockError, match=r"lock full .* would become 64, outside 0 to 63"):
        run(loopback(words=1, runs=96, fill_acquire="aie.use_lock(%free, Acquire, 1) {acq_en = false}",
                     send_acquire="aie.use_lock(%full, AcquireGreaterEqual, 63)",
                     fill_release="aie.use_lock(%full, Release, 16)"))  # fmt: skip


def test_unread_tokens_are_a_warning():
    text = loopback(
        sequence="""
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>"""
    )
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    assert bdforge.emulate(text, [a, b]).warnings == ("1 token of S2MM 0 of tile (0, 0) nobody awaited",)


def test_a_result_that_may_not_be_written_is_refused():
    a, b = np.zeros(96, np.int32), np.zeros(96, np.int32)
    b.flags.writeable = False
    with pytest.raises(DmaError, match="argument b, which is read-only"):
        bdforge.emulate(loopback(), [a, b])


def test_a_party_that_waits_for_its_own_release_does_not_hide_the_others():
    """The fill waits for a lock that only itself and the send release: the report goes on to the send."""
    with pytest.raises(Deadlock) as fault:
        run(
            loopback(
                fill_release="aie.use_lock(%free, Release, 1)",
                fill_acquire="aie.use_lock(%free, AcquireGreaterEqual, 2)",
            )
        )
    assert "circle" in str(fault.value) or "nothing can move" in str(fault.value)
    assert "memtile (0, 1) MM2S 0 waits for lock full" in str(fault.value)


def test_a_buffer_of_block_floats_is_shown_as_its_bytes():
    text = """aie.device(npu2) {
      %mem = aie.tile(0, 1)
      %blocks = aie.buffer(%mem) {sym_name = "blocks"} : memref<8x!aiex.bfp<"v8bfp16ebs8">>
    }"""
    assert bdforge.emulate(text).buffers["blocks"].shape == (8, 9)
