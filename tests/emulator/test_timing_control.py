"""The controller beside the array, task queues, streams of cores, packets, cascades; timelines and tables."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

import bdforge
from bdforge.array.emulator import TimingOptions, TimingReport
from bdforge.array.emulator.timed import TimelineSpan
from bdforge.array.emulator.timed.time_tables import role, tables, write_timeline
from support.array_text import Task, bd, buffer, core, flow, module, program, tile
from support.register_designs import column, push, sync, write32, writebd
from support.timed_designs import FREE, to_cores

MEMORY = (1 << 20) + 0x200  # a word of the memtile's memory that no BD uses


def timed(text: str, *arrays: np.ndarray, **options) -> TimingReport:
    report = bdforge.emulate(text, list(arrays), **options).timing
    assert report is not None
    return report


@pytest.mark.parametrize(("writes", "cycles"), [(2, 400), (10, 1000)])
def test_the_controller_works_while_data_move(writes, cycles):
    """800 words take 400 cycles; each write takes the controller 100 meanwhile."""
    lines = "".join(f"      {write32(MEMORY, i)}\n" for i in range(writes))
    text = to_cores(["work"], 800, 1, 1, extra=lines, wait=True)
    timing = replace(FREE, controller_write_ns=100, controller_bd_ns=0, controller_transfer_ns=100)
    options = TimingOptions(timing, {"work": 0})
    report = timed(text, np.zeros(800, np.int32), kernels={"work": lambda x: None}, timing=options)
    blockwrite = 100 + 8 * (0 - 100) / 8
    before = blockwrite + (100 - 0 - 100) + 100  # the transfer's blockwrite, patch and push
    assert report.cycles == pytest.approx(before + cycles)
    assert report.controller.stalled.get("token of shim (0, 0) MM2S 0", 0) == pytest.approx(max(0, 400 - 100 * writes))


def queue_of(pushes: int) -> str:
    """A memtile channel that sends 64 words to DRAM `pushes` times, pushed one after the other."""
    lines = [
        writebd((0, 1), 0, 64, 0x20000 + 1024),
        f"aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][{pushes}, 1, 1, 64][0, 0, 0, 1]) {{id = 1 : i64, metadata = @out}}"
        " : memref<64xi32>",
        *[push((0, 1), "MM2S : 0", 0, token=True)] * pushes, *[sync((0, 1), 1)] * pushes, sync((0, 0), 0),
    ]  # fmt: skip
    return column(*lines)


def test_a_push_on_a_queue_that_time_finds_full_is_a_warning_and_waits():
    arrays = [np.zeros(64, np.int32)] * 2
    for pushes, warned in ((4, False), (6, True)):
        result = bdforge.emulate(queue_of(pushes), arrays, timing=TimingOptions(FREE))
        assert result.timing is not None
        assert any("memtile (0, 1) MM2S 0 is pushed to" in w for w in result.warnings) is warned
        assert result.timing.cycles == pytest.approx(32 * pushes)
    assert "while 4 tasks are in flight" in result.warnings[-1]


def test_tasks_that_are_queued_start_without_a_gap():
    timing = replace(FREE, task_start_cycles=13)
    report = timed(queue_of(4), *[np.zeros(64, np.int32)] * 2, timing=TimingOptions(timing))
    assert report.cycles == pytest.approx(13 + 4 * 32)


@pytest.mark.parametrize("width", [4, 2])
def test_a_core_takes_a_word_of_32_bits_a_cycle_from_its_stream_port(width):
    words = 24
    gets = [f"%v{i} = aie.get_stream(%port : i32) : i128" for i in range(words // 4)]
    text = module(
        "npu2", tile(0, 2), tile(0, 3), buffer("x", "02", words, range(words)), flow("02 DMA : 0", "03 Core : 0"),
        program("02", Task("MM2S", 0, [bd("x", words)])), core("03", "%port = arith.constant 0 : i32", *gets),
    )  # fmt: skip
    timing = replace(FREE, control_bytes_per_cycle=width, bd_change_cycles=9)  # of BDs, which a core has none of
    report = timed(text, timing=TimingOptions(timing))
    first_piece = 8 * 4 / width  # what the stream holds moves as a whole; the first four words of it are then in place
    assert report.cycles == pytest.approx(first_piece + (words - 4) * 4 / width)
    assert report.cores[0].busy["transfer"] == pytest.approx(words * 4 / width)


def test_a_cascade_passes_values_and_holds_four():
    """The first core puts six values at once; the second takes one each time that it has worked 100 cycles."""
    gets = [f"func.call @work() : () -> ()\n%g{i} = aie.get_cascade() : vector<16xi32>" for i in range(6)]
    text = module(
        "npu2", tile(0, 3), tile(0, 2), "func.func private @work()", "aie.cascade_flow(%t03, %t02)", core("02", *gets),
        core("03", "%v = arith.constant dense<1> : vector<16xi32>", *["aie.put_cascade(%v : vector<16xi32>)"] * 6),
    )  # fmt: skip
    report = timed(text, kernels={"work": lambda: None}, timing=TimingOptions(FREE, {"work": 100}))
    assert report.cycles == pytest.approx(6 * 101)
    sender = next(core for core in report.cores if core.place == (0, 3))
    assert sender.stalled["cascade out"] == pytest.approx(100 - 4 + 100)


def slow_core(spans: list[TimelineSpan] | None = None) -> TimingReport:
    options = TimingOptions(FREE, {"work": 300}, macs=30_000, spans=spans)
    return timed(to_cores(["work"], 200, 3, 2), np.zeros(600, np.int32), kernels={"work": lambda x: None},
                 timing=options)  # fmt: skip


def test_a_timeline_has_emulated_microseconds(tmp_path):
    spans: list[TimelineSpan] = []
    report = slow_core(spans)
    write_timeline(tmp_path / "run.json", spans, report.array_hz)
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    kernels = [e for e in events if e["name"] == "work"]
    assert [names[e["tid"]] for e in kernels] == ["core (0, 2)"] * 3
    assert [(e["ts"], e["dur"]) for e in kernels] == [pytest.approx((0.1 + 0.3 * i, 0.3)) for i in range(3)]
    assert {e["cat"] for e in events if e["name"].startswith("lock ")} == {"wait"}
    assert max(e["ts"] + e["dur"] for e in events if e["ph"] == "X") == pytest.approx(report.cycles / 1000)


def test_no_party_does_two_things_at_once():
    spans: list[TimelineSpan] = []
    slow_core(spans)
    for party in {span.party for span in spans}:
        own = sorted((span.start, span.end) for span in spans if span.party == party)
        assert all(first[1] <= second[0] + 1e-6 for first, second in pairwise(own)), party


def test_tables_say_that_their_figures_are_emulated():
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in tables(slow_core(), "a design"):
        console.print(table)
    text = console.export_text()
    assert text.count("(emulated)") == 4
    assert "1000 cycles at 1 GHz" in text
    assert "90.0 %" in text
    assert "waits for lock core_full" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lock core_0_2_a_full", "lock core_a_full"), ("lock mem_12_c3_free", "lock mem_c3_free"), ("DRAM", "DRAM")],
)
def test_locks_of_the_same_role_share_a_row(name, expected):
    assert role(name) == expected
