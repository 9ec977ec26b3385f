"""Memory of prepared problems, which host and array both write: each sees what the other made when it looks."""

from collections.abc import Iterator, Mapping

import numpy as np

from bdforge.runtime.run_queue import Backend


class LiveMemory:
    """An argument's buffer, which problems may have in common. It goes to the array where the host may have written it,
    and comes back where somebody looks: a cache that grows there is never copied.

    `host/src/state.hpp` has the same as `Memory`.
    """

    def __init__(self, backend: Backend, argument: int, buffer: np.ndarray):
        """`buffer` has what the array is to find there at first."""
        self.buffer = backend.resident(argument, buffer)
        self._backend = backend
        self._kept = self._written = self._behind = False

    def current(self, *, written: bool = False) -> np.ndarray:
        """The buffer as the array left it, for this moment; `written`: the host writes there before the next run."""
        if self._behind:
            self._backend.receive(self.buffer)
        self._behind = False
        self._written |= written
        return self.buffer

    def keep(self) -> None:
        """From now on the host may read and write it at any time between runs."""
        self.current()
        self._kept = True

    def send(self) -> None:
        """Before a run."""
        if self._kept or self._written:
            self._backend.send(self.buffer)
        self._written = False

    def begin(self) -> None:
        """Before a run that writes it, some of it even if the run fails."""
        self._behind = True

    def made(self) -> None:
        """Behind it."""
        if self._kept:
            self.current()


class KeptArrays(Mapping[str, np.ndarray]):
    """A problem's arrays by operand name: whoever takes one may keep it."""

    def __init__(self, arrays: Mapping[str, np.ndarray], memory: Mapping[str, LiveMemory]):
        self._arrays, self._memory = arrays, memory

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays[name]
        self._memory[name].keep()
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)
