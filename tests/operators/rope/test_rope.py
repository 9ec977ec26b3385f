"""Rotary embeddings on the emulated array with their compiled kernels, and their table against the formulas."""

from functools import cache
from math import cos, pi, sin
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from
from bdforge.operators.rope import LinearScaling, Llama3Scaling, RopeSpec, plan_rope, rope_table
from bdforge.perf.assembled.counted_core import core_elfs
from support.loaded_arrays import LoadedArray

LEAST: dict[str, Any] = {"kind": "rope", "heads": 3, "head_dim": 64}
DESIGNS = {
    "strix_halo": {"pairs": "neighbours"},
    "phoenix": {"head_dim": 32, "heads": 2},
    "one core": {"array": {"rows": 1, "columns": 1}},
    "one buffer": {"buffers": 1, "head_dim": 128, "array": {"rows": 3, "columns": 2}},
    "in chunks": {"heads": 9, "stack_bytes": 63488, "array": {"rows": 4, "columns": 1}},
    "phoenix in chunks": {"heads": 8, "head_dim": 32, "stack_bytes": 64512, "array": {"rows": 3, "columns": 2}},
}


@cache
def loaded(name: str) -> LoadedArray:
    product = "phoenix" if name.startswith("phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from(LEAST | DESIGNS[name], "small"), device_named(product)))


def turned(x: np.ndarray, t: np.ndarray, neighbours: bool) -> np.ndarray:
    """Pair by pair, as complex numbers."""
    half = x.shape[-1] // 2
    angles = (t[:, :half] + 1j * t[:, half:])[:, None]
    if neighbours:
        z = (x[..., ::2] + 1j * x[..., 1::2]) * angles
        return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
    z = (x[..., :half] + 1j * x[..., half:]) * angles
    return np.concatenate([z.real, z.imag], axis=-1)


def run(name: str, tokens: int, seed: int = 0, **options: Any) -> None:
    design = loaded(name)
    form = design.plan.spec.form
    inputs = design.plan.random(design.problem([tokens]), seed)
    inputs["T"] = rope_table(range(100 * seed, 100 * seed + tokens), form.head_dim)
    found, _ = design.run([tokens], inputs, seed=seed, **options)
    exact = turned(inputs["X"].astype(float), inputs["T"].astype(float), form.pairs == "neighbours")
    assert found["Y"].shape == exact.shape
    size = abs(inputs["X"].astype(float)).max()
    assert (abs(found["Y"].astype(float) - exact) <= 2.0**-8 * abs(exact) + 2.0**-14 * size).all()
    reference = design.plan.reference(inputs)["Y"]
    assert (abs(reference.values - exact) <= 1e-12).all()
    assert (abs(found["Y"].astype(float) - reference.values) <= reference.bound).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tokens"), [("strix_halo", 41), ("phoenix", 19)])
def test_a_whole_array_keeps_to_the_bound(name, tokens):
    run(name, tokens, 1, schedule="random", poison=True)


@pytest.mark.daily("one core")
@pytest.mark.parametrize("name", ["one core", "one buffer"])
def test_every_kind_of_edge_and_order(name):
    for number, tokens in enumerate((1, 2, 3, 5, 6, 7, 13)):
        run(name, tokens, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


@pytest.mark.parametrize("name", ["in chunks", pytest.param("phoenix in chunks", marks=pytest.mark.slow)])
def test_tokens_that_no_core_holds_come_in_heads(name):
    assert loaded(name).plan.tiling.chunks > 1
    for number, tokens in enumerate((1, 5, 14)):
        run(name, tokens, number, schedule=("in-order", "random")[number % 2], poison=number == 2)


QKV = [{"name": "q", "heads": 2}, {"name": "k", "heads": 1}, {"name": "v", "heads": 3, "turned": False}]
SPLIT: dict[str, Any] = {"heads": 6, "outputs": QKV, "array": {"rows": 4, "columns": 1}}
SPLIT_DESIGNS = [
    ("strix_halo", {"scaled": True}, True), ("strix_halo", {"pairs": "neighbours"}, True),
    ("phoenix", {"scaled": True, "buffers": 1, "head_dim": 32, "array": {"rows": 3, "columns": 2}}, False),
    ("strix_halo", {"scaled": True, "heads": 2, "outputs": []}, False),
    ("strix_halo", {"scaled": True, "outputs": [], "stack_bytes": 63488, "pairs": "neighbours"}, True),
]  # fmt: skip
"""Products, what is said beside SPLIT, and whether in machine code."""


@pytest.mark.slow
@pytest.mark.parametrize(("product", "changes", "assembled"), SPLIT_DESIGNS)
def test_heads_go_to_arrays_of_their_own_with_scales_of_tokens_and_matrices(product, changes, assembled):
    planned = plan(spec_from(LEAST | SPLIT | changes, "small"), device_named(product))
    design = LoadedArray.of(planned, {}) if assembled else LoadedArray.of(planned)
    form, elfs = planned.spec.form, core_elfs(design.plan, design.mlir) if assembled else None
    for number, tokens in enumerate((1, 5, 13)):
        inputs = planned.random(design.problem([tokens]), number)
        inputs["T"] = rope_table(range(50, 50 + tokens), form.head_dim)
        schedule = ("in-order", "random")[number % 2]
        found, _ = design.run([tokens], inputs, elfs=elfs, seed=number, schedule=schedule, poison=number != 1)
        x, t, first = inputs["X"].astype(float), inputs["T"].astype(float), 0
        s, c = inputs.get("S", np.ones(tokens)).astype(float), inputs.get("C", np.ones(len(form.made))).astype(float)
        for one, factor in zip(form.made, c, strict=True):
            heads = x[:, first : first + one.heads]
            exact = (turned(heads, t, form.pairs == "neighbours") if one.turned else heads) * (s * factor)[
                :, None, None
            ]
            off, first = abs(found[one.name].astype(float) - exact), first + one.heads
            assert found[one.name].shape == exact.shape
            assert (off <= 2.0**-8 * abs(exact) + 2.0**-14 * abs(heads).max() * abs(s * factor)[:, None, None]).all()
        for name, wanted in planned.reference(inputs).items():
            assert wanted.bound is not None
            assert (abs(found[name].astype(float) - wanted.values) <= wanted.bound).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SPLIT | {"heads": 7}, "outputs: they have 6 heads together; heads = 7"),
        (SPLIT | {"outputs": [QKV[0], QKV[0], QKV[2]]}, "outputs: q is the name of another array"),
        (SPLIT | {"outputs": [QKV[0] | {"name": "S"}]}, "outputs: S is the name of another array"),
        (SPLIT | {"outputs": [QKV[0] | {"turned": 1}]}, "turned"),
        ({"head_dim": 96}, "head_dim = 96 is no multiple of 64, two vectors"),
        ({"heads": 127, "head_dim": 128}, "buffers = 1"),
        ({"pairs": "thirds"}, "pairs"),
        ({"array": {"columns": 9}}, "columns"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))


@pytest.mark.parametrize(("heads", "buffers", "chunks"), [(32, 2, 1), (64, 1, 1), (64, 2, 2), (128, 2, 4), (128, 1, 2)])
def test_the_tokens_of_llamas_heads_are_planned(heads, buffers, chunks):
    spec = RopeSpec.load({"kind": "rope", "heads": heads, "head_dim": 128, "buffers": buffers}, "m", "m")
    for product in ("strix_halo", "phoenix"):
        tiling = plan_rope(spec, device_named(product)).tiling
        assert (tiling.chunks, tiling.rows) == (chunks, 4)


SCALING = Llama3Scaling(8.0, 1.0, 4.0, 8192)


def llama3(frequency: float) -> float:
    """As Llama 3.1's own code has it, by wavelengths."""
    length = 2 * pi / frequency
    if length < 8192 / 4:
        return frequency
    if length > 8192:
        return frequency / 8
    smooth = (8192 / length - 1) / (4 - 1)
    return (1 - smooth) * frequency / 8 + smooth * frequency


@pytest.mark.parametrize(
    ("scaling", "scaled"), [(None, lambda f: f), (LinearScaling(4.0), lambda f: f / 4), (SCALING, llama3)]
)
def test_tables_are_cosines_and_sines_of_scaled_angles(scaling, scaled):
    table = rope_table([0, 1, 5, 8191], 64, 500000.0, scaling)
    for row, position in zip(table.astype(float), (0, 1, 5, 8191), strict=True):
        angles = [position * scaled(500000.0 ** (-i / 32)) for i in range(32)]
        wanted = [f(angle) for f in (cos, sin) for angle in angles]
        assert (abs(row - wanted) <= 2.0**-8 * abs(np.array(wanted)) + 1e-9).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"head_dim": 63}, "even head_dim"), ({"head_dim": 64, "theta": 0.0}, "theta above 0"),
        ({"head_dim": 64, "scaling": LinearScaling(0.0)}, "factor = 0.0"),
        ({"head_dim": 64, "scaling": Llama3Scaling(8.0, 4.0, 4.0, 8192)}, "low_freq_factor = 4.0 is not below"),
    ],
)  # fmt: skip
def test_tables_of_no_meaning_are_refused(options, said):
    with pytest.raises(SpecError, match=said):
        rope_table([1], **options)
