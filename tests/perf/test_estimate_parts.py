"""Each part of an estimate worked out from the device's table, and every limit from both sides."""

from dataclasses import replace
from math import ceil
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.design.parameters import PARAMETER_BYTES
from bdforge.devices import AIE2P, device_named
from bdforge.devices.limits import CORE
from bdforge.devices.timing import JOB_TIMEOUT_SECONDS, timing_of
from bdforge.devices.types import TYPES
from bdforge.operators import Cost
from bdforge.operators.gemm import GemmProblem, load_spec
from bdforge.operators.specs import STACK_BYTES
from bdforge.perf import GemmCase, KernelCycles, estimate
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.contraction import ContractionCase, _run
from bdforge.perf.bounds.core_bound import core_cycles, stream_in_cycles
from bdforge.perf.bounds.estimate import INTERVAL, OVERLAP_EXPONENT, PADDING_BINDS
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.bounds.tile_bound import fastest_tile, fits
from bdforge.perf.kernels.kernel_cost import pass_cycles
from support.built_designs import ROOT

T = timing_of("krackan")


def case(**changes) -> GemmCase:
    """Two rows by four columns whose M, K and N are not whole panels: 3 x 3 rounds of 5 steps over K = 160."""
    facts: dict[str, Any] = {
        "device": "krackan", "a": "int8", "b": "int8", "c": "int32", "m": 16, "k": 32, "n": 24, "k_mt": 32, "rows": 2,
        "columns": 4, "M": 95, "K": 130, "N": 200, "b_layout": "column",
    }  # fmt: skip
    return GemmCase(**{**facts, **changes})


STEP, AROUND, ENDS = 1000, 25 + 2 * 13, 700.0
KERNEL = KernelCycles(STEP, "schedule", ends=ENDS)


def parts(**changes) -> dict[str, float]:
    found = estimate(case(**changes), kernel=KERNEL)
    return {**found.parallel, **found.serial}


def test_every_part_is_what_its_source_says():
    """A: 96 x 160 bytes for each of 3 panels of N over 2 channels; B: 160 x 288 for each of 3 panels of M over 4; C:
    96 x 288 x 4 over 4. Each part in microseconds, of nanoseconds and of cycles at 1.8 GHz."""
    a, b, c = 96 * 160 * 3, 160 * 288 * 3, 96 * 288 * 4
    cycles_us = 1e6 / 1.8e9
    drain = 16 * 24 * 4 / 8 + T.done_to_resume_cycles
    runs = {"a": (a / 32, 32, 130), "b": (b / 32, 32, 130), "c": (c / 96, 96, 800)}  # how many, bytes, from run to run
    assert T.shim_line_bytes == 0
    found = parts()
    expected = {
        "compute": 9 * (5 * (STEP + AROUND) + ENDS + drain) * cycles_us,
        "L1 stream": 9 * 5 * (32 * 24 / 8) * cycles_us,
        "shim channel": max(a / 2 / T.shim_read_share, b / 4 / T.shim_read_share, c / 4 / T.shim_write_share)
        / 8 * cycles_us,
        "shim requests": (a / 2 / 32 + b / 4 / 32) * (T.shim_request_ns + 32 * T.shim_byte_ns) / 1e3,
        "DRAM bandwidth": max((a + b) / T.dram_read_gb_s, c / T.dram_write_gb_s, (a + b + c) / T.dram_gb_s) / 1e3,
        "DRAM run length": sum(count * size / T.dram_gb_s for count, size, _ in runs.values()) / 1e3,
        "controller": 9 * (2 + 4 + 4) * T.controller_transfer_ns / 1e3,
        "dispatch": (T.dispatch_ns + T.controller_sync_ns) / 1e3,
        "fill and drain": (32 * (32 + 4 * 24) / T.dram_read_gb_s + 4 * 32 * 24 * 4 / T.dram_write_gb_s) / 1e3,
    }  # fmt: skip
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name


def test_memory_s_parts_are_joined_by_their_exponent_and_cores_by_another():
    def joined(times: list[float], exponent: float) -> float:
        return sum(time**exponent for time in times) ** (1 / exponent)

    p = parts()
    memory = [max(p["DRAM bandwidth"], p["DRAM run length"]), p["shim channel"], p["shim requests"]]
    assert T.memory_exponent != OVERLAP_EXPONENT
    overlapping = [max(p["compute"], p["L1 stream"]), joined(memory, T.memory_exponent), p["controller"]]
    expected = joined(overlapping, OVERLAP_EXPONENT) + p["dispatch"] + p["fill and drain"]
    assert estimate(case(), kernel=KERNEL).time_us == pytest.approx(expected)


def test_one_column_s_requests_take_their_own_share():
    a, b, c = case(columns=1).dram_traffic()
    each = T.shim_request_ns + 32 * T.shim_byte_ns
    assert (a.channels, b.channels, c.channels) == (1, 1, 1)
    assert T.shim_alone_share != 1
    expected = (a.size_bytes + b.size_bytes) / 32 * each * T.shim_alone_share / 1e3
    assert parts(columns=1)["shim requests"] == pytest.approx(expected)


def test_a_design_s_case_has_every_fact_of_its_spec():
    spec = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    spec = replace(spec, layouts=replace(spec.layouts, a="column", b="row", c="column"),
                   tile=replace(spec.tile, m=48, k=32, n=24, m_used=8),
                   buffers=replace(spec.buffers, k_mt=96, a_shims=2, c_buffers=1, rho=3, c_in_parts=True))  # fmt: skip
    found = case_of(spec, device_named("krackan"), GemmProblem(5, 6, 7), core_macs_per_cycle=9.0)
    assert found == GemmCase(
        device="krackan", a="int8", b="int2", c="int32", m=48, k=32, n=24, k_mt=96, rows=4, columns=8, M=5, K=6, N=7,
        a_layout="column", b_layout="row", c_layout="column", accumulator="int32", a_shims=2, c_buffers=1, rho=3,
        core_macs_per_cycle=9.0, m_used=8, b_kept=0.0, c_in_parts=True,
    )  # fmt: skip


def test_a_contraction_s_case_counts_its_batches():
    facts: dict[str, Any] = {name: getattr(case(), name) for name in case().__dataclass_fields__}
    facts |= {"rows": 4, "columns": 2}
    found = ContractionCase(**facts, batches=5, needed=17, runs=((32, 64), (24, 24), (96, 48)))
    assert (found.rounds, found.macs) == (5 * 2 * 5, 17)
    assert found.padded_macs == 5 * 128 * 160 * 240
    a, b, c = found.dram_traffic()
    assert [t.channels for t in (a, b, c)] == [2, 2, 2]
    assert [t.stride_bytes for t in (a, b, c)] == [64, 24, 96]
    assert [t.size_bytes for t in (a, b, c)] == [50 * 4 * 16 * 160, 50 * 2 * 160 * 24, 50 * 8 * 16 * 24 * 4]
    assert [t.write for t in (a, b, c)] == [False, False, True]


@pytest.mark.parametrize(
    ("changes", "longer"),
    [
        ({"b_layout": "row"}, T.shared_run_ns),  # runs of 24 bytes side by side
        ({"b_layout": "row", "columns": 1}, 0.0),  # nobody reads beside
        ({"K": 4128, "k_mt": 32}, T.far_run_ns),  # over a page apart
        ({"K": 4096, "k_mt": 256}, T.aligned_byte_ns * 256),  # whole pages apart
        ({"K": 4095, "k_mt": 32}, 0.0),
    ],
)
def test_short_runs_of_dram_cost_more_side_by_side_and_a_page_apart(changes: dict, longer: float):
    found = case(**changes)
    _, b, _ = found.dram_traffic()
    assert T.run_ns(b.run_bytes, b.stride_bytes, b.shared) == max(longer, b.run_bytes / T.dram_gb_s)


@pytest.mark.parametrize(
    ("types", "passes"),
    [
        (("int8", "int8", "int32", ""), ["zero_i32"]),
        (("int8", "int2", "int32", ""), ["zero_i32", "unscale_i32"]),
        (("int8", "int8", "int8", "int32"), ["zero_i32", "finish_i32_i8"]),
        (("int8", "int2", "bf16", "int32"), ["zero_i32", "finish_i32_bf16"]),
        (("bf16", "bf16", "bf16", "f32"), ["zero_f32", "finish_f32_bf16"]),
        (("bf16", "bf16", "bf16", "bf16"), ["zero_bf16"]),
    ],
)
def test_a_tile_s_ends_are_its_passes_over_c_with_calls_and_two_locks(types: tuple[str, ...], passes: list[str]):
    a, b, c, accumulator = types
    found = estimate(case(a=a, b=b, c=c, accumulator=accumulator, b_layout="row", n=32), kernel=KernelCycles(9, ""))
    of_passes = {symbol: pass_cycles(symbol, 16 * 32, AIE2P) for symbol in passes}
    assert found.core.ends == 2 * 13 + 25 * len(passes) + sum(of_passes.values()), of_passes


def test_c_in_parts_leaves_beside_all_but_one_part_of_two_steps():
    facts: dict[str, Any] = {"depth": 640, "kernel": 900, "overhead": 100, "stream_bytes": 8, "resume": 15}
    drains = [core_cycles(64, 64, 64, 1, 1, 4, **facts, c_parts=count).drain for count in (1, 2, 4)]
    assert drains == [2048 + 15, 2048 + 15 - 1000, 2048 + 15 - 1500]
    assert core_cycles(64, 64, 32, 1, 1, 4, **facts, c_parts=4).drain == 0
    assert estimate(case(rho=2, c_in_parts=True), kernel=KERNEL).core.drain == 0


@pytest.mark.parametrize(
    ("kernel", "depth", "facts", "tile", "bound"),
    [
        (1000, 1280, {"overhead": 51, "resume": 15}, 20 * 1051 + 2048 + 15, "compute"),
        (1000, 1280, {"overhead": 51, "c_buffers": 2}, 20 * 1051, "compute"),
        (500, 64, {"overhead": 0, "c_buffers": 2}, 2048, "L1 stream"),
        (300, 1280, {"overhead": 51}, 20 * 512 + 2048, "L1 stream"),
    ],
    ids=["waits for C", "two buffers", "a short K", "a fast kernel"],
)
def test_a_core_takes_the_longer_of_kernel_and_streams_for_each_step(kernel, depth, facts, tile, bound):
    """A tile of 64 x 64 x 64, int8 to int32: A and B come in 512 cycles, C leaves in 2048."""
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=depth, kernel=kernel, stream_bytes=8, **facts)
    assert (core.tile, core.bound) == (tile, bound)


def test_the_published_kernel_sits_exactly_on_the_stream_bound():
    """Taka et al. chose 48x280x48 so that the kernel takes as long as its A: 1680 cycles at 384 MACs, 3360 at 192."""
    for device, rate in (("krackan", 384), ("phoenix", 192)):
        stream = timing_of(device).stream_bytes_per_cycle
        assert stream_in_cycles(48, 280, 48, 1, 1, stream) == 48 * 280 * 48 / rate


@pytest.mark.parametrize(
    ("out", "binds"), [(2000, "compute"), (2001, "compute"), (4000, "compute"), (4001, "L1 stream")]
)
def test_a_core_computes_until_it_waits_for_c_longer_than_it_works(out: int, binds: str):
    assert core_cycles(1, 8, 8, 0, 1, 1, depth=8, kernel=7, overhead=1, stream_bytes=8).bound == "compute"  # both 8
    core = core_cycles(1, 1, 1, 1, 1, 8 * out, depth=2, kernel=900, overhead=100, stream_bytes=8, c_buffers=2)
    assert (core.bound, core.tile) == (binds, max(2000, out))


@pytest.mark.parametrize(("ends", "drain"), [(0, 2000), (500, 1500), (1999, 1), (2000, 0), (2500, 0)])
def test_a_second_buffer_of_c_leaves_beside_the_steps_and_ends_of_the_next_tile(ends: int, drain: int):
    """4000 cycles of stream beside two steps of 1000 and the ends."""
    core = core_cycles(1, 1, 1, 1, 1, 32000, depth=2, kernel=900, overhead=100, stream_bytes=8, c_buffers=2, ends=ends)
    assert (core.drain, core.tile) == (drain, max(2000 + ends, 4000))


@pytest.mark.parametrize(
    ("serial", "bound"),
    [({"dispatch": 5.0}, "compute"), ({"dispatch": 5.1}, "dispatch"), ({"BD reconfiguration": 5.0}, "compute"),
     ({"BD reconfiguration": 5.1}, "BD reconfiguration"), ({"dispatch": 6.0, "BD reconfiguration": 7.0}, "dispatch"),
     ({"fill and drain": 9.0}, "compute")],
)  # fmt: skip
def test_what_is_added_binds_where_it_takes_longer_than_the_slowest_resource(serial: dict[str, float], bound: str):
    found = replace(estimate(case(M=32, K=32, N=96)), parallel={"L1 stream": 4.0, "compute": 5.0}, serial=serial)
    assert found.bound == bound


def test_padding_binds_above_twice_the_work():
    deep = {"K": 32 * 5000, "N": 288, "k_mt": 32, "core_macs_per_cycle": 100.0}
    assert PADDING_BINDS == 2
    assert estimate(case(M=16, **deep)).bound != "padding"
    assert estimate(case(M=15, **deep)).bound == "padding"


@pytest.mark.parametrize(("compute", "stream"), [(50.0, 20.0), (20.0, 50.0)])
def test_cores_alone_take_the_longer_of_kernels_and_streams(compute: float, stream: float):
    """Padded operations over it: 96 x 160 x 288."""
    found = replace(estimate(case()), parallel={"compute": compute, "L1 stream": stream, "DRAM bandwidth": 99.0})
    assert found.core_tops == pytest.approx(2 * 96 * 160 * 288 / 50 / 1e6)


def test_a_job_is_late_from_the_timeout_on():
    found = estimate(case())
    timeout_us = JOB_TIMEOUT_SECONDS * 1e6
    assert replace(found, time_us=timeout_us - 1).late == ""
    assert replace(found, time_us=timeout_us).late.startswith(f"{JOB_TIMEOUT_SECONDS:.1f} s (modelled) is more than")


def test_ranges_are_those_that_estimates_are_printed_with():
    found = estimate(case())
    assert found.time_range_us == (found.time_us * INTERVAL[0], found.time_us * INTERVAL[1])
    assert found.tops_range == pytest.approx([2 * 95 * 130 * 200 / time / 1e6 for time in found.time_range_us[::-1]])


def test_a_tile_fits_until_a_core_s_memory_is_full():
    """A and B twice, C once, parameters and stack fill it to the last byte."""
    m, k, n = 56, 224, 72
    tile = case(m=m, k=k, n=n, c="int8")
    assert STACK_BYTES + 2 * m * k + 2 * k * n + m * n + PARAMETER_BYTES == CORE.memory_bytes
    assert fits(tile)
    assert not fits(replace(tile, k=k + 1))
    assert not fits(replace(tile, c_buffers=2))
    assert fits(replace(tile, c_buffers=2, rho=2))  # A in halves


@pytest.mark.parametrize("types", [("int16", "int8", "int8"), ("int8", "int16", "int8"), ("int8", "int8", "int32")])
def test_a_tile_s_memory_counts_each_operand_by_its_own_type(types: tuple[str, str, str]):
    """A of 96 x k and B of k x 64 twice beside C of 96 x 64: the largest k in steps of 8."""
    a, b, c = types
    sizes = [TYPES[name].bytes for name in types]
    fitting = [k for k in range(8, 512, 8) if fits(case(m=96, k=k, n=64, a=a, b=b, c=c))]
    free = CORE.memory_bytes - STACK_BYTES - PARAMETER_BYTES - 96 * 64 * sizes[2]
    assert fitting[-1] == free // (2 * (96 * sizes[0] + 64 * sizes[1])) // 8 * 8


def test_the_fastest_tile_keeps_known_sizes_and_falls_back_to_the_smallest():
    def make(m: int, k: int, n: int) -> GemmCase:
        return case(m=m, k=k, n=n, k_mt=k, M=4096, K=4096, N=4096)

    m, k, n = fastest_tile((None, 64, None), make)
    assert k == 64
    best = estimate(make(m, k, n)).tops
    assert all(estimate(make(*other)).tops <= best for other in ((32, 64, 32), (64, 64, 64), (48, 64, 96)))
    assert fastest_tile((None, 4096, None), make) == (32, 4096, 32)


@pytest.mark.parametrize(
    ("size", "staged", "stride"), [(512, True, 512), (512, False, 4096), (4096, False, 4096), (8192, False, 8192)]
)
def test_runs_of_contractions_follow_one_another_where_they_are_staged(size: int, staged: bool, stride: int):
    assert _run(size, staged) == (size, stride)


@pytest.mark.parametrize(("cycles", "bound"), [(18, "dispatch"), (18_000_000, "compute")])
def test_a_run_of_any_operator_is_modelled_by_its_cost(cycles: float, bound: str):
    cost = Cost(1000, cycles, read_bytes=64_000, write_bytes=32_000, channel_bytes=16_000, run_bytes=64)
    found = cost_estimate(SimpleNamespace(cost=lambda _: cost), None, T)  # type: ignore[arg-type]
    assert found.bound == bound
    share = min(T.shim_read_share, T.shim_write_share)
    parallel = {
        "compute": cycles / 1.8e3,
        "shim channel": ceil(16_000 / 8) / 1.8e3 / share,
        "DRAM bandwidth": max(64 / T.dram_read_gb_s, 32 / T.dram_write_gb_s, 96 / T.dram_gb_s),
    }
    assert found.parallel == pytest.approx(parallel)
    assert found.serial == {"dispatch": T.dispatch_ns / 1e3, "last token": T.controller_sync_ns / 1e3}
    added = sum(found.serial.values())
    assert found.time_range_us == pytest.approx((max(parallel.values()) + added, sum(parallel.values()) + added))
    joined = sum(time**OVERLAP_EXPONENT for time in parallel.values()) ** (1 / OVERLAP_EXPONENT)
    assert found.time_us == pytest.approx(joined + added)
    assert found.gb_s == pytest.approx(96_000 / found.time_us / 1e3)
    slowest = max(found.parallel.values())
    told = [replace(found, serial={"dispatch": slowest + more}).bound for more in (0.0, 0.1)]
    assert told == [max(parallel, key=lambda name: parallel[name]), "dispatch"]


def test_edges_move_the_rows_that_hold_data():
    used, whole = case(m_used=4), case()
    assert (whole.fill_bytes(), whole.round_bytes()) == (32 * (2 * 16 + 4 * 24), 4 * 2 * 16 * 24 * 4)
    assert (used.fill_bytes(), used.round_bytes()) == (32 * (2 * 4 + 4 * 24), 4 * 2 * 4 * 24 * 4)
    assert case(a="int16", b="int4", c="int8").fill_bytes() == 32 * (2 * 16 * 2 + 4 * 24 / 2)
