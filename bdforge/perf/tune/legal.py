"""Which candidates can be built, for millions at a time: what `plan_gemm` says of one, as array arithmetic.

The limits are those of `bdforge.devices.limits`, the buffers, locks and BDs the GEMM operator's; a test holds the
two against each other, candidate by candidate, in both directions.
"""

from collections.abc import Iterator

import numpy as np

from bdforge.design.placement import occupied
from bdforge.devices import TileKind
from bdforge.devices.fits import fits
from bdforge.devices.limits import GRANULE_BITS, STATIC_STRIDE_END, TileLimits
from bdforge.devices.types import ElementType
from bdforge.operators.gemm.memtiles import A_CHANNELS, B_CHANNEL, C_IN_CHANNEL, C_OUT_CHANNEL
from bdforge.operators.gemm.reorders import c_lines, slab_slice
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
        self.packed = c.b_layout == _PACKED
        self.slices = c.k_mt // c.k
        self.rows = c.m // c.a_shims

    def verdict(self) -> np.ndarray:
        fits = self.multiples()
        for check in (self.core_memory(), self.memtile_memory(), self.locks(), self.bd_counts(), self.transfers()):
            fits &= check
        return fits

    def multiples(self) -> np.ndarray:
        c, (r, k, n) = self.c, self.kernel.multiples
        whole = (c.m % (r * np.lcm(c.rho, c.a_shims)) == 0) & (c.k % k == 0) & (c.n % n == 0) & (c.k_mt % c.k == 0)
        enough = (c.a_shims == 1) | (c.a_shims * self.space.rows <= self.space.columns)
        return whole & enough & (self.space.stack_bytes % self.align == 0)

    def core_memory(self) -> np.ndarray:
        c = self.c
        return core_holds(self.space, c.m, c.k, c.n, c.c_buffers, c.rho)

    def memtile_memory(self) -> np.ndarray:
        a, b, c = self.memtile_buffers()
        most = max(self.a_stores().values(), default=0)
        used = occupied(0, ((2, b), (2 * most, a), (self.space.rows * self.c.c_memtile_buffers, c)))
        words = np.maximum(a, b) * 8 // GRANULE_BITS
        return (used <= self.memtile.memory_bytes) & fits(self.memtile, length=words)

    def memtile_buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bytes of one slab of A, one buffer of B and one tile of C."""
        c, kernel = self.c, self.kernel
        depth = np.where(self.packed, c.k, c.k_mt)
        slab, tile = buffer_bytes(self.rows * c.k_mt, kernel.a), buffer_bytes(depth * c.n, kernel.b)
        return slab, tile, buffer_bytes(c.m * c.n, self.space.c_type)

    def a_stores(self) -> dict[int, int]:
        """Slabs of A by memtile, of one shim; with two, each memtile has at most one."""
        counts: dict[int, int] = {}
        for row in range(self.space.rows):
            column = row * self.space.columns // self.space.rows
            counts[column] = counts.get(column, 0) + 1
        return counts

    def locks(self) -> np.ndarray:
        turns = 2 * self.slices
        most = self.memtile.lock_value_max
        return (turns <= most) & (np.where(self.packed, 2, turns) <= most)

    def bd_counts(self) -> np.ndarray:
        """BDs of the even and of the odd channels of the busiest memtile (`bdforge.operators.gemm.memtiles`)."""
        fits = np.ones(len(self.c), bool)
        for stores in {0, *self.a_stores().values()}:
            counts: dict[range, np.ndarray | int] = {}
            for channel, count in self.channel_bds(stores):
                share = self.memtile.bds_of_channel(channel)
                counts[share] = counts.get(share, 0) + count
            for share, count in counts.items():
                fits &= count <= len(share)
        return fits

    def channel_bds(self, stores: int) -> Iterator[tuple[int, np.ndarray | int]]:
        """(channel, its BDs) of a memtile with `stores` slabs of A for as many core rows."""
        c, turns = self.c, 2 * self.slices
        yield B_CHANNEL, 2
        yield B_CHANNEL, np.where(self.packed, 2, turns)
        yield from ((C_IN_CHANNEL + row, c.c_memtile_buffers) for row in range(self.space.rows))
        yield C_OUT_CHANNEL, self.space.rows * c.c_memtile_buffers
        if stores:
            yield A_CHANNELS[0], 2 * stores
        yield from ((channel, turns * c.a_shims) for channel in A_CHANNELS[:stores])

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
        return _fits(*extents, type_.memory_bits, self.memtile)

    def c_lines(self) -> np.ndarray:
        c, kernel, type_ = self.c, self.kernel, self.space.c_type
        if type_.blocked:
            return fits(self.memtile, length=buffer_bytes(c.m * c.n, type_) * 8 // GRANULE_BITS)
        extents = c_lines(self.space.c_layout, c.m, c.n, kernel.r, kernel.t)
        return _fits(*extents, type_.memory_bits, self.memtile)


_Extents = tuple[np.ndarray | int, ...]


def _fits(sizes: _Extents, strides: _Extents, bits: int, limits: TileLimits) -> np.ndarray:
    """Whether static patterns fit a BD, as `bd_patterns.problems` judges those of the functions above.

    Their innermost stride is 1 and all strides stay in the buffer.
    """
    inner = len(sizes) - 1
    words = [
        (_words(size, bits) if axis == inner else size, _words(stride, bits))
        for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True))
    ]
    held, linear, step = fits(limits, dims=words), np.bool_(True), 1
    for axis in range(inner, -1, -1):
        size, stride = np.asarray(sizes[axis]), np.asarray(strides[axis])
        linear = linear & ((size == 1) | (stride == step))
        held = held & (size <= limits.static_size) & (stride < STATIC_STRIDE_END)
        whole = size * bits % GRANULE_BITS == 0 if axis == inner else (size == 1) | (stride * bits % GRANULE_BITS == 0)
        held = held & whole
        step = step * size
    return (linear | held) & fits(limits, length=_words(step, bits))


def _words(elements: np.ndarray | int, bits: int) -> np.ndarray | int:
    return -(-elements * bits // GRANULE_BITS)
