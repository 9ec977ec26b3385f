"""Reasons why a design cannot be built, each told once for all tiles that have it."""

from collections.abc import Iterable
from dataclasses import dataclass

from bdforge.design.model import Tile


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and a `step` that would help; `rule` is the kind of fault, for who knows a better step."""

    rule: str
    what: str
    step: str
    where: str = ""

    def __str__(self) -> str:
        told = f"{self.what}; {self.step}" if self.step else self.what
        return f"{self.where}: {told}" if self.where else told


def told_once(found: Iterable[tuple[Tile | None, Fault]]) -> list[Fault]:
    """Faults with their tile; one that several tiles have names the first and how many there are more."""
    tiles: dict[tuple[str, Fault], list[Tile]] = {}
    for tile, fault in found:
        tiles.setdefault((tile.kind if tile else "", fault), []).extend([tile] if tile else [])
    return [_placed(fault, places) for (_, fault), places in tiles.items()]


def _placed(fault: Fault, tiles: list[Tile]) -> Fault:
    if not tiles:
        return fault
    where = f"{tiles[0].kind} ({tiles[0].column}, {tiles[0].row})"
    where += f" and {len(tiles) - 1} more" if tiles[1:] else ""
    return Fault(fault.rule, fault.what, fault.step, f"{where}, {fault.where}" if fault.where else where)
