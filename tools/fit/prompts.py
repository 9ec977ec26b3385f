"""The parts of whole prompts that no operator tells, by linear least squares of the relative error."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bdforge.common.files import csv_text
from bdforge.perf.prompts import Prompt, PromptParts, published_prompts

_FREE: Mapping[str, tuple[str, ...]] = {
    "flm": ("layer_ms", "weight_ms", "token_us", "pair_ns"), "mlir-air": ("layer_ms",),
}  # fmt: skip
"""Numbers that are fitted of a source."""


def fit_parts(source: str, prompts: Sequence[Prompt]) -> PromptParts:
    """Of the source's prompts among these."""
    own = [prompt for prompt in prompts if prompt.source == source]
    one = {name: PromptParts(**{"layer_ms": 0.0} | {name: 1.0}) for name in _FREE[source]}
    terms = np.array([[p.sizes.layers * part.ms(p.sizes, p.tokens) / p.ms for part in one.values()] for p in own])
    left = np.array([1 - prompt.operators_ms / prompt.ms for prompt in own])
    found, *_ = np.linalg.lstsq(terms, left, rcond=None)
    return PromptParts(**{"layer_ms": 0.0} | dict(zip(one, map(float, found), strict=True)))


def errors(prompts: Collection[Prompt], parts: Mapping[str, PromptParts]) -> list[float]:
    """Modelled over measured time, minus 1."""
    return [prompt.modelled_ms(parts) / prompt.ms - 1 for prompt in prompts]


def model_left_out(source: str) -> list[float]:
    """Errors of each model by parts fitted to the source's others."""
    own = [prompt for prompt in published_prompts() if prompt.source == source]
    found: list[float] = []
    for model in dict.fromkeys(prompt.model for prompt in own):
        parts = {source: fit_parts(source, [prompt for prompt in own if prompt.model != model])}
        found += errors([prompt for prompt in own if prompt.model == model], parts)
    return found


def parts_csv() -> str:
    """The table that the product reads."""
    lines = []
    for source in _FREE:
        parts = fit_parts(source, published_prompts())
        figures = (parts.layer_ms, parts.weight_ms, parts.token_us, parts.pair_ns)
        lines.append((source, *(f"{figure:.4g}" for figure in figures)))
    return csv_text([("source", "layer_ms", "weight_ms", "token_us", "pair_ns"), *lines])
