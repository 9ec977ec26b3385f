"""How models run: cache, micro-batches, where products go, the ledger, and sampling."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.models import ModelError, Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.cache import Cache
from bdforge.models.functions import GATES, attention, quantised, rms_norm, rotated, softmax
from bdforge.models.split import Ledger
from bdforge.runtime import load
from bdforge.runtime.loading import Loaded
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

    def fail(self, linear, codes, scales, **_):
        calls.append(linear.name)
        if len(calls) == 3:
            raise ZeroDivisionError
        return np.zeros((len(codes), len(linear.scales)), np.float32)

    monkeypatch.setattr(Products, "on_cpu", fail)
    with pytest.raises(ZeroDivisionError):
        model.hidden(list(range(12)), model.cache(), 3)


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


@pytest.mark.slow
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


@pytest.mark.parametrize(("prompt", "tokens"), [(46, 3), (47, 2), (48, 1)])
def test_generation_ends_with_the_models_last_position(folder, summing, prompt: int, tokens: int):
    """48 positions: each token but the last one takes one, so the 48th still gives a token."""
    made = list(generate(opened(folder, summing), [0] * prompt, Sampler(), 10))
    assert len(made) == tokens, f"max_position_embeddings is 48, {prompt} tokens went in: got {len(made)}"


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
    """63.5 and 0.5 go to even; -127 is the least code; rows below 1e-5 are divided by that, each row by its own."""
    rows = [[1, -0.5, 0.0], [0, 0, 0], [2, 254, -1], [-3, 3, 0], [-1e-5, 5e-6, 0], [1e-6, 0, 0]]
    codes, scales = quantised(np.array(rows, np.float32))
    assert codes.tolist() == [[127, -64, 0], [0, 0, 0], [1, 127, 0], [-127, 127, 0], [-127, 64, 0], [13, 0, 0]]
    same(scales, [1 / 127, 1e-5 / 127, 2, 3 / 127, 1e-5 / 127, 1e-5 / 127], rtol=1e-6)


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


@pytest.mark.parametrize(
    ("options", "good"),
    [
        ({"temperature": 0, "top_k": 0, "top_p": 1}, True), ({"top_p": 1e-9}, True), ({"top_p": 0}, False),
        ({"top_p": 1.0000001}, False), ({"temperature": -1e-9}, False), ({"top_k": -1}, False),
        ({"temperature": float("nan")}, False), ({"top_p": float("nan")}, False), ({"top_k": 1}, True),
    ],
)  # fmt: skip
def test_samplers_begin_and_end_where_they_say(options: dict, good: bool):
    told = ""
    try:
        Sampler(**options)
    except ModelError as error:
        told = str(error)
    assert ("top-p lies above 0 and ends at 1" in told) is not good, f"{options}: {told or 'taken'}"


@pytest.mark.parametrize(("most", "told"), [(0, 0), (1, 1), (3, 3), (9, 9)])
def test_as_many_tokens_come_as_are_wanted(folder, summing, most: int, told: int):
    model = opened(folder, summing)
    assert len(list(generate(model, [1], Sampler(), most))) == told


@pytest.mark.parametrize(
    ("npu_us", "cpu_us", "array", "why"),
    [(9.4, 9.5, True, "array faster, an NPU 9 us (modelled), this CPU 10 us (rates measured, abacus)"),
     (9.5, 9.5, False, "CPU faster, an NPU 10 us"),
     (9.6, 9.5, False, "CPU faster, an NPU 10 us (modelled), this CPU 10 us (rates measured, abacus)")],
)  # fmt: skip
def test_products_run_on_the_array_where_that_is_faster(summing, monkeypatch, npu_us, cpu_us, array, why):
    """Than what would make them here, whose time is asked once for each size."""
    asked: list[tuple[int, int, int]] = []
    here: Any = SimpleNamespace(name="abacus", us=lambda *sizes: asked.append(sizes) or cpu_us)
    monkeypatch.setattr("bdforge.models.split.estimate", lambda case: SimpleNamespace(time_us=npu_us))
    split = Split(summing.plan, processor=here)
    found, again = split(5, 64, 32), split(5, 64, 32)
    assert found is again
    assert (found.array, found.npu_us, asked) == (array, npu_us, [(5, 64, 32)])
    assert found.why.startswith(f"M = 5: {why}")
    assert [Split(summing.plan, rule)(5, 64, 32).array for rule in ("array", "cpu")] == [True, False]
    assert Split(summing.plan, "cpu")(5, 64, 32).why == "as asked, M = 5"


def test_a_ledger_counts_calls_and_the_time_of_an_npu_by_part_place_and_reason():
    ledger = Ledger()
    for part, where, why, npu_us in (("q", "NPU", "a", 2.0), ("q", "CPU", "a", None), ("q", "NPU", "a", 3.0),
                                     ("q", "NPU", "b", 0.0), ("k", "NPU", "a", 1.0)):  # fmt: skip
        with ledger.timed(part, where, why, npu_us):
            pass
    assert [(e.part, e.where, e.why, e.calls, e.npu_us) for e in ledger] == [
        ("q", "NPU", "a", 2, 5.0), ("q", "CPU", "a", 1, None), ("q", "NPU", "b", 1, 0.0), ("k", "NPU", "a", 1, 1.0),
    ]  # fmt: skip
    assert all(entry.host_seconds > 0 for entry in ledger)


def test_rotations_and_gates_by_hand():
    """Pairs (0, 2) and (1, 3) of four turn by position and by a hundredth of it with theta 10,000."""
    x = np.array([[[1.0, 1.0, 0.0, 0.0]]] * 2, np.float32)
    turned = rotated(x, 3, 10_000.0)
    for row, position in enumerate((3, 4)):
        one, two = position, position / 100
        same(turned[row, 0], [np.cos(one), np.cos(two), np.sin(one), np.sin(two)], rtol=1e-5)
    gate, up = np.array([-1.0, 0.0, 2.0], np.float32), np.array([3.0, 3.0, 3.0], np.float32)
    same(GATES["relu2"](gate, up), [0, 0, 12], rtol=1e-7)
    same(GATES["silu"](gate, up), [-3 / (1 + np.e), 0, 6 / (1 + np.e**-2)], rtol=1e-6)
    same(rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), 0.5), [[3 / 13**0.5, 8 / 13**0.5]], rtol=1e-7)


def test_a_cache_is_as_long_as_what_all_layers_hold():
    cache, two = Cache(2, 1, 2), np.ones((2, 1, 2), np.float32)
    assert cache.length == 0
    cache.appended(1, two, two)
    assert cache.length == 0, "the first layer has nothing yet"
    cache.appended(0, two[:1], two[:1])
    assert cache.length == 1
