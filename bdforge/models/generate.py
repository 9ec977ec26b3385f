"""Tokens, one after the other, of any model that tells hidden states and logits."""

from collections.abc import Iterator, Sequence

from bdforge.models.bitnet import BitNet
from bdforge.models.sampling import Sampler


def generate(model: BitNet, prompt: Sequence[int], sampler: Sampler, most: int, micro_batch: int = 0) -> Iterator[int]:
    """Up to `most` tokens behind the prompt, until one of the model's ends or its last position.

    Errors as of `BitNet.hidden`; `micro_batch` is the prompt's.
    """
    cache = model.cache()
    state = model.hidden(prompt, cache, micro_batch)
    for count in range(most):
        token = sampler(model.logits(state[-1:])[0])
        yield token
        if token in model.config.eos or cache.length == model.config.max_position_embeddings or count + 1 == most:
            return
        state = model.hidden([token], cache)
