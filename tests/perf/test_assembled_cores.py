"""Exact cycles of whole cores: what is around the kernels, worked out by hand."""

from typing import Any

import pytest

from bdforge.perf.assembled.counted_core import CoreCosts, core_costs
from support.built_designs import small_gemm

LOCK_PORT, BRANCH, SLOTS = 4, 1, 5
"""Cycles from a lock operation to the next one, of a branch, and of the slots behind it, where no lock may be."""

RETURN_TO_LOOP = LOCK_PORT + 1 + BRANCH + SLOTS  # two releases, then back to the start of the loop
INTO_KERNEL = LOCK_PORT + 1 + BRANCH + SLOTS  # two acquires, then the call


def costs(tile: tuple[int, int, int] = (16, 16, 32), **buffers: Any) -> CoreCosts:
    facts: dict[str, Any] = {"k_mt": 4 * tile[1], **buffers}
    return core_costs(small_gemm(*tile, rows=1, columns=1, **facts))


@pytest.mark.slow
def test_a_step_of_k_takes_two_pairs_of_locks_a_call_and_a_branch():
    found = costs()
    assert found.step.of("main") == RETURN_TO_LOOP + INTO_KERNEL == 22
    assert found.step.of("main") <= 0.03 * (1075 + 22)  # a step of the flagship at 490 MACs a cycle


@pytest.mark.slow
def test_each_part_of_a_step_takes_a_pair_of_locks_a_call_and_a_branch():
    one_lock = 3 + BRANCH + SLOTS  # the call's arguments, or the loop's end, and a lock among them
    part = 2 * (one_lock - 1)  # a lock shares its cycle with an argument there
    assert costs((64, 16, 32), rho=4).step.of("main") == LOCK_PORT + 4 * part + one_lock == 77


@pytest.mark.slow
def test_a_tile_of_c_is_zeroed_and_unscaled():
    found = costs()
    zero, unscale = found.ends.of("zero_i32"), found.ends.of("unscale_i32")
    assert 16 * 32 * 4 / 64 <= zero <= 90  # a store of 64 bytes a cycle at best
    assert unscale >= 3 / 4 * 16 * 32 * 4 / 64
    assert found.ends.total == found.ends.of("main") + zero + unscale
    assert found.ends.of("main") == 30


def test_no_product_is_left_in_a_tile_s_ends_where_its_first_and_last_step_stand_apart():
    found = costs((16, 8, 32), rho=2, residency="b", c_in_parts=True, c_memtile_buffers=1)
    assert found.ends.issue.get(found.multiply, 0) == 0
    assert found.step.issue[found.multiply] > 0


def test_steps_cost_the_same_in_any_number():
    small, deep = costs(), costs(k_mt=32)
    assert (small.step, small.ends) == (deep.step, deep.ends)
