"""What no instruction stream can say is refused at its line."""

import pytest
from txn_array import FIRST_LINE, design, task

from bdforge.array.mlir import parse
from bdforge.array.txn.lower import LoweringError, lower_module


def memcpy(sizes: str, strides: str, offsets: str = "0, 0, 0, 0", options: str = "id = 0 : i64, metadata = @in") -> str:
    return f"aiex.npu.dma_memcpy_nd(%z[{offsets}][{sizes}][{strides}]) {{{options}}} : memref<4096xi8>"


X = "aie.dma_bd(%x : memref<64xi32>, 0, 64{})"
MB = "aie.dma_bd(%mb : memref<1024xi32>, 0, {})"
REFUSED = {
    "negative offset": ([memcpy("1, 1, 1, 8", "0, 0, 0, 1", "0, 0, 0, -8")], 0, "starts 8 bytes before argument 3"),
    "no allocation": (
        [memcpy("1, 1, 1, 8", "0, 0, 0, 1", options="id = 1 : i64, metadata = @inn")], 0,
        "no aie.shim_dma_allocation is called @inn; device @main has @in, @out, @tagged",
    ),
    "wait": (["aiex.npu.dma_wait {symbol = @gone}"], 0, "no aie.shim_dma_allocation is called @gone"),
    "await": ([*task(X.format("")), "aiex.dma_await_task(%t)"], 5, "no token to wait for; give it issue_token = true"),
    "repeat": (task(X.format(""), options="{repeat_count = 256 : i32}"), 4, "repeat = 256 does not fit .* 0 to 255"),
    "task repeat of dimensions": (
        task(
            X.format(
                ", [<size = 2, stride = 0>, <size = 4, stride = 16>, <size = 2, stride = 8>, <size = 4, stride = 1>]"
            )
        ), 1, "length is 64 words, but the three inner dimensions move 32; .* repeat_count",
    ),
    "five dimensions": (task(X.format(", [" + ", ".join(["<size = 1, stride = 1>"] * 5) + "]")), 1, "5 dimensions"),
    "length": (task("aie.dma_bd(%z : memref<4096xi8>, 0, 0)"), 1, "moves at least one 32-bit word"),
    "taken BD": (
        [
            *task(X.format("") + " {bd_id = 3 : i32}"),
            *(line.replace("%t", "%u") for line in task(X.format("") + " {bd_id = 3 : i32}")),
        ], 6, rf"bd_id 3 of shim \(0, 0\) is in use by the task at design.mlir:{FIRST_LINE}:12",
    ),
    "all BDs": (
        [line.replace("%t", f"%t{i}") for i in range(17) for line in task(X.format(""), start=False)], 16 * 4 + 1,
        r"all 16 BDs of shim \(0, 0\) are in use",
    ),
    "BD id": (task(X.format("") + " {bd_id = 16 : i32}"), 1, "bd_id = 16 is outside 0 to 15"),
    "memtile BD 16": (task(MB.format(4) + " {bd_id = 16 : i32}", "%m0", "MM2S, 0"), 4, "keeps 4 bits of the BD number"),
    "memtile push 16": (
        ["aiex.npu.push_queue(0, 1, MM2S : 0) {bd_id = 16 : i32, issue_token = false, repeat_count = 0 : i32}"], 0,
        r"BD 16 of memtile \(0, 1\) cannot be started",
    ),
    "channel": (task(X.format(""), channel="MM2S, 2"), 0, r"MM2S of shim \(0, 0\): channel = 2 is outside 0 to 1"),
    "free twice": ([*task(X.format("")), "aiex.dma_free_task(%t)", "aiex.dma_free_task(%t)"], 6, "are free already"),
    "rewritten": (
        [
            *task(X.format("")), "aiex.dma_free_task(%t)",
            *(line.replace("%t", "%u") for line in task(X.format(""), start=False)), "aiex.dma_start_task(%t)",
        ], 10, rf"BD 0 of shim \(0, 0\) was freed and then rewritten at design.mlir:{FIRST_LINE + 6}:12",
    ),
    "two BDs": (
        ["%t = aiex.dma_configure_task(%s0, MM2S, 0) {", X.format(""), X.format(""), "aie.end", "}"], 3,
        "holds 2 aie.dma_bd",
    ),
    "no BD": (["%t = aiex.dma_configure_task(%s0, MM2S, 0) {", "aie.end", "}"], 1, "holds 0 aie.dma_bd"),
    "one lock": (
        task("aie.use_lock(%cl, Release, 1) aie.dma_bd(%cb : memref<256xi16>, 0, 4)", "%c0"), 1, "uses no lock",
    ),
    "lock elsewhere": (
        task(
            "aie.use_lock(%ml, Acquire, 1) aie.dma_bd(%cb : memref<256xi16>, 0, 4) aie.use_lock(%cl, Release, 1)", "%c0"
        ), 1, r"the lock is in tile \(0, 1\)",
    ),
    "greater equal 0": (
        task(
            "aie.use_lock(%cl, AcquireGreaterEqual, 0) aie.dma_bd(%cb : memref<256xi16>, 0, 4) "
            "aie.use_lock(%ck, Release, 1)", "%c0",
        ), 1, "AcquireGreaterEqual of 0",
    ),
    "host memory in a core": (task(X.format(""), "%c0"), 1, r"reached from shims only, not from core \(0, 2\)"),
    "far buffer": (
        task("aie.dma_bd(%far : memref<1024xi32>, 0, 4)", "%m0"), 1, r"buffer @far is in tile \(1, 1\)",
    ),
    "odd address": (task("aie.dma_bd(%odd : memref<64xi8>, 0, 4)", "%m0"), 1, "starts at byte 0x10002 of its tile"),
    "rtp at an odd address": (["aiex.npu.rtp_write(@odd, 0, 1)"], 0, "buffer @odd starts at 0x10002"),
    "padding on S2MM": (
        task(
            MB.format("6, [<size = 4, stride = 1>], [<const_pad_before = 1, const_pad_after = 1>]"), "%m0", "S2MM, 0"
        ), 1, "only a memtile's MM2S channels pad",
    ),
    "padding of other dimensions": (
        task(
            MB.format(
                "12, [<size = 4, stride = 1>], [<const_pad_before = 0, const_pad_after = 0>, "
                "<const_pad_before = 1, const_pad_after = 1>]"
            ), "%m0", "MM2S, 0",
        ), 1, "2 paddings for 1 dimensions; at most one each, of at most 3",
    ),
    "padding of too many dimensions": (
        task(
            MB.format(
                f"16, [{', '.join(f'<size = {n}, stride = {s}>' for n, s in ((1, 16), (2, 8), (2, 4), (4, 1)))}], "
                f"[{', '.join(['<const_pad_before = 1, const_pad_after = 0>'] * 4)}]"
            ), "%m0", "MM2S, 0",
        ), 1, "4 paddings for 4 dimensions; at most one each, of at most 3",
    ),
    "padding after": (
        task(
            MB.format(
                "12, [<size = 2, stride = 8>, <size = 2, stride = 4>, <size = 2, stride = 1>], "
                "[<const_pad_before = 0, const_pad_after = 1>, <const_pad_before = 0, const_pad_after = 0>, "
                "<const_pad_before = 0, const_pad_after = 0>]"
            ), "%m0", "MM2S, 0",
        ), 1, "mlir-aie never writes the size",
    ),
    "gaps": (
        [
            "%v = memref.subview %y[0, 4] [8, 4] [1, 1] : memref<8x16xi32> to "
            "memref<8x4xi32, strided<[16, 1], offset: 4>>",
            *task("aie.dma_bd(%v : memref<8x4xi32, strided<[16, 1], offset: 4>>, 0, 32)"),
        ], 2, "elements do not follow one another",
    ),
    "strided view": (
        ["%v = memref.subview %x[0] [8] [2] : memref<64xi32> to memref<8xi32, strided<[2]>>"], 0,
        "strides other than 1",
    ),
    "rtp outside": (["aiex.npu.rtp_write(@cb, 128, 1)"], 0, "word 128 is outside buffer @cb, which has words 0 to 127"),
    "rtp nowhere": (["aiex.npu.rtp_write(@bc, 0, 1)"], 0, "no aie.buffer is called @bc"),
    "control packet": (
        ["aiex.control_packet {address = 4 : ui32, opcode = 0 : i32, stream_id = 0 : i32, data = array<i32: 1>}"], 0,
        "aiex.control_packet: has no form in an instruction stream",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "at", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_lowered_is_refused_at_its_line(lines, at, message):
    module = parse(design(*lines), "design.mlir")
    with pytest.raises(LoweringError, match=message) as caught:
        lower_module(module)
    assert (caught.value.file, caught.value.line) == ("design.mlir", FIRST_LINE + at)
