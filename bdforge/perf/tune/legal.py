"""Which candidates can be built, for millions at a time: what `plan_gemm` says of one, as array arithmetic.

Sizes, turns, units and patterns are the mapping's own formulas, limits those of `bdforge.devices.limits`; a test holds
both answers against each other, candidate by candidate. What others imply is not asked: turns of locks are below 64
wherever 24 BDs are enough, buffers of which two fit a memory are no longer than a BD, and a B that fits a core has
sizes and steps that fit a memtile's BDs.
"""

from collections.abc import Iterator

import numpy as np

from bd_patterns import static_fits
from bdforge.design.buffer_addresses import occupied
from bdforge.devices import TileKind
from bdforge.devices.types import ElementType
from bdforge.operators.gemm.reorders import c_lines, slab_slice
from bdforge.operators.gemm.resident import LEAST_TILES, POOL_ADDRESS, Size, bd_room, share_of
from bdforge.operators.gemm.slabs import (
    B_CHANNEL,
    C_OUT_CHANNEL,
    Share,
    Shares,
    bds_fit,
    may_leave_whole,
    slab_strips,
    strip_tiles,
)
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
        self.shares = Shares(
            self.a, self.b, self.of_c, space.rows, c.a_shims, c_out=C_OUT_CHANNEL + self.resident
        )  # fmt: skip
        may = may_leave_whole(self.kernel, space.a_layout, c.rho, c.a_shims) & (not self.resident)
        self.whole = self.shares.leave_whole(may, self.memtile)

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
        a, b = (share.whole(self.whole) for share in (self.shares.a, self.shares.b))
        return bds_fit(self.channel_bds(self.shares._replace(a=a, b=b)), self.memtile)

    def channel_bds(self, shares: Shares) -> Iterator[tuple[int, np.ndarray | int]]:
        """(channel, its BDs) of a memtile with A, which is of one core row: devices have a column for each."""
        if not self.resident:
            yield from shares.channel_bds()
            return
        one, two = (bd_room(self.space.rows, buffers).bds for buffers in (1, 2))  # what C leaves of the even ones
        yield B_CHANNEL, np.where(self.c.c_memtile_buffers == 1, one, two)
        yield from shares.others()

    def transfers(self) -> np.ndarray:
        """Whether the patterns of A and C fit a memtile's BDs, and those of whole slabs both sides'; block floats leave
        as they lie."""
        c, (r, s, t), space = self.c, (self.kernel.r, self.kernel.s, self.kernel.t), self.space
        a, c_type = self.kernel.a, space.c_type
        sliced = static_fits(
            *slab_slice(a, space.a_layout == "row", c.k, c.k_mt, self.rows, s, r), a.memory_bits, self.memtile
        )
        fits = np.where(self.whole, self.whole_fits(a, c.m, r, space.a_layout == "row"), sliced)
        in_lines = c.b_layout == B_LAYOUTS.index("column")
        of_b = np.where(in_lines, *(self.whole_fits(self.kernel.b, c.n, t, each) for each in (True, False)))
        fits &= ~self.whole | (c.b_layout == _PACKED) | of_b
        if c_type.blocked:
            return fits
        return fits & static_fits(*c_lines(space.c_layout, c.m, c.n, r, t), c_type.memory_bits, self.memtile)

    def whole_fits(self, type_: ElementType, size: np.ndarray, micro: int, in_lines: bool) -> np.ndarray:
        """Whether a whole slab leaves a memtile by one BD, and comes to a core by one."""
        k, s, bits = self.c.k, self.kernel.s, type_.memory_bits
        leaves = static_fits(*slab_strips(in_lines, k, self.c.k_mt, size, s, micro), bits, self.memtile)
        if not in_lines:
            return leaves
        limits = self.space.device.generation.limits(TileKind.CORE)
        return leaves & static_fits(*strip_tiles(k, size, s, micro), bits, limits)


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
