"""Keys and values of the tokens so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np

from bdforge.models.errors import ModelError

_FIRST = 64  # positions; capacity doubles from there


class ResidentRows(Protocol):
    """Keys and values in a device's memory, of the first `rows` positions."""

    rows: int

    def read(self, layer: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Those of a layer from a position on."""
        ...


@dataclass(slots=True)
class Cache:
    """For each layer keys and values (positions x heads x d), keys turned by their position already."""

    layers: int
    heads: int
    size: int
    resident: dict[object, ResidentRows] = field(default_factory=dict, repr=False)
    """What devices keep of it, by whose it is; the host reads there what it lacks, when somebody asks."""
    _kept: dict[int, tuple[np.ndarray, int]] = field(default_factory=dict, repr=False)
    _used: Lock = field(default_factory=Lock, repr=False)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While states of more tokens are computed; ModelError while another thread does so."""
        if not self._used.acquire(blocking=False):
            raise ModelError("a cache is in use by another thread; each sequence of tokens has a cache of its own")
        try:
            yield
        finally:
            self._used.release()

    @property
    def length(self) -> int:
        """Positions that all layers hold, here or in a device's memory."""
        here = min((self._kept[layer][1] for layer in self._kept), default=0) if len(self._kept) == self.layers else 0
        return max(here, *(one.rows for one in self.resident.values()), 0)

    def kept(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values of a layer."""
        latest = max(self.resident.values(), key=lambda one: one.rows, default=None)
        _, here = self._kept.get(layer, (None, 0))
        if latest is not None and latest.rows > here:
            self._append(layer, *latest.read(layer, here))
        both, length = self._kept[layer]
        return both[0, :length], both[1, :length]

    def appended(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values of a layer, with those of the next tokens behind the others."""
        if self.resident:
            self.kept(layer)
        self._append(layer, k, v)
        return self.kept(layer)

    def _append(self, layer: int, k: np.ndarray, v: np.ndarray) -> None:
        shape = self.heads, self.size
        both, length = self._kept.get(layer, (np.empty((2, 0, *shape), k.dtype), 0))
        end = length + len(k)
        if end > both.shape[1]:
            more = np.empty((2, max(_FIRST, end, 2 * both.shape[1]), *shape), k.dtype)
            more[:, :length] = both[:, :length]
            both = more
        both[0, length:end], both[1, length:end] = k, v
        self._kept[layer] = both, end
