"""What of a tile a configuration and its runs use, so that another one leaves it alone until they have ended."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from bdforge.array.lower.array_state import ChannelKey, WrittenMemory
from bdforge.devices.limits import PROGRAM_LINE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write


class TilePart(NamedTuple):
    """A tile's switch, or all else of a tile: a route may pass a core that belongs to another design, and waits."""

    column: int
    row: int
    switch: bool = False


_OF_SWITCHES = {What.MASTER, What.SLAVE, What.RULE, What.MUX, What.DEMUX, What.CASCADE}


def part_of(write: Operation) -> TilePart:
    """The part of a tile that a register write, or the first word of one, changes."""
    assert isinstance(write, Write | MaskWrite | BlockWrite)
    register = register_at(write.address)
    return TilePart(register.column, register.row, register.what in _OF_SWITCHES)


class Used(NamedTuple):
    """BDs and channels of a tile that a configuration and its runs use."""

    bds: frozenset[int]
    channels: frozenset[ChannelKey]


@dataclass(frozen=True, slots=True)
class Busy:
    """What a tile's runs use, so that nothing of it is written before they have ended; program None: all of it.

    An `idle` tile is not part of what runs, so that its core and channels may be stopped and set anew meanwhile; its
    switch may be so, with or without it.
    """

    locks: Collection[int]
    used: Used
    program: WrittenMemory | None
    idle: bool = False
    switch_idle: bool = False

    def with_(self, other: "Busy") -> "Busy":
        """What two designs use of a tile that run one after the other; of its program all, where one has it."""
        bds, channels = self.used.bds | other.used.bds, self.used.channels | other.used.channels
        idle, switch_idle = self.idle and other.idle, self.switch_idle and other.switch_idle
        program = self.program if idle else None
        return Busy({*self.locks, *other.locks}, Used(bds, channels), program, idle, switch_idle)

    def lines(self, data: bytes, start: int) -> Iterator[tuple[bool, int, bytes]]:
        """Parts of a program from `start` on: whether their lines are in use, where they begin, and their bytes."""
        line = PROGRAM_LINE_BYTES
        pieces = (
            (at, data[max(at - start, 0) : at + line - start])
            for at in range(start // line * line, start + len(data), line)
        )
        for used, found in groupby(pieces, lambda piece: self._used(piece[0])):
            parts = list(found)
            yield used, max(parts[0][0], start), b"".join(part for _, part in parts)

    def _used(self, line: int) -> bool:
        return self.program is None or any(self.program.written[line : line + PROGRAM_LINE_BYTES])


IDLE = Busy((), Used(frozenset(), frozenset()), WrittenMemory(0), idle=True)
"""A tile that runs do not use, but for its switch."""
