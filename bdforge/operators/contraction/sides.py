"""An operand of a contraction as the shims walk it: in place, or staged by the host in the order of access.

A shim's stream has tiles of the *outer* and *inner* group of dimensions: of row-major A, for each slab of K, m rows of
k_mt. In place these are the strides of the user's memory. Staged, the host has put every tile where the walk is one
line: batches, tiles of the kept group, slabs of K, and in each the tile as it is streamed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from bdforge.design.sequences import Dim, Expr
from bdforge.devices import TileLimits
from bdforge.devices.limits import GRANULE_BITS
from bdforge.operators.contraction.boxes import Box, Indices, Part, box_count, box_size
from bdforge.operators.contraction.dims import TensorDim
from bdforge.operators.contraction.walks import Chain, Loop, Segment, WalkReason, chain
from bdforge.operators.gemm.grid import Storage

NAMES = "ABC"


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a contraction: parts of batch, M, N and K dimensions, each group outermost first."""

    batch: Box
    m: Box
    n: Box
    k: Box

    def groups(self, tensor: int) -> tuple[Box, Box]:
        """Groups of a tensor's rows and columns: M, K of A; K, N of B; M, N of C."""
        return ((self.m, self.k), (self.k, self.n), (self.m, self.n))[tensor]

    def parts(self, tensor: int) -> tuple[Part, ...]:
        """All parts of a tensor's dimensions, batches first."""
        rows, columns = self.groups(tensor)
        return (*self.batch, *rows, *columns)


@dataclass(frozen=True, slots=True)
class Side:
    """An operand: tensor 0 (A), 1 (B) or 2 (C) of `tiles`, in elements of `store.bits` bits."""

    tensor: int
    tiles: Tiles
    store: Storage
    staged: bool
    packed: tuple[Any, ...] | None = None
    """Loops over a slab of packed B, `Dim`s of numbers along K (axis 0) and N."""

    @property
    def name(self) -> str:
        """A, B or C."""
        return NAMES[self.tensor]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of its dimensions."""
        return self.tiles.parts(self.tensor)

    @property
    def streamed(self) -> Box:
        """The parts of a tile in the order of the stream, outermost first."""
        rows, columns = self.tiles.groups(self.tensor)
        return (*columns, *rows) if self.store.order == "column" else (*rows, *columns)

    @property
    def tile(self) -> int:
        """Elements of a tile, a slab deep."""
        rows, columns = self.tiles.groups(self.tensor)
        return box_size(rows) * box_size(columns)

    @property
    def outer(self) -> Box:
        """The order of whole tiles in a staged buffer: batches, the group that stays, slabs of K."""
        rows, columns = self.tiles.groups(self.tensor)
        return (*self.tiles.batch, *columns, *rows) if self.tensor == 1 else (*self.tiles.batch, *rows, *columns)

    @property
    def elements(self) -> int:
        """Elements of the buffer; in place from the first one to behind the last one."""
        if self.staged:
            return box_count(self.outer) * self.tile
        return 1 + sum((part.dim.size - 1) * self.stride(part.dim) for part in self.parts)

    def stride(self, dim: TensorDim) -> int:
        """The user's stride of a dimension."""
        return dim.strides[self.tensor] or 0

    def walks(self, dim: TensorDim) -> bool:
        """Whether a dimension is one walk through the user's memory."""
        step = self.stride(dim)
        for member in reversed(dim.parts):
            if (member.strides[self.tensor] or 0) != step:
                return False
            step *= member.size
        return True

    def tile_strides(self) -> Mapping[str, int]:
        """Elements from one tile along each dimension to the next, where that is regular."""
        if not self.staged:
            return {part.dim.name: part.size * self.stride(part.dim) for part in self.parts}
        found, step = {}, self.tile
        for part in reversed(self.outer):
            found[part.dim.name] = step
            step *= part.count
        return found

    def offset(self, indices: Indices) -> Expr | int:
        """Where the tile begins that `indices` tell; slabs of K begin at the first one."""
        strides = self.tile_strides()
        whole: Expr | int = 0
        for part in self.parts:
            index = indices.get(part.dim.name, 0)
            moved = index * strides[part.dim.name] if self.staged else part.start(index) * self.stride(part.dim)
            whole = moved + whole
        return whole

    def loops(self) -> list[Loop]:
        """Loops over one tile in the order of the stream."""
        if self.staged:
            return [(self.tile, 1)]
        return [(part.size, self.stride(part.dim)) for part in self.streamed]

    def slabs(self) -> list[list[Segment]]:
        """Loops over slabs of K, the last one apart where it moved back."""
        strides = self.tile_strides()
        if self.tensor == 2:
            return []
        return [self._segments(part, strides[part.dim.name]) for part in self.tiles.k]

    def _segments(self, part: Part, stride: int) -> list[Segment]:
        if self.staged or part.regular or part.count == 1:
            return [(0, part.count, stride)]
        last = (part.dim.size - part.size) * self.stride(part.dim)
        return [(0, part.count - 1, stride), (last, 1, 0)]

    def walk(self, limits: TileLimits, more: Sequence[Loop] = (), iterates: bool = True) -> Chain:
        """A tile's walk, slabs of K first, behind `more` loops; WalkReason where there is none."""
        levels = [*([(0, *loop)] for loop in more), *self.slabs(), *([(0, *loop)] for loop in self.loops())]
        return chain(levels, self.store.bits, limits, iterates)

    def unreachable(self) -> Iterator[str]:
        """Why it cannot be walked in place, whatever its loops."""
        for part in self.parts:
            if part.size > part.dim.size:
                yield f"{part.dim.name} = {part.dim.size} is below its part of a tile, {part.size}"
            stride, moved = self.stride(part.dim), self._moved(part)
            if part.dim.size > 1 and stride != 1 and stride * self.store.bits % GRANULE_BITS:
                yield f"{part.dim.name} has a stride of {stride} elements, no whole words"
            if moved:
                yield f"a tile along {part.dim.name} begins at element {moved}, no whole word"
        if self.packed is not None:
            yield "the array takes it packed"

    def _moved(self, part: Part) -> int:
        """Where a tile along a dimension begins that is no whole word; 0 where all are."""
        starts = (part.size if part.count > 1 else 0, 0 if part.regular else part.dim.size - part.size)
        found = (start * self.stride(part.dim) for start in starts)
        return next((start for start in found if start * self.store.bits % GRANULE_BITS), 0)

    def run_elements(self) -> int:
        """Elements that follow one another in memory where the walk reads them."""
        if self.staged:
            return self.tile
        run = 1
        for part in reversed(self.streamed):
            if part.size > 1 and self.stride(part.dim) != run:
                break
            run *= part.size
        return run

    def placed(self) -> list[Dim]:
        """Loops over the buffer for `Builder.operand`, of `axes` in order."""
        axes = {part.dim.name: axis for axis, part in enumerate(self.axes)}
        if not self.staged:
            return [Dim(axes[p.dim.name], p.dim.size, 1, self.stride(p.dim)) for p in self.axes]
        strides = self.tile_strides()
        found = [Dim(axes[p.dim.name], p.count, p.size, strides[p.dim.name]) for p in self.outer]
        return [loop for loop in (*found, *self._inside(axes)) if loop.count > 1] or found[:1]

    @property
    def axes(self) -> tuple[Part, ...]:
        """Parts in the order of the tensor's axes: longest strides first."""
        return tuple(sorted(self.parts, key=lambda part: (-self.stride(part.dim), -part.dim.size)))

    def _inside(self, axes: Mapping[str, int]) -> Iterator[Dim]:
        """Loops over a staged tile."""
        if self.packed is None:
            step = self.tile
            for part in self.streamed:
                step //= part.size
                yield Dim(axes[part.dim.name], part.size, 1, step)
            return
        for group, count, step, stride in self.packed:
            yield from _mixed((self.tiles.k, self.tiles.n)[group], axes, count, step, stride)


def _mixed(box: Box, axes: Mapping[str, int], count: int, step: int, stride: int) -> Iterator[Dim]:
    """A loop over positions of a box as loops over its parts; WalkReason where parts do not divide it."""
    weight, found = prod(part.size for part in box), []
    for part in box:
        weight //= part.size
        low, high = max(step, weight), min(step * count, weight * part.size)
        if high <= low:
            continue
        if low % weight or low % step or high % low:
            raise WalkReason(f"part {part.size} of {part.dim.name} cuts a micro-tile")
        found.append(Dim(axes[part.dim.name], high // low, low // weight, stride * (low // step)))
    if prod(loop.count for loop in found) != count:
        raise WalkReason("parts cut a micro-tile")
    yield from found
