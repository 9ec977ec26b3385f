"""Kernels known by rate."""

import pytest

from bdforge.devices import AIE2P
from bdforge.perf.kernels.rates import FORMS_FILE, compiled_share, fitted_kernel, fitted_kernels, kernel_cycles
from tools.fit.kernel_rates import Rate, fit_kernel, fitted_forms, forms_csv, published_rates


def test_a_published_rate_is_taken_as_it_is():
    found = kernel_cycles("AIE2P", ("int8", "int8", "int8"), 144, 72, 144, macs_per_cycle=343.0)
    assert found.cycles == 144 * 72 * 144 / 343.0
    assert found.basis == "assumed: the rate that was given"


@pytest.mark.parametrize(
    ("key", "rate", "per_c", "worst"),
    [
        (("AIE2P", "int8", "int8", "int8"), 529, 0.076, 0.010),
        (("AIE2P", "int8", "int8", "int16"), 534, 0.108, 0.037),
        (("AIE2P", "int8", "int8", "int32"), 471, 0.130, 0.067),
        (("AIE2P", "bf16", "bf16", "bf16"), 175, 0.085, 0.030),
        (("AIE2", "int8", "int8", "int8"), 258, 0.096, 0.007),
        (("AIE2", "int8", "int8", "int32"), 230, 0.237, 0.029),
        (("AIE2", "bf16", "bf16", "bf16"), 130, 0.128, 0.008),
    ],
)
def test_fitted_forms_and_their_worst_errors(key, rate, per_c, worst):
    form = fitted_kernels()[key]
    assert form.macs_per_cycle == pytest.approx(rate, abs=0.51)
    assert form.cycles_per_c == pytest.approx(per_c, abs=0.001)
    rates = [r for r in published_rates() if (r.generation.name, *r.types) == key]
    assert max(abs(form.cycles(r.m, r.k, r.n) / r.cycles - 1) for r in rates) < worst


def test_a_form_recovers_the_parameters_that_made_its_rows():
    rates = [
        Rate("made", "krackan", ("int8", "int8", "int8"), m, k, n, 1, m * k * n / (m * k * n / 400 + 0.2 * m * n))
        for m, k, n in ((32, 64, 48), (96, 16, 80), (64, 128, 64))
    ]
    form = fit_kernel(rates)
    assert (form.macs_per_cycle, form.cycles_per_c) == pytest.approx((400, 0.2))


def test_the_table_of_forms_is_the_fit_s():
    assert FORMS_FILE.read_text(encoding="utf-8") == forms_csv(), "run python -m tools.fit"


@pytest.mark.parametrize(
    ("types", "like"),
    [("int8 int2 int32", "int8 int8 int32"), ("int8 int8 bf16", "int8"), ("int16 int16 int32", "")],
)
def test_what_compiled_kernels_reach_is_told_by_the_nearest_types(types: str, like: str):
    """The same A and C, else the same A, else all; each published tile counts as much, and no share is above 1."""
    rows = [form for key, form in fitted_kernels().items() if key[0] == "AIE2P" and " ".join(key[1:]).startswith(like)]
    a, b, c = types.split()
    mean = sum(form.rows * form.share for form in rows) / sum(form.rows for form in rows)
    assert compiled_share((a, b, c), AIE2P) == pytest.approx(min(mean, 1))
    assert compiled_share(("bf16", "bfp16", "bf16"), AIE2P) == 1


def test_packed_weights_take_the_form_of_what_they_become():
    assert fitted_kernel("AIE2P", ("int8", "int2", "int32")) == fitted_kernels()["AIE2P", "int8", "int8", "int32"]
    assert fitted_kernel("AIE2P", ("bf16", "int4", "bf16")) == fitted_kernels()["AIE2P", "bf16", "bfp16", "bf16"]


def test_sources_can_be_left_out_of_the_fit():
    all_rows, fewer = (fitted_forms(frozenset(out)) for out in ((), ("taka-table3",)))
    assert fewer["AIE2P", "int8", "int8", "int8"].rows == 1
    assert all_rows["AIE2P", "int8", "int8", "int8"].rows == 3
    assert ("AIE2P", "bfp16", "bfp16", "bfp16") not in fitted_forms(frozenset({"wang-table2"}))


@pytest.mark.parametrize(("source", "rho", "around"), [("wang-a", 4, 4 * 51), ("wang-a", 1, 51), ("taka", 4, 0)])
def test_rates_of_a_core_have_the_switches_of_each_microkernel_taken_off(source, rho, around):
    rate = Rate(source, "krackan", ("int8", "int8", "int8"), 64, 64, 64, rho, 64.0)
    assert rate.cycles == 64 * 64 - around


SCALED = [  # generation and types, the nearest form, peaks of both, bytes of C of both
    ("AIE2", "int16 int16 int16", "int8 int8 int16", (64, 256), (2, 2)),
    ("AIE2P", "int16 int8 int32", "int8 int8 int32", (256, 512), (4, 4)),
    ("AIE2P", "int8 bf16 bf16", "int8 int8 int16", (256 / 4, 512), (2, 2)),  # a quarter of bf16's: no unit has it
    ("AIE2P", "bf16 int8 f32", "bf16 bf16 bf16", (256 / 4, 256), (4, 2)),
    ("AIE2P", "bf16 int2 f32", "bf16 bfp16 bf16", (512, 512), (4, 2)),
    ("AIE2P", "bfp16 int4 f32", "bfp16 bfp16 bfp16", (512, 512), (4, 9 / 8)),
    ("AIE2", "bfp16 bfp16 bfp16", "int8 int8 int8", (128 / 4, 256), (9 / 8, 1)),
    ("AIE2P", "f32 f32 f32", "int8 int8 int32", (256 / 4, 512), (4, 4)),
]


@pytest.mark.parametrize(("generation", "types", "nearest", "peaks", "sizes"), SCALED)
def test_the_nearest_form_shares_generation_then_a_then_b_then_the_size_of_c(generation, types, nearest, peaks, sizes):
    a, b, c = types.split()
    near = tuple(nearest.split())
    form, found = fitted_kernels()[generation, *near], fitted_kernel(generation, (a, b, c))  # type: ignore[index]
    told = kernel_cycles(generation, (a, b, c), 32, 32, 32).basis
    assert told == f"modelled: fitted form {found.note}"
    assert found.note == f"scaled from {near[0]} x {near[1]} to {near[2]}"
    assert found.macs_per_cycle == pytest.approx(form.macs_per_cycle * peaks[0] / peaks[1])
    assert found.cycles_per_c == pytest.approx(form.cycles_per_c * sizes[0] / sizes[1])


def test_forms_of_one_row_or_of_a_negative_share_of_c_are_plain_rates():
    def rate(k: int, macs_per_cycle: float) -> Rate:
        return Rate("made", "krackan", ("int8", "int8", "int8"), 64, k, 64, 1, macs_per_cycle)

    one = fit_kernel([rate(64, 300.0)])
    assert (one.macs_per_cycle, one.cycles_per_c) == pytest.approx((300, 0))
    deep_is_slower = fit_kernel([rate(64, 400.0), rate(128, 200.0)])
    assert (deep_is_slower.macs_per_cycle, deep_is_slower.cycles_per_c) == pytest.approx(((400 + 200) / 2, 0))
    assert deep_is_slower.rows == 2
