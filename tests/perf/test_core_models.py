"""Core models against figures that the publications print."""

import re

import pytest

from bdforge.devices.timing import timing_of
from bdforge.perf.core import (
    core_cycles,
    core_efficiency,
    core_memory_bytes,
    memtile_bytes,
    microkernel_efficiency,
    stream_in_cycles,
    stream_out_cycles,
    switch_overhead_cycles,
)
from bdforge.perf.rows import Row, measured_rows

TAKA = [row for row in measured_rows() if re.match(r"taka-table", row.source)]
DESIGNS = [row for row in TAKA if not row.core_only]


def printed(row: Row, pattern: str) -> float:
    found = re.search(pattern, row.fields["notes"])
    assert found, row.fields["notes"]
    return float(found[1])


@pytest.mark.parametrize("row", TAKA, ids=lambda row: f"{row.source}-{row.case.a}-{row.case.c}-{row.case.m}")
def test_core_memory_is_what_the_tables_print(row):
    case = row.case
    kib = core_memory_bytes(case.m, case.k, case.n, *case.element_bytes) / 1024
    assert kib == pytest.approx(printed(row, r"L1 ([\d.]+) KB"), abs=0.051)


@pytest.mark.parametrize("row", DESIGNS, ids=lambda row: f"{row.case.device}-{row.case.a}-{row.case.c}")
def test_memtile_memory_is_what_the_tables_print(row):
    case = row.case
    size = memtile_bytes(case.m, case.n, case.k_mt, *case.element_bytes, rows=case.rows, columns=case.columns)
    assert round(size / 1024) == printed(row, r"L2 (\d+) KB")


def test_asymmetric_buffering_leaves_room_in_a_core():
    # Wang et al., bfp16 256x64x128: 58.5 KB are printed with rho = 8, which no plain tile of that size reaches.
    assert core_memory_bytes(256, 64, 128, 1.125, 1.125, 1.125, rho=8) / 1024 == pytest.approx(58.5, abs=0.05)
    assert core_memory_bytes(256, 64, 128, 1.125, 1.125, 1.125) / 1024 > 64


def test_a_second_buffer_of_c_is_counted():
    # Wang et al., bf16 baseline 64x88x64: 50.4 KB less scratch; A 22, B 22, C 16 KiB are 60 without ATB.
    one, two = (core_memory_bytes(64, 64, 64, 2, 2, 2, c_buffers=count) for count in (1, 2))
    assert (one, two) == (40960, 49152)  # IRON's operator: 52488 B for 64^3 with its 3336 B of stack and parameters
    assert two + 3328 + 8 == 52488


def test_the_published_kernel_sits_exactly_on_the_stream_bound():
    # Taka et al. chose 48x280x48 so that the kernel takes as long as its A: 1680 cycles at 384 MACs, 3360 at 192.
    for device, rate in (("krackan", 384), ("phoenix", 192)):
        stream = timing_of(device).stream_bytes_per_cycle
        assert stream_in_cycles(48, 280, 48, 1, 1, stream) == 48 * 280 * 48 / rate


def test_the_slower_operand_decides_the_stream():
    assert stream_in_cycles(32, 64, 96, 1, 1, 8) == 96 * 64 / 8
    assert stream_in_cycles(32, 64, 96, 4, 1, 8) == 32 * 64 * 4 / 8
    assert stream_out_cycles(64, 64, 4, 8) == 2048


def test_microkernel_efficiency_of_a_published_listing():
    # A thesis (Jena, 2025), 64x80x64: 13 cycles in, 16 blocks of 165, 6 out, of which 2560 multiply: 96.3 %.
    assert microkernel_efficiency(13, 16 * 165, 6, 2560) == pytest.approx(0.963, abs=5e-4)


def test_switch_overhead_and_core_efficiency_by_hand():
    overhead = switch_overhead_cycles(50, 4, 4096, 64)
    assert overhead == 12800
    # 128x128 tile, K = 4096, 512 MACs a cycle: 131072 ideal cycles.
    assert core_efficiency(131072, 0.8, overhead) == pytest.approx(131072 / (163840 + 12800))
    assert core_efficiency(131072, 0.8, overhead, drain=4096) < core_efficiency(131072, 0.8, overhead)


def test_a_compute_bound_core_waits_only_for_c():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=1000, overhead=51, stream_bytes=8, resume=15)
    assert (core.steps, core.step, core.drain) == (20, 1051, 2048 + 15)
    assert core.tile == 20 * 1051 + 2063
    assert core.bound == "compute"


def test_a_second_buffer_of_c_hides_the_drain():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=1000, overhead=51, stream_bytes=8, c_buffers=2)
    assert core.tile == 20 * 1051


def test_c_binds_even_a_double_buffer_when_k_is_short():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=64, kernel=500, overhead=0, stream_bytes=8, c_buffers=2)
    assert core.tile == 2048
    assert core.bound == "L1 stream"


def test_a_fast_kernel_is_bound_by_the_stream():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=300, overhead=51, stream_bytes=8)
    assert core.step == 64 * 64 / 8
    assert core.bound == "L1 stream"
