"""Words that mlir-aie's generic form writes as numbers. Codes: MA, `AIEAttrs.td`."""

from enum import StrEnum
from functools import cache
from typing import Self


class CodedWord(StrEnum):
    """A word that the generic form writes as a number."""

    code: int

    def __new__(cls, word: str, code: int) -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.code = code
        return member

    @classmethod
    @cache
    def from_code(cls, code: int) -> Self:
        """The member with this code; ValueError if there is none."""
        for member in cls:
            if member.code == code:
                return member
        raise ValueError(f"{code} is no code of {cls.__name__}; known: {', '.join(f'{m.code} {m}' for m in cls)}")


class PortBundle(CodedWord):
    """Ports of one kind on a tile's stream switch; PLIO and NOC are of other arrays than NPUs."""

    CORE = "Core", 0
    DMA = "DMA", 1
    FIFO = "FIFO", 2
    SOUTH = "South", 3
    WEST = "West", 4
    NORTH = "North", 5
    EAST = "East", 6
    PLIO = "PLIO", 7
    NOC = "NOC", 8
    TRACE = "Trace", 9
    TILE_CONTROL = "TileControl", 10
