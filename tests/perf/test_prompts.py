"""Prompts of others' models: sums by hand, and how well operators and a part of each layer explain them."""

from statistics import median

import pytest

from bdforge.perf import PerfError
from bdforge.perf.prompts import (
    PARTS_FILE,
    ModelSizes,
    Prompt,
    PromptParts,
    model_sizes,
    prompt_parts,
    published_prompts,
)
from tools.fit.prompts import errors, fit_parts, model_left_out, parts_csv

SMALL = ModelSizes(layers=3, hidden=64, inner=160, heads=4, kv_heads=2, head_dim=32)


def test_a_layer_has_the_products_of_a_gated_decoder():
    assert SMALL.products == ((64, 128, 1), (64, 64, 2), (128, 64, 1), (64, 160, 2), (160, 64, 1))
    assert SMALL.weights == pytest.approx((64 * 128 + 2 * 64 * 64 + 128 * 64 + 2 * 64 * 160 + 160 * 64) / 1e6)


def test_the_rest_of_a_layer_grows_with_weights_tokens_and_pairs():
    parts = PromptParts(layer_ms=2.0, weight_ms=10.0, token_us=5.0, pair_ns=0.5)
    wanted = 2 + 10 * SMALL.weights + 5 * 100 / 1e3 + 0.5 * 4 * 32 * 100**2 / 1e6
    assert parts.ms(SMALL, 100) == pytest.approx(wanted)


def test_parts_that_made_prompts_are_found_again():
    parts = {"flm": PromptParts(12.0, 0.04, 4.0, 0.0004)}
    made = [Prompt("flm", each.model, each.tokens, each.modelled_ms(parts)) for each in published_prompts()
            if each.source == "flm"]  # fmt: skip
    found = fit_parts("flm", made)
    names = ("layer_ms", "weight_ms", "token_us", "pair_ns")
    assert [getattr(found, name) for name in names] == pytest.approx([12.0, 0.04, 4.0, 0.0004], rel=1e-6)


def test_the_shipped_parts_are_those_of_the_fit():
    assert PARTS_FILE.read_text(encoding="utf-8") == parts_csv(), "run python -m tools.fit"


def test_operators_and_a_fixed_part_explain_prompts_within_15_percent():
    """All but one: mlir-air's Qwen2.5-3B, of which a product runs on the host."""
    far = [p for p in published_prompts() if abs(errors([p], prompt_parts())[0]) > 0.15]
    assert [(p.source, p.model) for p in far] == [("mlir-air", "Qwen2.5-3B")]
    for source in prompt_parts():
        assert median(map(abs, model_left_out(source))) < 0.1, source


def test_unknown_models_are_refused_with_the_known_ones():
    with pytest.raises(PerfError, match=r"sizes of model 'Grok' are not known; known: Llama-3.2-1B, "):
        model_sizes("Grok")
