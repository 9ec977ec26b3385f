"""Which candidates can be built, for millions at a time: what `plan_gemm` says of one, as array arithmetic.

Sizes, turns, units and patterns are the mapping's own formulas, limits those of `bdforge.devices.limits`; a test holds
both answers against each other, candidate by candidate.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from bd_patterns import static_fits
from bdforge.design.placement import occupied
from bdforge.devices import TileKind
from bdforge.devices.fits import fits
from bdforge.devices.limits import GRANULE_BITS
from bdforge.devices.types import ElementType
from bdforge.operators.gemm.check import shims_found, tile_units
from bdforge.operators.gemm.grid import feeding_column
from bdforge.operators.gemm.memtiles import A_CHANNELS, B_CHANNEL, C_IN_CHANNEL, C_OUT_CHANNEL, Share
from bdforge.operators.gemm.reorders import c_lines, slab_slice
from bdforge.operators.gemm.resident import LEAST_TILES
from bdforge.perf.tune.resident import pool_tiles, room_of
from bdforge.perf.tune.space import B_LAYOUTS, Candidates, SearchSpace, buffer_bytes, core_holds

_PACKED = B_LAYOUTS.index("packed")


def legal(space: SearchSpace, c: Candidates) -> np.ndarray:
    """Whether `plan_gemm` takes each candidate (its device, types and layouts of A and C taken to be right)."""
    return _Legality(space, c).verdict()


class _Legality:
    """One question; arrays of the candidates' length throughout."""

    def __init__(self, space: SearchSpace, c: Candidates):
        self.space, self.c, self.kernel = space, c, space.kernel
        generation = space.device.generation
        self.memtile = generation.limits(TileKind.MEMTILE)
        self.align = generation.vector_align_bytes
        self.rows = c.m // c.a_shims
        depth = np.where(c.b_layout == _PACKED, c.k, c.k_mt)
        self.a, self.b = Share.slab(c.k_mt, self.rows, c.k), Share.slab(depth, c.n, c.k)
        self.resident = space.residency == "b"
        self.of_c = Share(c.m * c.n, c.c_memtile_buffers)

    def verdict(self) -> np.ndarray:
        fits = self.multiples()
        for check in (self.core_memory(), self.memtile_memory(), self.locks(), self.bd_counts(), self.transfers()):
            fits &= check
        return fits

    def multiples(self) -> np.ndarray:
        c, (m, k, n) = self.c, tile_units(self.kernel, self.c.rho, self.c.a_shims)
        whole = (c.m % m == 0) & (c.k % k == 0) & (c.n % n == 0) & (c.k_mt % c.k == 0)
        enough = shims_found(c.a_shims, self.space.rows, self.space.columns)
        return whole & enough & (self.space.stack_bytes % self.align == 0)

    def core_memory(self) -> np.ndarray:
        c = self.c
        return core_holds(self.space, c.m, c.k, c.n, c.c_buffers, c.rho)

    def memtile_memory(self) -> np.ndarray:
        types = (self.kernel.a, self.kernel.b, self.space.c_type)
        shares = (self.a, self.b, self.of_c)
        a, b, c = (buffer_bytes(share.elements, type_) for share, type_ in zip(shares, types, strict=True))
        most = max(self.a_stores(), default=0)
        if self.resident:
            return (pool_tiles(self.space, self.c) >= LEAST_TILES) & fits(self.memtile, length=a * 8 // GRANULE_BITS)
        used = occupied(0, ((self.b.buffers, b), (most * self.a.buffers, a), (self.space.rows * self.of_c.buffers, c)))
        words = np.maximum(a, b) * 8 // GRANULE_BITS
        return (used <= self.memtile.memory_bytes) & fits(self.memtile, length=words)

    def a_stores(self) -> list[int]:
        """How many slabs of A each memtile has that feeds rows, from one shim; with two, each has at most one."""
        space = self.space
        return list(Counter(feeding_column(row, space.rows, space.columns) for row in range(space.rows)).values())

    def locks(self) -> np.ndarray:
        most = self.memtile.lock_value_max
        return (self.a.sends <= most) & (self.resident | (self.b.sends <= most))

    def bd_counts(self) -> np.ndarray:
        """BDs of the even and of the odd channels of the busiest memtile."""
        fits = np.ones(len(self.c), bool)
        for stores in {0, *self.a_stores()}:
            counts: dict[range, np.ndarray | int] = {}
            for channel, count in self.channel_bds(stores):
                share = self.memtile.bds_of_channel(channel)
                counts[share] = counts.get(share, 0) + count
            for share, count in counts.items():
                fits &= count <= len(share)
        return fits

    def channel_bds(self, stores: int) -> Iterator[tuple[int, np.ndarray | int]]:
        """(channel, its BDs) of a memtile with `stores` slabs of A for as many core rows."""
        if self.resident:  # whatever C leaves of the even ones is B's
            one, two = (room_of(self.space, buffers).bds for buffers in (1, 2))
            yield B_CHANNEL, np.where(self.c.c_memtile_buffers == 1, one, two)
        else:
            yield B_CHANNEL, self.b.buffers
            yield B_CHANNEL, self.b.sends
        yield from ((C_IN_CHANNEL + row, self.of_c.buffers) for row in range(self.space.rows))
        yield C_OUT_CHANNEL + self.resident, self.space.rows * self.of_c.sends
        if stores:
            yield A_CHANNELS[0], stores * self.a.buffers
        yield from ((channel, self.a.sends * self.c.a_shims) for channel in A_CHANNELS[:stores])

    def transfers(self) -> np.ndarray:
        """Whether the patterns of A, B and C fit a memtile's BDs."""
        c, kernel, space = self.c, self.kernel, self.space
        fits = self.slab(kernel.a, space.a_layout == "row", self.rows, kernel.r)
        for index, layout in enumerate(B_LAYOUTS):
            if layout != "packed" and np.any(chosen := c.b_layout == index):
                fits &= ~chosen | self.slab(kernel.b, layout == "column", c.n, kernel.t)
        return fits & self.c_lines()

    def slab(self, type_: ElementType, in_lines: bool, size: np.ndarray, micro: int) -> np.ndarray:
        """A slice of a slab of `size` lines; offsets are multiples of whole slices."""
        c = self.c
        extents = slab_slice(type_, in_lines, c.k, c.k_mt, size, self.kernel.s, micro)
        return static_fits(*extents, type_.memory_bits, self.memtile)

    def c_lines(self) -> np.ndarray:
        c, kernel, type_ = self.c, self.kernel, self.space.c_type
        if type_.blocked:
            return fits(self.memtile, length=buffer_bytes(c.m * c.n, type_) * 8 // GRANULE_BITS)
        extents = c_lines(self.space.c_layout, c.m, c.n, kernel.r, kernel.t)
        return static_fits(*extents, type_.memory_bits, self.memtile)
