"""Devices that stand for an array: what loaded designs hand over is kept, or looked at."""

from collections.abc import Sequence

import numpy as np

from bdforge.design.sequences import PlannedSequence


class IdleBackend:
    """Runs nothing, and leaves buffers where they are."""

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        return ()

    def resident(self, argument: int, buffer: np.ndarray, *, live: bool = False) -> np.ndarray:
        return buffer

    def ready(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to give back."""
