"""Timing tables: complete, and their DRAM formulas against brute force."""

from dataclasses import fields

import pytest

from bdforge.devices import DEVICES, DeviceError, device_named
from bdforge.devices.timing import KRACKAN, PHOENIX, TIMINGS, Timing, timing_of


def lines_touched(start: int, size: int, line: int) -> int:
    return (start + size - 1) // line - start // line + 1


@pytest.mark.parametrize("run", [16, 32, 72, 96, 112, 128, 448])
def test_short_and_unaligned_runs_move_whole_lines(run):
    aligned = next(g for g in (64, 32, 16, 8, 4) if run % g == 0)
    starts = range(0, 64, aligned)
    moved = sum(lines_touched(start, run, 64) * 64 for start in starts) / len(starts)
    assert KRACKAN.dram_lines_ns(run, run) == pytest.approx(moved / KRACKAN.dram_read_gb_s)


@pytest.mark.parametrize(
    ("run", "stride"), [(64, 2560), (128, 3072), (256, 4352), (96, 8448), (640, 640), (4096, 12288)]
)
def test_pages_opened_match_a_walk_over_addresses(run, stride):
    count, opened = 64, 0
    bases = range(0, 4096, 52)
    for base in bases:
        last = 0
        for start in range(base, base + count * stride, stride):
            for page in range(start // 4096, (start + run - 1) // 4096 + 1):
                opened += page != last
                last = page
    assert KRACKAN.dram_pages(count * run, run, stride) == pytest.approx(opened / len(bases), rel=0.03)


def test_bandwidth_rises_with_the_run_until_lines_bind():
    rates = [KRACKAN.dram_gb_s(run) for run in (16, 32, 64, 128, 256, 512, 4096)]
    assert rates == sorted(rates)
    assert rates[0] < 5
    assert rates[-1] == pytest.approx(KRACKAN.dram_read_gb_s)


def test_a_stride_below_a_page_is_cheaper_than_one_above():
    assert KRACKAN.dram_gb_s(64, 2560) == pytest.approx(64 / (64 / 4096 + 2496 / 4096) / KRACKAN.dram_read_page_ns)
    assert KRACKAN.dram_gb_s(64, 2560) > KRACKAN.dram_gb_s(64, 8192) == KRACKAN.dram_gb_s(64)


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


def test_an_unknown_device_is_named():
    with pytest.raises(DeviceError, match=r"no timing for device 'toaster'; known: .*strix_halo"):
        timing_of("toaster")
