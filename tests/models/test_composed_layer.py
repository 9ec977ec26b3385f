"""Prompts and tokens by composed layers: a tiny BitNet, machine code in every core, against float64."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bdforge.models import ArrayParts, ModelError, Products, Split
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.composed_layer import PromptLayers
from bdforge.models.bitnet.composed_token import ComposedLayers
from bdforge.models.bitnet.model_config import BitNetConfig
from bdforge.operators import spec_from
from bdforge.operators.rope import rope_table
from bdforge.runtime import load
from support.differences import same
from support.plain_bitnet import PlainBitNet
from support.tiny_layers import PROMPT, TOKEN, TinyLayers
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_hugging_face

TINY, LAYERS = TinyLayers(), 2
CONFIG = config(TINY.hidden, TINY.ffn, LAYERS, TINY.heads, TINY.kv, TINY.dim, 40, 64)
DESIGNS = TINY.designs(PROMPT)
GIVEN = ("x", "sums", "scales", "angles")
MADE = ("y", "down_sums", "f_scales", "k", "v")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TINY.composed(tmp_path_factory.mktemp("layer"), PROMPT)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TINY.composed(tmp_path_factory.mktemp("token"), TOKEN)


def opened(folder: Path, summing: Any, *layers: Path, rule: str = "array") -> BitNet:
    products = Products(load(summing.folder), Split(summing.plan, rule))
    parts = ArrayParts.of(layers, None, rule, products.ledger)
    return BitNet.load(folder, products, parts=parts, composed=ComposedLayers.among(parts))


@pytest.mark.parametrize("name", [PROMPT, TOKEN])
def test_the_tiny_model_has_the_examples_designs(name: str):
    assert {step["design"] for step in TINY.form(name)["steps"]} == TINY.designs(name).keys()


def told(directions: Mapping[str, str] = MappingProxyType({}), **roles: str) -> Any:
    """A plan as the example's manifest tells it, with other operands and roles where they are given."""
    form = TINY.form(PROMPT)
    tensors = {tensor: "in" for step in form["steps"] for tensor in step["tensors"].values()}
    names = {name: way for name, way in tensors.items() if name[:2] in ("w_", "c_") or name in GIVEN}
    operands = (names | dict.fromkeys(MADE, "out") | dict(directions)).items()
    made = [SimpleNamespace(name=name, direction=way, argument=int(name in ("k", "v"))) for name, way in operands]
    parts = {name: SimpleNamespace(spec=spec_from(content, name)) for name, content in DESIGNS.items()}
    spec = SimpleNamespace(name="bitnet", content={"roles": form["roles"] | roles})
    return SimpleNamespace(program=SimpleNamespace(operands=made), spec=spec, parts=parts)


@pytest.mark.parametrize(
    ("directions", "roles", "lacks"),
    [
        ({"k": "between"}, {}, "keys"), ({"w_more": "in"}, {}, "w_more"), ({"w_sub": "out"}, {}, "attn_sub_norm"),
        ({}, {"w_up": "gate+up"}, "gate"), ({}, {"w_o": "q scales"}, "o"), ({}, {"angles": "angels"}, "angles, angles"),
        ({}, {"c_o": "o scale"}, "c_o"), ({}, {"w_ffn": "attn_norm"}, "w_norm, ffn_norm"),
        ({}, {"w_norm": "key_cache"}, "w_norm, attn_norm"),
    ],
)  # fmt: skip
def test_other_compositions_are_no_layer(directions: dict[str, str], roles: dict[str, str], lacks: str):
    with pytest.raises(ModelError, match=f"design bitnet is no layer of BitNet: {lacks};"):
        PromptLayers(cast("Any", None), told(directions, **roles))


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
    x = np.random.default_rng(2).normal(size=(37, TINY.hidden)).astype(np.float32)
    y, kept = prompt(x, 1e4)
    with prompt.loaded.prepared(tokens=len(x)) as state:
        state.arrays["x"][...] = x
        state.arrays["sums"][...], state.arrays["scales"][...] = 0, 0
        state.arrays["angles"][...] = rope_table(np.arange(len(x)), TINY.dim, 1e4)
        for packed, both in zip(prompt.packed, kept, strict=True):
            state(weights=packed.operands)
            for name, array in zip("kv", both, strict=True):
                same(array, state.arrays[name].astype(np.float32).reshape(array.shape), name)
        last, sums, scales = (state.arrays[name].astype(np.float32) for name in MADE[:3])
        same(y, last + sums * (scales.reshape(-1, 1) * np.float32(prompt.packed[-1].scales["down"])), "y")
