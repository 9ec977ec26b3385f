"""How models run: cache, micro-batches, where products go, the ledger, and sampling."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.models import ModelError, Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.cache import Cache
from bdforge.models.functions import attention, quantised, softmax
from bdforge.models.linear import Linear
from bdforge.runtime import load
from bdforge.runtime.load import Loaded
from support.differences import same
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_hugging_face


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hugging_face(tmp_path_factory.mktemp("model"), random_content(config(96, 76, 2, 6, 3, 16, 40, 48), 5))


def opened(folder, design, rule="cpu") -> BitNet:
    return BitNet.load(folder, Products(load(design.folder), Split(design.plan, rule)))


@pytest.mark.parametrize("parts", [[1] * 12, [5, 7], [11, 1]])
def test_a_prompt_may_come_in_parts(folder, summing, parts):
    model, ids = opened(folder, summing), np.random.default_rng(1).integers(0, 40, 12).tolist()
    whole = model.hidden(ids, model.cache())
    cache, got, first = model.cache(), [], 0
    for size in parts:
        assert cache.length == first
        got.append(model.hidden(ids[first : first + size], cache))
        first += size
    same(np.concatenate(got), whole, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("micro_batch", [1, 5, 12, 99])
def test_micro_batches_change_nothing(folder, summing, micro_batch):
    model, ids = opened(folder, summing), list(range(12))
    whole, cache = model.hidden(ids, model.cache()), model.cache()
    same(model.hidden(ids, cache, micro_batch), whole, rtol=2e-4, atol=2e-4)
    assert cache.length == 12


def test_a_fault_in_one_micro_batch_ends_all(folder, summing, monkeypatch):
    model, calls = opened(folder, summing), []

    def fail(self, linear, codes):
        calls.append(linear.name)
        if len(calls) == 3:
            raise ZeroDivisionError
        return np.zeros((len(codes), len(linear.scales)), np.int32)

    monkeypatch.setattr(Products, "_sums_on_cpu", fail)
    with pytest.raises(ZeroDivisionError):
        model.hidden(list(range(12)), model.cache(), 3)


def test_products_go_where_the_estimate_says(summing):
    split = Split(summing.plan)
    one, many = split(1, 2560, 2560), split(4096, 2560, 6912)
    assert not one.array
    assert "CPU faster" in one.why
    found = re.search(r"NPU (\d+) us \(modelled\), CPU (\d+) us", many.why)
    assert found is not None
    assert many.array == (int(found[1]) < int(found[2]))
    assert split(1, 2560, 2560) is one
    assert Split(summing.plan, "array")(1, 64, 64).array
    assert not Split(summing.plan, "cpu")(4096, 2560, 6912).array


def test_the_ledger_counts_every_product_and_part(folder, summing):
    model = opened(folder, summing, "array")
    tokens = list(generate(model, [1, 2, 3], Sampler(), 3))
    found = {(entry.part, entry.why): entry for entry in model.products.ledger}
    assert len(tokens) == 3
    for name in ("qkv", "out", "gate_up", "down"):
        prompt, others = found[name, "as asked, M = 3"], found[name, "as asked, M = 1"]
        assert (prompt.calls, others.calls) == (2, 4)
        assert prompt.where == "emulated array"
        assert prompt.npu_us is not None
        assert prompt.npu_us > 0
        assert prompt.host_seconds > 0
    heads = [entry for entry in found.values() if entry.part == "head"]
    assert [(entry.calls, entry.where, entry.npu_us) for entry in heads] == [(3, "CPU", None)]


def test_the_cpu_computes_what_the_array_computes(folder, scaling):
    model, ids = opened(folder, scaling, "array"), list(range(7))
    other = opened(folder, scaling)
    same(model.hidden(ids, model.cache()), other.hidden(ids, other.cache()), rtol=1e-2, atol=1e-2)


def test_packed_weights_give_back_what_they_were_made_of(scaling):
    loaded: Loaded = load(scaling.folder)
    rng = np.random.default_rng(2)
    for K, N in ((100, 70), (64, 96), (1, 1), (129, 33)):
        arrays = {"B": rng.integers(-1, 2, (K, N), np.int8), "column_scales": rng.random(N, np.float32)}
        got = loaded.unpack(loaded.pack(**arrays))
        for name, array in arrays.items():
            same(got[name], array, strict=True)


def test_what_cannot_be_run_is_refused(folder, summing, small):
    model = opened(folder, summing)
    with pytest.raises(ModelError, match="a prompt needs a token at least"):
        model.hidden([], model.cache())
    with pytest.raises(ModelError, match="the vocabulary has tokens 0 to 39, not 40, -1"):
        model.hidden([40, 3, -1], model.cache())
    with pytest.raises(ModelError, match="49 tokens are more than the 48 positions of this model"):
        model.hidden([0] * 49, model.cache())
    assert len(list(generate(model, [0] * 47, Sampler(), 10))) == 2


def test_generation_ends_at_a_token_that_ends(folder, summing):
    model = opened(folder, summing)
    tokens = list(generate(model, [1], Sampler(), 8))
    ends = model.config.model_copy(update={"eos": (tokens[2],)})
    object.__setattr__(model, "config", ends)
    assert list(generate(model, [1], Sampler(), 8)) == tokens[: tokens.index(tokens[2]) + 1]


def test_attention_by_hand():
    """Two positions, one head that looks back: weights of the second are softmax of (0, ln 3)."""
    k = np.array([[[0.0]], [[1.0]]], np.float32)
    v = np.array([[[1.0]], [[5.0]]], np.float32)
    q = np.array([[[1.0]], [[np.log(3)]]], np.float32)
    same(attention(q, k, v), [[1], [4]], rtol=1e-6)
    same(attention(q[1:], k, v), [[4]], rtol=1e-6)


def test_quantising_by_hand():
    codes, scales = quantised(np.array([[1, -0.5, 0.0], [0, 0, 0], [2, 254, -1]], np.float32))
    assert codes.tolist() == [[127, -64, 0], [0, 0, 0], [1, 127, 0]]  # 63.5 and 0.5 go to even
    same(scales, [1 / 127, 1e-5 / 127, 2], rtol=1e-6)


def test_sampling_draws_as_likely_as_said_from_what_is_left():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))

    def shares(**options) -> list[float]:
        draw = Sampler(temperature=1, seed=3, **options)
        return (np.bincount([draw(logits) for _ in range(4000)], minlength=4) / 4000).tolist()

    assert shares() == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    assert shares(top_k=2) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert shares(top_p=0.81) == pytest.approx([0.526, 0.316, 0.158, 0], abs=0.03)
    assert shares(top_p=0.1) == [1, 0, 0, 0]
    assert Sampler()(logits) == 0
    first, second = (Sampler(temperature=2, seed=9) for _ in range(2))
    assert [first(logits) for _ in range(20)] == [second(logits) for _ in range(20)]
    with pytest.raises(ModelError, match="top-p lies above 0 and ends at 1"):
        Sampler(top_p=0)


@pytest.mark.parametrize(("top_p", "kept"), [(0.25, 1), (0.5, 2), (0.51, 3), (1.0, 4)])
def test_tokens_are_kept_until_their_chances_reach_top_p(top_p: float, kept: int):
    sampler = Sampler(temperature=1, top_p=top_p, seed=1)
    assert {sampler(np.zeros(4, np.float32)) for _ in range(200)} == set(range(kept))
    assert softmax(np.array([1e4, 1e4])).tolist() == [0.5, 0.5]


def test_a_cache_doubles_when_it_is_full_and_keeps_what_it_has():
    cache, keys = Cache(1, 2, 3), np.random.default_rng(4).random((200, 2, 3), np.float32)
    first, _ = cache.appended(0, keys[:63], -keys[:63])
    full, _ = cache.appended(0, keys[63:64], -keys[63:64])
    assert np.shares_memory(first, full)  # 64 positions from the start
    more, values = cache.appended(0, keys[64:65], -keys[64:65])
    assert not np.shares_memory(full, more)
    most, _ = cache.appended(0, keys[65:128], -keys[65:128])
    assert np.shares_memory(more, most)  # 128 then
    same(most, keys[:128])
    same(values, -keys[:65])
    same(cache.appended(0, keys[128:], -keys[128:])[1], -keys)
    assert cache.length == 200


def test_unpacked_weights_are_kept_while_there_is_room_for_all_of_them(monkeypatch):
    monkeypatch.setattr("bdforge.models.linear._KEPT_BYTES", 100)
    loaded = SimpleNamespace(unpack=lambda size: {"B": np.zeros(size, np.int8)})
    products: Any = SimpleNamespace(_unpacked={}, loaded=loaded)
    layers = [Linear("one", size, np.ones(1)) for size in (60, 40, 1)]  # type: ignore[arg-type]
    arrays = [Products._weights(products, layer) for layer in layers]
    assert [array.nbytes for array in arrays] == [60, 40, 1]
    assert sum(array.nbytes for array in products._unpacked.values()) == 100
