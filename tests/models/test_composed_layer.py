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
from bdforge.models.bitnet.composed_layer import ComposedLayer
from bdforge.models.bitnet.composed_layers import ComposedLayers
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
GIVEN = ("x", "sums", "scales", "angles", "k_cache", "v_cache")
MADE = ("y", "down_sums", "f_scales", "k", "v")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TINY.composed_once(tmp_path_factory, PROMPT)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TINY.composed_once(tmp_path_factory, TOKEN)


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
    made = [SimpleNamespace(name=name, direction=way, argument=int(name.endswith("_cache"))) for name, way in operands]
    program = SimpleNamespace(operands=made, sizes=("tokens", "keys"))
    parts = {name: SimpleNamespace(spec=spec_from(content, name)) for name, content in DESIGNS.items()}
    spec = SimpleNamespace(name="bitnet", content={"roles": form["roles"] | roles})
    return SimpleNamespace(program=program, spec=spec, parts=parts)


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
        ComposedLayer(cast("Any", None), told(directions, **roles))


def test_keys_and_values_beside_what_layers_share_are_refused():
    plan = told()
    next(operand for operand in plan.program.operands if operand.name == "angles").argument = 1
    with pytest.raises(ModelError, match="design bitnet: a cache lies in one buffer with angles, which all layers"):
        ComposedLayer(cast("Any", None), plan)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"rms_norm_eps": 1e-6}, "epsilon = 1e-05, this model 1e-06"), ({"num_attention_heads": 2}, "heads = 4, .* 2"),
        ({"num_key_value_heads": 1}, "kv_heads = 2, .* 1"), ({"head_dim": 32}, "head_dim = 64, .* 32"),
        ({"hidden_act": "silu"}, "none of its products has the gate silu"), ({"vocab_size": 7}, None),
    ],
)  # fmt: skip
def test_a_layer_of_another_model_is_refused(changed: dict[str, Any], says: str | None):
    layer, model = ComposedLayer(cast("Any", None), told()), BitNetConfig.model_validate(CONFIG | changed)
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
        ComposedLayer(cast("Any", None), plan).check(BitNetConfig.model_validate(CONFIG))


def test_other_parameters_are_refused():
    plan = told()
    plan.program.sizes = ("tokens",)
    with pytest.raises(ModelError, match="design bitnet has parameters tokens; a layer of BitNet has tokens and keys"):
        ComposedLayer(cast("Any", None), plan)


def sized(*sizes: str) -> ComposedLayer:
    """Layers whose attention has tiles of 4 queries and 16 keys."""
    plan = told()
    plan.program.sizes = sizes
    layer = ComposedLayer(cast("Any", None), plan)
    layer.tile = 4, 16
    return layer


@pytest.mark.parametrize(
    ("tokens", "first", "several", "single"),
    [
        (1, 0, (16, 16), None), (3, 0, (16, 16), None), (37, 0, (37, 37), None), (3, 9, (7, 16), None),
        (2, 20, (4, 24), None), (5, 20, (5, 25), None),
        (1, 14, (4, 18), None), (1, 15, (4, 19), 16), (1, 99, (4, 103), 100),
    ],
)  # fmt: skip
def test_short_texts_are_as_long_as_a_tile(tokens: int, first: int, several: tuple[int, int], single: int | None):
    assert sized("tokens", "keys").sizes(tokens, first) == dict(zip(("tokens", "keys"), several, strict=True))
    assert sized("keys").sizes(tokens, first) == (None if single is None else {"keys": single})


@pytest.mark.parametrize(
    ("tokens", "first", "several_us", "single_us", "taken"),
    [
        (3, 20, 100, 30, ("single", 1)), (4, 20, 100, 30, ("several", 4)), (1, 20, 100, 99, ("single", 1)),
        (1, 20, 100, 120, ("several", 1)), (3, 5, 100, 1, ("several", 3)), (3, 20, None, 1, None),
        (1, 20, None, 1, ("single", 1)), (1, 5, None, 1, None), (1, 5, 100, None, ("several", 1)),
        (1, 5, None, None, None),
    ],
)  # fmt: skip
def test_tokens_run_at_once_or_one_by_one_as_is_faster(
    tokens: int, first: int, several_us: float | None, single_us: float | None, taken: tuple[str, int] | None
):
    kinds = {"several": (sized("tokens", "keys"), several_us), "single": (sized("keys"), single_us)}
    for layer, us in kinds.values():
        layer.us = lambda us=us, **_: us  # pyrefly: ignore[bad-assignment]
    given = {kind: layer for kind, (layer, us) in kinds.items() if us is not None}
    layers = ComposedLayers(given.get("several"), given.get("single"))
    found = layers.fastest(tokens, first)
    assert found == (taken and (kinds[taken[0]][0], taken[1]))


@pytest.mark.slow
@pytest.mark.parametrize(("pieces", "micro_batch"), [((3, 20, 1, 14), 0), ((70, 3), 0), ((38,), 16)])
def test_a_text_piece_by_piece_by_layers(
    tmp_path: Path, summing: Any, layer: Path, pieces: tuple[int, ...], micro_batch: int,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """Logits of pieces of fewer tokens than attention's tile and of more, over a cache that outgrows its memory."""
    monkeypatch.setattr("bdforge.models.bitnet.composed_layer._FIRST", 16)
    content = random_content(CONFIG | {"max_position_embeddings": 128}, 5)
    model = opened(write_hugging_face(tmp_path, content), summing, layer)
    plain, cache = PlainBitNet(content), model.cache()
    ids = np.random.default_rng(1).integers(0, 40, sum(pieces)).tolist()
    expected = np.array([plain.step(token) for token in ids])
    ends = np.cumsum(pieces)
    got = [model.hidden(ids[end - piece : end], cache, micro_batch) for piece, end in zip(pieces, ends, strict=True)]
    assert cache.length == len(ids)
    assert ((model.logits(np.concatenate(got)) - expected) ** 2).sum() < 3e-3 * (expected**2).sum()
    assert {entry.part for entry in model.products.ledger} == {"embedding", "layers", "head"}
    (lists,) = (entry.calls for entry in model.products.ledger if entry.part == "layers")
    assert lists == (3 if micro_batch else len(pieces))
    (held,) = cast("Any", cache.resident).values()
    assert held.states[0].sizes["tokens"] >= (micro_batch or max(pieces))  # it never shrinks


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["array", "estimate"])
def test_tokens_by_layers_over_a_cache_that_grows(
    tmp_path: Path, summing: Any, layer: Path, token: Path, rule: str, monkeypatch: pytest.MonkeyPatch
):
    """Some come too early for attention's tile, later ones when the memory that was prepared is full."""
    monkeypatch.setattr("bdforge.models.bitnet.composed_layer._FIRST", 16)
    content = random_content(CONFIG, 5)
    model = opened(write_hugging_face(tmp_path, content), summing, layer, token, rule=rule)
    plain, caches = PlainBitNet(content), [model.cache(), model.cache()]
    ids = np.random.default_rng(1).integers(0, 40, 36).tolist()
    expected = np.array([plain.step(token) for token in ids])
    for cache, first in zip(caches, (13, 20), strict=True):  # two texts, which take turns
        hidden = [*model.hidden(ids[:first], cache)]
        hidden += [model.hidden([one], cache, 99)[0] for one in ids[first:-1]]
        with ThreadPoolExecutor(1) as other:
            hidden += [other.submit(model.hidden, ids[-1:], cache).result()[0]]
        got = model.logits(np.array(hidden))
        assert cache.length == len(ids)
        assert ((got - expected) ** 2).sum() < 3e-3 * (expected**2).sum()
    parts = {entry.part for entry in model.products.ledger}
    assert (parts == {"embedding", "layers", "head"}) == (rule == "array")
    decisions = [one.decision is None for one in model.composed]
    assert decisions == [rule == "array"] * 2


@pytest.mark.slow
def test_one_list_makes_what_a_command_a_layer_makes(tmp_path: Path, summing: Any, layer: Path):
    """States, keys and values, bit by bit."""
    model = opened(write_hugging_face(tmp_path, random_content(CONFIG, 7)), summing, layer)
    layers, cache, length = model.composed.several, model.cache(), 37
    assert layers
    x = np.random.default_rng(2).normal(size=(length, TINY.hidden)).astype(np.float32)
    y = layers(x, cache, 1e4).summed()
    with layers.loaded.prepared(tokens=length, keys=length) as state:
        state.arrays["x"][...] = x
        state.arrays["sums"][...], state.arrays["scales"][...] = 0, 0
        state.arrays["angles"][...] = rope_table(np.arange(length), TINY.dim, 1e4)
        for number, packed in enumerate(layers.packed):
            state(weights=packed.operands)
            for name, array in zip("kv", cache.kept(number), strict=True):
                same(array, state.arrays[name].astype(np.float32).reshape(array.shape), name)
        last, sums, scales = (state.arrays[name].astype(np.float32) for name in MADE[:3])
        same(y, last + sums * (scales.reshape(-1, 1) * np.float32(layers.packed[-1].scales["down"])), "y")
