"""Ends and rare parts of tasks and raw operations: rectangles of tokens, halves of BDs, overrides of tasks."""

import pytest
from txn_texts import MB, X, fields, lowered, refused, task

from bdforge.devices.bd_registers import MEMTILE_BD
from bdforge.devices.txn_format.operations import Sync, Write


def sync(column: int, row: int, columns: int, rows: int) -> str:
    return (
        f"aiex.npu.sync {{channel = 1 : i32, column = {column} : i32, column_num = {columns} : i32, "
        f"direction = 1 : i32, row = {row} : i32, row_num = {rows} : i32}}"
    )


@pytest.mark.parametrize("place", [(0, 0, 8, 6), (7, 5, 1, 1), (3, 2, 2, 4)])
def test_tokens_are_awaited_up_to_the_edges_of_the_array(place: tuple[int, int, int, int]):
    column, row, columns, rows = place
    assert lowered(sync(*place)) == [Sync(1, row, column, rows, columns, 1)]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 0, 9, 1), "column 8 is outside npu2"), ((7, 0, 2, 1), "column 8 is outside npu2"),
        ((0, 0, 1, 7), "row 6 is outside npu2"), ((0, 5, 1, 2), "row 6 is outside npu2"),
        ((0, 0, 0, 1), "0 columns x 1 rows; both are at least 1"), ((0, 0, 1, 0), "1 columns x 0 rows; both are"),
    ],
)  # fmt: skip
def test_tokens_of_no_rectangle_of_the_array_are_refused(place: tuple[int, int, int, int], message: str):
    refused(message, sync(*place))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("column = 8 : i32, row = 0 : i32", "column 8 is outside npu2"),
        ("column = 0 : i32, row = 6 : i32", "row 6 is outside npu2"),
    ],
)
def test_writes_name_a_tile_of_the_array(where: str, message: str):
    refused(message, f"aiex.npu.write32 {{address = 4 : ui32, value = 1 : ui32, {where}}}")


HALVES = {0: range(24), 1: range(24, 48), 4: range(24), 5: range(24, 48)}


@pytest.mark.parametrize(("channel", "bd"), [(channel, bd) for channel in HALVES for bd in (0, 23, 24, 47)])
def test_channels_of_memtiles_use_the_bds_of_their_half(channel: int, bd: int):
    line = task(MB.format("") + f" {{bd_id = {bd} : i32}}", f"%m, S2MM, {channel}")
    if bd in HALVES[channel]:
        lowered(line)
        return
    half = HALVES[channel]
    refused(rf"S2MM {channel} of memtile \(0, 1\) cannot use BD {bd}: .* {half.start} to {half.stop - 1}", line)


def test_a_bd_iterates_by_its_attribute_or_a_fourth_dimension():
    line = task(X.format("") + " {iteration = #aie.bd_iteration<size = 5, stride = 128, current = 0>}")
    assert fields(lowered(line))["iteration_wrap"] == 4
    assert fields(lowered(line))["iteration_step"] == 127
    refused("iteration starts at current = 1; here it starts at 0", line.replace("current = 0", "current = 1"))
    dims = ", ".join(f"<size = {n}, stride = {s}>" for n, s in ((2, 256), (1, 1), (2, 64), (32, 1)))
    refused("a BD has one iteration: give the attribute or", line.replace("0, 64)", f"0, 64, [{dims}])"))


@pytest.mark.parametrize(("given", "code"), [("", 2), (" {axcache = 0 : i32}", 0), (" {axcache = 7 : i32}", 7)])
def test_the_cache_code_of_a_transfer_is_the_given_one_even_0(given: str, code: int):
    assert fields(lowered(task(X.format("") + given))).get("axi_cache", 0) == code
    options = given.strip(" {}").replace("i32", "i64")
    line = (
        "aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,64][0,0,0,1]) "
        f"{{id = 0 : i64, metadata = @in{', ' if options else ''}{options}}} : memref<4096xi32>"
    )
    assert fields(lowered(line)).get("axi_cache", 0) == code


def test_only_shims_have_bursts():
    assert fields(lowered(task(X.format("") + " {burst_length = 128 : i32}")))["burst"] == 1
    refused(
        "burst_length is for shims, not for a memtile",
        task(MB.format("") + " {burst_length = 64 : i32}", "%m, MM2S, 0"),
    )


def test_an_acquire_that_is_switched_off_is_left_out():
    locks = "aie.use_lock(%ml, AcquireGreaterEqual, 2) {}" + MB.format("") + " aie.use_lock(%ml, Release, 3)"
    on, off = (
        fields(lowered(task(locks.replace("{}", acquire), "%m, MM2S, 0")), MEMTILE_BD)
        for acquire in ("", "{acq_en = false} ")
    )
    assert on == off | {"acquire_enable": 1, "acquire_value": -2, "acquire_id": 67}
    assert {name: value for name, value in off.items() if "acquire" in name or "release" in name} == {
        "release_value": 3, "release_id": 67,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "word"),
    [("", 0x80050000), (" {repeat_count = 0 : i32}", 0x80000000), (" {repeat_count = 9 : i32}", 0x80090000),
     (" {no_token}", 0x00050000)],
)  # fmt: skip
def test_a_start_may_override_repeats_and_token(options: str, word: int):
    configured = task(
        "aie.dma_bd(%x : memref<4096xi32> offset = 0 len = 64)", after="{issue_token = true, repeat_count = 5 : i32}"
    )
    *_, push = lowered(configured, f"aiex.dma_start_task(%t){options}")
    assert push == Write(0x1D214, word), f"{push.value:#010x} instead of {word:#010x}: bit 31 token, 23 to 16 repeats"
