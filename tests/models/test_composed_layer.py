"""Prompts and tokens by composed layers: a tiny BitNet, machine code in every core, against float64."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bdforge.common.files import read_toml
from bdforge.devices import device_named
from bdforge.models import ArrayParts, ModelError, Products, Split
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.composed_layer import PromptLayers
from bdforge.models.bitnet.composed_token import ComposedLayers
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.operators import plan, spec_from
from bdforge.operators.rope import rope_table
from bdforge.runtime import BuiltDesign, load
from bdforge.runtime.composition import CompositionFault, CompositionForm, compose
from support.built_designs import ROOT, spec_content
from support.coded_folders import coded_plan
from support.differences import same
from support.plain_bitnet import PlainBitNet
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_hugging_face

HIDDEN, FFN, LAYERS, HEADS, KV, DIM = 128, 256, 2, 2, 1, 64
CONFIG = config(HIDDEN, FFN, LAYERS, HEADS, KV, DIM, 40, 64)
END = {"array": {"rows": 1, "columns": 2, "from_end": True}}
ROWS = {"kind": "rows", "width": HIDDEN} | END
SUM = ROWS | {"residual": True, "residual_scaled": True}
CODES = {"function": "rmsnorm", "codes": True, "epsilon": 1e-5}
TYPES = ("int8", "int2", "bf16", "int32")
DESIGNS: dict[str, dict[str, Any]] = {
    "bitnet_norm": ROWS | CODES,
    "gemm_i8_i2_raw": spec_content(16, 64, 32, types=TYPES, rows=2, columns=2),
    "bitnet_rope": {
        "kind": "rope", "heads": HEADS + 2 * KV, "head_dim": DIM, "scaled": True,
        "outputs": [{"name": "Q", "heads": HEADS}, {"name": "K", "heads": KV},
                    {"name": "V", "heads": KV, "turned": False}],
    } | END,
    "attention_bf16_bitnet": {
        "kind": "attention", "heads": HEADS, "kv_heads": KV, "head_dim": DIM, "array": {"rows": 1, "columns": 2},
    },
    "bitnet_residual_norm": SUM | CODES,
    "gemm_i8_i2_gate": spec_content(16, 64, 32, types=TYPES, rows=2, columns=2, epilogue={"gate": "relu2"}),
    "bitnet_norm_6912": ROWS | CODES | {"width": FFN},
}  # fmt: skip
"""Those of examples/layer/bitnet.toml, for the tiny model."""


def core(column: int, row: int) -> dict[str, Any]:
    return {"array": {"rows": 1, "columns": 1, "first_column": column, "first_row": row, "from_end": True}}


TOKEN: dict[str, dict[str, Any]] = {
    "token_residual_norm": SUM | CODES | {"apart": True} | core(0, 1),
    "token_product": {
        "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "bf16"}, "tile": {"m": 1, "k": 64, "n": 32},
        "array": {"rows": 1, "columns": 2},
    },
    "token_rope": DESIGNS["bitnet_rope"] | {"apart": True} | core(1, 1),
    "token_attention": DESIGNS["attention_bf16_bitnet"] | {
        "tile": {"queries": 16, "keys": 16},
        "array": {"rows": 1, "columns": 2, "first_column": 1, "first_row": 2, "from_end": True},
    },
    "token_norm": ROWS | CODES | core(2, 1),
    "token_gate": {"kind": "elementwise", "function": "relu2_gate", "type": "bf16", "tile": 64} | core(0, 2),
    "token_norm_6912": ROWS | CODES | {"width": FFN} | core(2, 0),
}  # fmt: skip
"""Those of examples/layer/bitnet_token.toml."""
GIVEN, MADE = ("x", "sums", "scales", "angles"), ("y", "down_sums", "f_scales", "k", "v")
SIZES = {2560: HIDDEN, 3840: (HEADS + 2 * KV) * DIM, 6912: FFN, 2 * 6912: 2 * FFN}


def tiny(name: str = "bitnet") -> dict[str, Any]:
    """An example's composition with other sizes."""
    content = read_toml(ROOT / "examples" / "layer" / f"{name}.toml", CompositionFault)
    for step in content["steps"]:
        step["sizes"] = {name: SIZES.get(size, size) for name, size in step["sizes"].items()}
    if "up" in content.get("views", {}):
        content["views"]["up"]["first"] = FFN
    return content


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return composed(tmp_path_factory.mktemp("layer"), "bitnet", DESIGNS)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return composed(tmp_path_factory.mktemp("token"), "bitnet_token", TOKEN)


def composed(folder: Path, name: str, designs: Mapping[str, dict[str, Any]]) -> Path:
    for design, content in designs.items():
        coded_plan(folder / design, plan(spec_from(content, design), device_named("strix_halo")))
    form = CompositionForm.model_validate(tiny(name))
    compose(form, name, lambda design: BuiltDesign.load(folder / design)).write(folder / name)
    return folder / name


def opened(folder: Path, summing: Any, *layers: Path, rule: str = "array") -> BitNet:
    products = Products(load(summing.folder), Split(summing.plan, rule))
    parts = ArrayParts.of(layers, None, rule, products.ledger)
    return BitNet.load(folder, products, parts=parts, composed=ComposedLayers.among(parts))


@pytest.mark.parametrize(("name", "designs"), [("bitnet", DESIGNS), ("bitnet_token", TOKEN)])
def test_the_tiny_model_has_the_examples_designs(name: str, designs: Mapping[str, Any]):
    assert {step["design"] for step in tiny(name)["steps"]} == designs.keys()


def told(directions: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A plan as the example's manifest tells it, with other operands where they are given."""
    tensors = {tensor: "in" for step in tiny()["steps"] for tensor in step["tensors"].values()}
    names = {name: way for name, way in tensors.items() if name[:2] in ("w_", "c_") or name in GIVEN}
    operands = (names | dict.fromkeys(MADE, "out") | dict(directions)).items()
    made = [SimpleNamespace(name=name, direction=way, argument=int(name in ("k", "v"))) for name, way in operands]
    program = SimpleNamespace(operands=made)
    parts = {name: SimpleNamespace(spec=spec_from(content, name)) for name, content in DESIGNS.items()}
    return SimpleNamespace(program=program, spec=SimpleNamespace(name="bitnet"), parts=parts)


@pytest.mark.parametrize(
    ("directions", "lacks"), [({"k": "between"}, "k"), ({"w_more": "in"}, "w_more"), ({"w_sub": "out"}, "w_sub")]
)
def test_other_compositions_are_no_layer(directions: dict[str, str], lacks: str):
    with pytest.raises(ModelError, match=f"design bitnet is no layer of BitNet: {lacks};"):
        PromptLayers(cast("Any", None), told(directions))


def test_keys_and_values_beside_what_layers_share_are_refused():
    plan = told()
    next(operand for operand in plan.program.operands if operand.name == "angles").argument = 1
    with pytest.raises(ModelError, match="design bitnet: k and v lie in one buffer with angles, which all layers"):
        PromptLayers(cast("Any", None), plan)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"rms_norm_eps": 1e-6}, "epsilon = 1e-05, this model 1e-06"), ({"num_attention_heads": 4}, "heads = 2, .* 4"),
        ({"num_key_value_heads": 2}, "kv_heads = 1, .* 2"), ({"head_dim": 32}, "head_dim = 64, .* 32"),
        ({"hidden_act": "silu"}, "none of its products has the gate silu"), ({"vocab_size": 7}, None),
    ],
)  # fmt: skip
def test_a_layer_of_another_model_is_refused(changed: dict[str, Any], says: str | None):
    layer, model = PromptLayers(cast("Any", None), told()), BitNetConfig.model_validate(CONFIG | changed)
    if says is None:
        layer.check(model)
        return
    with pytest.raises(ModelError, match=says):
        layer.check(model)


@pytest.mark.parametrize(("key", "value"), [("causal", False), ("window", 8)])
def test_attention_that_sees_other_tokens_is_refused(key: str, value: Any):
    """Rows behind a short prompt may be seen by nobody."""
    plan = told()
    content = DESIGNS["attention_bf16_bitnet"] | {key: value}
    plan.parts["attention_bf16_bitnet"] = SimpleNamespace(spec=spec_from(content, "attention_bf16_bitnet"))
    with pytest.raises(ModelError, match=f"has {key} = {value}, this model"):
        PromptLayers(cast("Any", None), plan).check(BitNetConfig.model_validate(CONFIG))


@pytest.mark.slow
@pytest.mark.parametrize("first", [3, 37])
def test_a_prompt_by_layers_and_tokens_behind_it(tmp_path: Path, summing: Any, layer: Path, first: int):
    """Logits of a prompt of fewer tokens than attention's tile, and of more; then of tokens that see the cache."""
    content = random_content(CONFIG, 5)
    model = opened(write_hugging_face(tmp_path, content), summing, layer)
    plain, cache = PlainBitNet(content), model.cache()
    ids = np.random.default_rng(1).integers(0, 40, first + 3).tolist()
    expected = np.array([plain.step(token) for token in ids])
    got = [*model.logits(model.hidden(ids[:first], cache)), *model.logits(model.hidden(ids[first:], cache))]
    assert cache.length == len(ids)
    assert ((got - expected) ** 2).sum() < 3e-3 * (expected**2).sum()
    entries = [(entry.calls, entry.why) for entry in model.products.ledger if entry.part == "layers"]
    assert entries == [(1, f"{LAYERS} in one list")]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["array", "estimate"])
def test_tokens_by_layers_over_a_cache_that_grows(
    tmp_path: Path, summing: Any, layer: Path, token: Path, rule: str, monkeypatch: pytest.MonkeyPatch
):
    """Some come too early for attention's tile, later ones when the memory that was prepared is full."""
    monkeypatch.setattr("bdforge.models.bitnet.composed_token._FIRST", 16)
    content = random_content(CONFIG, 5)
    model = opened(write_hugging_face(tmp_path, content), summing, layer, token, rule=rule)
    plain, caches = PlainBitNet(content), [model.cache(), model.cache()]
    ids = np.random.default_rng(1).integers(0, 40, 36).tolist()
    expected = np.array([plain.step(token) for token in ids])
    for cache, first in zip(caches, (13, 20), strict=True):  # two texts, which take turns
        hidden = [*model.hidden(ids[:first], cache)]
        hidden += [model.hidden([one], cache)[0] for one in ids[first:-1]]
        with ThreadPoolExecutor(1) as other:
            hidden += [other.submit(model.hidden, ids[-1:], cache).result()[0]]
        got = model.logits(np.array(hidden))
        assert cache.length == len(ids)
        assert ((got - expected) ** 2).sum() < 3e-3 * (expected**2).sum()
    lists = [entry for entry in model.products.ledger if entry.part == "layers"]
    token_lists = sum(entry.calls for entry in lists) - 2
    assert token_lists == (36 - 15 + 36 - 20 if rule == "array" else 0) or rule == "estimate"
    decision = model.composed.token.decision  # type: ignore[union-attr]
    assert (decision is None) == (rule == "array")


@pytest.mark.slow
def test_one_list_makes_what_a_command_a_layer_makes(tmp_path: Path, summing: Any, layer: Path):
    """States, keys and values, bit by bit."""
    prompt = opened(write_hugging_face(tmp_path, random_content(CONFIG, 7)), summing, layer).composed.prompt
    assert prompt
    x = np.random.default_rng(2).normal(size=(37, HIDDEN)).astype(np.float32)
    y, kept = prompt(x, 1e4)
    with prompt.loaded.prepared(tokens=len(x)) as state:
        state.arrays["x"][...] = x
        state.arrays["sums"][...], state.arrays["scales"][...] = 0, 0
        state.arrays["angles"][...] = rope_table(np.arange(len(x)), DIM, 1e4)
        for packed, both in zip(prompt.packed, kept, strict=True):
            state(weights=packed.operands)
            for name, array in zip("kv", both, strict=True):
                same(array, state.arrays[name].astype(np.float32).reshape(array.shape), name)
        last, sums, scales = (state.arrays[name].astype(np.float32) for name in MADE[:3])
        same(y, last + sums * (scales.reshape(-1, 1) * prompt.packed[-1].down_scale), "y")
