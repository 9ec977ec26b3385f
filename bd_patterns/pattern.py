"""Access patterns: which offsets a DMA visits, and in which order.

A pattern is a nest of loops written outermost first, as in the MLIR text:

    for i in range(sizes[0]):
        for j in range(sizes[1]):
            visit(offset + i * strides[0] + j * strides[1])

`Pattern.offsets` is the slow and obvious meaning; every other operation must agree with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import index
from typing import Self

import numpy as np
import numpy.typing as npt


class PatternError(ValueError):
    """A malformed pattern, or one that does not fit where it shall go."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Offsets a DMA visits: sizes and strides outermost first, in elements.

    PatternError lists every fault: unequal ranks, no dimension, a size below 1, a negative stride or offset.

    >>> str(Pattern((16, 8), (128, 1)))
    '(16, 8):(128, 1)+0'
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "sizes", tuple(map(index, self.sizes)))
            object.__setattr__(self, "strides", tuple(map(index, self.strides)))
            object.__setattr__(self, "offset", index(self.offset))
        except TypeError as error:
            raise PatternError(f"pattern {self.sizes}:{self.strides}+{self.offset}: {error}; use integers") from None
        if faults := self._faults():
            raise PatternError(f"pattern {self}: {'; '.join(faults)}")

    def _faults(self) -> list[str]:
        faults = []
        if not self.sizes:
            faults.append("no dimension; a single element is (1):(1)")
        if len(self.sizes) != len(self.strides):
            faults.append(f"{len(self.sizes)} sizes but {len(self.strides)} strides; give one stride for each size")
        faults += [f"size {s} in dimension {d} is below 1" for d, s in enumerate(self.sizes) if s < 1]
        faults += [
            f"stride {t} in dimension {d} is negative; a DMA only steps upwards"
            for d, t in enumerate(self.strides)
            if t < 0
        ]
        if self.offset < 0:
            faults.append(f"offset {self.offset} is negative")
        return faults

    @classmethod
    def of_shape(cls, shape: Sequence[int], offset: int = 0) -> Self:
        """A row-major array of `shape`, read from its first element to its last."""
        return cls(tuple(shape), tuple(prod(shape[d + 1 :]) for d in range(len(shape))), offset)

    @classmethod
    def from_order(cls, order: npt.ArrayLike) -> Self | None:
        """The pattern with fewest dimensions that visits `order` (offsets, as from `order()`), or None.

        In a pattern of fewest dimensions the innermost run ends exactly where the step first changes, so
        taking runs from the inside finds the pattern whenever one exists.
        """
        starts = np.asarray(order, dtype=np.int64).ravel()
        dims: list[tuple[int, int]] = []
        while starts.size > 1:
            steps = np.diff(starts)
            stride = int(steps[0])
            run = int(np.argmax(steps != stride)) + 1 if (steps != stride).any() else starts.size
            if stride < 0 or starts.size % run:
                return None
            rows = starts.reshape(-1, run)
            if (np.diff(rows) != stride).any():
                return None
            dims.insert(0, (run, stride))
            starts = rows[:, 0]
        if starts.size == 0 or starts[0] < 0:
            return None
        return cls._of_dims(dims, int(starts[0]))

    @classmethod
    def _of_dims(cls, dims: Sequence[tuple[int, int]], offset: int) -> Self:
        sizes, strides = zip(*dims, strict=True) if dims else ((1,), (1,))
        return cls(tuple(sizes), tuple(strides), offset)

    def __str__(self) -> str:
        sizes, strides = (", ".join(map(str, values)) for values in (self.sizes, self.strides))
        return f"({sizes}):({strides})+{self.offset}"

    @property
    def rank(self) -> int:
        """Number of dimensions as written."""
        return len(self.sizes)

    @property
    def count(self) -> int:
        """Number of visits."""
        return prod(self.sizes)

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest offset visited."""
        reach = sum((size - 1) * stride for size, stride in self.dims())
        return self.offset, self.offset + reach

    def dims(self) -> Iterator[tuple[int, int]]:
        """(size, stride) of every dimension, outermost first."""
        return zip(self.sizes, self.strides, strict=True)

    def offsets(self) -> Iterator[int]:
        """Every visited offset in order: the meaning that the other methods keep."""
        for position in product(*map(range, self.sizes)):
            yield self.offset + sum(i * stride for i, stride in zip(position, self.strides, strict=True))

    def order(self) -> npt.NDArray[np.int64]:
        """The same offsets as an array of shape (count,)."""
        visited = np.array(self.offset, dtype=np.int64)
        for size, stride in self.dims():
            visited = np.add.outer(visited, np.arange(size, dtype=np.int64) * stride)
        return visited.ravel()

    def coalesced(self) -> "Pattern":
        """The same order with the fewest dimensions; a single element becomes (1):(1)."""
        dims: list[tuple[int, int]] = []
        for size, stride in self.dims():
            if size == 1:
                continue
            if dims and dims[-1][1] == size * stride:
                dims[-1] = (dims[-1][0] * size, stride)
            else:
                dims.append((size, stride))
        return Pattern._of_dims(dims, self.offset)

    @property
    def is_linear(self) -> bool:
        """Whether the offsets rise by one from visit to visit."""
        return self.coalesced().strides == (1,)

    def shifted(self, distance: int) -> "Pattern":
        """The same walk, `distance` elements further on."""
        return Pattern(self.sizes, self.strides, self.offset + distance)

    def refined(self, parts: int) -> "Pattern":
        """The same walk where each element is so many smaller ones side by side, which are visited in their order."""
        if parts == 1:
            return self
        dims = [(size, stride * parts) for size, stride in self.dims()]
        inner = [(dims.pop()[0] * parts, 1)] if self.strides[-1] == 1 else [(parts, 1)]
        return Pattern._of_dims(dims + inner, self.offset * parts)

    def repeated(self, times: int) -> "Pattern":
        """The whole walk `times` times: an outermost dimension of stride 0."""
        return Pattern((times, *self.sizes), (0, *self.strides), self.offset)

    def permuted(self, axes: Sequence[int]) -> "Pattern":
        """The dimensions in another order: dimension `axes[0]` becomes the outermost."""
        if sorted(axes) != list(range(self.rank)):
            raise PatternError(f"axes {tuple(axes)} do not name each of the {self.rank} dimensions of {self} once")
        return Pattern(tuple(self.sizes[a] for a in axes), tuple(self.strides[a] for a in axes), self.offset)

    def split(self, axis: int, inner: int) -> "Pattern":
        """Dimension `axis` as two: an outer one over blocks and one over the `inner` elements of a block."""
        self._check_axis(axis)
        size, stride = self.sizes[axis], self.strides[axis]
        if inner < 1 or size % inner:
            raise PatternError(f"{self}: size {size} of dimension {axis} is no multiple of the inner size {inner}")
        sizes = (*self.sizes[:axis], size // inner, inner, *self.sizes[axis + 1 :])
        strides = (*self.strides[:axis], stride * inner, stride, *self.strides[axis + 1 :])
        return Pattern(sizes, strides, self.offset)

    def tiled(self, *tile: int) -> "Pattern":
        """Visit tile after tile: one tile size for each dimension; the loops over tiles come first.

        >>> str(Pattern.of_shape((16, 8)).tiled(4, 2))
        '(4, 4, 4, 2):(32, 2, 8, 1)+0'
        """
        if len(tile) != self.rank:
            raise PatternError(f"{self}: {len(tile)} tile sizes for {self.rank} dimensions; give one for each")
        parts = self
        for axis, inner in enumerate(tile):
            parts = parts.split(2 * axis, inner)
        return parts.permuted([*range(0, 2 * self.rank, 2), *range(1, 2 * self.rank, 2)])

    def sliced(self, axis: int, start: int, stop: int) -> "Pattern":
        """Only the positions `start` to `stop - 1` of dimension `axis`."""
        self._check_axis(axis)
        size = self.sizes[axis]
        if not 0 <= start < stop <= size:
            raise PatternError(f"{self}: slice {start}:{stop} is empty or outside dimension {axis} of size {size}")
        sizes = (*self.sizes[:axis], stop - start, *self.sizes[axis + 1 :])
        return Pattern(sizes, self.strides, self.offset + start * self.strides[axis])

    def inverse(self) -> "Pattern":
        """The pattern whose order is the inverse permutation: `inverse().order()[order()[i]] == i`.

        PatternError unless the pattern visits each offset 0 to count - 1 exactly once.
        """
        dims = [(size, stride, prod(self.sizes[d + 1 :])) for d, (size, stride) in enumerate(self.dims()) if size > 1]
        dims.sort(key=lambda dim: dim[1], reverse=True)
        compact = [stride for _, stride, _ in dims] == [prod(s for s, _, _ in dims[d + 1 :]) for d in range(len(dims))]
        if self.offset or not compact:
            raise PatternError(f"{self} has no inverse: it does not visit each offset 0 to {self.count - 1} once")
        return Pattern._of_dims([(size, weight) for size, _, weight in dims], 0)

    def then(self, write: "Pattern") -> "Pattern":
        """The one pattern that does what reading with `self` and writing with `write` does.

        Its i-th offset is the source of destination `write.span[0] + i`. PatternError when the counts differ,
        when `write` leaves gaps or writes an offset twice, or when no pattern visits the sources in that order.
        """
        landed = compose(self, write)[write.span[0] :]
        if landed.size != write.count or (landed < 0).any():
            raise PatternError(f"{write} leaves gaps or writes an offset twice, so {self} into it is no single pattern")
        single = Pattern.from_order(landed)
        if single is None:
            raise PatternError(f"{self} into {write} is no single pattern; keep the two, or use compose()")
        return single

    def _check_axis(self, axis: int) -> None:
        if not 0 <= axis < self.rank:
            raise PatternError(f"{self} has no dimension {axis}; dimensions are 0 to {self.rank - 1}, outermost first")


def compose(read: Pattern, write: Pattern) -> npt.NDArray[np.int64]:
    """Where the elements come from after one DMA reads with `read` and its partner writes with `write`.

    Entry d of the result, of shape (write.span[1] + 1,), is the source offset that lands at destination offset d, or -1
    where nothing lands; of several writes to one offset the last stays. PatternError when the counts differ.
    """
    if read.count != write.count:
        raise PatternError(f"{read} sends {read.count} elements but {write} takes {write.count}; both ends must agree")
    landed = np.full(write.span[1] + 1, -1, dtype=np.int64)
    landed[write.order()] = read.order()
    return landed
