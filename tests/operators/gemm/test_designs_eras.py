"""Every named design in both forms of the dialect: one design, its comments kept, and no fault in either."""

import re

import pytest

from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import Era, convert
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem
from support.built_designs import named_designs, possible
from support.differences import same
from support.txn_vectors import encode_mlir

LITERAL = re.compile(
    r"use_lock\([^)]*, \d+\)|npu\.(sync|rtp_write)( \{|\(@\w+, \d+, -?\d)|aie\.dma_bd\(%\w+ : memref<[^>]*>,"
)


@pytest.mark.daily("gemm_i8_i8_i32_one_core-strix_halo")
@pytest.mark.parametrize("plan", named_designs().values(), ids=named_designs(), indirect=True)
def test_a_named_design_comes_back_from_the_other_form_letter_for_letter(plan: GemmPlan):
    tile = plan.spec.tile
    march = render(plan, [possible(plan, tile.m + 1, 2 * tile.k + 8, tile.n + 8)])
    modern = convert(march, Era.MODERN)
    assert not LITERAL.search(modern)
    assert convert(modern, Era.MARCH) == march


@pytest.mark.slow
def test_words_and_verdict_of_one_design_are_the_same_in_both_forms(small):
    march = render(small.plan, [GemmProblem(33, 40, 70)])
    modern = convert(march, Era.MODERN)
    assert convert(modern, Era.MARCH) == march
    same(encode_mlir(march), encode_mlir(modern))
    assert verify_design(modern).faults == ()
