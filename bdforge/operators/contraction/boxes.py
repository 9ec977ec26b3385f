"""How a group of dimensions is dealt into tiles: each dimension in parts whose product is the tile's size.

A tile of C is a box: so many positions of each M and each N dimension. Where a part does not divide its dimension, the
last one moves back until it ends with the dimension, and what it covers twice is computed twice; where every operand is
staged, the dimension grows with zeros instead (`padded`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from bdforge.operators.contraction.dims import Dim
from bdforge.sequences import Expr, least

Indices = Mapping[str, Expr | int]
"""Which tile along each dimension, by its name."""


@dataclass(frozen=True, slots=True)
class Part:
    """`size` positions of a dimension in each of `count` tiles; `padded`: tiles beyond the dimension hold zeros."""

    dim: Dim
    size: int
    count: int
    padded: bool = False

    @classmethod
    def of(cls, dim: Dim, size: int) -> "Part":
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


def splits(dims: Sequence[Dim], size: int) -> Iterator[Box]:
    """Every box of `size` positions."""
    for sizes in factorisations(size, len(dims)):
        yield tuple(Part.of(dim, part) for dim, part in zip(dims, sizes, strict=True))


@dataclass(frozen=True, slots=True)
class Spread:
    """How the tiles of a group are dealt to `units` rows or columns of the array, step by step.

    Every unit has a tile in each step, so none idles while another works; where tiles do not go round, some are
    computed twice. `unit`: the dimension whose neighbouring tiles lie on neighbouring units; "" where tiles are counted
    over all dimensions. `run`: the dimension along which `turns` steps follow one another at equal distances.
    """

    box: Box
    units: int
    unit: str = ""
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
        return self.units if self.unit == self.run else 1

    def _digits(self) -> list[int]:
        return [part.count // self._span(part) for part in self.box]

    def _span(self, part: Part) -> int:
        """Tiles of a dimension that one step takes."""
        units = self.units if part.dim.name == self.unit else 1
        return units * (self.turns if part.dim.name == self.run else 1)

    def indices(self, step: Expr | int, unit: int) -> Indices:
        """The tile of a unit in the first turn of a step, along each dimension."""
        if not self.unit:
            total = box_count(self.box)
            step = least(least(step * self.units, max(total - self.units, 0)) + unit, total - 1)
        found, below = {}, 1
        for part, digits in zip(
            reversed(self.box), reversed(self._digits() if self.unit else self._counts()), strict=True
        ):
            name, index = part.dim.name, (step // below) % digits if digits > 1 else 0
            found[name] = index * self._span(part) + unit * (name == self.unit) if self.unit else index
            below *= digits
        return found

    def _counts(self) -> list[int]:
        return [part.count for part in self.box]


def spreads(box: Box, units: int, most_turns: int) -> Spread:
    """The best way to deal tiles: regularly, with as many turns as can be, where that makes few more of them."""
    even = Spread(box, units)
    fitting = [part for part in box if part.regular and part.grown(units).count % units == 0]
    if not fitting:
        return even
    unit = min(fitting, key=lambda part: part.grown(units).count / part.count)
    box = tuple(part.grown(units) if part is unit else part for part in box)
    if box_count(box) > MORE_TILES * units * even.tiles:
        return even

    def turns(part: Part) -> int:
        count = part.count // (units if part.dim.name == unit.dim.name else 1)
        return max(d for d in range(1, min(count, most_turns) + 1) if count % d == 0)

    run = max((part for part in box if part.regular), key=turns)
    return Spread(box, units, unit.dim.name, run.dim.name, turns(run))
