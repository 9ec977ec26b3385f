"""What estimates look like on a screen: bars, units, and which lines are there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from bdforge.devices.hosts import host_named
from bdforge.perf import GemmCase, estimate
from bdforge.perf.bounds.layers import Layers, OperatorTime
from bdforge.perf.bounds.models import BITNET, GPT2_TRAIN
from bdforge.perf.estimate_report import bar, cost_report, layers_report, report

CASE = GemmCase(device="krackan", a="int8", b="int8", c="int32", m=64, k=64, n=64, k_mt=128, rows=4, columns=8,
                M=256, K=2560, N=1024, core_macs_per_cycle=256.0)  # fmt: skip


def lines(shown: object) -> list[str]:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(shown)
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, ""), (1 / 320, "▏"), (1.6 / 320, "▎"), (7 / 320, "▉"), (8 / 320, "█"), (0.5, "█" * 20), (1, "█" * 40),
     (2, "█" * 40), (-1, "")],
)  # fmt: skip
def test_bars_are_drawn_in_eighths_of_a_character(share: float, drawn: str):
    assert bar(share) == drawn


def test_the_bound_s_bar_is_red_and_what_is_added_yellow():
    found = replace(estimate(CASE), parallel={"compute": 5.0, "L1 stream": 4.0}, serial={"dispatch": 1.0}, time_us=6.0)
    _, table, *_ = report(found).renderables  # type: ignore[attr-defined]
    names, _, bars = (list(column.cells) for column in table.columns)
    assert {name: str(bar.style) for name, bar in zip(names, bars, strict=True)} == {
        "compute (overlapping)": "red", "L1 stream (overlapping)": "cyan", "dispatch (added)": "yellow",
        "imperfect overlap (added)": "yellow",
    }  # fmt: skip


def test_an_estimate_shows_its_units_and_parts_largest_first():
    found = estimate(CASE)
    shown = lines(report(found))
    assert shown[0] == (
        f"256x2560x1024 int8 x int8 -> int32 on krackan: {2 * CASE.macs / found.time_us / 1e6:.2f} TOPS, "
        f"{found.time_us:.0f} us (modelled), bound: {found.bound}"
    )
    overlapping = [line for line in shown if "(overlapping)" in line]
    assert [line.split(" (")[0].strip() for line in overlapping] == sorted(
        found.parallel, key=lambda name: -found.parallel[name]
    )
    for line in overlapping:
        name, _, rest = line.partition(" (overlapping)")
        assert rest.split()[0] == f"{found.parallel[name.strip()]:.0f}"
    assert "kernel: 1024 cycles a step, 256 MACs per cycle (assumed: the rate that was given)" in " ".join(shown)
    assert "A: 1.3 MB in runs of 128 B, 2560 B apart" in shown
    assert "B: 2.6 MB in runs of 64 B, 1024 B apart" in shown
    assert "C: 1.0 MB in runs of 256 B, 4096 B apart" in shown


@pytest.mark.parametrize(
    ("changes", "line"),
    [({"b_kept": 0.25}, "B: 25% of a panel stays in memtiles while rows of A pass"),
     ({"M": 255}, f"padding: {256 / 255:.2f} times the useful MACs"),
     ({"assumed": ("x=1", "y=2")}, "assumed: x=1, y=2"),
     ({"M": 1 << 20, "K": 1 << 14, "N": 1 << 16}, "warning: ")],
)  # fmt: skip
def test_some_lines_are_only_there_where_they_say_something(changes: dict, line: str):
    assert not any(shown.startswith(line) for shown in lines(report(estimate(CASE))))
    assert any(shown.startswith(line) for shown in lines(report(estimate(replace(CASE, **changes)))))


def test_another_operator_s_estimate_shows_its_range_and_bytes():
    cost = SimpleNamespace(operations=1000, read_bytes=2_500_000, write_bytes=1_250_000, run_bytes=64)
    problem = SimpleNamespace(sizes={"rows": 64, "keys": 4096})
    found = SimpleNamespace(cost=cost, time_range_us=(10.4, 20.6), problem=problem, time_us=15.2, gb_s=3.21,
                            bound="compute", parallel={"compute": 7.6}, serial={"dispatch": 3.8},
                            plan=SimpleNamespace(spec=SimpleNamespace(kind="add"), summary="two",
                                                 kernels=SimpleNamespace(cycles={"add": 64, "zero": 8})))  # fmt: skip
    shown = lines(cost_report(found))  # type: ignore[arg-type]
    assert shown[0] == "add of rows = 64, keys = 4096, two: 15 us (modelled), 3.2 GB/s of DRAM, bound: compute"
    assert shown[-3:] == [
        "range: 10 to 21 us, from everything overlapped to nothing",
        "1000 operations; reads 2.50 MB, writes 1.25 MB, in runs of at least 64 B",
        "kernels: cycles of a call as the operator tells them (assumed): add 64, zero 8",
    ]
    assert [line.split()[-1] for line in shown if "compute (" in line] == ["█" * 20]
    assert [line.split()[-1] for line in shown if "dispatch (" in line] == ["█" * 10]


@pytest.mark.parametrize(
    ("where", "count", "shown"), [("CPU", 1, ""), ("CPU", 2, "2"), ("NPU", 1, "1"), ("NPU", 2, "2")]
)
def test_a_part_of_the_cpu_is_counted_from_two_times_on(where: str, count: int, shown: str):
    found = Layers(BITNET, 512, (OperatorTime("part", where, count, 60.0, 3.0),), {}, host_named("strix_halo"))
    (row,) = (line.split() for line in lines(layers_report(found)) if line.split()[:1] == ["part"])
    assert row == [cell for cell in ("part", where, shown, "60.0", "3.0" if where == "NPU" else "") if cell]


def test_a_model_s_parts_are_told_with_rates_energy_and_savings():
    parts = (OperatorTime("q", "NPU", 30, 60.0, 3.0, "compute", "1x2x3", 30), OperatorTime("norms", "CPU", 1, 40.0))
    host = host_named("strix_halo")
    shown = lines(layers_report(Layers(BITNET, 512, parts, {"qkv": 4.25}, host, 77.4)))
    text = " ".join(" ".join(shown).split())
    assert f"bitnet-2b, 512 tokens: 100 ms (modelled; {40 + 60 * 0.84:.0f} to {40 + 60 * 1.19:.0f})" in text
    assert "5120 tokens per second" in text
    assert "NPU 60.0 ms, of it 30 dispatches 3.0; CPU 40.0 ms" in text
    assert "two micro-batches that overlap both: 77 ms" in text
    low, high = host.watts
    assert f"energy {low * 0.1:.1f} to {high * 0.1:.1f} J (modelled: {low:g} to {high:g} W" in text
    assert "--fused qkv (q, k, v as one GEMM) would save 4.2 ms" in text
    assert "nobody published their times" not in text
    norms, q = (next(line.split() for line in shown if line.split()[:1] == [name]) for name in ("norms", "q"))
    assert q == ["q", "NPU", "1x2x3", "30", "60.0", "3.0", "compute"]
    assert norms == ["norms", "CPU", "40.0"]
    assert any(
        "nobody published their times" in line for line in lines(layers_report(Layers(GPT2_TRAIN, 1, parts, {}, host)))
    )
