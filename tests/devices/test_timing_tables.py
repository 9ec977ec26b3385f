"""Timings of each product by name, written down a second time from the sources; modes, hand-overs and corner cases."""

from dataclasses import fields, replace

import numpy as np
import pytest

from bdforge.devices import DeviceError
from bdforge.devices.timing import (
    DISPATCHES,
    JOB_TIMEOUT_SECONDS,
    PHOENIX,
    POWER_HZ,
    STRIX_HALO,
    TIMINGS,
    Timing,
    joined_times,
    timing_in,
)
from support.differences import same

INSIDE = {  # cycles inside the array, measured on Phoenix and taken for all
    "switch_cycles": 4, "switch_local_cycles": 3, "packet_arbitration_cycles": 1, "bd_change_cycles": 0,
    "task_start_cycles": 13, "done_to_resume_cycles": 15, "memtile_turn_cycles": 13, "dma_lock_cycles": 1,
    "core_lock_cycles": 13, "kernel_call_cycles": 25, "control_bytes_per_cycle": 4, "shim_mm2s_first_ns": 1400,
    "shim_mm2s_later_ns": 330, "shim_s2mm_first_ns": 350, "shim_s2mm_later_ns": 180, "shim_alone_share": 0.786,
    "dram_page_bytes": 4096, "memory_exponent": 4.4, "controller_sync_ns": 8000, "raw_dispatch_ns": 51000,
    "runlist_dispatch_ns": 14500,
}  # fmt: skip
NPU1 = {
    "stream_bytes_per_cycle": 4, "core_bank_stall": 1.03, "shim_read_share": 0.95, "shim_write_share": 1.0,
    "shim_burst_bytes": 256, "shim_byte_ns": 0.0, "shim_line_bytes": 64, "shared_run_ns": 0.0, "far_run_ns": 0.0,
    "aligned_byte_ns": 0.0, "elf_dispatch_ns": 159000,
    "controller_write_ns": 100, "controller_bd_ns": 200, "controller_transfer_ns": 1050, "dispatch_ns": 159000,
    "reconfiguration_ns": 3.4e6,
}  # fmt: skip
NPU2 = {
    "array_hz": 1.8e9, "stream_bytes_per_cycle": 8, "core_bank_stall": 1.24, "shim_read_share": 0.9,
    "shim_write_share": 0.95, "shim_burst_bytes": 512, "shim_request_ns": 10.7, "shim_byte_ns": 0.02,
    "shim_line_bytes": 0, "dram_read_gb_s": 55.5, "dram_write_gb_s": 55.3, "dram_gb_s": 67.4,
    "controller_write_ns": 86, "controller_bd_ns": 100, "controller_transfer_ns": 525, "reconfiguration_ns": 4.9e6,
}  # fmt: skip
PORT = ("dram_read_gb_s", "dram_write_gb_s", "dram_gb_s")
HALF_BUS = {
    "shared_run_ns": 2.96 * 1.287, "far_run_ns": 5.13 * 1.287, "aligned_byte_ns": 0.0298 * 1.287, "dispatch_ns": 99000,
    "elf_dispatch_ns": 78600,
}  # fmt: skip
STRIX_PORT = dict(zip(PORT, (55.5 * 1.168, 55.3 * 1.168, 67.4 * 1.168), strict=True))
EXPECTED = {
    "phoenix": NPU1 | {"array_hz": 1e9, "shim_request_ns": 37.2} | dict.fromkeys(PORT, 20),
    "hawk_point": NPU1 | {"array_hz": 1.79e9, "shim_request_ns": 20.8} | dict.fromkeys(PORT, 57.3),
    "strix_halo": NPU2
    | {
        "shared_run_ns": 2.96,
        "far_run_ns": 5.13,
        "aligned_byte_ns": 0.0298,
        "dispatch_ns": 150000,
        "elf_dispatch_ns": 150000,
    },
    "strix": NPU2 | HALF_BUS | STRIX_PORT,
    "krackan": NPU2 | HALF_BUS,
}


@pytest.mark.parametrize("product", sorted(EXPECTED))
def test_timings_are_those_of_the_sources(product: str):
    found = {fact.name: getattr(TIMINGS[product], fact.name) for fact in fields(Timing)}
    assert found == pytest.approx(INSIDE | EXPECTED[product])


def test_arrays_without_a_product_have_the_best_measured_timing():
    assert set(TIMINGS) == {*EXPECTED, "npu1", "npu2"}
    assert TIMINGS["npu1"] is TIMINGS["phoenix"]
    assert TIMINGS["npu2"] is TIMINGS["krackan"]
    assert JOB_TIMEOUT_SECONDS == 2.0


CLOCKS = {"saver": 0.792e9, "balanced": 1.267e9, "turbo": 1.8e9}
MODES = {
    "phoenix": {"turbo": 1e9}, "hawk_point": {"saver": 0.79e9, "balanced": 1.02e9, "turbo": 1.79e9}, "strix": CLOCKS,
    "krackan": CLOCKS, "strix_halo": CLOCKS,
}  # fmt: skip


def test_modes_have_the_clocks_of_the_drivers_table():
    assert {product: dict(clocks) for product, clocks in POWER_HZ.items()} == MODES
    assert {product: max(clocks.values()) for product, clocks in MODES.items()} == {
        product: TIMINGS[product].array_hz for product in MODES
    }


@pytest.mark.parametrize(("product", "mode"), [(p, mode) for p, clocks in MODES.items() for mode in clocks])
def test_a_mode_changes_the_arrays_clock_alone(product: str, mode: str):
    timing = TIMINGS[product]
    assert timing_in(timing, product, power=mode) == replace(timing, array_hz=MODES[product][mode])


@pytest.mark.parametrize(("way", "ns"), [("xrt", 150000), ("elf", 150000), ("raw", 51000), ("runlist", 14500)])
def test_a_way_to_hand_over_changes_the_dispatch_alone(way: str, ns: float):
    assert timing_in(STRIX_HALO, "strix_halo", dispatch=way) == replace(STRIX_HALO, dispatch_ns=ns)
    assert set(DISPATCHES) == {"xrt", "elf", "raw", "runlist"}


def test_unknown_modes_and_ways_list_the_known_ones():
    with pytest.raises(DeviceError, match="dispatch 'usb' is not one of xrt, elf, raw, runlist"):
        timing_in(PHOENIX, "phoenix", dispatch="usb")
    with pytest.raises(DeviceError, match="no clock of phoenix is published for power mode 'saver'; known: turbo"):
        timing_in(PHOENIX, "phoenix", power="saver")
    with pytest.raises(DeviceError, match=r"no clock of npu1 .* known: none"):
        timing_in(PHOENIX, "npu1", power="turbo")


def test_one_column_alone_takes_a_share_of_its_requests_time():
    each = STRIX_HALO.shim_ns(4096, 512, 2)
    assert each == pytest.approx(8 * (10.7 + 512 * 0.02))
    assert [STRIX_HALO.shim_ns(4096, 512, columns) / each for columns in (1, 2, 8)] == pytest.approx([0.786, 1, 1])


def test_shims_reach_a_share_of_their_stream_in_each_direction():
    plain = STRIX_HALO.channel_ns(14400)
    assert plain == pytest.approx(1000)  # 8 B at 1.8 GHz
    assert STRIX_HALO.channel_ns(14400, write=False) == pytest.approx(plain / 0.9)
    assert STRIX_HALO.channel_ns(14400, write=True) == pytest.approx(plain / 0.95)


def test_a_long_run_is_one_that_no_request_and_no_page_limits():
    """Requests of 10.7 ns in 8 shims against 55.5 GB/s; one of 5.13 ns in a page of its own; a burst at most."""
    assert STRIX_HALO.long_run_bytes(8) == pytest.approx(5.13 * 55.5)
    assert STRIX_HALO.long_run_bytes(2) == pytest.approx(10.7 / (2 / 55.5 - 0.02))
    assert STRIX_HALO.long_run_bytes(1) == 512  # one shim never reaches the port's rate
    assert replace(STRIX_HALO, far_run_ns=100.0).long_run_bytes(8) == 512


def test_times_that_overlap_join_to_a_little_more_than_the_slowest():
    assert joined_times([3.0, 4.0], 2) == pytest.approx(5)
    assert joined_times([7.0, 7.0], 4.4) == pytest.approx(7 * 2 ** (1 / 4.4))
    same(joined_times([np.array([3.0, 8.0]), np.array([4.0, 6.0])], 2), [5, 10], rtol=1e-7)
