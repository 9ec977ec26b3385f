"""The table of rotary embeddings: cosines and sines of positions, in bfloat16."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.devices.types import TYPES
from bdforge.operators.specs import SpecError


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """All frequencies by `factor`, as "linear" in models' `rope_scaling`."""

    factor: float

    def scaled(self, frequencies: np.ndarray) -> np.ndarray:
        return frequencies / self.factor


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Low frequencies by `factor`, high ones as they are, as "llama3" in models' `rope_scaling` (Llama 3.1).

    Low are those of fewer than `low_freq_factor` turns in `original_max_position_embeddings` positions, high those of
    more than `high_freq_factor`; between them both are mixed by the turns.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    def scaled(self, frequencies: np.ndarray) -> np.ndarray:
        turns = self.original_max_position_embeddings * frequencies / (2 * np.pi)
        high = np.clip((turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor), 0, 1)
        return frequencies * (high + (1 - high) / self.factor)


def rope_table(
    positions: Sequence[int] | np.ndarray,
    head_dim: int,
    theta: float = 10000.0,
    scaling: LinearScaling | Llama3Scaling | None = None,
) -> np.ndarray:
    """Rows of `head_dim`, bfloat16: cosines, then sines, of position * theta^(-2 i / head_dim), i below head_dim / 2.

    Angles are computed in float64. SpecError where `head_dim` is odd or a number is not above 0.
    """
    if head_dim < 2 or head_dim % 2 or not theta > 0:
        raise SpecError(f"a table needs an even head_dim and theta above 0, not {head_dim} and {theta}")
    if scaling is not None and not scaling.factor > 0:
        raise SpecError(f"factor = {scaling.factor} of a scaling is not above 0")
    if isinstance(scaling, Llama3Scaling) and not scaling.low_freq_factor < scaling.high_freq_factor:
        raise SpecError(
            f"low_freq_factor = {scaling.low_freq_factor} is not below high_freq_factor = {scaling.high_freq_factor}"
        )
    frequencies = theta ** (-2 * np.arange(head_dim // 2) / head_dim)
    if scaling is not None:
        frequencies = scaling.scaled(frequencies)
    angles = np.asarray(positions, np.float64)[..., None] * frequencies
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1).astype(TYPES["bf16"].dtype)
