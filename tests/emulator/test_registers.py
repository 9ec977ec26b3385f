"""Register writes of the runtime sequence act on the same state as structured operations."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, RegisterAccessError, Result
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import decode, encode
from bdforge.devices.txn_format.operations import MaskPoll
from support.differences import same
from support.register_designs import (
    blockwrite,
    column,
    copy_through_memtile,
    global_words,
    push,
    sync,
    write32,
    writebd,
)
from support.txn_vectors import encode_mlir

DATA = np.random.default_rng(5).integers(-(2**31), 2**31, 64, np.int32)
SHIM, MEM, CORE = (0, 0), (0, 1), (0, 2)
OWN = 0x20000 + 4096 // 4  # the memtile buffer in the words of its DMA
IN_BUFFER = ", buffer = @cb"
DEVICES = pytest.mark.parametrize("device", ["npu1", "npu2"])


def run(text: str) -> tuple[np.ndarray, Result]:
    a, b = DATA.copy(), np.zeros(64, np.int32)
    return b, bdforge.emulate(text, [a, b])


def polled(lines: list[str], *polls: MaskPoll) -> np.ndarray:
    """Instruction words of these lines, then polls, which read registers back: an unmet one is a deadlock."""
    stream = decode(encode_mlir(column(*lines)))
    return encode([*stream.operations, *polls], stream.header)


def run_words(words: np.ndarray) -> Result:
    return bdforge.emulate(column(), [DATA.copy(), np.zeros(64, np.int32)], instructions=words)


def core_words(*lines: str, **options) -> list[int]:
    """Words of the core's buffer after these lines, as unsigned numbers."""
    return run(column(*lines, **options))[1].buffers["cb"].view(np.uint32).tolist()


@pytest.mark.parametrize(
    ("place", "where"),
    [(address(0, 2, 2048 + 4 * 3), ""), (2048 + 4 * 3, ", column = 0 : i32, row = 2 : i32"), (3, IN_BUFFER)],
    ids=["full address", "offset in a tile", "word of a buffer"],
)
def test_write32_stores_a_word_however_it_is_addressed(place, where):
    assert core_words(write32(place, 0xDEADBEEF, where=where)) == [0, 0, 0, 0xDEADBEEF] + [0] * 12


def test_the_low_bits_of_an_address_count_inside_a_tile():
    assert core_words(write32(address(5, 1, 2048), 7, where=", column = 0 : i32, row = 2 : i32"))[0] == 7


@pytest.mark.parametrize(
    ("value", "found"), [(0xFFFFFFFF, 0x12FF5F78), (0, 0x12005078), (0x0A0B0C0D, 0x120B5C78)], ids=hex
)
def test_maskwrite32_changes_the_masked_bits_only(value: int, found: int):
    lines = [write32(0, 0x12345678, where=IN_BUFFER), write32(0, value, 0x00FF0F00, IN_BUFFER)]
    assert hex(core_words(*lines)[0]) == hex(found)


def test_blockwrite_stores_consecutive_words():
    words = [1, 2**32 - 1, 3, 2**31]
    lines = blockwrite("words", 4, 5, IN_BUFFER)
    assert core_words(*lines, extra=global_words("words", words)) == [0] * 5 + words + [0] * 7


def test_rtp_write_stores_a_word_of_a_buffer():
    assert core_words("aiex.npu.rtp_write(@cb, 2, -5)")[2] == 2**32 - 5


@DEVICES
def test_a_copy_by_raw_registers_is_exact(device):
    b, result = run(column(*copy_through_memtile(), device=device))
    same(b, DATA)
    same(result.buffers["mb"], DATA)
    assert result.warnings == ()


@DEVICES
def test_raw_bds_of_a_core_use_byte_offsets_and_its_locks(device):
    """Lock 5 is 1, so the core takes one task; the second waits for a release."""
    lines = [
        *(write32(i, 100 + i, where=", buffer = @mb") for i in range(16)),
        writebd(CORE, 2, 8, 2048, lock_acq_enable=1, lock_acq_val=-1, lock_acq_id=5),
        writebd(CORE, 3, 8, 2048 + 32, lock_acq_enable=1, lock_acq_val=-1, lock_acq_id=5),
        push(CORE, "S2MM : 0", 2), push(CORE, "S2MM : 0", 3), writebd(MEM, 24, 16, OWN),
        write32(0xA063C, 24, where=", column = 0 : i32, row = 1 : i32"),
    ]  # fmt: skip
    assert core_words(*lines, device=device) == [*range(100, 108)] + [0] * 8
    lock = write32(address(0, 2, 0x1F050), 1)
    assert core_words(*lines, lock, device=device) == [*range(100, 116)]
    assert core_words(*lines, "aiex.set_lock(%cl, 1)", device=device) == [*range(100, 116)]


def test_tokens_of_any_tile_can_be_awaited():
    lines = [
        writebd(MEM, 24, 16, OWN), writebd(CORE, 0, 16, 2048), push(CORE, "S2MM : 0", 0, token=True),
        write32(address(0, 1, 0xA0638), 26 << 8, 0x1F00),
        write32(address(0, 1, 0xA063C), 1 << 31 | 24), sync(CORE, 0), sync(MEM, 1, channel=1),
    ]  # fmt: skip
    assert run(column(*lines))[1].warnings == ()
    with pytest.raises(Deadlock, match=r"awaits a token of memtile \(0, 1\) MM2S 1"):
        run(column(*lines, sync(MEM, 1, channel=1)))


def test_a_reset_clears_a_channels_queue():
    """Two tasks wait for data; after the reset only the task pushed last runs."""
    control = address(0, 2, 0x1DE00)
    lines = [
        writebd(CORE, 0, 4, 2048), writebd(CORE, 1, 4, 2048 + 16), push(CORE, "S2MM : 0", 0), push(CORE, "S2MM : 0", 1),
        write32(control, 2), write32(control, 0), writebd(CORE, 0, 4, 2048 + 32), push(CORE, "S2MM : 0", 0),
        *(write32(i, 7, where=", buffer = @mb") for i in range(4)), writebd(MEM, 24, 4, OWN),
        write32(address(0, 1, 0xA063C), 24),
    ]  # fmt: skip
    assert core_words(*lines) == [0] * 8 + [7] * 4 + [0] * 4


def test_a_push_to_a_channel_in_reset_is_an_error():
    lines = [writebd(CORE, 0, 4, 2048), write32(address(0, 2, 0x1DE00), 2), push(CORE, "S2MM : 0", 0)]
    with pytest.raises(DmaError, match=r"core \(0, 2\) S2MM 0: BD 0 is pushed while the channel is held in reset"):
        run(column(*lines))


def test_a_lock_waiter_that_is_reset_takes_nothing_later():
    lines = [
        write32(address(0, 2, 0x1DE00), 1),
        writebd(CORE, 0, 4, 2048, lock_acq_enable=1, lock_acq_val=-2, lock_acq_id=5), push(CORE, "S2MM : 0", 0),
        write32(address(0, 2, 0x1DE00), 2), "aiex.set_lock(%cl, 2)",
    ]  # fmt: skip
    run_words(polled(lines, MaskPoll(address(0, 2, 0x1F050), 2, 0x3F)))


def test_pausing_a_shim_channel_has_no_effect_and_warns():
    b, result = run(column(write32(0x1D210, 2), *copy_through_memtile(), write32(0x1D210, 0)))
    same(b, DATA)
    assert [w.partition(" (")[0] for w in result.warnings] == ["shim"]
    assert "shim (0, 0) MM2S 0: pausing a channel has no effect here" in result.warnings[0]


IGNORED = {
    0: (0x31000, 0x34000, 0x3404C, 0x3FF00, 0x35000),
    1: (0x91000, 0x94000, 0x94068, 0x96048, 0xB0F00, 0xA06A0),
    2: (0x11000, 0x14000, 0x340D0, 0x31500, 0x34008, 0x3FF00, 0x32008),
}  # fmt: skip


def test_trace_event_and_timer_registers_are_ignored():
    places = [address(0, row, offset) for row, offsets in IGNORED.items() for offset in offsets]
    lines = [line for place in places for line in (write32(place, 0x12345), write32(place, 1, 0xF0))]
    b, result = run(column(*lines, *copy_through_memtile()))
    same(b, DATA)
    assert result.warnings == ()


def test_control_of_a_core_with_a_body_is_ignored_with_a_warning():
    result = run(column(write32(address(0, 2, 0x32000), 2), extra="    %core = aie.core(%c) { aie.end }"))[1]
    assert len(result.warnings) == 1
    assert "its core runs whatever is written to its control register" in result.warnings[0]
    assert "<string>:18:" in result.warnings[0]


def test_enabling_a_core_is_no_news():
    assert run(column(write32(address(0, 2, 0x32000), 1)))[1].warnings == ()


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (address(9, 1, 0), "column 9 is outside npu2, which has columns 0 to 7"),
        (address(0, 6, 0), "row 6 is outside npu2, which has rows 0 to 5"),
        (0x100, r"shim \(0, 0\): nothing is at offset 0x100; its data memory has 0 bytes"),
        (address(0, 1, 0x80000), r"memtile \(0, 1\): nothing is at offset 0x80000; its data memory has 524288 bytes"),
        (address(0, 2, 0x10000), r"core \(0, 2\): nothing is at offset 0x10000; its data memory has 65536 bytes"),
        (address(0, 2, 0x24000), r"core \(0, 2\): nothing is at offset 0x24000"),
        (address(0, 2, 0x802), "offset 0x802 is not a multiple of 4"),
    ],
)
@pytest.mark.parametrize("mask", [None, 0xFF])
def test_writes_to_nowhere_are_named_with_their_line(place, named, mask):
    with pytest.raises(RegisterAccessError, match=named) as fault:
        run(column(write32(place, 1, mask)))
    assert "(<string>:18:" in str(fault.value)


def test_a_chain_beyond_the_last_bd_is_an_error():
    lines = [writebd(MEM, 0, 4, OWN, use_next_bd=1, next_bd=50), push(MEM, "S2MM : 0", 0)]
    with pytest.raises(DmaError, match=r"memtile \(0, 1\): a chain leads to BD 50, but the tile has 48"):
        run(column(*lines))


def task(tile: str, channel: str, buffer: str, count: int, kind: str) -> list[str]:
    name = f"%{tile[1:]}{channel[0]}{channel[-1]}"
    return [
        f"{name} = aiex.dma_configure_task({tile}, {channel}) {{",
        f"  aie.dma_bd({buffer} : {kind}, 0, {count})", "  aie.end", "} {issue_token = true}",
        f"aiex.dma_start_task({name})",
    ]  # fmt: skip


MEMTILE_TASKS = [
    *task("%m", "S2MM, 0", "%mb", 64, "memref<64xi32>"), *task("%s", "MM2S, 0", "%a", 64, "memref<64xi32>"),
    "aiex.dma_await_task(%mS0)",
]  # fmt: skip


def test_runtime_tasks_of_memtiles_reach_their_own_memory_on_npu2():
    result = run(column(*MEMTILE_TASKS))[1]
    same(result.buffers["mb"], DATA)


def test_runtime_tasks_of_memtiles_are_emulated_as_written_on_npu1():
    """mlir-aie adds no window there, so the task reaches the western neighbour; a warning says so."""
    west = '%w = aie.tile(0, 1)\n    %wb = aie.buffer(%w) {sym_name = "wb", address = 4096 : i32} : memref<64xi32>'
    result = run(column(*MEMTILE_TASKS, device="npu1", at=1, extra=f"    {west}"))[1]
    same(result.buffers["wb"], DATA)
    same(result.buffers["mb"], 0)
    flags = [w for w in result.warnings if "sources differ" in w]
    assert len(flags) == 1
    assert "memtile (1, 1): BD 0 points into the window of the western neighbour's memory" in flags[0]


def test_a_runtime_task_of_npu1s_first_memtile_reaches_one_that_no_design_names():
    """Upstream runs such designs on Phoenix, where a column without a shim lies west of column 0: data goes through."""
    result = run(column(*MEMTILE_TASKS, device="npu1"))[1]
    same(result.buffers["mb"], np.zeros(64))
    assert [w for w in result.warnings if "reaches memory in the window west of column 0" in w and "[npu1-window]" in w]


@DEVICES
def test_runtime_tasks_of_cores_reach_their_memory(device):
    lines = [
        *task("%c", "S2MM, 0", "%cb", 16, "memref<16xi32>"),
        *(write32(i, i, where=", buffer = @mb") for i in range(16)),
        writebd(MEM, 24, 16, OWN), write32(address(0, 1, 0xA063C), 24), "aiex.dma_await_task(%cS0)",
    ]  # fmt: skip
    assert core_words(*lines, device=device) == [*range(16)]
