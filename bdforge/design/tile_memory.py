"""What a tile's memory holds and how a DMA moves it: buffers, locks and buffer descriptors (BDs)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from bd_patterns import Pattern
from bdforge.devices.types import ElementType

PING_PONG = ("ping", "pong")
Padding = tuple[tuple[int, int], ...]
"""Zeros before and behind each dimension, outermost first; none where empty."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Tile memory: `elements` of MLIR type `type`, which start as `values` where given.

    `address` is its first byte in its tile's memory, which lies in `banks`; what a sequence's arguments name is memory
    of the host and has none. `words` are what people call its words of 32 bits, from the first on. One that belongs to
    a `mode` may share bytes with those of its tile that belong to others; MLIR has it as a part of a buffer of bytes.
    One that lies `over` another of them, by name, is what that mode's bytes are in its own mode.
    """

    name: str
    elements: int
    type: str
    role: str = ""
    address: int | None = None
    banks: range = range(0)
    values: tuple[int, ...] | tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    mode: str = ""
    over: str = ""

    @property
    def bits(self) -> int:
        """Width of one element."""
        return int(self.type.lstrip("iubf"))

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.elements * self.bits // 8


@dataclass(frozen=True, slots=True)
class Lock:
    """A counting semaphore of a tile."""

    name: str
    id: int
    init: int = 0
    role: str = ""


@dataclass(frozen=True, slots=True)
class Acquire:
    """Wait until a lock holds at least `count` (`exactly`: that very value), then take as much."""

    lock: Lock
    count: int = 1
    exactly: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Give `count` to a lock."""

    lock: Lock
    count: int = 1


@dataclass(frozen=True, slots=True)
class Packet:
    """The header that a BD puts before its data, for a packet flow."""

    id: int
    type: int = 0


@dataclass(frozen=True, slots=True)
class Bd:
    """One transfer: `acquire`, move `pattern` of `buffer`, `release`."""

    buffer: Buffer
    pattern: Pattern
    acquire: Acquire | None = None
    release: Release | None = None
    padding: Padding = ()
    packet: Packet | None = None
    bd_id: int | None = None
    """Its number among its tile's BDs, once placed."""

    @property
    def elements(self) -> int:
        """Elements that come out, zeros included."""
        added = self.padding or ((0, 0),) * self.pattern.rank
        return prod(size + before + after for size, (before, after) in zip(self.pattern.sizes, added, strict=True))

    @property
    def linear(self) -> bool:
        """Whether the pattern is one contiguous run, which needs no dimensions."""
        return self.pattern.is_linear and not self.padding


@dataclass(slots=True)
class Locks:
    """Hands out the locks of one tile, named after it."""

    tile: str
    taken: list[Lock] = field(default_factory=list)

    def one(self, name: str, init: int = 0, role: str = "") -> Lock:
        """The next lock."""
        self.taken.append(Lock(f"{self.tile}_{name}", len(self.taken), init, role))
        return self.taken[-1]

    def pair(self, name: str, turns: int, role: str = "") -> tuple[Lock, Lock]:
        """(free, full) locks of a store with room for `turns` turns."""
        return self.one(f"{name}_free", turns, f"{role}: room"), self.one(f"{name}_full", 0, f"{role}: data")


def ping_pong(name: str, elements: int, type_: str, role: str = "", count: int = 2) -> tuple[Buffer, ...]:
    """One or two buffers of `elements` elements of an MLIR type."""
    return tuple(Buffer(f"{name}_{turn}", elements, type_, f"{role}, {turn}") for turn in PING_PONG[:count])


def whole(buffer: Buffer) -> Pattern:
    """All of a buffer, in order."""
    return Pattern((buffer.elements,), (1,))


def ring(
    buffers: Iterable[Buffer], acquire: Lock, release: Lock, count: int = 1, pattern: Pattern | None = None
) -> tuple[Bd, ...]:
    """A BD for all of each buffer, in the order of `pattern`."""
    locks = Acquire(acquire, count), Release(release, count)
    return tuple(Bd(buffer, pattern or whole(buffer), *locks) for buffer in buffers)


def in_turn(chains: Iterable[tuple[Bd, ...]]) -> tuple[Bd, ...]:
    """The first BD of every chain, then the second of every chain, and so on; all are of one length."""
    return tuple(bd for turn in zip(*chains, strict=True) for bd in turn)


def slot_tags(count: int) -> tuple[str, ...]:
    """How the buffers of so many slots are told apart."""
    return PING_PONG[:count] if count <= len(PING_PONG) else tuple(map(str, range(count)))


@dataclass(frozen=True, slots=True)
class Slots:
    """Buffers of a tile that take turns: one fills them while another empties them, as two locks tell."""

    buffers: tuple[Buffer, ...]
    free: Lock
    full: Lock

    @classmethod
    def of(
        cls,
        locks: Locks,
        name: str,
        elements: int,
        type_: ElementType,
        role: str = "",
        count: int = 2,
        parts: int = 1,
    ) -> "Slots":
        """`count` buffers of `elements` elements each in the tile of `locks`, which count so many parts of each."""
        held, memory = type_.memory_elements(elements), type_.memory
        buffers = (Buffer(f"{locks.tile}_{name}_{tag}", held, memory, f"{role}, {tag}") for tag in slot_tags(count))
        return cls(tuple(buffers), *locks.pair(name, count * parts, role))

    def fill(self, count: int = 1, pattern: Pattern | None = None) -> tuple[Bd, ...]:
        """BDs that fill one buffer after the other, in the order of `pattern`, with `count` turns of the locks each."""
        return ring(self.buffers, self.free, self.full, count, pattern)

    def send(self, pattern: Pattern | None = None, padding: Padding = ()) -> tuple[Bd, ...]:
        """BDs that empty one buffer after the other, in the order of `pattern`."""
        acquire, release = Acquire(self.full), Release(self.free)
        return tuple(Bd(buffer, pattern or whole(buffer), acquire, release, padding) for buffer in self.buffers)
