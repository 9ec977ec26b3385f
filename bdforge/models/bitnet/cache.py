"""Keys and values of the tokens so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from bdforge.models.errors import ModelError

_FIRST = 64  # positions; capacity doubles from there


@dataclass(slots=True)
class Cache:
    """For each layer keys and values (positions x heads x d), keys turned by their position already."""

    layers: int
    heads: int
    size: int
    resident: dict[object, object] = field(default_factory=dict, repr=False)
    """What devices keep of it, by whose it is."""
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
        """Positions that all layers hold."""
        return min((self._kept[layer][1] for layer in self._kept), default=0) if len(self._kept) == self.layers else 0

    def kept(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values of a layer."""
        both, length = self._kept[layer]
        return both[0, :length], both[1, :length]

    def appended(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values of a layer, with those of the next tokens behind the others."""
        shape = self.heads, self.size
        both, length = self._kept.get(layer, (np.empty((2, 0, *shape), k.dtype), 0))
        end = length + len(k)
        if end > both.shape[1]:
            more = np.empty((2, max(_FIRST, end, 2 * both.shape[1]), *shape), k.dtype)
            more[:, :length] = both[:, :length]
            both = more
        both[0, length:end], both[1, length:end] = k, v
        self._kept[layer] = both, end
        return self.kept(layer)
