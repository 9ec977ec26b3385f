"""Data movement through a memtile: every value against numpy."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, Deadlock, DesignError, DmaError, LockError
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


def test_a_padded_send_counts_padding_in_its_length():
    """4 rows of 6 words, widened to 8: one zero in front and one behind, and two zero rows at the end."""
    padded = (
        "0, 48, [<size = 4, stride = 8>, <size = 6, stride = 1>], "
        "[<const_pad_before = 0, const_pad_after = 2>, <const_pad_before = 1, const_pad_after = 1>]"
    )
    sequence = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 48][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    a, b = run(loopback(send=padded, sequence=sequence))
    expected = np.zeros((6, 8), np.int32)
    expected[:4, 1:7] = a[:32].reshape(4, 8)[:, :6]
    same(b[:48].reshape(6, 8), expected)


def test_a_repeated_shim_transfer_steps_by_its_outer_stride():
    sequence = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][3, 2, 4, 4][4, 48, 8, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    a, b = run(loopback(sequence=sequence))
    expected = [a[4 * i + 48 * j + 8 * k + x] for i in range(3) for j in range(2) for k in range(4) for x in range(4)]
    same(b, expected)


def test_arrays_of_odd_bytes_are_returned_whole():
    text = loopback(words=8, runs=1).replace("xi32>", "xi8>").replace("[1, 1, 1, 8]", "[1, 1, 1, 8]")
    a = np.arange(8, dtype=np.int8)
    b = np.zeros(9, np.int8)[:8]
    bdforge.emulate(text, [a, b])
    same(a, b)


def test_a_missing_release_is_a_named_deadlock():
    with pytest.raises(Deadlock) as fault:
        run(loopback(send_release="aie.use_lock(%free, Release, 0)"))
    text = str(fault.value)
    assert "runtime sequence awaits a token of shim (0, 0) S2MM 0" in text
    assert "memtile (0, 1) S2MM 0 waits for lock free" in text
    assert ":18:" in text or ":19:" in text or ":20:" in text or ":21:" in text  # the BD's line


def test_a_lock_above_its_register_is_an_error():
    with pytest.raises(LockError, match=r"lock full .* would become 64, outside 0 to 63"):
        run(loopback(words=1, runs=96, fill_acquire="aie.use_lock(%free, Acquire, 1) {acq_en = false}",
                     send_acquire="aie.use_lock(%full, AcquireGreaterEqual, 63)",
                     fill_release="aie.use_lock(%full, Release, 16)"))  # fmt: skip


def test_a_fifth_task_in_flight_is_an_overflow():
    pushes = "\n".join(
        f"""aiex.npu.dma_memcpy_nd(%b[0, 0, 0, {8 * i}][1, 1, 1, 8][0, 0, 0, 1])
          {{id = {i} : i64, metadata = @out}} : memref<96xi32>"""
        for i in range(5)
    )
    with pytest.raises(DmaError, match=r"shim \(0, 0\) S2MM 0: BD 4 is pushed while 4 tasks are in flight"):
        run(loopback(sequence=pushes))


def test_rewriting_a_bd_in_flight_is_an_error():
    twice = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 8][1, 1, 1, 8][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>"""
    with pytest.raises(DmaError, match=r"BD 1 is rewritten while a task that uses it is queued or running"):
        run(loopback(sequence=twice))


def test_a_transfer_beyond_its_argument_is_named():
    beyond = """
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 90][1, 1, 1, 32][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @out}"""
    with pytest.raises(DmaError, match=r"touches bytes 360 to 487 of argument b, which has 384"):
        run(loopback(sequence=beyond))


def test_unread_tokens_are_a_warning():
    text = loopback(
        sequence="""
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<96xi32>"""
    )
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    assert bdforge.emulate(text, [a, b]).warnings == ("1 token of S2MM 0 of tile (0, 0) nobody awaited",)


def test_two_flows_into_one_port_are_refused():
    text = loopback().replace(
        "aie.shim_dma_allocation @in", "aie.flow(%shim, DMA : 1, %mem, DMA : 0)\n    aie.shim_dma_allocation @in"
    )
    with pytest.raises(DesignError, match=r"2 streams end in \(0, 1\) DMA : 0"):
        run(text)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros(96, np.int32)], "1 arrays were given, but @sequence takes 2"),
        ([np.zeros(96, np.int32), np.zeros(95, np.int32)], r"argument b must have 96 elements .* got 95"),
        ([np.zeros(96, np.int32), np.zeros(96, np.int64)], "argument b must hold int32 elements .* got int64"),
        ([np.zeros(96, np.int32), np.zeros(96, np.float32)], "argument b must hold int32 elements .* got float32"),
        ([np.zeros(192, np.int32)[::2], np.zeros(96, np.int32)], "argument a is not C-contiguous"),
        ([list(range(96)), np.zeros(96, np.int32)], "argument a must be a numpy array, got list"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, message):
    with pytest.raises(ArgumentError, match=message):
        bdforge.emulate(loopback(), arrays)


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
