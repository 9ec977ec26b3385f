"""Reasons why a design cannot be built, each told once for all tiles that have it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bdforge.common.messages import InputError, listed
from bdforge.design.model import Subject, Tile

Places = Mapping[tuple[int, int], Tile]
"""Tiles by column and row."""


class DesignError(InputError):
    """A design that no array can hold; its message lists the reasons."""

    def __init__(self, name: str, reasons: "Iterable[Reason]"):
        super().__init__(listed((f"{reason.place or name}: {reason}" for reason in reasons), "\n"))


@dataclass(frozen=True, slots=True)
class Reason:
    """What is wrong, and a `step` that would help; `rule` is the kind of reason, for who knows a better step.

    `about` is what is wrong, within its tile if it is one's; `place` where the design's document says that.
    """

    rule: str
    what: str
    step: str
    where: str = ""
    about: Subject = field(default=(), compare=False)
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        told = f"{self.what}; {self.step}" if self.step else self.what
        return f"{self.where}: {told}" if self.where else told


def within(about: Subject, found: "Iterable[Reason]") -> "Iterator[Reason]":
    """Reasons about parts of something."""
    return (replace(reason, about=(*about, *reason.about)) for reason in found)


def told_once(found: Iterable[tuple[Tile | None, Reason]], place_of: Callable[[Subject], str]) -> list[Reason]:
    """Reasons with their tile; one that several tiles have names the first and how many there are more."""
    tiles: dict[tuple[str, Reason], tuple[Reason, dict[str, Tile]]] = {}
    for tile, reason in found:
        first = tiles.setdefault((tile.kind if tile else "", reason), (reason, {}))
        first[1].update({tile.name: tile} if tile else {})
    return [_placed(reason, [*places.values()], place_of) for reason, places in tiles.values()]


def _placed(reason: Reason, tiles: list[Tile], place_of: Callable[[Subject], str]) -> Reason:
    if not tiles:
        return replace(reason, place=place_of(reason.about))
    where = f"{tiles[0].kind} ({tiles[0].column}, {tiles[0].row})"
    where += f" and {len(tiles) - 1} more" if tiles[1:] else ""
    place = place_of((tiles[0].name, *reason.about))
    return replace(reason, where=f"{where}, {reason.where}" if reason.where else where, place=place)
