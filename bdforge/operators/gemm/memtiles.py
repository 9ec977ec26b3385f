"""The memtiles: slabs of A and B from DRAM to micro-tiles for the cores, tiles of C back to lines.

A slab is k_mt deep, so that DRAM sees runs of k_mt elements; it leaves in slices of k, or whole (`slabs`). Packed B
needs no reorder and passes tile by tile.
"""

from collections.abc import Iterable
from itertools import product
from math import lcm

from bd_patterns import Pattern
from bdforge.design.buffer_addresses import aligned
from bdforge.design.model import Channel, Tile
from bdforge.design.tile_memory import Bd, Locks, Slots, in_turn
from bdforge.devices import TileKind
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.gemm.core_tiles import operand_slots
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.reorders import c_lines, slab_block, slab_slice
from bdforge.operators.gemm.resident import pool_locks, with_pool
from bdforge.operators.gemm.slabs import (
    A_CHANNELS,
    B_CHANNEL,
    C_IN_CHANNEL,
    C_OUT_CHANNEL,
    Share,
    leave_whole,
    slab_strips,
)
from bdforge.operators.gemm.spec import GemmSpec


def c_out_channel(spec: GemmSpec) -> int:
    """The MM2S channel of C: an odd one where B's many BDs take the even ones' and no other row's A needs it."""
    return C_OUT_CHANNEL + (spec.buffers.residency == "b" and spec.rows <= spec.columns)


def memtiles(spec: GemmSpec, kernel: Kernel, tiling: Tiling) -> list[Tile]:
    """The memtile of every column."""
    return _Memtiles(spec, kernel, tiling).tiles()


def room_of_b(spec: GemmSpec, kernel: Kernel, tiling: Tiling) -> int:
    """Bytes that A and C leave to B in the fullest memtile."""
    return _Memtiles(spec, kernel, tiling).room


class _Memtiles:
    """All memtiles together: with two shims for A, one sends what its neighbour holds."""

    def __init__(self, spec: GemmSpec, kernel: Kernel, tiling: Tiling):
        self.spec, self.kernel, self.tiling, self.size = spec, kernel, tiling, spec.tile
        self.k_mt, self.whole = spec.buffers.k_mt, leave_whole(spec, kernel)
        self.slices = 1 if self.whole else spec.buffers.k_mt // spec.tile.k  # in which slabs leave
        self.c_type = TYPES[spec.c]
        self.locks = [Locks(f"mem_{column}") for column in range(spec.columns)]
        self.resident = spec.buffers.residency == "b"
        for locks in self.locks if self.resident else ():
            pool_locks(locks)
        self.b = [] if self.resident else [self.b_store(column) for column in range(spec.columns)]
        self.a = {key: self.a_store(*key) for key in self.a_keys()}
        places = product(range(spec.columns), range(spec.rows))
        self.c = {(column, row): self.c_store(column, row) for column, row in places}

    def a_keys(self) -> Iterable[tuple[int, int]]:
        """(column, row) of each part of A that a memtile holds."""
        for row in range(self.spec.rows):
            for part in range(self.tiling.a_shims):
                yield self.tiling.a_column(row) + part, row

    def tiles(self) -> list[Tile]:
        return [self.tile(column) for column in range(self.spec.columns)]

    def tile(self, column: int) -> Tile:
        a = [store for (at, _), store in self.a.items() if at == column]
        c = [self.c[column, row] for row in range(self.spec.rows)]
        stores = [*self.b[column : column + 1], *a, *c]
        channels = [*self.b_channels(column), *self.a_channels(column, a), *self.c_channels(c)]
        tile = Tile.holding(self.locks[column], column, 1, stores, channels)
        return with_pool(tile, self.spec, self.kernel, self.room) if self.resident else tile

    @property
    def room(self) -> int:
        """Bytes that A and C leave in the fullest memtile."""
        held = [0] * self.spec.columns
        for (column, _), store in (*self.a.items(), *self.c.items()):
            held[column] += sum(aligned(buffer.bytes) for buffer in store.buffers)
        return self.kernel.generation.limits(TileKind.MEMTILE).memory_bytes - max(held)

    def b_store(self, column: int) -> Slots:
        packed = self.spec.layouts.b == "packed"
        depth = self.size.k if packed else self.k_mt
        share = Share.slab(depth, self.size.n, depth if self.whole else self.size.k)
        what = "B tile, packed, in the order of the kernel" if packed else f"slab of B, {depth} x {self.size.n}"
        return self.store(column, "b", share, self.kernel.b, what, "B" if packed else "B, in slices of k")

    def store(self, column: int, name: str, share: Share, type_: ElementType, role: str, of_locks: str) -> Slots:
        counts = share.buffers, share.sends
        return operand_slots(self.locks[column], name, share.elements, type_, (role, of_locks), *counts)

    def b_channels(self, column: int) -> list[Channel]:
        """Those of B; where it stays, runtime sequences start their tasks."""
        if self.resident:
            return []
        store = self.b[column]
        if self.spec.layouts.b == "packed":
            fill, send = store.fill(), store.send()
        else:
            patterns = self.slab_slices(self.kernel.b, "column", self.spec.layouts.b, self.size.n, self.kernel.t)
            fill = store.fill(self.slices)
            send = in_turn(store.send(pattern) for pattern in patterns)
        return [Channel("S2MM", B_CHANNEL, fill, "B from DRAM"), Channel("MM2S", B_CHANNEL, send, "B up")]

    def a_store(self, column: int, row: int) -> Slots:
        rows = self.size.rows // self.tiling.a_shims
        role = f"slab of A, {rows} x {self.k_mt}, for core row {row}"
        share = Share.slab(self.k_mt, rows, self.k_mt // self.slices)
        return self.store(column, f"a{row}", share, self.kernel.a, role, f"A of core row {row}, in slices of k")

    def a_channels(self, column: int, stores: list[Slots]) -> Iterable[Channel]:
        """Slabs in, for one core row after the other, and a channel out for each core row that starts here."""
        if stores:
            fills = (store.fill(self.slices) for store in stores)
            yield Channel("S2MM", A_CHANNELS[0], in_turn(fills), "A from DRAM")
        rows = [row for row in range(self.spec.rows) if self.tiling.a_column(row) == column]
        for channel, row in zip(A_CHANNELS, rows, strict=False):
            yield Channel("MM2S", channel, self.a_out(column, row), f"A along core row {row}")

    def a_out(self, column: int, row: int) -> tuple[Bd, ...]:
        """Slice by slice; with two shims the upper half of each tile from here, the lower one from the east."""
        rows = self.size.rows // self.tiling.a_shims
        patterns = self.slab_slices(self.kernel.a, "row", self.spec.layouts.a, rows, min(rows, self.kernel.r))
        zeros = self.size.m - self.size.rows  # in the one block of rows that a tile has then
        padding = ((0, 0), (0, 0), (0, zeros), (0, 0)) if zeros else ()
        parts = [self.a[column + part, row] for part in range(self.tiling.a_shims)]
        return in_turn(part.send(pattern, padding) for pattern in patterns for part in parts)

    def slab_slices(self, type_: ElementType, along_depth: str, order: str, size: int, micro: int) -> list[Pattern]:
        """The micro-tiles of each slice of a slab: `micro` x s of A (of B's columns), outer blocks first."""
        k, in_lines = self.size.k, order == along_depth
        if self.whole:
            return [Pattern(*slab_strips(in_lines, k, self.k_mt, size, self.kernel.s, micro))]
        extents = slab_slice(type_, in_lines, k, self.k_mt, size, self.kernel.s, micro)
        step = k * (slab_block(type_)[1] if in_lines else size)
        return [Pattern(*extents, offset=i * step) for i in range(self.slices)]

    def c_store(self, column: int, row: int) -> Slots:
        pieces = self.spec.buffers.c_pieces
        share = Share(self.size.m * self.spec.c_columns // pieces, self.spec.buffers.c_memtile_buffers)
        what = f"C tile of core row {row}" if pieces == 1 else f"one of {pieces} pieces of the C tile of core row {row}"
        # One pair of locks for each core: with a pair for all, a fast core would take a slow one's turn.
        return self.store(column, f"c{row}", share, self.c_type, what, f"C of core row {row}")

    def c_channels(self, stores: list[Slots]) -> Iterable[Channel]:
        for row, store in enumerate(stores):
            yield Channel("S2MM", C_IN_CHANNEL + row, store.fill(), f"C from core row {row}")
        count, pieces = self.spec.buffers.c_memtile_buffers, self.spec.buffers.c_pieces
        tiles = lcm(count, pieces) // pieces  # until every buffer has its first turn again
        turns = [range(tile * pieces, (tile + 1) * pieces) for tile in range(tiles)]
        out = tuple(store.send(self.c_lines())[turn % count] for tile in turns for store in stores for turn in tile)
        role = f"C of the column, {self.spec.layouts.c}-major, top tile first"
        yield Channel("MM2S", c_out_channel(self.spec), out, role)

    def c_lines(self) -> Pattern:
        """A piece of a tile of C from micro-tiles to lines; block floats are lines of micro-tiles already."""
        m, n, r, t = self.size.rows // self.spec.buffers.c_pieces, self.spec.c_columns, self.kernel.r, self.kernel.t
        if self.size.rows < self.size.m:
            return Pattern((m, n // t, t), (t, r * t, 1))
        if self.c_type.blocked:
            return Pattern((self.c_type.memory_elements(m * n),), (1,))
        return Pattern(*c_lines(self.spec.layouts.c, m, n, r, t))
