"""Which candidates can be built, for millions at a time: what `plan_gemm` says of one, as array arithmetic.

Sizes, turns, units and patterns are the mapping's own formulas, limits those of `bdforge.devices.limits`; a test holds
both answers against each other, candidate by candidate. What others imply is not asked: turns of locks are below 64
wherever 24 BDs are enough, buffers of which two fit a memory are no longer than a BD, and a B that fits a core has
sizes and steps that fit a memtile's BDs.
"""

from collections.abc import Iterator

import numpy as np

from bd_patterns import static_fits
from bdforge.design.placement import occupied
from bdforge.devices import TileKind
from bdforge.operators.gemm.memtiles import A_CHANNELS, B_CHANNEL, C_IN_CHANNEL, C_OUT_CHANNEL, Share
from bdforge.operators.gemm.reorders import c_lines, slab_slice
from bdforge.operators.gemm.resident import LEAST_TILES, POOL_ADDRESS, Size, bd_room, share_of
from bdforge.operators.gemm.spec_check import shims_found, tile_units
from bdforge.perf.tune.space import B_LAYOUTS, Candidate, SearchSpace, buffer_bytes, core_holds

_PACKED = B_LAYOUTS.index("packed")


def legal(space: SearchSpace, c: Candidate) -> np.ndarray:
    """Whether `plan_gemm` takes each candidate (its device, types and layouts of A and C taken to be right)."""
    return _Legality(space, c).verdict()


class _Legality:
    """One question; arrays of the candidates' length throughout."""

    def __init__(self, space: SearchSpace, c: Candidate):
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
        for check in (self.core_memory(), self.memtile_memory(), self.bd_counts(), self.transfers()):
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
        if self.resident:
            return pool_tiles(self.space, self.c) >= LEAST_TILES
        used = occupied(0, ((self.b.buffers, b), (self.a.buffers, a), (self.space.rows * self.of_c.buffers, c)))
        return used <= self.memtile.memory_bytes

    def bd_counts(self) -> np.ndarray:
        """BDs of the even and of the odd channels of a memtile with A."""
        counts: dict[range, np.ndarray | int] = {}
        for channel, count in self.channel_bds():
            share = self.memtile.bds_of_channel(channel)
            counts[share] = counts.get(share, 0) + count
        return np.logical_and.reduce([np.asarray(count) <= len(share) for share, count in counts.items()])

    def channel_bds(self) -> Iterator[tuple[int, np.ndarray | int]]:
        """(channel, its BDs) of a memtile with A, which is of one core row: devices have a column for each."""
        if self.resident:  # whatever C leaves of the even ones is B's
            one, two = (bd_room(self.space.rows, buffers).bds for buffers in (1, 2))
            yield B_CHANNEL, np.where(self.c.c_memtile_buffers == 1, one, two)
        else:
            yield B_CHANNEL, self.b.buffers
            yield B_CHANNEL, self.b.sends
        yield from ((C_IN_CHANNEL + row, self.of_c.buffers) for row in range(self.space.rows))
        yield C_OUT_CHANNEL + self.resident, self.space.rows * self.of_c.sends
        yield A_CHANNELS[0], self.a.buffers + self.a.sends * self.c.a_shims

    def transfers(self) -> np.ndarray:
        """Whether the patterns of A and C fit a memtile's BDs; block floats leave as they lie."""
        c, (r, s, t), space = self.c, (self.kernel.r, self.kernel.s, self.kernel.t), self.space
        a, c_type = self.kernel.a, space.c_type
        of_a = static_fits(
            *slab_slice(a, space.a_layout == "row", c.k, c.k_mt, self.rows, s, r), a.memory_bits, self.memtile
        )
        if c_type.blocked:
            return of_a
        return of_a & static_fits(*c_lines(space.c_layout, c.m, c.n, r, t), c_type.memory_bits, self.memtile)


def pool_tiles(space: SearchSpace, sizes: Candidate) -> np.ndarray:
    """Tiles of B for which A and C leave room."""
    memory = space.device.generation.limits(TileKind.MEMTILE).memory_bytes
    a = Share.slab(sizes.k_mt, sizes.m // sizes.a_shims, sizes.k)
    c = Share(sizes.m * sizes.n, sizes.c_memtile_buffers)
    held = occupied(0, (
        (a.buffers, buffer_bytes(a.elements, space.kernel.a)),
        (space.rows * c.buffers, buffer_bytes(c.elements, space.c_type)),
    ))  # fmt: skip
    tile = buffer_bytes(sizes.k * sizes.n, space.kernel.b)
    return np.maximum((memory - POOL_ADDRESS - held) // np.maximum(tile, 1), 0)


def kept_shares(space: SearchSpace, sizes: Candidate, depth: int) -> np.ndarray:
    """Which share of panels `depth` deep stays."""
    slabs = -(-depth // sizes.k_mt) * sizes.k_mt // sizes.k
    pairs = np.stack([pool_tiles(space, sizes), slabs], axis=-1)
    known, place = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    room = bd_room(space.rows, 1)
    shares = np.array([share_of(Size(int(tiles), room), int(tiles_deep), False) for tiles, tiles_deep in known])
    return shares[place.reshape(-1)].reshape(pairs.shape[:-1])
