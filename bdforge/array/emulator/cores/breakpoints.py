"""Where to look at cores that run machine code: at every bundle of some addresses, before it runs."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bdforge.array.emulator.errors import ArgumentError

if TYPE_CHECKING:
    from bdforge.core.exact.translated import Executor

_TEXT = re.compile(r"(\d+),(\d+):(\w+)")


Look = Callable[[tuple[int, int], "Executor", str], None]
"""Gets the core's column and row, what runs it, before a bundle, and where it stands in words."""


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Addresses or names in program memory by column and row of a core, and who looks."""

    look: Look
    places: Mapping[tuple[int, int], frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: list[str], look: Look) -> "Breakpoints":
        """From `COLUMN,ROW:PLACE`, a place being an address or a name; ArgumentError for other text."""
        places: dict[tuple[int, int], frozenset[str]] = {}
        for text in texts:
            match = _TEXT.fullmatch(text)
            if match is None:
                raise ArgumentError(f"{text[:60]!r} is no breakpoint: write COLUMN,ROW:ADDRESS or COLUMN,ROW:NAME")
            core = int(match[1]), int(match[2])
            places[core] = places.get(core, frozenset()) | {match[3]}
        return cls(look, places)


def address_of(place: str) -> int | None:
    """A place that is a number."""
    try:
        return int(place, 0)
    except ValueError:
        return None
