"""A design: everything that stands in an array and how it is connected, whatever it computes.

Python decides every number; templates only place them. Flows, cascades and allocations name tiles, so that tiles may be
placed after them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bdforge.design.core_code import Core
from bdforge.design.sequence import Sequence
from bdforge.design.sequences.sequence_program import Program
from bdforge.design.tile_memory import Bd, Buffer, Lock, Locks, Slots
from bdforge.devices import Device, TileKind, mlir_device_named
from bdforge.devices.limits import CONTROLLER_IDS
from bdforge.devices.registers import TILE_REGISTERS, address

Subject = tuple[str | int, ...]
"""A part of a design: (name,), ("flow", 2) or ("cascade", 0); of a tile by name its buffer or lock ("mem", "mem_a"),
its channel ("mem", 3), that one's BD ("mem", 3, 0), its program ("core_0_2", "core") and a statement of that, by its
number in the text."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A task of a DMA channel from the start: `bds` in order, after the last one number `back`, for ever.

    With `back = None` the chain ends, after `runs` rounds. Tasks of the same channel run in the order of their tile.
    """

    direction: str
    index: int
    bds: tuple[Bd, ...]
    role: str = ""
    back: int | None = 0
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Port:
    """Where a flow enters or leaves a tile's switch."""

    tile: str
    index: int
    bundle: str = "DMA"


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the array with all that it holds; `reserved_bds` are numbers of BDs that runtime sequences write."""

    name: str
    column: int
    row: int
    kind: TileKind
    buffers: tuple[Buffer, ...] = ()
    locks: tuple[Lock, ...] = ()
    channels: tuple[Channel, ...] = ()
    core: Core | None = None
    reserved_bds: range = range(0)

    @classmethod
    def shim(cls, column: int) -> "Tile":
        """The shim of a column, whose tasks runtime sequences start."""
        return cls(f"shim_{column}", column, 0, TileKind.SHIM)

    @classmethod
    def holding(
        cls, locks: Locks, column: int, row: int, stores: Iterable[Slots], channels: Iterable[Channel],
        core: Core | None = None, *buffers: Buffer,
    ) -> "Tile":  # fmt: skip
        """The memtile (without `core`) or core with `stores`, other `buffers` and all that `locks` gave so far."""
        return cls(
            locks.tile, column, row, TileKind.CORE if core else TileKind.MEMTILE,
            (*(buffer for store in stores for buffer in store.buffers), *buffers), tuple(locks.taken),
            tuple(sorted(channels, key=lambda channel: (channel.direction != "S2MM", channel.index))), core,
        )  # fmt: skip

    @property
    def controller_id(self) -> int:
        """Packet id of its completion tokens; without one aiecc's routes would not carry those of our sequences."""
        return CONTROLLER_IDS[self.row]

    @property
    def stack_bytes(self) -> int:
        """Bytes at the bottom of its memory that its core's stack takes."""
        return self.core.stack_bytes if self.core else 0

    def buffer(self, name: str) -> Buffer:
        """The tile's buffer called `name`."""
        return next(b for b in self.buffers if b.name == name)

    def address(self, held: Buffer | Lock) -> int:
        """Full address at which hosts and controllers find a placed buffer of the tile, or the value of a lock."""
        if isinstance(held, Lock):
            return address(self.column, self.row, TILE_REGISTERS[self.kind].lock_offset(held.id))
        return address(self.column, self.row, held.address or 0)

    def dma(self, channel: int) -> Port:
        """Where a DMA channel meets the switch."""
        return Port(self.name, channel)


@dataclass(frozen=True, slots=True)
class Flow:
    """A way for words from one port to others: a circuit, or the way of packets with the id `packet`.

    Flows in a row with one `role` stand together in the text.
    """

    source: Port
    targets: tuple[Port, ...]
    role: str = ""
    packet: int | None = None
    keep_header: bool = False


@dataclass(frozen=True, slots=True)
class Cascade:
    """The cascade from a core to its neighbour in the east or the south, by their tiles' names."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """A named shim channel, as runtime sequences use it."""

    name: str
    tile: Tile
    direction: str
    channel: int


@dataclass(frozen=True, slots=True)
class Design:
    """A whole design for the array that MLIR calls `device`; `comments` head its text.

    `sequences` are for a problem each, `program` is the sequence of any size with its operands. `reference` says what
    outputs must be: a numpy function ("module:function") or a golden file. `made_from` is the content of the spec that
    it was planned from, its `kind` included. `kernels` are sources of what cores call, below kernels/, compiled with
    `macros` ("ROWS=64"), `problems` sizes that are built in, by name. With `code_at_end` the
    machine code that bdforge makes of its cores' programs ends where program memory does. `place_of` tells where a
    document says something, "" where it does not.
    """

    name: str
    device: str
    tiles: tuple[Tile, ...]
    flows: tuple[Flow, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    cascades: tuple[Cascade, ...] = ()
    sequences: tuple[Sequence, ...] = ()
    comments: tuple[str, ...] = ()
    program: Program | None = field(default=None, hash=False)
    reference: str = ""
    made_from: Mapping[str, Any] | None = field(default=None, hash=False)
    kernels: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    problems: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    code_at_end: bool = False
    place_of: Callable[[Subject], str] = field(default=lambda subject: "", compare=False, repr=False)

    @property
    def array(self) -> Device:
        """Facts of its array; DeviceError for an unknown one."""
        return mlir_device_named(self.device)

    @property
    def buffer_addresses(self) -> dict[str, int]:
        """Byte address of every placed buffer in its tile's memory, by name."""
        return {b.name: b.address for tile in self.tiles for b in tile.buffers if b.address is not None}
