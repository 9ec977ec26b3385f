"""Times worked out by hand: words per cycle, latencies, buffering, broadcasts, DRAM that channels share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import TimingOptions, TimingReport, emulate
from bdforge.array.emulator.bd_access import decode_bd
from bdforge.array.emulator.timed.dram import Dram, Way
from bdforge.array.emulator.timed.timed_run import Clock
from bdforge.array.emulator.trace import DramAccess, access_of
from bdforge.devices import TileKind
from bdforge.devices.bd_registers import SHIM_BD
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


def test_a_channel_changes_its_bd_between_transfers():
    """Four times each of the memtile's two channels; those of shims run one BD each."""
    report = through_memtile(replace(FREE, bd_change_cycles=9), runs=5)
    assert report.cycles == pytest.approx(5 * 2 * TRANSFER + 4 * 2 * 9)
    changes = {channel.name: channel.stalled.get("BD change", 0) for channel in report.channels}
    assert {name: cycles for name, cycles in changes.items() if cycles} == {
        "memtile (0, 1) S2MM 0": 4 * 9,
        "memtile (0, 1) MM2S 0": 4 * 9,
    }


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


@pytest.mark.parametrize(("crossing", "local", "room"), [(0, 0, 8), (3, 2, 8 + (2 * 3 + 2) * 2)])
@pytest.mark.parametrize("more", [0, 1])
def test_a_sink_holds_its_buffer_and_what_is_on_the_way(crossing, local, room, more):
    """Eight words, and two in each of the cycles across two switches; the next word waits."""
    timing = replace(FREE, switch_cycles=crossing, switch_local_cycles=local)
    report = timed(to_cores(["work"], room + more, 2, buffers=1), 2 * (room + more), timing=timing, work=1000)
    shim = {channel.name: channel for channel in report.channels}["shim (0, 0) MM2S 0"]
    waits = shim.stalled.get("back-pressure", 0) > 500
    assert waits == bool(more), f"{room + more} words, of which the sink holds {room}: stalled {shim.stalled}"


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


def test_short_runs_keep_their_shim_busy_with_requests():
    """16 runs of 16 bytes are 16 requests; in one piece the 256 bytes are one."""
    timing = replace(FREE, shim_request_ns=30, shim_byte_ns=0.5)
    short, long = timed(columns(1, 64, 16, 8), 128, timing=timing), timed(columns(1, 64), 64, timing=timing)
    assert short.dram.read_bytes == long.dram.read_bytes == 256
    alone = timing.shim_alone_share  # one column reads
    assert long.cycles == pytest.approx((30 + 0.5 * 256) * alone)
    assert short.cycles == pytest.approx((16 * 30 + 0.5 * 256) * alone)
    assert short.dram.request_utilisation == pytest.approx(1)


def test_shims_make_requests_side_by_side():
    timing = replace(FREE, shim_request_ns=30, shim_alone_share=1)
    one, four = (timed(columns(n, 64, 16, 8), n * 128, timing=timing) for n in (1, 4))
    assert one.cycles == pytest.approx(four.cycles) == pytest.approx(16 * 30)


def test_runs_in_pages_of_their_own_are_served_one_by_one():
    """A stride of 1024 words is a page; one of 1016 is not. The first of 3 columns is alone of 8, the last one in 3."""
    timing = replace(FREE, far_run_ns=20)
    near, far = (timed(columns(3, 64, 4, stride), 3 * 4 * stride, timing=timing) for stride in (1016, 1024))
    assert near.cycles == pytest.approx(256 / 8)
    assert far.cycles == pytest.approx((1 + 2 + 3) / 8 * 4 * 20, rel=0.02)
    assert far.dram.port_utilisation == pytest.approx(1, rel=0.02)


USUAL = {  # wraps and steps of the inner dimensions and the last step, in words; mean run and usual distance in bytes
    "one run": ((4, 1), (4, 4), 16, 32, 128, 0),
    "a gap over a page among short ones": ((4, 1), (4, 16), 4096, 48, 16, 64),
    "a short gap among those over a page": ((4, 1), (4, 2048), 16, 48, 16, 8192),
    "backwards over the rows": ((4, 1), (2, 4096), 16, 48, 16, 16384),
    "runs of one word": ((8, 2), (4, 64), 4096, 32, 4, 8),
    "two runs of one word": ((8, 2), (4, 64), 4096, 2, 4, 8),
    "one word": ((8, 2), (4, 64), 4096, 1, 4, 0),
    "as many distances of each kind": ((2, 8), (2, 4), 4096, 3, 4, 16),
}


@pytest.mark.parametrize("case", USUAL)
def test_runs_lie_as_far_apart_as_most_of_them(case):
    (wrap0, step0), (wrap1, step1), step2, words, run, stride = USUAL[case]
    fields = {"length": words, "d0_wrap": wrap0, "d0_step": step0 - 1, "d1_wrap": wrap1, "d1_step": step1 - 1}
    order = decode_bd(TileKind.SHIM, tuple(SHIM_BD.encode(fields | {"d2_step": step2 - 1}))).order
    assert access_of(order) == DramAccess(run, stride)


def test_writes_have_a_price_of_their_own():
    slow = through_memtile(replace(FREE, dram_write_gb_s=2))
    assert slow.cycles == pytest.approx(TRANSFER + WORDS * 4 / 2)


def ends(flows: Mapping[str, tuple], **fields: Any) -> dict[str, float]:
    """When each flow of DRAM ends: bytes, access, cycles per byte of the stream, whether it writes, when it begins."""
    clock, found = Clock(0.0), dict[str, float]()
    dram = Dram(clock, replace(FREE, stream_bytes_per_cycle=1 << 20, **fields), columns=4)

    def end(name: str) -> None:
        found[name] = clock.now

    for column, (name, (size, access, slowest, *more)) in enumerate(flows.items()):
        write, begin = (*more, *(False, 0.0)[len(more) :])
        clock.at(begin, dram.add, size, [Way(access, bool(write), column)], slowest, end, name)
    clock.run()
    return found


LONG, ROW, FAST = DramAccess(4096), 1 << 20, 1e-9
DRAM_FLOWS = {
    "one that ends leaves its share to the others": (
        {"dram_read_gb_s": 10}, {"long": (1000, LONG, 0.01), "short": (100, LONG, 0.01)},
        {"short": 20, "long": 20 + 900 / 10},
    ),
    "a slow channel leaves what it cannot use": (  # a byte a cycle
        {"dram_read_gb_s": 10}, {"slow": (100, LONG, 1.0), "fast": (900, LONG, 0.01)}, {"slow": 100, "fast": 100},
    ),
    # Equal shares s of what each needs most: 7.5 s read and 5 s written, of which the port takes 7.5 in all: s = 0.6.
    "reads and writes share the port equally in time, not in bytes": (
        {"dram_read_gb_s": 10, "dram_write_gb_s": 5, "dram_gb_s": 7.5},
        {"read": (500, LONG, 0.01), "write": (250, LONG, 0.01, True)},
        {"write": 250 / 3, "read": 250 / 3 + (500 - 4.5 * 250 / 3) / 7.5},
    ),
    # The same stride and row, other columns: three of four had come to a shared row, and are served one by one.
    "columns that read one row side by side": (
        {"shared_run_ns": 10}, {f"{i}": (640, DramAccess(64, 2560, ROW | 64 * i), FAST) for i in range(4)},
        {"last": 3 * 10 * 10},
    ),
    "columns that read rows of their own": (  # each takes a cycle of its channel
        {"shared_run_ns": 10}, {f"{i}": (640, DramAccess(64, 2560, 2560 * i), FAST) for i in range(4)}, {"last": 10},
    ),
    # Two shims in one row: the second read has 10 runs of 64 bytes of which each takes 10 cycles, a write has none.
    **{
        f"two in one row of which {sum(writes)} write": (
            {"shared_run_ns": 10}, {f"{i}": (640, DramAccess(64, 2560, ROW), FAST, w) for i, w in enumerate(writes)},
            {"last": 10 if any(writes) else 10 * 10},
        ) for writes in ((False, False), (True, False), (True, True))
    },
    # 1000 bytes at 0.1 ns a byte of requests, half of it while one shim reads: a write beside it asks for nothing.
    **{
        f"a shim beside {beside or 'none'}": (
            {"shim_byte_ns": 0.1, "shim_alone_share": 0.5},
            ({beside: (1, DramAccess(1, 1, ROW), FAST, beside == "a write")} if beside else {})
            | {"wanted": (1000, DramAccess(500, 500), FAST)}, {"wanted": 1000 * 0.1 * share},
        ) for beside, share in (("", 0.5), ("a write", 0.5), ("a read", 1))
    },
    "resources that are busy at once slow a flow": (  # 2^(1/2) of the time of one, with the exponent 2
        {"dram_read_gb_s": 10, "shim_byte_ns": 0.1, "shim_alone_share": 1, "memory_exponent": 2},
        {"only": (1000, DramAccess(500), FAST)}, {"only": 100 * 2**0.5},
    ),
    "one that comes later takes its share from then on": (
        {"dram_read_gb_s": 10}, {"first": (400, LONG, 0.01), "second": (100, LONG, 0.01, False, 20.0)},
        {"second": 40, "first": 50},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "flows", "wanted"), DRAM_FLOWS.values(), ids=DRAM_FLOWS)
def test_flows_of_dram_end(fields: dict[str, float], flows: dict[str, tuple], wanted: dict[str, float]):
    found = ends(flows, **fields)
    found["last"] = max(found.values())
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=0.05 if "last" in wanted else 0.01)
