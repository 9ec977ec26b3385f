"""Reasons why a design cannot be built, each told once for all tiles that have it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bdforge.common.messages import InputError, listed
from bdforge.design.model import Tile

Places = Mapping[tuple[int, int], Tile]
"""Tiles by column and row."""


class DesignError(InputError):
    """A design that no array can hold; its message lists the reasons."""

    def __init__(self, name: str, reasons: "Iterable[Reason]"):
        super().__init__(listed((f"{name}: {reason}" for reason in reasons), "\n"))


@dataclass(frozen=True, slots=True)
class Reason:
    """What is wrong, and a `step` that would help; `rule` is the kind of reason, for who knows a better step."""

    rule: str
    what: str
    step: str
    where: str = ""

    def __str__(self) -> str:
        told = f"{self.what}; {self.step}" if self.step else self.what
        return f"{self.where}: {told}" if self.where else told


def told_once(found: Iterable[tuple[Tile | None, Reason]]) -> list[Reason]:
    """Reasons with their tile; one that several tiles have names the first and how many there are more."""
    tiles: dict[tuple[str, Reason], list[Tile]] = {}
    for tile, reason in found:
        tiles.setdefault((tile.kind if tile else "", reason), []).extend([tile] if tile else [])
    return [_placed(reason, places) for (_, reason), places in tiles.items()]


def _placed(reason: Reason, tiles: list[Tile]) -> Reason:
    if not tiles:
        return reason
    where = f"{tiles[0].kind} ({tiles[0].column}, {tiles[0].row})"
    where += f" and {len(tiles) - 1} more" if tiles[1:] else ""
    return Reason(reason.rule, reason.what, reason.step, f"{where}, {reason.where}" if reason.where else where)
