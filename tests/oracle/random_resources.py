"""What a growing design is made of, and the resources that it takes: channels, BDs, locks, memory, packet ids."""

import copy
from dataclasses import dataclass, field, replace
from random import Random

from bdforge.devices.limits import PACKET_IDS, PACKET_TYPES
from oracle.array_design import Bd, Buffer, Chain, Lock, Port, Program, Tile
from oracle.random_cores import CorePlan
from oracle.random_patterns import LIMITS, per_word
from oracle.random_sequences import HostStream

DEVICES = ("npu1", "npu2", "npu1_1col", "npu2_1col", "npu1_2col", "npu2_2col", "npu1_3col", "npu2_3col")


class NoRoom(Exception):
    """A tile lacks a channel, a lock or BDs for what was tried."""


@dataclass(frozen=True, slots=True)
class Source:
    """A channel, or its packets of one id."""

    port: Port
    packet_id: int | None = None
    keep_header: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """A source whose words nobody takes yet."""

    source: Source
    words: int  # per round

    @property
    def tile(self) -> Tile:
        return self.source.port.tile


@dataclass
class Part:
    """Buffers with one writer and one reader, and the locks between them."""

    element: str
    slots: list[str]
    pairs: list[tuple[str, str]]  # free and full lock of each slot
    free_credits: int
    full_credits: int
    done: str = ""  # lock between a core that works in place and the reader
    sizes: list[int] = field(default_factory=list)  # elements of each slot, as needed so far


@dataclass
class Cell:
    """Something that consumes streams; `sources` are what it feeds."""

    sources: list[Source] = field(default_factory=list)


@dataclass
class Growth:
    """A design under construction."""

    device: str
    columns: int
    rounds: int
    buffers: dict[str, Buffer] = field(default_factory=dict)
    locks: list[Lock] = field(default_factory=list)
    sinks: dict[Source, list[Port]] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    plans: list[CorePlan] = field(default_factory=list)
    used: set[Port] = field(default_factory=set)
    bds: dict[tuple[Tile, int], int] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    consumers: dict[Source, list[Cell | None]] = field(default_factory=dict)  # None is the host
    inputs: list[HostStream] = field(default_factory=list)
    outputs: list[HostStream] = field(default_factory=list)
    core_tiles: set[Tile] = field(default_factory=set)
    addresses: int = 0x8000
    packet_ids: int = 0


class Resources:
    """A design under construction, and what it may still take."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        device = self.random.choice(DEVICES)
        columns = int(device[5]) if "_" in device else self.random.randint(1, 3)
        self.state = Growth(device, columns, self.random.choice((1, 1, 1, 2, 3)))
        self.array_only = self.random.random() < 0.15
        if self.array_only:
            self.state.rounds = 1

    def attempt(self, step) -> bool:
        """Runs a step; one that finds no room leaves no trace."""
        before = copy.deepcopy(self.state)
        try:
            step()
        except NoRoom:
            self.state = before
            return False
        return True

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tiles(self, kind: str) -> list[Tile]:
        rows = {"shim": (0,), "memtile": (1,), "core": (2, 3, 4, 5)}[kind]
        return [Tile(c, r) for c in range(self.state.columns) for r in rows]

    def channel(self, tile: Tile, direction: str, most: int = 99) -> Port:
        """A free channel, up to number `most`."""
        ports = [Port(tile, direction, c) for c in range(min(LIMITS[tile.kind].channels, most + 1))]
        free = [p for p in ports if p not in self.state.used]
        if not free:
            raise NoRoom
        port = self.random.choice(free)
        self.state.used.add(port)
        return port

    def take_bds(self, port: Port, number: int) -> None:
        limits = LIMITS[port.tile.kind]
        half = port.channel % 2 if port.tile.kind == "memtile" else 0
        key = (port.tile, half)
        total = self.state.bds.get(key, 0) + number
        if total > len(limits.bds_of_channel(port.channel)):
            raise NoRoom
        self.state.bds[key] = total

    def lock(self, tile: Tile, init: int = 0) -> str:
        taken = [lock.id for lock in self.state.locks if lock.tile == tile]
        free = [i for i in range(LIMITS[tile.kind].locks) if i not in taken]
        if not free:
            raise NoRoom
        name = f"lock{len(self.state.locks)}"
        self.state.locks.append(Lock(name, tile, self.random.choice(free[:4]), init))
        return name

    def values(self, element: str, elements: int) -> tuple[int, ...]:
        half = 1 << (32 // per_word(element) - 1)
        return tuple(self.random.randrange(-half, half) for _ in range(elements))

    def buffer(self, tile: Tile, element: str, elements: int, addressed: bool = False) -> str:
        """A buffer with random initial values, some elements larger than asked."""
        per = per_word(element)
        whole = -(-elements // per) * per + per * self.random.choice((0, 0, 0, 1, 5))
        address = None
        if addressed:
            address = self.state.addresses
            self.state.addresses += -(-whole * 4 // per // 64) * 64
        name = f"buffer{len(self.state.buffers)}"
        self.state.buffers[name] = Buffer(name, tile, element, whole, self.values(element, whole), address)
        return name

    def reach(self, core: Tile) -> list[Tile]:
        """Tiles whose memory and locks a core sees: its own, north, south and west ones."""
        near = [core, Tile(core.column, core.row + 1), Tile(core.column, core.row - 1), Tile(core.column - 1, core.row)]
        return [t for t in near if t in self.tiles("core")]

    def packet(self) -> tuple[int, int]:
        """A type and an id that no other flow of the design has."""
        if self.state.packet_ids == PACKET_IDS:
            raise NoRoom
        self.state.packet_ids += 1
        return self.random.randrange(PACKET_TYPES), self.state.packet_ids - 1

    def finite_tasks(self, port: Port, bds: list[Bd], runs: int) -> tuple[Chain, ...]:
        """`runs` runs as one task, or as two where BDs are left."""
        if runs > 1 and len(bds) <= 3 and self.chance(0.3):
            try:
                self.take_bds(port, len(bds))
            except NoRoom:
                return (Chain(tuple(bds), runs),)
            first = self.random.randint(1, runs - 1)
            return Chain(tuple(bds), first), Chain(tuple(bds), runs - first)
        return (Chain(tuple(bds), runs),)

    def program(self, port: Port, bds: list[Bd], firings: int, slots: int) -> None:
        """A loop over all slots, or as many runs as there are firings."""
        self.take_bds(port, len(bds))
        tasks: tuple[Chain, ...] = (Chain(tuple(bds), loops=True),)
        if firings % slots == 0 and firings // slots <= 256 and self.chance(0.25):
            tasks = self.finite_tasks(port, bds, firings // slots)
        self.state.programs.append(Program(port, tasks))

    def maybe_packets(self, port: Port, slots: list[list[Bd]], always: bool = False) -> tuple[Source, list[Bd], int]:
        """The BDs of all slots, now and then as packets; and the headers per slot that their sink keeps."""
        bds = [bd for slot in slots for bd in slot]
        if not always and self.chance(0.75):
            return Source(port), bds, 0
        kind, number = self.packet()
        same = len({len(slot) for slot in slots}) == 1
        keep = same and self.chance(0.3)
        packets = [replace(bd, packet=(kind, number)) for bd in bds]
        return Source(port, number, keep), packets, len(slots[0]) if keep else 0
