"""How slabs of A and B leave memtiles: in slices of k, a BD each, or whole, where there are too few BDs for slices.

A whole slab is one BD. Where its memory runs along K, micro-tiles would take a dimension more than a memtile's BDs
have: it leaves in strips of s columns, slice after slice, and cores write micro-tiles of what arrives. Else the rows of
a slice are one walk already, and slices the fourth.
"""

from collections.abc import Iterator
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from bd_patterns import Pattern
from bdforge.devices import TileKind, TileLimits
from bdforge.operators.gemm.grid import feeding_column
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.reorders import Extents
from bdforge.operators.gemm.spec import GemmSpec

B_CHANNEL, C_IN_CHANNEL, C_OUT_CHANNEL = 0, 2, 2
A_CHANNELS = (1, 3, 4, 5)
"""MM2S channels of the core rows that one memtile feeds; the first is A's S2MM channel too."""


class Share(NamedTuple):
    """What a memtile holds of one operand: `buffers` of `elements`, each sent by `turns` BDs.

    Numbers, or arrays of a search's candidates.
    """

    elements: Any
    buffers: Any
    turns: Any = 1

    @property
    def sends(self) -> Any:
        """BDs that send all buffers once, and turns of the lock that says that there is room."""
        return self.buffers * self.turns

    @classmethod
    def slab(cls, depth: Any, size: Any, k: Any) -> "Share":
        """Two slabs of `size` rows of A or columns of B, filled at once and sent in slices of k, or whole: of depth."""
        return cls(depth * size, 2, depth // k)

    def whole(self, leaves: np.ndarray) -> "Share":
        """Of candidates, a BD for each buffer of those that leave whole."""
        return self._replace(turns=np.where(leaves, 1, self.turns))


class Shares(NamedTuple):
    """What a memtile with A holds: A of so many core `rows`, each from `a_shims` memtiles, B, and C of `c_rows` cores,
    which leaves by the channel `c_out`."""

    a: Share
    b: Share
    c: Share
    c_rows: int
    a_shims: Any = 1
    rows: int = 1
    c_out: int = C_OUT_CHANNEL

    def channel_bds(self) -> Iterator[tuple[int, Any]]:
        """(channel, its BDs), but for those of a B that stays."""
        yield B_CHANNEL, self.b.buffers + self.b.sends
        yield from self.others()

    def others(self) -> Iterator[tuple[int, Any]]:
        """Those of A and C."""
        yield from ((C_IN_CHANNEL + row, self.c.buffers) for row in range(self.c_rows))
        yield self.c_out, self.c_rows * self.c.sends
        yield A_CHANNELS[0], self.a.buffers * self.rows
        yield from ((channel, self.a.sends * self.a_shims) for channel in A_CHANNELS[: self.rows])

    def leave_whole(self, may: Any, limits: TileLimits) -> Any:
        """Whether slabs leave whole: where they `may`, and slices would need more BDs than channels have."""
        return may & ~bds_fit(self.channel_bds(), limits)


def bds_fit(counts: Iterator[tuple[int, Any]], limits: TileLimits) -> Any:
    """Whether channels have as many BDs, which even ones share, and odd ones."""
    found: dict[range, Any] = {}
    for channel, count in counts:
        share = limits.bds_of_channel(channel)
        found[share] = found.get(share, 0) + count
    return np.logical_and.reduce([np.asarray(count) <= len(share) for share, count in found.items()])


def may_leave_whole(kernel: Kernel, a_layout: str, rho: Any, a_shims: Any) -> Any:
    """Whether a slab can be one BD: in one part, unless A's rows are outermost in it, from one memtile, no blocks."""
    plain = not (kernel.a.blocked or kernel.b.blocked)
    return plain & (np.asarray(a_shims) == 1) & ((np.asarray(rho) == 1) | (a_layout != "row"))


def leave_whole(spec: GemmSpec, kernel: Kernel) -> bool:
    """Whether the slabs of a design leave memtiles whole."""
    size, buffers = spec.tile, spec.buffers
    if buffers.residency == "b" or spec.epilogue.fed or size.rows < size.m:
        return False
    columns = [feeding_column(row, spec.rows, spec.columns) for row in range(spec.rows)]
    depth = size.k if spec.layouts.b == "packed" else buffers.k_mt
    count, pieces = buffers.c_memtile_buffers, buffers.c_pieces
    shares = Shares(
        Share.slab(buffers.k_mt, size.rows // buffers.a_shims, size.k), Share.slab(depth, size.n, size.k),
        Share(size.m * spec.c_columns // pieces, count, lcm(count, pieces) // count),
        spec.rows, buffers.a_shims, max(columns.count(column) for column in columns),
    )  # fmt: skip
    may = may_leave_whole(kernel, spec.layouts.a, buffers.rho, buffers.a_shims)
    return bool(shares.leave_whole(may, kernel.generation.limits(TileKind.MEMTILE)))


def slab_strips(in_lines: bool, k: Any, k_mt: Any, size: Any, s: Any, micro: Any) -> Extents:
    """A whole slab of `size` rows of A (columns of B), slice after slice; `in_lines`: its memory runs along K."""
    if in_lines:
        return (k_mt // k, k // s, size, s), (k, s, k_mt, 1)
    return (k_mt // k, size // micro, k, micro), (k * size, micro, size, 1)


def strip_tiles(k: Any, size: Any, s: Any, micro: Any) -> Extents:
    """Where a core writes strips of s columns and `size` rows: micro-tiles row by row."""
    return (k // s, size // micro, micro * s), (micro * s, k // s * micro * s, 1)


def arriving(spec: GemmSpec, kernel: Kernel, operand: str) -> Pattern | None:
    """How a core writes a tile of A or B that comes in strips; None where it comes as it lies."""
    along, size, micro = ("row", spec.tile.m, kernel.r) if operand == "a" else ("column", spec.tile.n, kernel.t)
    if getattr(spec.layouts, operand) != along or not leave_whole(spec, kernel):
        return None
    return Pattern(*strip_tiles(spec.tile.k, size, kernel.s, micro))
