"""The 24 contractions of the TCCG benchmark, and random ones."""

import csv
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import numpy as np

from bdforge.devices.types import TYPES
from support.built_designs import ROOT

_REDUCED = {20: 5, 24: 6, 36: 7, 48: 9, 84: 10, 96: 12, 376: 21, 384: 24, 7240: 40, 7248: 41}
_SIZES = (1, 2, 3, 4, 7, 8, 9, 12, 16, 20, 33)
_KINDS = {"M": (0, 2), "N": (1, 2), "K": (0, 1), "C": (0, 1, 2)}
_MOST = 60_000  # multiply-accumulates of a random one


class Case(NamedTuple):
    """An expression with sizes by label."""

    name: str
    expression: str
    sizes: Mapping[str, int]

    @property
    def reduced(self) -> "Case":
        """The same with sizes that run on the emulated array, few of them whole tiles."""
        return self._replace(sizes={label: _REDUCED[size] for label, size in self.sizes.items()})

    def arrays(
        self, rng: np.random.Generator, types: tuple[str, ...], gaps: tuple[int, ...] = (0,)
    ) -> list[np.ndarray]:
        """Inputs of small integers; with `gaps` they are parts of larger arrays."""
        found = []
        for labels, name in zip(self.expression.split("->")[0].split(","), types, strict=False):
            type_, shape = TYPES[name], [self.sizes[label] for label in labels]
            low, high = type_.values if name == "int2" and type_.values else (-4, 4)
            whole = rng.integers(low, high + 1, [size + int(rng.choice(gaps)) for size in shape])
            found.append(np.asarray(whole.astype(type_.dtype)[tuple(slice(size) for size in shape)]))
        return found


def tccg() -> list[Case]:
    """The benchmark, at full size."""
    with (ROOT / "benchmarks" / "tccg.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [Case(row["id"], row["einsum"], dict(_pair(text) for text in row["sizes"].split())) for row in rows]


def _pair(text: str) -> tuple[str, int]:
    label, _, size = text.partition("=")
    return label, int(size)


def random_case(seed: int) -> Case:
    """Any types of dimensions, in any order in each tensor, which has 2 to 6 of them."""
    rng, labels = Random(seed), ""
    tensors: list[list[str]] = [[], [], []]
    while not all(2 <= len(tensor) <= 6 for tensor in tensors):
        labels, tensors = "abcdefghi"[: rng.randint(3, 9)], [[], [], []]
        for label in labels:
            for tensor in _KINDS[rng.choice("MNKMNKC")]:
                tensors[tensor].append(label)
    for tensor in tensors:
        rng.shuffle(tensor)
    sizes = {label: rng.choice(_SIZES) for label in labels}
    while np.prod(list(sizes.values())) > _MOST:
        largest = max(sizes, key=lambda label: sizes[label])
        sizes[largest] //= 2
    a, b, c = map("".join, tensors)
    return Case(str(seed), f"{a},{b}->{c}", sizes)
