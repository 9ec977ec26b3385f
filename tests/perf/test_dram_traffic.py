"""DRAM traffic against panels counted one by one and against published figures."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.traffic import (
    a_bytes,
    arithmetic_intensity,
    b_bytes,
    balanced_m,
    c_bytes,
    compute_seconds,
    memory_seconds,
    padded,
    ridge,
)

small = st.integers(1, 5)


def case(**changes) -> GemmCase:
    facts: dict[str, Any] = {
        "device": "krackan", "a": "int8", "b": "int8", "c": "int32", "m": 16, "k": 8, "n": 24, "k_mt": 16, "rows": 4,
        "columns": 8, "M": 128, "K": 48, "N": 384, "b_layout": "column",
    }  # fmt: skip
    return GemmCase(**{**facts, **changes})


@settings(deadline=None, derandomize=True, max_examples=50)
@given(small, small, small, small, small, small)
def test_traffic_counts_every_panel(m_panels, k, n_panels, m, n, columns):
    rows = 3
    M, N = m_panels * m * rows, n_panels * n * columns
    a = b = 0
    for _ in range(m_panels):
        for _ in range(n_panels):
            a += m * rows * k  # one copy for all columns
            b += n * columns * k  # one copy for all rows
    assert a_bytes(M, k, N, 1, n, columns) == pytest.approx(a)
    assert b_bytes(M, k, N, 1, m, rows) == pytest.approx(b)


def test_a_published_sum_of_traffic():
    # IRON's operator, 64^3 tiles on 4x8, bf16, 1024x1536x6144: 126 MB.
    iron = case(a="bf16", b="bf16", c="bf16", m=64, k=64, n=64, k_mt=64, M=1024, K=1536, N=6144, b_layout="row")
    assert sum(t.size_bytes for t in iron.dram_traffic()) / 1e6 == pytest.approx(126, abs=0.5)


@pytest.mark.parametrize(
    ("m", "n", "K", "a", "b", "c", "printed", "memory_bound"),
    [
        (64, 64, 4224, 2, 1.25, 2, 216, 14.1),
        (64, 64, 4480, 2, 1.25, 2, 217, 14.1),
        (96, 64, 4096, 1.25, 1.25, 1.25, 333, 21.7),
        (256, 128, 4096, 1.25, 1.25, 1.25, 728, 47.3),
        (96, 128, 4096, 1.25, 1.25, 1.25, 418, 27.2),
    ],
)
def test_arithmetic_intensity_is_what_wang_et_al_print(m, n, K, a, b, c, printed, memory_bound):
    found = arithmetic_intensity(m, n, K, a, b, c, rows=4, columns=8)
    assert found == pytest.approx(printed, rel=0.01)
    assert found * 65e9 / 1e12 == pytest.approx(memory_bound, rel=0.01)


def test_peak_compute_times_are_those_of_the_tables():
    # Taka et al., Krackan int8-int8: 343 MACs a cycle on 32 cores at 1.8 GHz are 39.5 TOPS.
    seconds = compute_seconds(4032, 4320, 4608, 343.0, 32, 1.8e9)
    assert 2 * 4032 * 4320 * 4608 / seconds / 1e12 == pytest.approx(39.52, abs=0.02)
    assert memory_seconds(50e9, 50) == 1


def test_at_the_balanced_point_compute_and_memory_take_equally_long():
    K, n, a, b, c = 4320, 112, 1, 1, 2
    m = balanced_m(n, K, a, b, c, rows=4, columns=8, intensity=ridge(35.4, 50))
    for tile, memory_binds in ((int(m), True), (int(m) + 1, False)):
        M, N = 4 * tile * 3, n * 8 * 5
        traffic = a_bytes(M, K, N, a, n, 8) + b_bytes(M, K, N, b, tile, 4) + c_bytes(M, N, c)
        assert (memory_seconds(traffic, 50) > 2 * M * K * N / 35.4e12) is memory_binds
    assert balanced_m(16, K, a, b, c, rows=4, columns=8, intensity=ridge(35.4, 2)) == float("inf")
    # A alone moves a byte for each two operations of one column with n = 1: an intensity of 2 leaves nothing for B.
    assert balanced_m(1, K, 1, 1, 0, rows=4, columns=1, intensity=2) == float("inf")


def test_padding_is_counted_in_whole_panels():
    odd = case(M=65, K=17, N=193)
    assert odd.padded == (128, 32, 384)
    assert odd.rounds == 4
    assert odd.padded_macs == 128 * 32 * 384
    assert padded(64, 64) == 64
    assert [t.size_bytes for t in odd.dram_traffic()] == [t.size_bytes for t in case(M=128, K=32, N=384).dram_traffic()]


@pytest.mark.parametrize(
    ("changes", "operand", "run", "stride"),
    [
        ({}, 0, 16, 48),
        ({"a_layout": "column"}, 0, 16, 128),
        ({}, 1, 16, 48),
        ({"b_layout": "row"}, 1, 24, 384),
        ({"b_layout": "packed"}, 1, 48 * 24, 48 * 24),
        ({"b": "int2", "b_layout": "packed"}, 1, 48 * 24 / 4, 48 * 24 / 4),
        ({}, 2, 24 * 4, 384 * 4),
        ({"c_layout": "column"}, 2, 16 * 4, 128 * 4),
        ({"a": "bfp16"}, 0, 8 * 16 * 1.125, 8 * 48 * 1.125),
        # Lines shorter than a run: the next run begins at its end.
        ({"K": 5}, 0, 16, 16),
        ({"N": 10}, 2, 24 * 4, 24 * 4),
        ({"K": 16}, 1, 16, 16),
        ({"K": 17}, 0, 16, 17),
    ],
)
def test_runs_follow_the_layout(changes, operand, run, stride):
    moved = case(**changes).dram_traffic()[operand]
    assert (moved.run_bytes, moved.stride_bytes) == (run, stride)


def test_a_comes_through_as_many_channels_as_rows_and_columns_allow():
    found = [case(columns=c, a_shims=s).dram_traffic()[0].channels for c, s in ((8, 1), (8, 2), (2, 1), (1, 2))]
    assert found == [4, 8, 2, 1]
