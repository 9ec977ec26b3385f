"""Norms and gates of a tiny model by designs of their own: near the CPU's, where they are said to run, and why."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.models import ArrayParts, ModelError, Products, Split
from bdforge.models.bitnet import BitNet
from bdforge.models.functions import quantised, relu2_gate, rms_norm
from bdforge.models.parts import PartDesign
from bdforge.models.rounding import accuracy
from bdforge.models.split import Ledger
from bdforge.runtime import load
from support.built_designs import PlannedDesign, build, spec_content
from support.differences import same
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_hugging_face

ARRAY = {"rows": 2, "columns": 2}
NORM = {"kind": "rows", "function": "rmsnorm", "width": 96, "array": ARRAY}
GATE = {"kind": "elementwise", "function": "relu2_gate", "type": "bf16", "tile": 64, "array": ARRAY}


@pytest.fixture(scope="module")
def designs(tmp_path_factory) -> tuple[PlannedDesign, ...]:
    folder = tmp_path_factory.mktemp("parts")
    return tuple(build(folder / name, content, name) for name, content in (("norm", NORM), ("gate", GATE)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hugging_face(tmp_path_factory.mktemp("model"), random_content(config(96, 76, 2, 6, 3, 16, 40, 48), 5))


def parts_of(designs: tuple[PlannedDesign, ...], rule: str) -> ArrayParts:
    return ArrayParts.of([design.folder for design in designs], "emulated", rule, Ledger())


def opened(folder, summing: PlannedDesign, parts: ArrayParts | None) -> BitNet:
    products = Products(load(summing.folder), Split(summing.plan, "cpu"))
    return BitNet.load(folder, products, parts=parts)


@pytest.mark.slow
def test_a_model_computes_the_same_with_designs_for_its_norms_and_gates(folder, summing, designs):
    """Within bfloat16's rounding of them, which turns a code now and then."""
    parts, ids = parts_of(designs, "array"), [3, 1, 4, 1, 5, 9, 2]
    model, other = opened(folder, summing, parts), opened(folder, summing, None)
    found, wanted = (m.hidden(ids, m.cache(), 4) for m in (model, other))
    error = np.square(found - wanted).mean() / np.square(wanted).mean()
    assert 0 < error < 3e-3  # bfloat16 rows before their codes; an operator that makes the codes too rounds once less
    ran = {(entry.part, entry.where): entry for entry in parts.ledger}
    # Three norms of 96 in each layer, for each micro-batch; that of 76 has no design.
    assert ran.keys() == {("norms", "emulated array"), ("gate", "emulated array")}
    assert [entry.calls for entry in parts.ledger if entry.part == "norms"] == [6, 6]
    assert sum(entry.calls for entry in parts.ledger if entry.part == "gate") == 4
    assert all(entry.npu_us and "as asked, of " in entry.why for entry in parts.ledger)
    cpu = [entry for entry in model.products.ledger if entry.part == "norms"]
    assert [(entry.where, entry.why, entry.calls) for entry in cpu] == [("CPU", "no design for it", 4)]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "there"), [("array", True), ("estimate", True), ("cpu", False)])
def test_a_design_is_found_by_what_its_spec_says(designs, rule: str, there: bool):
    parts = parts_of(designs, rule)
    facts = {"kind": "rows", "function": "rmsnorm", "epsilon": 1e-5, "codes": False}
    assert (parts.design(**facts, width=96) is not None) is there
    for other in ({"width": 64}, {"width": 96, "epsilon": 1e-6}, {"width": 96, "codes": True}, {"kind": "attention"}):
        assert parts.design(**{**facts, **other}) is None


def test_results_are_within_the_operators_bounds(designs):
    rng, parts = np.random.default_rng(6), parts_of(designs, "array")
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 96), (96,)))
    norm, gate = parts.designs
    for design, inputs in ((norm, {"X": x, "W": w}), (gate, {"A": x.ravel(), "B": np.tile(w, 5)})):
        rounded = {name: array.astype("bfloat16") for name, array in inputs.items()}
        wanted = design.plan.reference(rounded)["Y"]
        (found,) = design(inputs)
        bound = 0 if wanted.bound is None else wanted.bound
        assert found.dtype == np.float32
        assert (np.abs(found - wanted.values.astype(np.float64)) <= bound).all()
    same(norm({"X": x, "W": w})[0], rms_norm(x, w, 1e-5), rtol=0.03, atol=1e-2)
    same(gate({"A": x.ravel(), "B": np.tile(w, 5)})[0], relu2_gate(x.ravel(), np.tile(w, 5)), rtol=0.03, atol=1e-2)


@pytest.mark.slow
def test_attention_runs_on_its_design(tmp_path, summing):
    """A prompt in two parts, then a token alone: as near as the operator is to float64."""
    heads = {"heads": 2, "kv_heads": 1, "head_dim": 64}
    design = build(
        tmp_path / "attention", {"kind": "attention", **heads, "array": {"rows": 1, "columns": 2}}, "attention"
    )
    files = write_hugging_face(tmp_path / "model", random_content(config(128, 64, 1, 2, 1, 64, 40, 48), 8))
    parts, found = parts_of((design,), "array"), []
    for given in (parts, None):
        model = opened(files, summing, given)
        cache = model.cache()
        found.append(np.concatenate([model.hidden(ids, cache) for ids in ([3, 1, 4, 1, 5], [9, 2], [6])]))
    assert 0 < np.square(found[0] - found[1]).mean() / np.square(found[1]).mean() < 1e-3
    assert [(entry.part, entry.why) for entry in parts.ledger] == [
        ("attention", f"as asked, of {sizes}") for sizes in ("5x5", "2x7", "1x8")
    ]


def check_products(model: BitNet, gated: bool) -> None:
    """Of a layer's first three matrices, and of gate and up, against float64: what stands beside the model's codes."""
    rng, layer = np.random.default_rng(9), model.layers[0]
    codes, scales = rng.integers(-127, 128, (5, 128), np.int8), rng.uniform(0.01, 0.1, 5).astype(np.float32)
    for linear in (layer.qkv, layer.gate_up):
        packed, K = model.products.codes_of(linear), linear.shape[0]
        ones = np.ones(5, np.float32), np.ones_like(linear.scales)
        sums = model.products.split.processor.scaled(packed, K, codes, *ones, narrow=False).astype(np.float64)
        exact, found = sums * scales[:, None] * linear.scales, model.products(linear, codes, scales)
        square = gated and linear is layer.gate_up  # sums, its factor twice, itself and C are rounded
        made = relu2_gate(*np.split(exact, 2, axis=1)) if square else exact
        same(found, made, rtol=2.0**-8 * (5.1 if square else 1.25))
        if gated:  # where the CPU is faster it multiplies, and gates nothing
            by: Any = linear.by
            other = Products(by.loaded, Split(by.split.plan, "cpu"))
            same(other(replace(linear, by=other), codes, scales), exact, rtol=2.0**-8)


SUMS = ("int8", "int2", "bf16")
SPECIAL = {
    "gated": spec_content(16, 64, 32, types=SUMS, epilogue={"gate": "relu2"}),
    "three": spec_content(16, 64, 32, types=SUMS, outputs={"q": 128, "k": 64, "v": 64}),
    "rope": {"kind": "rope", "heads": 3, "head_dim": 64, "array": {"rows": 1, "columns": 2}},
}


@pytest.mark.slow
def test_gated_products_three_arrays_and_turned_heads(tmp_path, summing):
    """A prompt, then a token alone: as near as roundings to bfloat16 leave it."""
    designs = tuple(build(tmp_path / name, content, name) for name, content in SPECIAL.items())
    files = write_hugging_face(tmp_path / "model", random_content(config(128, 64, 1, 2, 1, 64, 40, 48), 8))
    found, ledgers = {}, {}
    for rule in ("array", "cpu"):
        parts = parts_of(designs, rule)
        model = BitNet.load(files, Products(load(summing.folder), Split(summing.plan, rule)), parts=parts)
        cache = model.cache()
        hidden = np.concatenate([model.hidden(ids, cache) for ids in ([3, 1, 4, 1, 5], [9])])
        found[rule] = model.logits(hidden)
        ledgers[rule] = [(one.part, one.where) for one in (*model.products.ledger, *parts.ledger)]
        check_products(model, gated=rule == "array")
        near = accuracy(model, [3, 1, 4])
        assert near[-1].nmse < 1e-8, "weights of products by other designs come back as they were"
    assert 0 < np.square(found["array"] - found["cpu"]).mean() / np.square(found["cpu"]).mean() < 1e-3
    there = [part for part, where in ledgers["array"] if where == "emulated array"]
    each = {"qkv by three", "out", "gate_up by gated", "down", "rotary embedding"}
    assert {part: there.count(part) for part in there} == dict.fromkeys(each, 2)
    assert "gate" not in dict(ledgers["array"])
    assert {"qkv", "gate_up", "gate", "rotary embedding"} <= dict(ledgers["cpu"]).keys()


def test_a_design_for_some_matrices_is_not_that_of_all(tmp_path):
    design = build(tmp_path / "gated", SPECIAL["gated"], "gated")
    with pytest.raises(ModelError, match=r"design gated is for some matrices alone; put it behind one for all"):
        Products.of(design.folder)


@pytest.mark.slow
def test_codes_of_a_norm_are_those_of_the_cpu(tmp_path, summing):
    """Of rows that bfloat16 holds they are the same; sums are rounded to it, which turns a code now and then."""
    folder = write_hugging_face(tmp_path / "model", random_content(config(128, 76, 2, 2, 1, 64, 40, 48), 5))
    content = {**NORM, "width": 128, "codes": True}
    built = [build(tmp_path / name, {**content, **more}, name) for name, more in
             (("codes", {}), ("sums", {"residual": True}))]  # fmt: skip
    rng, parts = np.random.default_rng(6), parts_of(tuple(built), "array")
    x, r, w = (rng.normal(size=(5, 128)).astype("bfloat16").astype(np.float32) for _ in range(3))
    codes, scales = parts.designs[0]({"X": x, "W": w[0]})
    wanted = quantised(rms_norm(x, w[0], 1e-5))
    same(codes, wanted[0])
    same(scales, wanted[1], rtol=1e-5)
    total, *coded = parts.designs[1]({"X": x, "R": r, "W": w[0]})
    same(total, x + r, rtol=2.0**-8)
    same(coded[0], quantised(rms_norm(total, w[0], 1e-5))[0])
    ids, other = [3, 1, 4], opened(folder, summing, None)
    model = opened(folder, summing, parts)
    found, wanted = (m.hidden(ids, m.cache()) for m in (model, other))
    assert 0 < np.square(found - wanted).mean() / np.square(wanted).mean() < 1e-3
    assert {entry.part: entry.calls for entry in parts.ledger} == {"norm and codes": 3, "residual, norm, codes": 3}


class Coding:
    """A stand-in for a design whose rows leave as codes, with sums where it is for those."""

    plan = SimpleNamespace(spec=None)

    def __init__(self, residual: bool):
        self.residual, self.calls = residual, 0
        self.loaded = SimpleNamespace(device="emulated", design=SimpleNamespace(name=f"coding {residual}"))

    def serves(self, facts: dict[str, Any]) -> bool:
        mine = {"kind": "rows", "function": "rmsnorm", "width": 96, "epsilon": 1e-5, "codes": True}
        return facts == {**mine, "residual": self.residual}

    def us(self, sizes: tuple[int, ...]) -> float:
        return 1.5

    def __call__(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.calls += 1
        x = inputs["X"] + inputs["R"] if self.residual else inputs["X"]
        return [*([x] if self.residual else []), *quantised(rms_norm(x, inputs["W"], 1e-5))]


def test_norms_leave_as_codes_and_sums_where_designs_make_them(folder, summing):
    """All of width 96: the first norm has nothing to add, the sub-norm neither; other stages add what came before."""
    ids, other = [3, 1, 4], opened(folder, summing, None)
    wanted = other.hidden(ids, other.cache())
    for designs, calls in (
        ((Coding(False),), (6, 0)),
        ((Coding(True), Coding(False)), (3, 3)),
        ((Coding(True),), (3,)),
    ):
        parts: Any = ArrayParts(designs, "array")  # type: ignore[arg-type]
        model = opened(folder, summing, parts)
        same(model.hidden(ids, model.cache()), wanted, rtol=1e-6, atol=1e-6)
        assert tuple(design.calls for design in designs) == (calls if len(designs) > 1 else calls[:1])
        # Each layer adds twice; what ends the last layer is no norm's.
        (added,) = (entry.calls for entry in model.products.ledger if entry.part == "residual")
        assert added == (1 if designs[0].residual else 4)


@pytest.mark.parametrize("what", ["norm and codes", "residual, norm, codes"])
def test_damage_is_told_where_designs_make_codes_too(folder, summing, what: str):
    model = opened(folder, summing, ArrayParts((Coding(False), Coding(True)), "array"))  # type: ignore[arg-type]
    norm = model.layers[0].attn_norm if what == "norm and codes" else model.layers[0].ffn_norm
    norm[3] = np.nan
    with pytest.raises(ModelError, match="the file's floats are damaged"):
        model.hidden([3], model.cache())


@pytest.mark.parametrize(("npu_us", "where", "told"), [(0.0, "emulated array", "array faster, an NPU 0 us"),
                                                      (1e9, "CPU", "CPU faster, an NPU 1000000000 us")])  # fmt: skip
def test_an_estimate_decides_once_for_a_size(designs, monkeypatch, npu_us: float, where: str, told: str):
    parts, ran = parts_of(designs, "estimate"), []
    monkeypatch.setattr(PartDesign, "us", lambda design, sizes: npu_us)
    inputs = {"A": np.ones(8, np.float32), "B": np.ones(8, np.float32)}

    def on_cpu() -> list[np.ndarray]:
        ran.append(1)
        return [np.ones(8, np.float32)]

    for _ in range(3):
        same(parts("gate", parts.designs[1], (8,), inputs, on_cpu)[0], np.ones(8))
    (entry,) = parts.ledger
    assert (entry.where, entry.calls) == (where, 3)
    assert entry.why.startswith(f"of 8: {told} (modelled), this CPU ")
    assert len(ran) == (1 if where != "CPU" else 4)


def test_numbers_that_are_not_finite_stay_on_the_cpu(designs):
    """So that what tells of damaged files finds them."""
    parts = parts_of(designs, "array")
    bad = np.array([1.0, np.nan], np.float32)
    (found,) = parts("gate", parts.designs[1], (2,), {"A": bad, "B": bad}, lambda: [bad * bad])
    assert np.isnan(found[1])
    assert [(entry.where, entry.why) for entry in parts.ledger] == [("CPU", "not all numbers are finite")]
