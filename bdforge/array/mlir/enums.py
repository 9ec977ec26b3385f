"""Enumerations of the aie dialect: their words in the text, their codes in the generic form.

Codes: mlir-aie 5ff2ab97, AIEAttrs.td.
"""

from enum import StrEnum
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr

from bdforge.array.mlir.attributes import number


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

    @property
    def attribute(self) -> IntegerAttr:
        """The attribute that the generic form shows."""
        return number(self.code)


class Direction(CodedWord):
    """Stream to memory, or memory to stream."""

    S2MM = "S2MM", 0
    MM2S = "MM2S", 1


class WireBundle(CodedWord):
    """Ports of one kind on a tile's stream switch."""

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


class LockAction(CodedWord):
    """What `aie.use_lock` does."""

    ACQUIRE = "Acquire", 0
    RELEASE = "Release", 1
    ACQUIRE_GREATER_EQUAL = "AcquireGreaterEqual", 2


class Blocking(CodedWord):
    """Whether a lock operation waits."""

    NON_BLOCKING = "NonBlocking", 0
    BLOCKING = "Blocking", 1


class CascadeDirection(CodedWord):
    """Where a cascade enters or leaves a core."""

    SOUTH = "South", 3
    WEST = "West", 4
    NORTH = "North", 5
    EAST = "East", 6


class DeviceName(CodedWord):
    """Devices that `aie.device` takes."""

    NPU1 = "npu1", 4
    NPU1_1COL = "npu1_1col", 5
    NPU1_2COL = "npu1_2col", 6
    NPU1_3COL = "npu1_3col", 7
    NPU2 = "npu2", 8
    NPU2_1COL = "npu2_1col", 9
    NPU2_2COL = "npu2_2col", 10
    NPU2_3COL = "npu2_3col", 11
    NPU2_4COL = "npu2_4col", 12
    NPU2_5COL = "npu2_5col", 13
    NPU2_6COL = "npu2_6col", 14
    NPU2_7COL = "npu2_7col", 15
