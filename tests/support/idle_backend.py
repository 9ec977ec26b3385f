"""Devices that stand for an array: what loaded designs hand over is kept, or looked at."""

from collections.abc import Sequence

import numpy as np

from bdforge.design.sequences import PlannedSequence
from bdforge.runtime.run_queue import ListedRun, numbered


class IdleBackend:
    """Runs nothing, and leaves buffers where they are."""

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        return ()

    def run_list(self, runs: Sequence[ListedRun], timeout_seconds: float) -> tuple[str, ...]:
        """Each by `run`, with the number of what fails."""
        for number, (planned, buffers) in enumerate(runs, 1):
            with numbered(number, len(runs)):
                self.run(planned, buffers, timeout_seconds)
        return ()

    def resident(self, argument: int, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def send(self, buffer: np.ndarray) -> None:
        """It is there."""

    def receive(self, buffer: np.ndarray) -> None:
        """It is there."""

    def ready(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to give back."""
