"""Pieces that memtiles and cores share: pairs of buffers, pairs of locks, rings of BDs."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bd_patterns import Pattern
from bdforge.design.model import Bd, Buffer, Lock
from bdforge.operators.gemm.types import ElementType

PING_PONG = ("ping", "pong")


@dataclass(slots=True)
class Locks:
    """Hands out the locks of one tile, two for each store."""

    tile: str
    taken: list[Lock] = field(default_factory=list)

    def pair(self, name: str, turns: int, role: str) -> tuple[Lock, Lock]:
        """(free, full) locks of a store with room for `turns` turns."""
        first = len(self.taken)
        free = Lock(f"{self.tile}_{name}_free", first, turns, f"{role}: room")
        full = Lock(f"{self.tile}_{name}_full", first + 1, 0, f"{role}: data")
        self.taken += [free, full]
        return free, full


def ping_pong(name: str, elements: int, type_: ElementType, role: str, count: int = 2) -> tuple[Buffer, ...]:
    """One or two buffers of `elements` elements of an operand's type."""
    size = type_.memory_elements(elements)
    return tuple(Buffer(f"{name}_{turn}", size, type_.memory, f"{role}, {turn}") for turn in PING_PONG[:count])


def whole(buffer: Buffer) -> Pattern:
    """All of a buffer, in order."""
    return Pattern((buffer.elements,), (1,))


def ring(buffers: Iterable[Buffer], acquire: Lock, release: Lock, count: int = 1) -> tuple[Bd, ...]:
    """A BD for all of each buffer."""
    return tuple(Bd(buffer, whole(buffer), acquire, release, count) for buffer in buffers)
