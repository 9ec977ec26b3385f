"""Estimates: which bound binds, and how time answers to a design's numbers."""

from dataclasses import replace
from typing import Any

import pytest

from bdforge.devices.timing import STRIX_HALO
from bdforge.perf import BOUNDS, GemmCase, estimate
from bdforge.perf.bounds.estimate import reconfiguration_ns


def case(**changes) -> GemmCase:
    """A balanced int8 GEMM on Krackan that its cores bind."""
    facts: dict[str, Any] = {
        "device": "krackan", "a": "int8", "b": "int8", "c": "int8", "m": 144, "k": 72, "n": 144, "k_mt": 432, "rows": 4,
        "columns": 8, "M": 4032, "K": 4320, "N": 4608, "b_layout": "column", "core_macs_per_cycle": 300.0,
    }  # fmt: skip
    return GemmCase(**{**facts, **changes})


@pytest.mark.parametrize(
    ("bound", "changes"),
    [
        ("compute", {}),
        (
            "L1 stream",
            {"core_macs_per_cycle": 5000.0, "n": 32, "a": "int32", "a_shims": 2, "rows": 1, "N": 512},
        ),
        ("DRAM run length", {"k_mt": 72}),
        ("shim requests", {"k_mt": 72, "K": 3960, "columns": 4}),
        ("DRAM bandwidth", {"m": 32, "n": 64, "k": 128, "k_mt": 512, "core_macs_per_cycle": 500.0, "K": 4096}),
        ("shim channel", {"columns": 1, "core_macs_per_cycle": 500.0, "n": 32, "a": "int16"}),
        ("dispatch", {"M": 576, "K": 432, "N": 1152}),
        ("padding", {"M": 577, "N": 1153, "K": 43200}),
        ("BD reconfiguration", {"K": 432, "bd_overlap": False, "core_macs_per_cycle": 450.0}),
    ],
)
def test_each_bound_binds_where_it_should(bound, changes):
    assert bound in BOUNDS
    found = estimate(case(**changes))
    assert found.bound == bound, (found.parallel, found.serial)


def test_many_small_transfers_make_the_controller_bind():
    slow = replace(STRIX_HALO, controller_transfer_ns=20_000)
    assert estimate(case(), timing=slow).bound == "controller"


def test_the_parts_of_the_time_sum_to_it():
    for changes in ({}, {"k_mt": 72}, {"bd_overlap": False}, {"M": 577}):
        found = estimate(case(**changes))
        assert sum(found.exposed().values()) == pytest.approx(found.time_us)


def test_tops_count_useful_operations_only():
    whole, padded = estimate(case()), estimate(case(M=4031))
    assert padded.time_us == whole.time_us
    assert padded.tops == pytest.approx(whole.tops * 4031 / 4032)
    assert padded.padding == pytest.approx(4032 / 4031)


def test_cores_alone_reach_the_printed_peak():
    # Taka et al. table 3: 39.52 TOPS of peak computation at 343 MACs a cycle; C's drain and the locks come off.
    found = estimate(case(core_macs_per_cycle=343.0))
    assert 0.95 * 39.52 < found.core_tops < 39.52


def test_a_deeper_slab_never_slows_a_design_down():
    times = [estimate(case(k_mt=72 * slices, core_macs_per_cycle=450.0)).time_us for slices in (1, 2, 3, 5, 6)]
    assert times == sorted(times, reverse=True)
    deep = estimate(case(k_mt=720, core_macs_per_cycle=450.0)).time_us
    assert deep == pytest.approx(times[-1], rel=0.05)  # whole bursts that no page limits, and more to fill


def test_without_bd_overlap_every_round_waits_for_its_edges():
    together, apart = estimate(case()), estimate(case(bd_overlap=False))
    per_round = reconfiguration_ns(case(), case().timing) / 1e3
    assert apart.time_us - together.time_us == pytest.approx(case().rounds * per_round)
    # 20 BDs at 525 ns, a channel start, the token, and C of 663552 B and slabs of 746496 B at the port's rates.
    assert per_round == pytest.approx((20 * 525 + 330 + 8000 + 663552 / 55.3 + 746496 / 55.5) / 1e3)


def test_asymmetric_buffering_pays_a_switch_for_each_microkernel():
    plain, split = (estimate(case(rho=rho, core_macs_per_cycle=None)) for rho in (1, 4))
    assert split.core.kernel - plain.core.kernel == 3 * 51
    published = [estimate(case(rho=rho)).core.kernel for rho in (1, 4)]
    assert published[0] == published[1]  # a core's published rate holds its switches


def test_used_rows_cost_the_compute_of_whole_tiles_and_the_traffic_of_data():
    """8 of 144 rows hold data: every tile is computed whole, but A and C move 8 rows, and B comes for each 32 rows."""
    few, whole = case(M=32, m_used=8), case(M=576)
    assert few.rounds == whole.rounds
    assert estimate(few).parallel["compute"] == pytest.approx(estimate(whole).parallel["compute"])
    a, b, c = few.dram_traffic()
    for few_bytes, all_bytes, share in zip((a, b, c), whole.dram_traffic(), (18, 1, 18), strict=True):
        assert few_bytes.size_bytes == all_bytes.size_bytes / share
    assert estimate(few).padding == pytest.approx(18)


def test_resident_weights_are_read_once():
    stays, comes = case(b_kept=1.0), case()
    assert stays.dram_traffic()[1].size_bytes == 4320 * 4608
    assert comes.dram_traffic()[1].size_bytes == 4320 * 4608 * (4032 // 576)
    assert case(b_kept=0.5).dram_traffic()[1].size_bytes == 4320 * 4608 * (1 + 4032 // 576) / 2
    assert estimate(stays).parallel["DRAM bandwidth"] < estimate(comes).parallel["DRAM bandwidth"]


def test_a_lower_clock_slows_only_what_the_array_does():
    fast, slow = estimate(case()), estimate(case(clock_hz=0.9e9))
    assert slow.parallel["compute"] == pytest.approx(2 * fast.parallel["compute"])
    assert slow.parallel["DRAM bandwidth"] == fast.parallel["DRAM bandwidth"]
