"""Addresses that keep what is used at the same time in different banks, where core and DMA stall each other in one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from bdforge.devices import TileLimits

Weights = tuple[tuple[int, ...], ...]
"""What it costs when two buffers share a bank, symmetric; on the diagonal, when a buffer has no border of banks in its
middle."""

_STEPS = 50_000  # of a search; six buffers never need so many, and the first placement of many is rarely beaten


@lru_cache(maxsize=4096)
def apart(sizes: tuple[int, ...], weights: Weights, start: int, limits: TileLimits) -> tuple[int, ...]:
    """Addresses from `start` on for buffers of these sizes, with the least sum of the weights of those sharing banks.

    Exact for as many buffers as a core has: in any placement each buffer can move down to the end of the one before,
    to the start of the bank in which it begins, or to where its middle is a border, without touching another bank, and
    an empty bank between two can be closed; so only these places are tried. One after the other, beyond the memory
    too, where they do not fit.
    Sizes and `start` are multiples of the alignment. The same answer for the same question.
    """
    search = _Search(sizes, weights, limits, start + sum(sizes) <= limits.memory_bytes)
    search.run(start)
    return tuple(search.best[i] for i in range(len(sizes)))


@dataclass(slots=True)
class _Search:
    sizes: tuple[int, ...]
    weights: Weights
    limits: TileLimits
    fits: bool
    steps: int = 0
    cost: float = float("inf")
    best: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

    def run(self, start: int) -> None:
        if self.fits:
            self.extend(start, 0, sum(self.sizes))
            return
        for index, size in enumerate(self.sizes):
            self.best[index] = start
            start += size

    def extend(self, at: int, cost: int, left: int) -> None:
        """Place what is left from `at` on, cheapest choice first; `left` bytes are to come."""
        if len(self.taken) == len(self.sizes):
            self.cost, self.best = cost, dict(self.taken)
            return
        for added, address, index in sorted(self.choices(at, left)):
            if cost + added >= self.cost or (self.best and self.steps >= _STEPS):
                return
            self.steps += 1
            self.taken[index] = address
            self.extend(address + self.sizes[index], cost + added, left - self.sizes[index])
            del self.taken[index]

    def choices(self, at: int, left: int) -> Iterator[tuple[int, int, int]]:
        """(added cost, address, buffer) of each buffer that could come next; nothing placed reaches beyond `at`."""
        bank, most = self.limits.bank_bytes, self.limits.memory_bytes - left
        border = at + -at % bank
        here = self.reaching(border - bank)
        for index, weights in enumerate(self.weights):
            if index in self.taken:
                continue
            middle = at + -(at + self.sizes[index] // 2) % bank
            if at <= most:
                yield sum(weights[i] for i in here) * (at < border) + weights[index] * (at != middle), at, index
            if at < border <= most:
                yield weights[index] * (border != middle), border, index
            if weights[index] and at < middle <= most and middle != border:
                yield sum(weights[i] for i in self.reaching(middle - middle % bank)), middle, index

    def reaching(self, address: int) -> list[int]:
        """Buffers that reach beyond an address."""
        return [index for index, start in self.taken.items() if start + self.sizes[index] > address]
