"""What hosts tell a core before each problem: words of run-time parameters, and the lock that says that they are there.

The lock comes last, so that no core reads half of them; `bdforge.design.sequences.Builder.set_parameters` writes both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bdforge.design.core_code import Load, Loop, Statement
from bdforge.design.model import Design, Tile
from bdforge.design.tile_memory import Acquire, Buffer, Lock, Locks

_WORDS = 16
PARAMETER_BYTES = 4 * _WORDS
"""Of the buffer of a core's parameters."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """A core's: up to 16 words of 32 bits."""

    buffer: Buffer
    go: Lock

    @classmethod
    def of(cls, locks: Locks, role: str, words: Iterable[str] = ()) -> "Parameters":
        """Those of the core whose `locks` give the next one: `words` by name; `role` tells readers what they are."""
        buffer = Buffer(f"{locks.tile}_rtp", _WORDS, "i32", f"run-time parameters: {role}", words=tuple(words))
        return cls(buffer, locks.one("go", role="set by the host when the run-time parameters are in place"))

    @classmethod
    def held(cls, tile: Tile) -> "Parameters":
        """Those that a core's tile holds, found by name."""
        go = next(lock for lock in tile.locks if lock.name == f"{tile.name}_go")
        return cls(tile.buffer(f"{tile.name}_rtp"), go)

    def problems(self, *body: Statement, name: str = "problem") -> Loop:
        """For ever: wait for the parameters, load each word by its name, then `body`."""
        loads = (Load(word, self.buffer, slot) for slot, word in enumerate(self.buffer.words))
        return Loop(None, (Acquire(self.go), *loads, *body), name)


class RtpAddresses(NamedTuple):
    """Full addresses of a core's first parameter and of its lock."""

    column: int
    parameters: int
    go: int


def rtp_addresses(design: Design) -> tuple[RtpAddresses, ...]:
    """Where each core of a placed design is told what to do."""
    held = ((tile, Parameters.held(tile)) for tile in design.tiles if tile.core)
    return tuple(RtpAddresses(tile.column, tile.address(p.buffer), tile.address(p.go)) for tile, p in held)
