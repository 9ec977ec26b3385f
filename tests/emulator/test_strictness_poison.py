"""Poison mode: memory that nobody wrote cannot be read, and it costs nothing where it is off."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import PoisonError
from bdforge.array.emulator.array import Array
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices import mlir_device_named
from support.differences import same
from support.register_designs import column, push, write32, writebd
from support.small_designs import core, loopback

MEM, CORE = (0, 1), (0, 2)
OWN = 0x20000 + 4096 // 4
A = np.arange(100, 196, dtype=np.int32)


def run(text: str, poison: bool = True, **options) -> tuple[np.ndarray, bdforge.Result]:
    b = np.zeros(96, np.int32)
    return b, bdforge.emulate(text, [A.copy(), b], poison=poison, **options)


def tiles(*lines: str, poison: bool = True, extra: str = "", **options) -> bdforge.Result:
    arrays = [A[:64].copy(), np.zeros(64, np.int32)]
    return bdforge.emulate(column(*lines, extra=extra), arrays, poison=poison, **options)


@pytest.mark.parametrize("schedule", ["in-order", "random"])
def test_memory_that_was_written_is_read_as_ever(schedule):
    b, result = run(loopback(send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]"), schedule=schedule)
    same(b.reshape(3, 8, 4), A.reshape(3, 4, 8).transpose(0, 2, 1))
    assert result.warnings == ()


def test_a_send_of_a_buffer_that_nobody_filled_is_an_error():
    text = loopback(send_acquire="aie.use_lock(%free, AcquireGreaterEqual, 1)", fill_acquire="")
    named = r"memtile \(0, 1\) MM2S 0, BD 1 .* reads \d+ words that nobody wrote, the first at word 0 of the tile"
    with pytest.raises(PoisonError, match=named):
        run(text, permissive=["bd-locks"])


def test_the_first_word_that_is_missing_is_named():
    """Only 20 of 32 words are filled; the send goes backwards through them in blocks of 8."""
    text = loopback(fill="0, 20", send="0, 32, [<size = 4, stride = 8>, <size = 8, stride = 1>]")
    with pytest.raises(PoisonError, match=r"nobody wrote, the first at word 20 of"):
        run(text)


def test_padded_words_need_no_memory():
    lines = [
        *(write32(i, 9, where=", buffer = @mb") for i in range(2)),
        writebd(MEM, 24, 6, OWN, d0_size=2, d0_zero_before=2, d0_zero_after=2),
        writebd(CORE, 0, 6, 2048), push(CORE, "S2MM : 0", 0), write32((1 << 20) + 0xA063C, 24),
    ]  # fmt: skip
    assert tiles(*lines).buffers["cb"][:6].tolist() == [0, 0, 9, 9, 0, 0]


def test_the_controllers_writes_count():
    lines = [writebd(MEM, 24, 2, OWN), writebd(CORE, 0, 2, 2048), push(CORE, "S2MM : 0", 0)]
    start = write32((1 << 20) + 0xA063C, 24)
    one, two = (write32(i, 5, where=", buffer = @mb") for i in range(2))
    assert tiles(one, two, *lines, start).buffers["cb"][:2].tolist() == [5, 5]
    with pytest.raises(PoisonError, match="reads 1 words that nobody wrote"):
        tiles(two, *lines, start)


def program(body: str, buffer: str) -> str:
    return f"""
    %n = aie.buffer(%c) {{sym_name = "n", address = 3072 : i32}} : memref<2x4xi16>{buffer}
    %core = aie.core(%c) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i16
{body}
      aie.end
    }}"""


LOAD = "      %v = memref.load %n[%c1, %c0] : memref<2x4xi16>"


def test_a_load_of_an_element_that_nobody_wrote_is_an_error():
    with pytest.raises(PoisonError, match=r"element \[1, 0\] of buffer @n is read, but nobody wrote it \(<string>:"):
        tiles(extra=program(LOAD, ""))
    assert tiles(extra=program(LOAD, ""), poison=False).warnings == ()


def test_a_stored_element_can_be_loaded_but_not_its_neighbour():
    store = "      memref.store %one, %n[%c1, %c0] : memref<2x4xi16>\n"
    tiles(extra=program(store + LOAD, ""))
    with pytest.raises(PoisonError, match=r"element \[0, 1\]"):
        tiles(extra=program(store + LOAD.replace("%c1, %c0", "%c0, %c1"), ""))


def test_a_view_knows_which_bytes_were_written():
    view = "      %c4 = arith.constant 4 : index\n      %w = memref.view %n[%c4][] : memref<16xi8> to memref<3xi16>\n"
    stored = view + "      memref.store %one, %w[%c1] : memref<3xi16>\n      %r = memref.load %w[{}] : memref<3xi16>"
    tiles(extra=program(stored.format("%c1"), "").replace("2x4xi16", "16xi8"))
    with pytest.raises(PoisonError, match=r"element \[0\] of buffer %w is read, but nobody wrote it"):
        tiles(extra=program(stored.format("%c0"), "").replace("2x4xi16", "16xi8"))


def test_half_a_word_written_by_a_core_is_not_a_word():
    """DMAs read whole words: both 16-bit halves must have been written."""
    store = "      memref.store %one, %n[%c0, %c0] : memref<2x4xi16>\n"
    other = store.replace("%n[%c0, %c0]", "%n[%c0, %c1]")
    start = write32((1 << 20) + 0xA060C, 24)
    lines = [writebd(CORE, 0, 1, 3072), writebd(MEM, 24, 1, OWN), start, push(CORE, "MM2S : 0", 0)]
    assert tiles(*lines, extra=program(store + other, "")).buffers["mb"][0] == 1 << 16 | 1
    with pytest.raises(PoisonError, match=r"core \(0, 2\) MM2S 0, BD 0 .* reads 1 words that nobody wrote"):
        tiles(*lines, extra=program(store, ""))


def test_initial_values_count():
    tiles(extra=program(LOAD, " = dense<7>"))


@pytest.mark.parametrize("written", ["", "%c0, %c0", "%c1, %c1"])
def test_a_copy_of_memory_of_which_none_or_a_part_is_written_is_an_error(written: str):
    store = f"      memref.store %one, %n[{written}] : memref<2x4xi16>\n" if written else ""
    copy = "      memref.copy %n, %k : memref<2x4xi16> to memref<2x4xi16>"
    buffer = '%k = aie.buffer(%c) {sym_name = "k", address = 4096 : i32} : memref<2x4xi16>'
    with pytest.raises(PoisonError, match="buffer @n is copied, but nobody wrote all of it"):
        tiles(extra=program(store + copy, "").replace("%core =", f"{buffer}\n    %core ="))


@pytest.mark.parametrize(("column", "row"), [(0, 1), (0, 2)])
def test_memory_is_as_aligned_as_tile_addresses_are(column: int, row: int):
    array = Array(mlir_device_named("npu2"), HostBuffers(), Scheduler(), Strictness(), True)
    tile = array.tile(column, row)
    size = tile.memory.nbytes
    tile.fill(0, bytes(range(8)))
    for grown in (size, size - 4, size + 6):
        tile.grow(grown)
        assert tile.memory.ctypes.data % 4096 == 0
        assert tile.memory.nbytes == tile.bytes.nbytes == max(size, -(-grown // 4) * 4)
        assert tile.written is not None
        assert tile.written.tolist() == [True] * 8 + [False] * (tile.bytes.nbytes - 8)
        same(tile.bytes[:8].tolist(), list(range(8)))
    same(tile.bytes[8:], 0xA5)


PROBE = "      func.call @probe(%data, %v) : (memref<8xi32>, i32) -> ()"


def kernel_design(body: str) -> str:
    text = core(f"      %v = arith.constant 2 : i32\n{body}\n      aie.end")
    return text.replace(" = dense<[0, 1, 2, 3, 4, 5, 6, 7]>", "")


def test_what_a_kernel_reads_shows_as_a_pattern_in_its_results():
    """Whether a kernel reads or writes cannot be told; an accumulation on fresh memory gives no believable number."""

    def accumulate(data, value):
        assert type(data) is np.ndarray
        data += value

    text = kernel_design(PROBE)
    expected = np.uint32(0xA5A5A5A5).view(np.int32) + np.int32(2)
    same(bdforge.emulate(text, kernels={"probe": accumulate}, poison=True).buffers["data"], expected)
    same(bdforge.emulate(text, kernels={"probe": accumulate}).buffers["data"], 2)


def test_what_a_kernel_was_given_counts_as_written():
    load, store = "%w = memref.load %data[%c7]", "memref.store %w, %data[%c0]"
    body = f"{PROBE}\n      {load} : memref<8xi32>\n      {store} : memref<8xi32>"

    def fill(data, value):
        data[:] = value

    result = bdforge.emulate(kernel_design(body), kernels={"probe": fill}, poison=True)
    assert result.buffers["data"].tolist() == [2] * 8
    assert type(result.buffers["data"]) is np.ndarray
