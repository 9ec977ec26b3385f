"""What a Plan is made of: every tile, buffer, lock, channel, BD and flow of a design, in elements.

The model is generic: GEMM planning fills it, templates only place it.
"""

from dataclasses import dataclass, field
from math import prod

from bd_patterns import Pattern
from bdforge.devices import TileKind
from bdforge.devices.limits import CONTROLLER_IDS


@dataclass(frozen=True, slots=True)
class Buffer:
    """Tile memory: `elements` of MLIR type `type`.

    `address` is its first byte in its tile's memory, which lies in `banks`; what a sequence's arguments name is memory
    of the host and has none.
    """

    name: str
    elements: int
    type: str
    role: str
    address: int | None = None
    banks: range = range(0)

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
    init: int
    role: str


@dataclass(frozen=True, slots=True)
class Bd:
    """One transfer: take `count` from `acquire`, move `pattern` of `buffer`, then give `count` to `release`."""

    buffer: Buffer
    pattern: Pattern
    acquire: Lock
    release: Lock
    count: int = 1
    padding: tuple[int, ...] = ()
    """Zeros behind each dimension, outermost first; none where empty."""
    bd_id: int | None = None
    """Its number among its tile's BDs, once placed."""

    @property
    def elements(self) -> int:
        """Elements that come out, zeros included."""
        added = self.padding or (0,) * self.pattern.rank
        return prod(size + zeros for size, zeros in zip(self.pattern.sizes, added, strict=True))

    @property
    def linear(self) -> bool:
        """Whether the pattern is one contiguous run, which needs no dimensions."""
        return self.pattern.is_linear and not self.padding


@dataclass(frozen=True, slots=True)
class Channel:
    """A DMA channel that runs `bds` in a ring for ever."""

    direction: str
    index: int
    bds: tuple[Bd, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the array with all that it holds."""

    name: str
    column: int
    row: int
    kind: TileKind
    buffers: tuple[Buffer, ...] = ()
    locks: tuple[Lock, ...] = ()
    channels: tuple[Channel, ...] = ()

    @property
    def controller_id(self) -> int:
        """Packet id of its completion tokens; without one aiecc's routes would not carry those of our sequences."""
        return CONTROLLER_IDS[self.row]

    def buffer(self, name: str) -> Buffer:
        """The tile's buffer called `name`."""
        return next(b for b in self.buffers if b.name == name)


@dataclass(frozen=True, slots=True)
class Flow:
    """A circuit from an MM2S channel of one tile to an S2MM channel of another."""

    source: Tile
    source_channel: int
    target: Tile
    target_channel: int


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows of one operand, for the reader of the MLIR."""

    role: str
    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Allocation:
    """A named shim channel, as runtime sequences use it."""

    name: str
    tile: Tile
    direction: str
    channel: int


@dataclass(frozen=True, slots=True)
class Array:
    """An array configuration: everything but the runtime sequences."""

    tiles: tuple[Tile, ...]
    flows: tuple[FlowGroup, ...]
    allocations: tuple[Allocation, ...] = field(default=())

    def tile(self, column: int, row: int) -> Tile:
        """The tile at (column, row)."""
        return next(t for t in self.tiles if (t.column, t.row) == (column, row))

    def of_kind(self, kind: TileKind) -> list[Tile]:
        """All tiles of one kind."""
        return [t for t in self.tiles if t.kind is kind]
