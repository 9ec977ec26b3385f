"""What is told of a planned contraction, and its price, worked out by hand for small ones."""

from collections.abc import Mapping
from functools import cache
from itertools import product

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators.contraction import ContractionError, ContractionPlan, contraction, plan_contraction
from bdforge.operators.contraction.price import Price, useful
from bdforge.operators.contraction.report import report_lines
from bdforge.operators.gemm import GemmPlan
from support.built_designs import small_gemm
from support.differences import same

STRIX_HALO = device_named("strix_halo")
FUSED, GIVEN = "aebf,fdec->abcd", {"a": 3, "b": 4, "c": 5, "d": 2, "e": 3, "f": 6}


@cache
def small() -> GemmPlan:
    """Tiles of 8 x 16 x 8 on 2 x 2 cores."""
    return small_gemm(8, 16, 8, types=("int8", "int8", "int32"), layouts="row row row")


def planned(expression: str, sizes: Mapping[str, int], staged: str | None = None, once: str = "") -> ContractionPlan:
    return plan_contraction(contraction(expression, sizes), small(), staged, once)


def test_a_contraction_in_place_is_told_line_by_line():
    sizes = {"a": 4, "b": 8, "k": 32, "n": 48}
    lines = list(report_lines(contraction("abk,kn->abn", sizes), planned("abk,kn->abn", sizes)))
    same(lines, """\
dimensions, by the tensors that have them
  M a = 4, strides 256, -, 384
  M b = 8, strides 32, -, 48
  N n = 48, strides -, 1, 1
  K k = 32, strides 1, 48, -
fused, where one walk goes through both in every tensor that stays in place
  M ab = 32
tiles of 8 x 16 x 8
  M: 8 of ab = 32
  N: 8 of n = 48
  K: 16 of k = 32
  100% of the cores' work is the answer's
operands
  A in place, in runs of 16 B
  B in place, in runs of 8 B
  C in place, in runs of 32 B
loops: type, execution, size, strides in the first input, the second one, the output
  M seq            2  strides 512, 0, 768  ab
  M spatial        2  strides 256, 0, 384  ab
  N shared         3  strides 0, 16, 16  n
  N spatial        2  strides 0, 8, 8  n
  K seq            2  strides 16, 768, 0  k
  M prim           8  strides 32, 0, 48  ab
  N prim           8  strides 0, 1, 1  n
  K prim          16  strides 1, 48, 0  k
touches of a tile of the output: zero first, none last
sequence: 2 steps, at most 3 BDs of a shim in each
modelled: cores 0 us, memory 4 us, controller 6 us, together 7 us; copies on the host 0 us""".splitlines())  # fmt: skip


def test_staged_operands_are_told_with_what_they_gain_or_why_they_must_be():
    """Inputs were exchanged; B is staged before the run and costs nothing; C would cost more in place."""
    expression, sizes = "mk,nk->nm", {"m": 20, "k": 35, "n": 64}
    plan = planned(expression, sizes, once="B")
    lines = list(report_lines(contraction(expression, sizes), plan, "B"))
    same([line.strip() for line in lines if "staged" in line or "exchanged" in line or "work" in line], [
        "46% of the cores' work is the answer's",
        "A staged tile by tile, 0 us to copy: in place m has a stride of 35 elements, no whole words",
        "B staged tile by tile, copied before: in place n has a stride of 35 elements, no whole words",
        "C staged tile by tile, 2 us to copy: gains 4 us of 13 us with it in place",
    ])  # fmt: skip
    assert lines[-1].endswith("together 6 us; copies on the host 2 us")
    assert useful(plan.choice.mapped) == pytest.approx(20 * 35 * 64 / (32 * 48 * 64))


def test_inputs_that_are_exchanged_are_told():
    """The first input's 8 columns of N are fewer than its tiles take: as M they are one tile for each row."""
    told_of = {}
    for expression in ("mk,kn->mn", "kn,mk->mn"):
        sizes = {"m": 32, "k": 16, "n": 32}
        lines = report_lines(contraction(expression, sizes), planned(expression, sizes, staged=""))
        told_of[expression] = "inputs exchanged: the second one gives M, the first one N" in list(lines)
    assert told_of == {"mk,kn->mn": False, "kn,mk->mn": True}


@pytest.mark.parametrize(("expression", "sizes", "staged", "cycles", "transfers", "copied"), [
    # 1 x 4 tiles of C a core, 2 slabs of K: 8 x 16 x 8 MACs, 512 a cycle; A, B and C are a BD each, of two shims.
    ("mk,kn->mn", {"m": 16, "k": 32, "n": 64}, "", 4 * 2 * 1024 / 512, 6, (0, 0, 0)),
    # 2 tiles of M for each row, in steps of their own.
    ("mk,kn->mn", {"m": 32, "k": 16, "n": 16}, "", 2 * 1024 / 512, 2 * 6, (0, 0, 0)),
    # 2 x 16 by 2 x 16 positions of A, of B 2 x 16 by 2 x 8, of C 2 x 8 by 2 x 8 with 4 bytes each; A and B have
    # fused dimensions that are no one walk of theirs, which are copied once before: 216 and 180 bytes.
    (FUSED, GIVEN, "ABC", 2 * 1024 / 512, 6, (512 + 216, 512 + 180, 1024)),
    # A as large as its buffer.
    ("mk,kn->mn", {"m": 16, "k": 32, "n": 16}, "A", 2 * 1024 / 512, 6, (512, 0, 0)),
])  # fmt: skip
def test_a_price_is_what_cores_controller_and_copies_take(expression, sizes, staged, cycles, transfers, copied):
    plan, timing = planned(expression, sizes, staged), timing_of(STRIX_HALO)
    found = plan.choice.price
    assert found.core_us * 1e3 == pytest.approx(cycles * 1e9 / timing.array_hz)
    assert found.controller_us * 1e3 == pytest.approx(transfers * timing.controller_transfer_ns)
    assert found.copies_us == pytest.approx([size / 4.0 / 1e3 for size in copied])  # 4 GB/s
    assert plan.cost(plan.problem).core_cycles == cycles


@pytest.mark.parametrize(("rows", "columns", "staged", "longest"), [
    (2, 2, "", "requests"), (2, 4, "ABC", "requests"), (2, 4, "", "alone"), (4, 8, "", "alone"),
    (4, 8, "ABC", "port"),
])  # fmt: skip
def test_memory_takes_as_long_as_requests_port_or_runs_alone(rows: int, columns: int, staged: str, longest: str):
    """64 x 32 by 32 x 64: 8 x 8 tiles of C in 2 slabs; a row's A passes for each of its tiles, a column's B too.

    In place runs are lines of tiles, a page apart; staged they are whole tiles. As many shims as rows bring A.
    """
    timing = timing_of(STRIX_HALO)
    a, b, c = 64 // columns * 2 * (8 * 16), 64 // rows * 2 * (16 * 8), 64 * (8 * 8 * 4)
    runs = (8 * 16, 16 * 8, 8 * 8 * 4) if staged else (16, 8, 8 * 4)
    moved = list(zip((a, b, c), runs, (rows, columns, columns), strict=True))
    apart = [run if staged else timing.dram_page_bytes for run in runs]
    times = {
        "requests": sum(float(timing.shim_ns(size / shims, run, columns)) for size, run, shims in moved),
        "alone": sum(
            size / run * float(timing.run_ns(run, far, False)) for (size, run, _), far in zip(moved, apart, strict=True)
        ),
        "port": float(timing.port_ns(a + b, c)),
    }
    gemm = small_gemm(8, 16, 8, types=("int8", "int8", "int32"), layouts="row row row", rows=rows, columns=columns)
    found = plan_contraction(contraction("mk,kn->mn", {"m": 64, "k": 32, "n": 64}), gemm, staged).choice.price
    assert max(times.values()) == pytest.approx(times[longest])
    assert found.memory_us * 1e3 == pytest.approx(times[longest])


@pytest.mark.parametrize(("once", "copies"), [("", 7), ("A", 6), ("BC", 1), ("ABC", 0)])
def test_copies_made_before_cost_nothing(once: str, copies: float):
    """The array takes nearly the longest of its times, 2, by their fourth powers: (2^4 + 1 + 1)^(1/4)."""
    assert Price(2.0, 1.0, 1.0, (1.0, 2.0, 4.0)).total_us(once) == pytest.approx(18**0.25 + copies)


def test_copies_of_weights_of_two_bits_read_them_from_bytes():
    """32 x 64 int8 of the user's become a quarter of as many bytes."""
    gemm = small_gemm(8, types=("int8", "int2", "int32"), layouts="row packed row")
    found = plan_contraction(contraction("mk,kn->mn", {"m": 16, "k": 32, "n": 64}), gemm, staged="B")
    assert found.choice.price.copies_us == pytest.approx((0, 32 * 64 / 4.0 / 1e3, 0))


@pytest.mark.parametrize(("types", "layouts", "swapped"), [
    (("int8", "int8", "int32"), "row packed row", True), (("int8", "int2", "int32"), "row packed row", False),
])  # fmt: skip
def test_only_inputs_of_one_type_are_exchanged(types: tuple[str, str, str], layouts: str, swapped: bool):
    """8 columns would fill a quarter of a tile of 32; as rows they fill one of 8."""
    gemm = small_gemm(8, types=types, layouts=layouts)
    found = plan_contraction(contraction("mk,kn->mn", {"m": 512, "k": 64, "n": 8}), gemm)
    assert found.choice.contraction.swapped is swapped


def test_random_inputs_differ_from_each_other_and_by_their_seed():
    sizes = {"m": 16, "k": 16, "n": 16}
    plan = planned("mk,kn->mn", sizes, staged="")
    one, other = (plan.random(plan.problem, seed) for seed in (1, 2))
    same(plan.random(plan.problem, 1)["A"], one["A"])
    assert (one["A"] != one["B"]).any()
    assert (one["A"] != other["A"]).any()


def test_labels_of_k_are_summed_tile_by_tile():
    """Narrow sums saturate at each step, so their order counts: all tiles, and in each the positions of both labels."""
    plan = planned("mcd,dcn->mn", {"m": 16, "c": 8, "d": 12, "n": 16}, staged="")
    side = plan.sides[0]
    first, second = side.tiles.k
    assert first.count > 1 < second.size, (first, second)
    steps = {"c": 12, "d": 1}
    tiles = product(range(first.count), range(second.count), range(first.size), range(second.size))
    wanted = [
        steps[first.dim.name] * (tile * first.size + at) + steps[second.dim.name] * (other * second.size + there)
        for tile, other, at, there in tiles
    ]
    rows = plan._matrices(side, np.arange(16 * 96).reshape(16, 8, 12), 0)
    same(rows[0], np.array(wanted).reshape(1, -1) + 96 * np.arange(16).reshape(-1, 1))


def test_fused_dimensions_of_every_kind_are_told():
    sizes = {"a": 4, "b": 8, "c": 2, "d": 16, "e": 4, "f": 8}
    lines = list(report_lines(contraction("abcd,cdef->abef", sizes), planned("abcd,cdef->abef", sizes, staged="")))
    assert [line.strip() for line in lines if line.endswith(("ab = 32", "ef = 32", "cd = 32")) and ":" not in line] == [
        "M ab = 32", "K cd = 32", "N ef = 32",
    ]  # fmt: skip


def test_what_must_be_staged_for_its_steps_says_so():
    """Eight rows of a tile, each 2^21 words from the next one."""
    sizes = {"m": 16, "k": 16, "n": 16}
    given = contraction("mk,kn->mn", sizes, ([1 << 23, 1], None, None))
    (line,) = (
        line.strip() for line in report_lines(given, plan_contraction(given, small())) if line.startswith("  A ")
    )
    assert ": in place it steps 2097152 words, a BD's longest step is 1048576; stage it" in line


def test_every_reason_why_nothing_fits_is_told_in_a_line_of_its_own():
    with pytest.raises(ContractionError) as caught:
        planned("mk,kn->mn", {"m": 4, "k": 12, "n": 5}, staged="")
    told_of = "{} has {}, less than a tile of {} in {}: stage it"
    assert str(caught.value).split("\n  - ") == [
        "no mapping fits the shims:", told_of.format("M", "m = 4", 8, "A and C"),
        told_of.format("N", "n = 5", 8, "B and C"), told_of.format("K", "k = 12", 16, "A and B"),
        told_of.format("M", "n = 5", 8, "A and C"), told_of.format("N", "m = 4", 8, "B and C"),  # exchanged
    ]  # fmt: skip
