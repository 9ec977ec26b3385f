"""Tokens, one after the other: each drawn from its logits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bdforge.models.bitnet import BitNet
from bdforge.models.errors import ModelError
from bdforge.models.functions import softmax


@dataclass(slots=True)
class Sampler:
    """Takes the most likely token at temperature 0, else draws one, reproducibly by `seed`.

    Drawn are the `top_k` most likely (0: all), of these the fewest whose probabilities add up to `top_p` at least.
    ModelError for values out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise ModelError(
                f"temperature {self.temperature:g}, top-k {self.top_k}, top-p {self.top_p:g}: temperature and top-k "
                "begin at 0, top-p lies above 0 and ends at 1"
            )
        self._random = np.random.default_rng(self.seed)

    def __call__(self, logits: np.ndarray) -> int:
        """A token of the logits of all."""
        if self.temperature == 0:
            return int(logits.argmax())
        order = np.argsort(-logits, kind="stable")[: self.top_k or None]
        chances = softmax(logits[order].astype(np.float64) / self.temperature)
        kept = np.cumsum(chances) - chances < self.top_p  # up to the one that reaches top_p
        return int(self._random.choice(order[kept], p=chances[kept] / chances[kept].sum()))


def generate(model: BitNet, prompt: Sequence[int], sampler: Sampler, most: int, micro_batch: int = 0) -> Iterator[int]:
    """Up to `most` tokens behind the prompt, until one of the model's ends or its last position.

    Errors as of `BitNet.hidden`; `micro_batch` is the prompt's.
    """
    cache = model.cache()
    logits = model.next_logits(prompt, cache, micro_batch)
    for count in range(most):
        token = sampler(logits)
        yield token
        if token in model.config.eos or cache.length == model.config.max_position_embeddings or count + 1 == most:
            return
        logits = model.next_logits([token], cache)
