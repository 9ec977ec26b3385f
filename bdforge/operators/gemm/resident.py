"""Panels of B that stay in the memtiles: their memory, their locks, and what of them differs from problem to problem.

A memtile keeps what A and C leave as a *pool*. A panel, the n-tile of a column, K deep, lies there in *parts* and is
sent again for each row panel of A; what does not fit follows in *chunks* from DRAM each time. A panel that fits twice
comes while the one before it is in use. All of this is numbers of BDs that the runtime sequence writes, so that one
loaded array serves every depth; `resident_bds` has the BDs.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from bdforge.design.model import Design, Tile
from bdforge.design.sequences import Builder, Expr, all_of, ceildiv, divisor, evaluate, largest, select
from bdforge.design.tile_memory import Buffer, Lock, Locks
from bdforge.devices import TileKind
from bdforge.devices.limits import BUFFER_ALIGN_BYTES, BYTE_BITS
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.spec import GemmSpec

POOL_ADDRESS = BUFFER_ALIGN_BYTES
"""Nothing stays at the start: word 0 of column 0's memtile was seen to change between runs (HS, silicon L8)."""
SLOTS = 2
"""Buffers for chunks."""
LEAST_TILES = 4  # of a pool: the slots of an epilogue's numbers, and a tile beside them
_EVEN_BDS = range(24)


class Room(NamedTuple):
    """What BDs of the memtile's even channels allow: `parts` of a panel, `chunks` of what is not kept."""

    parts: int
    chunks: int

    @property
    def bds(self) -> int:
        """BDs in all: a fill and chunk 0; a panel's; a second panel's, or the other chunks'."""
        panel = 1 + 2 * self.parts
        return 2 + panel + max(panel, self.chunks - 1)


def room(spec: GemmSpec) -> Room:
    """What a spec's BDs of C leave to B."""
    return bd_room(spec.rows, spec.buffers.c_memtile_buffers)


def bd_room(rows: int, c_memtile_buffers: int) -> Room:
    """Parts and chunks beside C's BDs, which share the even channels' numbers; parts are 0 where nothing is left."""
    left = len(_EVEN_BDS) - c_memtile_buffers * -(-rows // 2)
    parts = (left - 4) // 4
    return Room(max(parts, 0), (left - 2 - 2 * parts) // 2 * 2)


def tile_bytes(spec: GemmSpec) -> int:
    """Bytes of one k x n tile of B."""
    return spec.tile.k * spec.tile.n * TYPES[spec.b].bits // BYTE_BITS


class Size(NamedTuple):
    """Tiles of a pool, and what its BDs allow."""

    tiles: int
    room: Room

    @classmethod
    def of(cls, spec: GemmSpec, bytes_left: int) -> "Size":
        """As a spec wants it, of the bytes that A and C leave in a memtile."""
        held = min(spec.buffers.pool_bytes or bytes_left, bytes_left - POOL_ADDRESS)
        return cls(max(held // tile_bytes(spec), 0), room(spec))


def with_pool(tile: Tile, spec: GemmSpec, kernel: Kernel, bytes_left: int) -> Tile:
    """A memtile with the pool, and the BDs that sequences write."""
    size, tiles = tile_bytes(spec), Size.of(spec, bytes_left).tiles
    held = kernel.b.memory_elements(spec.tile.k * spec.tile.n) * tiles
    role = f"panels of B, room for {tiles} tiles of {size} bytes; sequences divide it"
    pool = Buffer(f"{tile.name}_b", held, kernel.b.memory, role, address=POOL_ADDRESS)
    return replace(tile, buffers=(pool, *tile.buffers), reserved_bds=range(room(spec).bds))


def pool_locks(locks: Locks) -> None:
    """A pool's; the first of their memtile, so that sequences find them by the same numbers in every column."""
    locks.pair("b", 0, "parts of B, set by sequences")
    locks.pair("b_chunk", SLOTS, "chunks of B")


def pool_reasons(spec: GemmSpec, design: Design) -> list[str]:
    """Why B cannot stay in the memtiles of a design."""
    if spec.buffers.residency != "b":
        return []
    found, tiles = room(spec), pool_of(spec, design).tiles
    reasons = []
    if spec.rows > spec.columns:
        reasons.append(f"buffers.residency = b needs a column for each of {spec.rows} rows; use none")
    if found.parts < 1 or found.chunks < SLOTS + 2:
        reasons.append("buffers.residency = b finds too few BDs beside those of C; use buffers.c_memtile_buffers = 1")
    if tiles < LEAST_TILES:
        reasons.append(
            f"buffers.residency = b: A and C leave room for {tiles} tiles of B in a memtile, it takes {LEAST_TILES}; "
            "use a smaller k_mt, buffers.c_memtile_buffers = 1 or more buffers.c_pieces"
        )
    return reasons


@dataclass(frozen=True, slots=True)
class Pool:
    """The memtiles' pool: of `tiles` tiles of `tile_bytes` from `address` on, for `parts` and `chunks` as `Room`.

    Locks count free and full parts, and free and full chunks.
    """

    address: int
    tile_bytes: int
    tiles: int
    room: Room
    locks: tuple[Lock, Lock, Lock, Lock]
    columns: int


def pool_of(spec: GemmSpec, design: Design) -> Pool:
    """The pool of a design, alike in all its memtiles."""
    memtiles = [tile for tile in design.tiles if tile.kind is TileKind.MEMTILE]
    first = memtiles[0]
    buffer, locks = first.buffer(f"{first.name}_b"), {lock.name: lock for lock in first.locks}
    names = (f"{first.name}_{name}" for name in ("b_free", "b_full", "b_chunk_free", "b_chunk_full"))
    size = tile_bytes(spec)
    free, full, chunk_free, chunk_full = (locks[name] for name in names)
    held = (free, full, chunk_free, chunk_full)
    return Pool(buffer.address or 0, size, buffer.bytes // size, room(spec), held, len(memtiles))


class Division(NamedTuple):
    """How the pool holds a problem's panels, in tiles: of `depth` tiles and `fed` ones `kept` stay, in `parts`.

    `chunks` of `chunk` tiles each follow in every pass. `twice`: whether two panels fit.
    """

    depth: Expr
    kept: Expr
    parts: Expr
    chunks: Expr
    chunk: Expr
    twice: Expr
    fits: Expr

    @property
    def part(self) -> Expr:
        """Tiles of a part."""
        return self.kept // self.parts


def divided(pool: Pool | Size, depth: Expr, fed: bool) -> Division:
    """Panels of `depth` tiles, each pass followed by one of an epilogue's numbers where `fed`.

    What fits stays. Else c chunks of g tiles pass through two slots beside the r that stay: r + c g is a pass and
    r + 2 g at most the pool, so that (c - 2) g is what the pass has more than the pool; an even c, for every chunk to
    have a slot of its own.
    """
    numbers = int(fed)
    whole = depth + SLOTS * numbers <= pool.tiles
    length = depth + numbers
    over = largest(length - pool.tiles, 1)
    chunk = select(whole, 1, ceildiv(over, pool.room.chunks - SLOTS))
    found = select(whole, numbers, SLOTS * ceildiv(ceildiv(over, chunk) + SLOTS, SLOTS))
    kept = length - found * chunk
    parts = divisor(largest(kept, 1), pool.room.parts)
    twice = all_of(2 * depth + SLOTS * numbers <= pool.tiles)
    return Division(depth, kept, parts, found, chunk, twice, kept >= 0)


@cache
def share_of(size: Size, depth: int, fed: bool) -> float:
    """Which share of a panel of `depth` tiles stays."""
    return max(evaluate(divided(size, Builder.constant(depth), fed).kept, {}), 0) / depth
