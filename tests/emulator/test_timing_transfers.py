"""Times worked out by hand: words per cycle, latencies, buffering, broadcasts, DRAM that channels share."""

from dataclasses import replace

import numpy as np
import pytest

from bdforge.emulator import TimingOptions, TimingReport, emulate
from bdforge.emulator.timed.clock import Clock
from bdforge.emulator.timed.dram import Dram
from bdforge.emulator.trace import Access
from support.small_designs import loopback
from support.timed_designs import FREE, columns, to_cores

WORDS = 200
TRANSFER = WORDS / 2  # cycles


def timed(text: str, *sizes: int, timing=FREE, **kernels) -> TimingReport:
    callables = dict.fromkeys(kernels, lambda *arguments: None)
    arrays = [np.arange(size, dtype=np.int32) for size in sizes]
    report = emulate(text, arrays, callables, timing=TimingOptions(timing, kernels)).timing
    assert report is not None
    return report


def through_memtile(timing, words: int = WORDS, runs: int = 1) -> TimingReport:
    return timed(loopback(words, runs), words * runs, words * runs, timing=timing)


@pytest.mark.parametrize("bytes_per_cycle", [4, 8])
def test_a_transfer_takes_its_words_over_the_width_of_the_stream(bytes_per_cycle):
    report = through_memtile(replace(FREE, stream_bytes_per_cycle=bytes_per_cycle))
    assert report.cycles == pytest.approx(2 * 4 * WORDS / bytes_per_cycle)  # in, then out again


def test_a_single_buffer_fills_and_empties_in_turn():
    assert through_memtile(FREE, runs=5).cycles == pytest.approx(5 * 2 * TRANSFER)


def test_latencies_add_up():
    timing = replace(
        FREE, switch_cycles=4, switch_local_cycles=3, memtile_turn_cycles=13, shim_mm2s_first_ns=1000, dispatch_ns=500,
        shim_s2mm_first_ns=900, controller_sync_ns=7000,
    )  # fmt: skip
    report = through_memtile(timing)
    way = 4 + 3  # one switch to another tile, then the local end
    assert report.cycles == pytest.approx(1000 + TRANSFER + way + 13 + TRANSFER + way)
    assert report.array_seconds == pytest.approx((report.cycles + 7000) * 1e-9)
    assert report.seconds == pytest.approx(report.array_seconds + 500e-9)


def test_a_task_waits_for_its_push_and_its_start():
    timing = replace(
        FREE, controller_write_ns=40, controller_bd_ns=40, controller_transfer_ns=80, shim_s2mm_first_ns=900
    )
    report = through_memtile(timing)
    out, into = (
        120,
        200,
    )  # 80 for each transfer, 40 for the id of out's token, before it is pushed; out comes first
    begin = max(out + 900, into + TRANSFER)
    assert report.cycles == pytest.approx(begin + TRANSFER)


@pytest.mark.parametrize(("kernel", "bound"), [(40, TRANSFER), (300, 300)])
def test_two_buffers_overlap_transfers_with_kernels(kernel, bound):
    report = timed(to_cores(["work"], WORDS, 6, buffers=2), 6 * WORDS, work=kernel)
    assert report.cycles == pytest.approx(TRANSFER + 5 * bound + kernel)


@pytest.mark.parametrize("kernel", [40, 300])
def test_one_buffer_alternates_transfers_and_kernels(kernel):
    report = timed(to_cores(["work"], WORDS, 6, buffers=1), 6 * WORDS, work=kernel)
    assert report.cycles == pytest.approx(6 * (TRANSFER + kernel))


def test_a_broadcast_waits_for_its_slowest_sink():
    report = timed(to_cores(["quick", "slow"], WORDS, 4, buffers=1), 4 * WORDS, quick=10, slow=250)
    assert report.cycles == pytest.approx(4 * (TRANSFER + 250))
    waits = {core.name: core.stalled for core in report.cores}
    assert waits["core (0, 2)"]["lock core_0_2_full"] > waits["core (0, 3)"]["lock core_0_3_full"]


def test_a_core_bound_design_stalls_its_stream_and_a_stream_bound_one_its_core():
    by_core = timed(to_cores(["work"], WORDS, 6, buffers=2), 6 * WORDS, work=300)
    by_stream = timed(to_cores(["work"], WORDS, 6, buffers=2), 6 * WORDS, work=40)
    assert by_core.cores[0].busy["work"] == pytest.approx(6 * 300)
    assert by_core.cores[0].stalled["lock core_0_2_full"] == pytest.approx(TRANSFER)
    assert by_stream.cores[0].stalled["lock core_0_2_full"] == pytest.approx(TRANSFER + 5 * (TRANSFER - 40))
    shim = {channel.name: channel for channel in by_core.channels}["shim (0, 0) MM2S 0"]
    assert shim.busy["transfer"] == pytest.approx(6 * TRANSFER)
    assert shim.stalled["back-pressure"] > 3 * 100
    shim = {channel.name: channel for channel in by_stream.channels}["shim (0, 0) MM2S 0"]
    assert shim.stalled.get("back-pressure", 0) == pytest.approx(0)


def test_locks_and_calls_of_a_core_cost_cycles():
    timing = replace(FREE, core_lock_cycles=13, kernel_call_cycles=25, done_to_resume_cycles=15)
    report = timed(to_cores(["work"], WORDS, 3, buffers=1), 3 * WORDS, timing=timing, work=70)
    first = TRANSFER + 15 + 25 + 70 + 13  # the first acquire began long before its release
    assert report.cycles == pytest.approx(3 * first)
    assert report.cores[0].busy == pytest.approx({"lock operations": 3 * 26, "kernel calls": 3 * 25, "work": 3 * 70})


@pytest.mark.parametrize(("count", "cycles"), [(1, 500), (2, 500), (8, 8 * 4000 / 20)])
def test_columns_share_dram(count, cycles):
    timing = replace(FREE, dram_read_gb_s=20)  # 20 bytes a cycle; a channel moves 8
    report = timed(columns(count, 1000), count * 1000, timing=timing)
    assert report.cycles == pytest.approx(cycles)
    assert report.dram.read_bytes == count * 4000
    assert report.dram.read_utilisation == pytest.approx(count * 4000 / 20 / cycles)


def test_short_runs_cost_dram_more():
    """Runs of 16 bytes, 16 bytes apart: each touches a line of 64 bytes and, half of the time, part of another."""
    timing = replace(FREE, dram_read_gb_s=8, dram_line_bytes=64)
    short, long = timed(columns(1, 64, 16, 8), 128, timing=timing), timed(columns(1, 64), 64, timing=timing)
    assert short.dram.read_bytes == long.dram.read_bytes == 256
    assert long.cycles == pytest.approx(256 / 8)
    assert short.cycles == pytest.approx(16 * (16 + 64 - 16) / 8)


def test_runs_on_other_pages_open_them():
    """Each of 16 runs opens a page at its start, and they go through 1/16 of a page."""
    report = timed(columns(1, 64, 16, 2048), 32768, timing=replace(FREE, dram_read_page_ns=30))
    assert report.cycles == pytest.approx(30 * (16 + 256 / 4096))
    assert report.dram.page_utilisation == pytest.approx(1)


def test_writes_have_a_price_of_their_own():
    slow = through_memtile(replace(FREE, dram_write_gb_s=2))
    assert slow.cycles == pytest.approx(TRANSFER + WORDS * 4 / 2)


class Ends:
    """When each flow ended."""

    def __init__(self, timing):
        self.clock = Clock(0.0)
        self.dram = Dram(self.clock, replace(timing, stream_bytes_per_cycle=1 << 20))
        self.times = {}

    def add(self, name: str, size: int, run: float, slowest: float, write: bool = False) -> None:
        self.dram.add(size, [(Access(run, 1), write)], slowest, self._end, name)

    def _end(self, name: str) -> None:
        self.times[name] = self.clock.now


def test_a_flow_that_ends_leaves_its_share_to_the_others():
    ends = Ends(replace(FREE, dram_read_gb_s=10))
    ends.add("long", 1000, 4096, 0.01)
    ends.add("short", 100, 4096, 0.01)
    ends.clock.run()
    assert ends.times == pytest.approx({"short": 20, "long": 20 + 900 / 10})


def test_a_slow_channel_leaves_what_it_cannot_use():
    ends = Ends(replace(FREE, dram_read_gb_s=10))
    ends.add("slow", 100, 4096, 1.0)  # a byte a cycle
    ends.add("fast", 900, 4096, 0.01)
    ends.clock.run()
    assert ends.times == pytest.approx({"slow": 100, "fast": 100})


def test_flows_share_the_budget_equally_in_time_not_in_bytes():
    ends = Ends(replace(FREE, dram_read_gb_s=10, dram_write_gb_s=5))
    ends.add("read", 500, 4096, 0.01)
    ends.add("write", 250, 4096, 0.01, write=True)
    ends.clock.run()
    assert ends.times == pytest.approx({"read": 100, "write": 100})


def test_a_flow_that_comes_later_takes_its_share_from_then_on():
    ends = Ends(replace(FREE, dram_read_gb_s=10))
    ends.add("first", 400, 4096, 0.01)
    ends.clock.at(20.0, ends.add, "second", 100, 4096, 0.01)
    ends.clock.run()
    assert ends.times == pytest.approx({"second": 40, "first": 50})
