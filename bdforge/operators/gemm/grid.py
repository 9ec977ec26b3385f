"""The tiles of a GEMM, and how its operands are stored.

The mapping is output-stationary: core (row i, column j) holds one m x n tile of C and sees all of K before the next.
A *row panel* is rows * m rows of A and C, a *column step* is columns * n columns of B and C.

Nothing is padded. Where a dimension is no multiple of its tile, the last tile *moves back* until it ends with the
matrix: elements that two tiles cover are computed twice, with the same result.
"""

from dataclasses import dataclass
from itertools import groupby
from math import lcm
from typing import NamedTuple

from bdforge.devices.limits import GRANULE_BITS
from bdforge.devices.types import ElementType, Order
from bdforge.operators.gemm.spec import Output


@dataclass(frozen=True, slots=True)
class Storage:
    """How one operand lies in host memory: elements of `bits` bits, line after line.

    A line of row-major memory holds `block` rows, `run` elements for each of their columns; both are 1 but for block
    floats: lines of 8 rows, each an array of 8 x 8 tiles of 72 bytes (bits = 8, block = 8, run = 9).
    """

    bits: int
    order: Order = "row"
    block: int = 1
    run: int = 1

    @property
    def granule(self) -> int:
        """Positions along a line whose elements are whole DMA granules: extents and starts are multiples of it."""
        return max(GRANULE_BITS // self.bits, self.block, 1)

    def words(self, elements: int) -> int:
        """DMA granules of `elements` memory elements."""
        return elements * self.bits // GRANULE_BITS


def storage_of(type_: ElementType, order: Order) -> Storage:
    """An operand of this type in host memory: block floats lie in lines of whole micro-tiles, 8 rows high."""
    if order == "packed":
        return Storage(type_.bits, order)
    run = type_.block * type_.bits // type_.memory_bits if type_.blocked else 1
    return Storage(type_.memory_bits, order, type_.block, run)


def feeding_column(row: int, rows: int, columns: int) -> int:
    """The array column whose shim feeds A to a core row."""
    return row * columns // rows


class Feed(NamedTuple):
    """What one shim brings of A for each panel: `rows` rows, from `offset` in core row `row`'s tile on."""

    column: int
    row: int
    offset: int
    rows: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """A core's tile m x k x n, the depth k_mt of a memtile's slab, the array, and how the operands are stored.

    With `a_shims` = 2 both shims of a pair of columns bring one core row's A, half a tile each. `fed_bytes` are the
    bytes that follow the last tile of B of each tile of C: some of the row panel's and some of the n-tile's. A tile of
    B has n columns of each of so many `matrices`. `outputs` take C's columns, whole tiles each; none: C does.
    """

    m: int
    k: int
    n: int
    k_mt: int
    rows: int = 4
    columns: int = 8
    a: Storage = Storage(8)
    b: Storage = Storage(2, "packed")
    c: Storage = Storage(32)
    a_shims: int = 1
    fed_bytes: tuple[int, int] = (0, 0)
    matrices: int = 1
    outputs: tuple[Output, ...] = ()

    @property
    def b_row_bits(self) -> int:
        """Bits of a row of a tile of B."""
        return self.matrices * self.n * self.b.bits

    @property
    def panel_rows(self) -> int:
        """Rows of A and C in one row panel."""
        return self.rows * self.m

    @property
    def step_columns(self) -> int:
        """Columns of B and C in one column step."""
        return self.columns * self.n

    @property
    def least(self) -> dict[str, int]:
        """Smallest M, K and N: a tile, or a panel where one shim feeds several core rows, whose tiles follow on."""
        return {"M": self.panel_rows if self.rows > self.columns else self.m, "K": self.k_mt, "N": self.n}

    @property
    def granules(self) -> dict[str, int]:
        """What M, K and N must be multiples of, so that every tile starts at a whole granule."""
        m = [self.a.block, self.c.block, *(s.granule for s in (self.a, self.c) if s.order == "column")]
        k = [s.granule for s, along in ((self.a, "row"), (self.b, "column")) if s.order == along]
        n = [s.granule for s in (self.b, self.c) if s.order == "row"]
        return {"M": lcm(*m), "K": lcm(*k), "N": lcm(*n)}

    def a_column(self, row: int) -> int:
        """The array column whose shim feeds A to core row `row`: 0, 2, 4, 6 for four rows and eight columns."""
        return feeding_column(row, self.rows, self.columns)

    def feeds(self) -> list[Feed]:
        """What the shims bring of A, by column."""
        if self.a_shims > 1:
            rows = self.m // self.a_shims
            parts = [(row, part) for row in range(self.rows) for part in range(self.a_shims)]
            return [Feed(self.a_column(row) + part, row, part * rows, rows) for row, part in parts]
        by_column = groupby(range(self.rows), self.a_column)
        fed = [(column, list(rows)) for column, rows in by_column]
        return [Feed(column, rows[0], 0, len(rows) * self.m) for column, rows in fed]
