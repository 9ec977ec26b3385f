"""Tiny BitNets against `transformers` (recorded) and against the formulas written once more in float64."""

from pathlib import Path

import numpy as np
import pytest

from bdforge.models import Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.models.rounding import _logits, accuracy
from bdforge.runtime import load
from support.differences import same
from support.exact_products import Exact
from support.plain_bitnet import PlainBitNet
from support.transformers_bitnet import IDS, RECORDED, tiny
from tools.bitnet.content import Content, config, random_content
from tools.bitnet.write import write_gguf, write_hugging_face

NMSE_EXACT = 1e-8  # of logits where all codes are equal
NMSE_MAX = 1e-3  # where codes on the edge of rounding may flip
EDGE = 0.5 + 1e-4  # a code is this near to what was rounded in float64: float32 before it may fall to either side
ODD = config(256, 384, 2, 6, 2, 64, 41, 160)  # queries are wider than the model


class Observed(BitNet):
    """A model that is watched: each product's codes against the norm in float64, each result against integers."""

    codes: list[np.ndarray]

    def _request(self, linear, x, norm, added=None):
        total, (linear, codes, scales) = super()._request(linear, x, norm, added)
        h = total.astype(np.float64)
        h = h / np.sqrt(np.square(h).mean(1, keepdims=True) + self.config.rms_norm_eps) * norm
        steps = 127 / np.abs(h).max(1, keepdims=True)
        assert np.abs(codes - h * steps).max() <= EDGE
        same(scales, 1 / steps[:, 0], rtol=1e-6)
        self.codes.append(codes)
        return total, (linear, codes, scales)


def opened(path: Path, design, content: Content, rule: str = "array") -> Observed:
    model = Observed.load(path, Exact(load(design.folder), Split(design.plan, rule)).watch(content))
    assert isinstance(model, Observed)
    object.__setattr__(model, "codes", [])
    return model


def nmse(got: np.ndarray, right: np.ndarray) -> float:
    return float(np.square(got - right).mean() / np.square(right).mean())


@pytest.mark.parametrize("rule", ["array", "cpu"])
def test_codes_and_logits_are_those_of_transformers(tmp_path, summing, rule):
    model = opened(write_hugging_face(tmp_path, tiny()), summing, tiny(), rule)
    logits = model.logits(model.hidden(IDS, model.cache()))
    right = np.load(RECORDED)
    used = [0, 3, 4, 6]  # of q, k, v, o, gate, up, down in each layer: what feeds a product of ours
    for codes, number in zip(model.codes, [7 * layer + i for layer in range(2) for i in used], strict=True):
        same(codes, right[f"codes_{number}"])
    assert nmse(logits, right["logits"]) < NMSE_EXACT
    same(logits.argmax(1), right["logits"].argmax(1))


def test_transformers_gives_what_was_recorded(tmp_path):
    pytest.importorskip("transformers", reason="transformers with torch and accelerate: a gigabyte, on request")
    from support.transformers_bitnet import run

    for name, array in run(write_hugging_face(tmp_path, tiny()), IDS).items():
        same(array, np.load(RECORDED)[name], rtol=1e-4, atol=1e-5)


def compare(model: BitNet, plain: PlainBitNet, length: int, more: int) -> None:
    """Logits of a prompt, and tokens one after the other."""
    prompt = np.random.default_rng(length).integers(0, model.config.vocab_size, length).tolist()
    right = np.array([plain.step(token) for token in prompt])
    got = model.logits(model.hidden(prompt, model.cache()))
    noise = nmse(got, right)
    assert noise < NMSE_MAX
    near = 4 * np.sqrt(max(noise, NMSE_EXACT) * np.square(right).mean())  # logits so near are one to either
    for token in generate(model, prompt, Sampler(), more):
        logits = right[-1]
        assert token == logits.argmax() or logits.max() - logits[token] < near
        right = plain.step(token)[None]


def seeds(quick: int, all_: int) -> list:
    return [pytest.param(seed, marks=[] if seed < quick else pytest.mark.slow) for seed in range(all_)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_integers_and_tokens_are_those_of_the_formulas(tmp_path, summing, scaling, seed):
    content = random_content(ODD, seed)
    write = write_hugging_face if seed % 2 else lambda path, model: write_gguf(path / "m.gguf", model, "I2_S")
    length = (1, 7, 130, 33, 64)[seed % 5]
    path = write(tmp_path, content)
    for design in (summing, scaling) if seed else (scaling,):
        compare(opened(path, design, content), PlainBitNet(content, short=design is scaling), length, 2)


@pytest.mark.parametrize("rule", ["array", "cpu"])
def test_accuracy_is_told_against_the_formulas(tmp_path, scaling, rule):
    """In float64, in which they are written; with results in bf16, and in float32. Whatever the design gives."""
    content, ids = random_content(ODD, 4), np.random.default_rng(4).integers(0, 41, 12).tolist()
    path = write_hugging_face(tmp_path, content)
    model = BitNet.load(path, Products(load(scaling.folder), Split(scaling.plan, rule)))
    exact, short = (PlainBitNet(content, short=short) for short in (False, True))
    right, rounded = (np.array([plain.step(token) for token in ids]) for plain in (exact, short))
    assert nmse(_logits(model, ids, "float64"), right) < NMSE_EXACT
    assert nmse(_logits(model, ids, "bf16"), rounded) < NMSE_MAX
    narrow, wide = accuracy(model, ids)
    assert (narrow.results, wide.results, narrow.tokens, wide.tokens) == ("bf16", "float32", 12, 12)
    assert wide.nmse < narrow.nmse
    assert narrow.nmse == pytest.approx(nmse(rounded, right), rel=0.5)
    assert narrow.agreeing == pytest.approx((rounded.argmax(1) == right.argmax(1)).sum(), abs=1)
    assert not model.products.ledger.entries, "what was compared is no part of what ran"
