"""Norms of rows on the emulated array with their compiled kernels: any number of rows, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator.timed import TimingOptions
from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from
from bdforge.operators.rows import RowsSpec, plan_rows
from bdforge.operators.tile_streams import StreamTiling
from bdforge.perf.assembled.counted_core import core_elfs
from support.loaded_arrays import LoadedArray

WIDTH, EPSILON = 96, 1e-3
LEAST: dict[str, Any] = {"kind": "rows", "function": "rmsnorm", "width": WIDTH, "epsilon": EPSILON}
DESIGNS = {
    "strix_halo": {},
    "phoenix": {"width": 80},
    "one core": {"array": {"rows": 1, "columns": 1}},
    "one buffer": {"buffers": 1, "array": {"rows": 3, "columns": 2}},
}
SMALL = {"rows": 4, "columns": 2}
CHUNKED = {"width": 384, "stack_bytes": 63488, "array": SMALL}
FORMS = {
    "codes": {"codes": True, "width": 128, "array": {"rows": 2, "columns": 2}},
    "codes of sums": {"residual": True, "codes": True, "width": 128, "array": SMALL},
    "phoenix": {"residual": True, "codes": True, "width": 160, "array": SMALL},
    "layernorm of sums": {"function": "layernorm", "residual": True, "array": SMALL},
    "f32": {"x_type": "f32", "array": SMALL},
    "phoenix of f32": {"x_type": "f32", "residual": True, "codes": True, "width": 160, "array": SMALL},
    "layernorm of f32 sums": {
        "function": "layernorm",
        "residual": True,
        "x_type": "f32",
        "residual_type": "f32",
        "array": SMALL,
    },
    "layernorm codes": {"function": "layernorm", "codes": True, "width": 128, "array": SMALL},
    "layernorm codes of sums": {
        "function": "layernorm",
        "residual": True,
        "codes": True,
        "width": 192,
        "x_type": "f32",
        "array": SMALL,
    },
    "phoenix layernorm codes of sums": {
        "function": "layernorm",
        "residual": True,
        "codes": True,
        "width": 160,
        "array": SMALL,
    },
    "layernorm codes of sums in chunks": {
        "function": "layernorm",
        "residual": True,
        "codes": True,
        **CHUNKED,
        "stack_bytes": 62464,
    },
    "layernorm codes in chunks": {"function": "layernorm", "codes": True, **CHUNKED, "x_type": "f32"},
    "bf16 sums of f32": {"residual": True, "residual_type": "f32", "array": SMALL},
    "f32 codes in chunks": {"x_type": "f32", "residual": True, "codes": True, **CHUNKED, "stack_bytes": 62464},
    "in chunks": CHUNKED,
    "codes in chunks": {"codes": True, "buffers": 1, **CHUNKED, "width": 512},
    "sums in chunks": {"residual": True, **CHUNKED},
    "codes of sums in chunks": {"residual": True, "codes": True, **CHUNKED},
    "layernorm in chunks": {"function": "layernorm", **CHUNKED},
    "phoenix in chunks": {"function": "layernorm", "residual": True, **CHUNKED, "width": 240},
}
"""What is not RMSNorm alone; all that memtiles' BDs hold among them, and what cores do not hold."""
ROUND = ("codes of sums", "phoenix")
"""Those that are tried at every edge."""
DAILY = ("codes of sums", "phoenix of f32")
"""What others are made of; those are for the sweep."""


@cache
def loaded(name: str) -> LoadedArray:
    product = name if name in ("strix_halo", "phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from(LEAST | DESIGNS[name], "small"), device_named(product)))


@cache
def loaded_form(name: str) -> LoadedArray:
    product = "phoenix" if name.startswith("phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from(LEAST | FORMS[name], "small"), device_named(product)))


def check(inputs, found) -> None:
    """As the formula in float64, within two roundings and a little; the reference's bound is no wider."""
    x, w = (inputs[name].astype(float) for name in "XW")
    exact = x * w / np.sqrt((x * x).mean(axis=1) + EPSILON)[:, None]
    assert found["Y"].shape == x.shape
    assert (abs(found["Y"].astype(float) - exact) <= 2.0**-7 * 1.04 * abs(exact) + 2.0**-120).all()


def run(name: str, rows: int, seed: int = 0, **options: Any) -> Any:
    design = loaded(name)
    inputs = design.plan.random(design.problem([rows]), seed)
    found, result = design.run([rows], inputs, seed=seed, **options)
    check(inputs, found)
    reference = design.plan.reference(inputs)["Y"]
    assert (abs(found["Y"].astype(float) - reference.values) <= reference.bound).all()
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strix_halo", "phoenix"])
def test_a_whole_array_keeps_to_the_bound(name):
    for seed, rows in enumerate((3, 41)):
        run(name, rows, seed, schedule="random", poison=True)


@pytest.mark.daily("one core")
@pytest.mark.parametrize("name", ["one core", "one buffer"])
def test_every_kind_of_edge_and_order(name):
    for number, rows in enumerate((1, 2, 3, 4, 5, 6, 7, 12, 13, 18, 19)):
        run(name, rows, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


@pytest.mark.parametrize("name", ["one core", "one buffer"])
def test_one_loaded_array_serves_problem_after_problem_with_other_weights(name):
    design, sizes = loaded(name), [[rows] for rows in (3, 6, 1, 7, 12)]
    problems = [(size, design.plan.random(design.problem(size), seed)) for seed, size in enumerate(sizes)]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems), strict=True):
        check(inputs, found)


def test_rows_of_zeros_and_spikes_keep_to_the_bound():
    design, x = loaded("one buffer"), np.zeros((7, WIDTH))
    x[1], x[2, 5], x[3, :2], x[4], x[5] = 1, 1e4, (-1e-6, 1e-6), np.arange(WIDTH), -1e18
    inputs = design.plan.random(design.problem([7]), 1)
    inputs["X"] = x.astype(inputs["X"].dtype)
    check(inputs, design.run([7], inputs)[0])


def hostile(inputs) -> dict[str, np.ndarray]:
    """Rows of zeros, one spike, equal maxima, tiny and huge numbers among the random ones."""
    changed = {name: array.copy() for name, array in inputs.items()}
    x = changed["X"]
    for row, values in zip(x[1:], (0, 3, 1e-9, np.arange(x.shape[1]) == 5, 1e15), strict=False):
        row[:] = values
    for row in changed.get("R", x)[1:4]:
        row[:] = 0
    return changed


def formula(form, inputs) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Results in float64, and how far what was found may be off them."""
    given = {name: array.astype(float) for name, array in inputs.items()}
    x, width, found = given["X"], form.width, {}
    if form.function == "sum":
        return {}
    if form.residual:
        x = (x + given["R"]).astype(np.float32).astype(inputs["X"].dtype).astype(float)
        found["Sum"] = x, 0 * x
    mean = x.mean(axis=1)[:, None] if form.function == "layernorm" else 0
    root = 1 / np.sqrt(((x - mean) ** 2).mean(axis=1) + EPSILON)[:, None]
    y = (x - mean) * root * given["W"]
    if form.codes:
        y, terms = y + given.get("B", 0), (abs(y) + abs(given.get("B", 0))).max(axis=1)
        most = np.maximum(abs(y).max(axis=1), 1e-5)
        off = (
            (abs(x).mean(axis=1) * root[:, 0] * abs(given["W"]).max() + terms) / most * 2.0**-19 if "B" in given else 0
        )
        found["Scale"] = most / 127, most / 127 * (2.0**-20 + off)
        bound = 0.5 + 127 * (2.0**-20 + 2 * np.broadcast_to(off, len(y)))[:, None] + 0 * y
        return found | {"Y": (127 * y / most[:, None], bound)}
    lost = (width / 16 + 16) * 2.0**-24 * abs(x).mean(axis=1)[:, None] * root
    lost = lost * abs(given["W"]) if "B" in given else 0
    return found | {"Y": (y + given.get("B", 0), 2.0**-7 * 1.04 * (abs(y) + abs(given.get("B", 0))) + lost + 2.0**-120)}


@pytest.mark.daily("phoenix of f32")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DAILY else pytest.mark.slow) for name in FORMS]
)
def test_every_form_of_a_norm_keeps_to_its_bound(name):
    design = loaded_form(name)
    assert (design.plan.tiling.chunks > 1) == name.endswith("in chunks")
    for number, rows in enumerate((1, 7, 8, 13, 21) if name in ROUND else (1, 13)):
        inputs = hostile(design.plan.random(design.problem([rows]), number))
        schedule = ("in-order", "random")[number % 2]
        found, _ = design.run([rows], inputs, seed=number, schedule=schedule, poison=number % 3 == 0)
        reference = design.plan.reference(inputs)
        for operand, (exact, bound) in formula(design.plan.spec.form, inputs).items():
            assert found[operand].shape == exact.shape
            assert (abs(found[operand].astype(float) - exact) <= bound).all()
            said = reference[operand]
            assert np.allclose(said.values.astype(float), exact, rtol=1e-9, atol=0)
            assert (abs(found[operand].astype(float) - said.values) <= (0 if said.bound is None else said.bound)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "x_type"),
    [
        pytest.param("codes of sums", "bf16", marks=pytest.mark.slow),
        pytest.param("codes of sums", "f32", marks=pytest.mark.slow),
        ("codes of sums in chunks", "bf16"),
        pytest.param("f32 codes in chunks", "f32", marks=pytest.mark.slow),
        pytest.param("layernorm of sums", "bf16", marks=pytest.mark.slow),
        pytest.param("layernorm in chunks", "bf16", marks=pytest.mark.slow),
        pytest.param("f32", "f32", marks=pytest.mark.slow),
        pytest.param("layernorm of f32 sums", "f32", marks=pytest.mark.slow),
        ("layernorm codes of sums", "bf16"),
        pytest.param("layernorm codes of sums in chunks", "f32", marks=pytest.mark.slow),
        pytest.param("layernorm codes", "f32", marks=pytest.mark.slow),
        pytest.param("layernorm codes in chunks", "bf16", marks=pytest.mark.slow),
        pytest.param("bf16 sums of f32", "bf16", marks=pytest.mark.slow),
        pytest.param("sums in chunks", "f32", marks=pytest.mark.slow),
        pytest.param("layernorm in chunks", "f32", marks=pytest.mark.slow),
    ],
)
def test_rows_by_machine_code_keep_to_their_bound(form, x_type):
    content = LEAST | FORMS[form] | {"array": {"rows": 4, "columns": 1}, "x_type": x_type}
    design = LoadedArray.of(plan(spec_from(content, "small"), device_named("strix_halo")), {})
    elfs = core_elfs(design.plan, design.mlir)
    for rows, schedule in ((3, "in-order"), (13, "random")):
        inputs = design.plan.random(design.problem([rows]), rows)
        found, _ = design.run([rows], inputs, elfs=elfs, schedule=schedule, seed=rows, poison=True)
        for operand, (exact, bound) in formula(design.plan.spec.form, inputs).items():
            assert (abs(found[operand].astype(float) - exact) <= bound).all()


SCALED: dict[str, Any] = {"residual": True, "residual_scaled": True, "width": 128, "array": {"rows": 4, "columns": 1}}
SCALED_FORMS = [
    ({"codes": True}, True, False), ({"function": "sum"}, True, True),
    ({"function": "layernorm", "buffers": 1}, True, True), ({"x_type": "f32", "codes": True}, True, True),
    ({"width": 160, "codes": True, "array": {"rows": 4, "columns": 2}}, False, True),
    ({"function": "layernorm", "codes": True}, True, True),
    ({"function": "sum", "width": 576, "stack_bytes": 62464}, True, False),
]  # fmt: skip
"""Beside those, whether in machine code, and whether for the sweep alone."""


@pytest.mark.daily("form6-True")
@pytest.mark.parametrize(
    ("form", "assembled"),
    [pytest.param(form, code, marks=pytest.mark.slow if slow else ()) for form, code, slow in SCALED_FORMS],
)
def test_sums_with_scaled_rows_keep_to_their_bound_and_norms_are_those_of_them(form, assembled):
    device = device_named("phoenix" if form.get("width") == 160 else "strix_halo")
    planned = plan(spec_from(LEAST | SCALED | form, "small"), device)
    design = LoadedArray.of(planned, {}) if assembled else LoadedArray.of(planned)
    elfs = core_elfs(design.plan, design.mlir) if assembled else None
    for rows, schedule in ((3, "in-order"), (13, "random")):
        inputs = hostile(design.plan.random(design.problem([rows]), rows))
        inputs["R"][-1] = (-inputs["X"][-1].astype(float)).astype("bfloat16")
        inputs["S"][-1] = 1 / inputs["C"][0]
        found, _ = design.run([rows], inputs, schedule=schedule, seed=rows, poison=True, elfs=elfs)
        said = design.plan.reference(inputs)
        x, r, s, c = (inputs[name].astype(float) for name in "XRSC")
        terms, ulp = r * (s * c)[:, None], 2.0**-8 if inputs["X"].dtype.itemsize == 2 else 2.0**-23
        assert (abs(found["Sum"] - (x + terms)) <= ulp * abs(x + terms) + 2.0**-21 * (abs(x) + abs(terms))).all()
        given = {"X": found["Sum"], "R": 0 * found["Sum"], "W": inputs.get("W"), "B": inputs.get("B")}
        of_sum = formula(design.plan.spec.form, {name: one for name, one in given.items() if one is not None})
        for operand in found.keys() - {"Sum"}:
            assert (abs(found[operand].astype(float) - of_sum[operand][0]) <= of_sum[operand][1]).all()
        for operand, wanted in said.items():
            assert (abs(found[operand].astype(float) - wanted.values) <= wanted.bound).all()


@pytest.mark.slow
def test_codes_of_more_rows_than_a_task_has_runs():
    design = loaded_form("codes of sums")
    inputs = design.plan.random(design.problem([1100]), 3)
    found, _ = design.run([1100], inputs, seed=3, schedule="random")
    for operand, (exact, bound) in formula(design.plan.spec.form, inputs).items():
        assert (abs(found[operand].astype(float) - exact) <= bound).all()


def test_more_rows_take_longer():
    timing = TimingOptions(kernels=loaded("one buffer").plan.kernels.cycles)
    seconds = [run("one buffer", rows, timing=timing).timing.seconds for rows in (3, 30, 90)]
    assert seconds == sorted(set(seconds))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 48}, "width = 48 is no multiple of 32"),
        ({"width": 32800}, "width = 32800 is above 32768"),
        ({"stack_bytes": 65408}, "buffers = 1"),
        ({"epsilon": 0}, "epsilon"),
        ({"function": "softmax"}, "rmsnorm"),
        ({"codes": True}, "width = 96 is no multiple of 64, a vector of int8 codes"),
        (SCALED | {"codes": True, "function": "sum"}, "codes are of norms, not of sum"),
        ({"array": {"columns": 9}}, "columns"),
        ({"residual_type": "f32"}, "residual_type = 'f32' without residual"),
        ({"residual_scaled": True}, "residual_scaled is of a residual of bf16; add residual = true"),
        ({"residual": True, "function": "sum"}, "add residual_scaled = true, or use kind = 'elementwise'"),
        (SCALED | {"width": 16384}, "buffers = 1, a smaller width"),
        ({"function": "layernorm", "width": 16672}, "is 521 vectors: a core holds no whole row"),
        ({"buffers": True}, "buffers: input should be a whole number"),
        ({"buffers": 1.0}, "buffers: input should be a whole number"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))


@pytest.mark.slow
def test_sums_below_the_least_normal_number_may_be_flushed():
    reference = loaded_form("codes of sums").plan.reference
    x = np.array([[1.0, 2.0**-126, 2.0**-127, 0.0] * (WIDTH // 4)]).astype("bfloat16")
    given = {"X": x, "R": np.zeros_like(x), "W": np.ones(WIDTH, "bfloat16")}
    assert (reference(given)["Sum"].bound[0, :4] > 0).tolist() == [False, False, True, True]


WIDEST = [
    ({}, 6112, 10208), ({"residual": True}, 3392, 6112), ({"codes": True}, 7616, 12224),
    ({"residual": True, "codes": True}, 3776, 6784), ({"function": "layernorm"}, 5088, 7648),
    ({"function": "layernorm", "residual": True}, 3040, 5088), ({"function": "layernorm", "codes": True}, 6080, 8704),
    ({"function": "layernorm", "residual": True, "codes": True}, 3392, 5568),
]  # fmt: skip


def tiling(content, product: str = "strix_halo") -> StreamTiling:
    return plan_rows(RowsSpec.load(LEAST | content, "mine", "mine"), device_named(product)).tiling


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(("form", "of_two", "of_one"), WIDEST)
def test_the_widest_rows_of_the_page_are_in_one_core_and_wider_ones_in_chunks(form, of_two, of_one):
    for width, buffers in ((of_two, 2), (of_one, 1)):
        for more in (0, 64 if form.get("codes") else 32):
            content = form | {"array": {"columns": 1}, "width": width + more, "buffers": buffers}
            assert (tiling(content).chunks > 1) == (more > 0)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("form", [form for form, *_ in WIDEST])
@pytest.mark.parametrize("product", ["strix_halo", "phoenix"])
def test_rows_of_16384_fit_all_columns(form, product):
    found = tiling(form | {"width": 16384}, product)
    coded = form.get("codes") and form.get("function") != "layernorm"
    assert (found.rows, found.columns) == (
        3 if form.get("residual") and not coded else 4,
        device_named(product).columns,
    )
