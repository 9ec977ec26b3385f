"""Tiled execution configurations, the form in which TEIR writes a contraction: dimensions, outermost first.

Each has a type (C, M, N, K), an execution type, a size, and a stride in each tensor, 0 where the tensor does not have
it. `prim` dimensions are a core's tile, `spatial` ones are dealt to rows (M) or columns (N) of the array, `shared` ones
are turns of one step, and `seq` ones steps of the sequence, whose offsets stand in its patch words. `first` is done to
a tile of the output before its first product, `last` behind its last one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bdforge.common.messages import clip
from bdforge.operators.contraction.boxes import Part, Spread
from bdforge.operators.contraction.dims import TENSORS, Contraction, ContractionError, TensorDim
from bdforge.operators.contraction.program import Mapped

Exec = Literal["seq", "shared", "spatial", "prim"]
First = Literal["zero"]
"""Cores zero their tiles; none adds to what the output holds, nor copies it."""
Last = Literal["none", "relu"]


@dataclass(frozen=True, slots=True)
class Level:
    """One dimension of a configuration; `strides` of both inputs and the output, elements."""

    type: str
    exec: Exec
    size: int
    strides: tuple[int, int, int]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.exec:<7} {self.size:>8}  strides {', '.join(map(str, self.strides))}  {self.name}"


@dataclass(frozen=True, slots=True)
class Config:
    """A tiled execution configuration."""

    levels: tuple[Level, ...]
    first: First = "zero"
    last: Last = "none"

    @classmethod
    def of(
        cls, types: str, execs: Sequence[str], sizes: Sequence[int], strides: Sequence[Sequence[int]], *,
        first: str = "zero", last: str = "none",
    ) -> "Config":  # fmt: skip
        """From lists as TEIR has them: types by letter, `strides` of in0, in1 and out by dimension.

        ContractionError for lists of unequal length, unknown words, and strides that contradict a type.
        """
        for name, word, known in (("first", first, get_args(First)), ("last", last, get_args(Last))):
            if word not in known:
                raise ContractionError(f"{name} touch {clip(repr(word))} is none of {', '.join(known)}")
        if {len(execs), len(sizes), *map(len, strides)} != {len(types)} or len(strides) != 3:
            raise ContractionError("a configuration needs a type, an execution type, a size and three strides each")
        levels = []
        for number, (kind, how, size) in enumerate(zip(types, execs, sizes, strict=True)):
            if how not in get_args(Exec):
                raise ContractionError(f"dimension {number}: {how!r} is none of {', '.join(get_args(Exec))}")
            a, b, c = (tensor[number] for tensor in strides)
            level = Level(kind, how, size, (a, b, c), f"d{number}")  # type: ignore[arg-type]
            _check(level)
            levels.append(level)
        return cls(tuple(levels), first, last)  # type: ignore[arg-type]

    @property
    def contraction(self) -> Contraction:
        """Its dimensions."""
        return Contraction(tuple(map(_dim, self.levels)))

    def box(self, kind: str) -> tuple[Part, ...]:
        """The parts of a group: prim dimensions whole, of the others one position each."""
        own = [level for level in self.levels if level.type == kind]
        return tuple(Part.of(_dim(level), level.size if level.exec == "prim" else 1) for level in own)

    def unit(self, kind: str) -> str:
        """The dimension of a group that is dealt to rows or columns, the last one that is named spatial."""
        return next(
            (level.name for level in reversed(self.levels) if level.type == kind and level.exec == "spatial"), ""
        )


def _dim(level: Level) -> TensorDim:
    a, b, c = (stride or None for stride in level.strides)
    return TensorDim(level.name, level.size, (a, b, c))


def _check(level: Level) -> None:
    if level.size < 1 or min(level.strides) < 0:
        raise ContractionError(
            f"dimension {level.name}: size {level.size}, strides {level.strides}; sizes are 1 or more"
        )
    if _dim(level).tensors != TENSORS.get(level.type):  # type: ignore[call-overload]
        raise ContractionError(
            f"dimension {level.name}: strides {level.strides} are not those of type {level.type!r}; C has all three, "
            "M in0 and out, N in1 and out, K in0 and in1"
        )


def config_of(mapped: Mapped) -> Config:
    """The configuration of a mapping, of its own first and second input; parts that move back are rounded up."""
    tiles = mapped.sides[0].tiles
    outer = [
        *(_level(part, "C", "seq", part.count, 1) for part in tiles.batch),
        *_dealt(mapped.rows, "M"), *_dealt(mapped.columns, "N"),
        *(_level(part, "K", "seq", part.count, part.size) for part in tiles.k),
    ]  # fmt: skip
    inner = [
        _level(part, kind, "prim", part.size, 1)
        for kind, box in (("M", tiles.m), ("N", tiles.n), ("K", tiles.k))
        for part in box
    ]
    last: Last = "relu" if mapped.gemm.spec.epilogue.relu else "none"
    return Config(tuple(level for level in (*outer, *inner) if level.size > 1), last=last)


def _dealt(spread: Spread, kind: str) -> Iterator[Level]:
    """Loops over tiles, outermost first: chunks of units, steps, turns of a step, units side by side."""
    for part in spread.box:
        dealt, size = part.dim.name == spread.unit, part.size
        side_by_side, turns = dealt and not spread.chunk, spread.turns if part.dim.name == spread.run else 1
        inner = spread.units if side_by_side else 1
        own = spread.chunk or part.count // spread.units if dealt else part.count
        if dealt and spread.chunk:
            yield _level(part, kind, "spatial", spread.units, size * spread.chunk)
        yield _level(part, kind, "seq", own // turns, size * inner * turns)
        yield _level(part, kind, "shared", turns, size * inner)
        if side_by_side:
            yield _level(part, kind, "spatial", spread.units, size)


def _level(part: Part, kind: str, how: Exec, size: int, step: int) -> Level:
    a, b, c = ((stride or 0) * step for stride in part.dim.strides)
    return Level(kind, how, size, (a, b, c), part.dim.name)
