"""How a group of dimensions is dealt into tiles: each dimension in parts whose product is the tile's size.

A tile of C is a box: so many positions of each M and each N dimension. Where a part does not divide its dimension, the
last one moves back until it ends with the dimension, and what it covers twice is computed twice; where every operand is
staged, the dimension grows with zeros instead (`padded`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from bdforge.design.sequences import Expr, least
from bdforge.operators.contraction.dims import TensorDim

Indices = Mapping[str, Expr | int]
"""Which tile along each dimension, by its name."""


@dataclass(frozen=True, slots=True)
class Part:
    """`size` positions of a dimension in each of `count` tiles; `padded`: tiles beyond the dimension hold zeros."""

    dim: TensorDim
    size: int
    count: int
    padded: bool = False

    @classmethod
    def of(cls, dim: TensorDim, size: int) -> "Part":
        """A dimension in parts of `size`."""
        return cls(dim, size, -(-dim.size // size))

    @property
    def regular(self) -> bool:
        """Whether every tile starts a part behind the one before it."""
        return self.padded or self.dim.size % self.size == 0

    @property
    def walked(self) -> int:
        """Positions up to which tiles go."""
        return self.size * self.count if self.padded else max(self.dim.size, self.size)

    def start(self, tile: Expr | int) -> Expr | int:
        """First position of a tile."""
        return tile * self.size if self.regular else least(tile * self.size, self.dim.size - self.size)

    def grown(self, units: int) -> "Part":
        """A padded dimension in whole multiples of `units` tiles."""
        return replace(self, count=-(-self.count // units) * units) if self.padded else self


MORE_TILES = 1.1
"""How many more tiles a regular spread may have, whose sequences are so much shorter."""
Box = tuple[Part, ...]
"""Parts of the dimensions of a group, outermost first in the tile."""


def box_size(box: Box) -> int:
    """Positions of a tile."""
    return prod(part.size for part in box)


def box_count(box: Box) -> int:
    """Tiles of the group."""
    return prod(part.count for part in box)


def digits(number: Expr | int, bases: Sequence[int]) -> list[Expr | int]:
    """A number's digits in mixed bases, the first one's outermost."""
    below = [prod(bases[place + 1 :]) for place in range(len(bases))]
    return [(number // step) % base if base > 1 else 0 for step, base in zip(below, bases, strict=True)]


def waste(box: Box) -> float:
    """Positions that are computed over those that there are."""
    return prod(part.size * part.count / part.dim.size for part in box)


@lru_cache
def factorisations(size: int, count: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write `size` as a product of `count` numbers, in order."""
    if count == 1:
        return ((size,),)
    divisors = (d for d in range(1, size + 1) if size % d == 0)
    return tuple((d, *rest) for d in divisors for rest in factorisations(size // d, count - 1))


def splits(dims: Sequence[TensorDim], size: int) -> Iterator[Box]:
    """Every box of `size` positions."""
    for sizes in factorisations(size, len(dims)):
        yield tuple(Part.of(dim, part) for dim, part in zip(dims, sizes, strict=True))


@dataclass(frozen=True, slots=True)
class Spread:
    """How the tiles of a group are dealt to `units` rows or columns of the array, step by step.

    Every unit has a tile in each step, so none idles while another works; where tiles do not go round, some are
    computed twice. `unit` is the dimension along which units differ: neighbouring tiles lie on neighbouring units, or
    each has a `chunk` of tiles that follow one another; "" where tiles are counted over all dimensions. `run`: the
    dimension along which `turns` steps follow one another at equal distances.
    """

    box: Box
    units: int
    unit: str = ""
    chunk: int = 0
    run: str = ""
    turns: int = 1

    @property
    def steps(self) -> int:
        """Steps, each of `turns` tiles on every unit."""
        return prod(self._digits()) if self.unit else -(-box_count(self.box) // self.units)

    @property
    def tiles(self) -> int:
        """Tiles of each unit."""
        return self.steps * self.turns

    @property
    def run_stride(self) -> int:
        """Tiles along `run` from turn to turn."""
        return self.units if self.unit == self.run and not self.chunk else 1

    @property
    def joined(self) -> bool:
        """Whether the units' tiles lie at equal distances, one along `unit`."""
        return bool(self.unit) and not self.chunk

    def _digits(self) -> list[int]:
        return [self._own(part) // self._turns(part) for part in self.box]

    def _own(self, part: Part) -> int:
        """Tiles along a dimension that each unit has."""
        return (self.chunk or part.count // self.units) if part.dim.name == self.unit else part.count

    def _turns(self, part: Part) -> int:
        return self.turns if part.dim.name == self.run else 1

    def indices(self, step: Expr | int, unit: int) -> Indices:
        """The tile of a unit in the first turn of a step, along each dimension."""
        if not self.unit:
            total = box_count(self.box)
            step = least(least(step * self.units, max(total - self.units, 0)) + unit, total - 1)
        found = zip(self.box, digits(step, self._digits()), strict=True)
        return {part.dim.name: self._index(part, index, unit) if self.unit else index for part, index in found}

    def _index(self, part: Part, digit: Expr | int, unit: int) -> Expr | int:
        if part.dim.name != self.unit:
            return digit * self._turns(part)
        if self.chunk:
            return digit * self._turns(part) + min(unit * self.chunk, part.count - self.chunk)
        return digit * (self.units * self._turns(part)) + unit


Near = Callable[[Part, int], bool]
"""Whether a task can move on by so many tiles of a dimension."""


def spreads(box: Box, units: int, most_turns: int, near: Near = lambda part, tiles: True, along: str = "") -> Spread:
    """The best way to deal tiles: regularly, with as many turns as can be, where that makes few more of them.

    `along`: the dimension that is dealt, whatever it takes, where there is a way.
    """
    even, parts = Spread(box, units), [part for part in box if along in ("", part.dim.name)]
    found = [one for part in parts for one in _along(box, part, units, most_turns, near)]
    few = [one for one in found if along or one.tiles <= MORE_TILES * even.tiles]
    return min(few, key=lambda one: (one.steps, one.tiles)) if few else even


def _along(box: Box, part: Part, units: int, most_turns: int, near: Near) -> Iterator[Spread]:
    """Ways to deal the tiles along one dimension: side by side, and in chunks."""
    if not part.regular or part.count < units:
        return
    grown = tuple(one.grown(units) if one is part else one for one in box)
    if part.grown(units).count % units == 0:
        yield from (
            Spread(grown, units, part.dim.name, 0, run.dim.name, turns)
            for run, turns in _runs(grown, part.dim.name, part.grown(units).count // units, units, most_turns, near)
        )
    if most_turns > 1:
        least_chunk = -(-part.count // units)
        longest = min(max(least_chunk, int(least_chunk * MORE_TILES)), part.count)
        first = range(least_chunk, min(longest, least_chunk + most_turns - 1) + 1)  # one of them has as many as any
        chunk = max(first, key=lambda size: (_turns(size, most_turns), -size))
        for size in {least_chunk, chunk}:
            yield from (
                Spread(box, units, part.dim.name, size, run.dim.name, turns)
                for run, turns in _runs(box, part.dim.name, size, 1, most_turns, near)
            )


def _runs(box: Box, unit: str, own: int, apart: int, most: int, near: Near) -> Iterator[tuple[Part, int]]:
    """Dimensions along which steps may run, and how many; `own` tiles of the dealt one, `apart` from each other."""
    for part in box:
        here = part.dim.name == unit
        reached = part.regular and near(part, apart if here else 1)
        yield part, _turns(own if here else part.count, most) if reached else 1


def _turns(count: int, most: int) -> int:
    return max(d for d in range(1, min(count, most) + 1) if count % d == 0)
