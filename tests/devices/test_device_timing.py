"""Timing tables: complete, and their DRAM formulas against brute force."""

from dataclasses import fields

import numpy as np
import pytest

from bdforge.devices import DEVICES, device_named
from bdforge.devices.timing import KRACKAN, PHOENIX, STRIX_HALO, TIMINGS, Timing, timing_of
from support.differences import same


def requests_of(start: int, size: int, line: int, burst: int) -> int:
    """Bursts of the whole run, and the head of one that starts inside a line and leaves it."""
    head = start % line != 0 and start // line != (start + size - 1) // line
    return -(-size // burst) + head


@pytest.mark.parametrize("run", [16, 32, 48, 72, 96, 112, 128, 256, 257, 448])
def test_runs_that_start_inside_a_line_take_a_request_more_on_npu1(run):
    aligned = next(g for g in (64, 32, 16, 8, 4, 2, 1) if run % g == 0)
    starts = range(0, 64, aligned)
    mean = sum(requests_of(start, run, 64, 256) for start in starts) / len(starts)
    assert PHOENIX.shim_requests(run) == pytest.approx(mean)
    assert KRACKAN.shim_requests(run) == -(-run // 512)


def test_requests_of_a_shim_explain_what_bursts_were_measured():
    """Strix Halo, 8 columns with both channels: bursts of 64 B read 42.8 GB/s; one column's long bursts 23.8 to 25."""
    assert 8 * 64 / STRIX_HALO.shim_ns(64, 64, 8) == pytest.approx(42.8, rel=0.01)
    assert 23.8 <= 512 / STRIX_HALO.shim_ns(512, 512, 8) <= 25


def test_the_port_takes_more_both_ways_than_either():
    assert STRIX_HALO.port_ns(55.5e3, 0) == pytest.approx(1000)
    assert STRIX_HALO.port_ns(0, 55.3e3) == pytest.approx(1000)
    assert STRIX_HALO.port_ns(33.7e3, 33.7e3) == pytest.approx(1000)


def test_short_runs_in_a_shared_row_or_in_pages_of_their_own_keep_dram_from_the_rest():
    halo, bytes_only = STRIX_HALO, 64 / STRIX_HALO.dram_gb_s
    cases = {"near": (64, 2560, False), "shared": (64, 2560, True), "far": (64, 4096, False), "next": (64, 64, True)}
    found = {name: float(halo.run_ns(*case)) for name, case in cases.items()}
    assert found == {"near": bytes_only, "shared": halo.shared_run_ns, "far": halo.far_run_ns, "next": 0}
    assert halo.run_ns(128, 4352, False) == halo.far_run_ns < 448 / halo.dram_gb_s
    assert halo.run_ns(448, 4352, False) == 448 / halo.dram_gb_s
    assert halo.run_ns(512, 4096, True) == 0  # whole bursts
    assert halo.run_ns(256, 8192, False) == 256 * halo.aligned_byte_ns > halo.far_run_ns  # at one place in each page
    assert halo.run_ns(256, 8192, False, 0.5) == 128 * halo.aligned_byte_ns  # half of the columns fetch such runs
    assert halo.run_ns(128, 8192, True, 0.5) == halo.shared_run_ns
    assert PHOENIX.run_ns(64, 4096, True) == 64 / PHOENIX.dram_gb_s


def test_formulas_take_arrays():
    runs, strides = np.array([16, 64, 4096]), np.array([2560, 4096, 4096])
    for timing in (PHOENIX, STRIX_HALO):
        for formula in (timing.shim_requests, lambda r, t=timing: t.shim_ns(1e4, r, 8)):
            same(formula(runs), [formula(int(run)) for run in runs], rtol=1e-7)
        both = [timing.run_ns(int(r), int(s), False) for r, s in zip(runs, strides, strict=True)]
        same(timing.run_ns(runs, strides, False), both, rtol=1e-7)


def test_a_channel_moves_a_stream_word_each_cycle():
    assert PHOENIX.channel_ns(4000) == pytest.approx(1000)  # 4 B a cycle at 1 GHz
    assert KRACKAN.channel_ns(8 * 1800) == pytest.approx(1000)  # 8 B a cycle at 1.8 GHz
    assert KRACKAN.channel_ns(1200, 12) == pytest.approx(KRACKAN.cycles_ns(200))  # runs of 1.5 words take 2 cycles


def test_every_constant_names_unit_source_and_confidence():
    for fact in fields(Timing):
        assert fact.metadata["unit"], fact.name
        assert fact.metadata["source"], fact.name
        assert fact.metadata["confidence"] in ("H", "M", "L"), fact.name


def test_every_product_has_a_timing_of_its_generation():
    for name, device in DEVICES.items():
        assert timing_of(name).stream_bytes_per_cycle == device.generation.stream_bytes
        assert timing_of(device_named(name)) is TIMINGS[name]


def test_arrays_named_as_in_mlir_have_one_too():
    assert timing_of("npu2_4col") is timing_of("npu2") is KRACKAN
    assert timing_of("npu1_1col") is PHOENIX
