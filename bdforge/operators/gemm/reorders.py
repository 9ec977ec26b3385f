"""The reorders of a GEMM between a memtile and a core: lines of slabs to micro-tiles and back.

Each is (sizes, strides) of a pattern, outermost first; sizes are elements, numbers or arrays of candidates, of which
each divides as the formula says. `m k n` is a core's tile, `r s t` the MAC shape. Micro-tiles follow each other row by
row, each row-major inside, which is how `aie::mmul` kernels read their operands.
"""

from typing import Any

from bdforge.devices.types import ElementType
from bdforge.operators.gemm.grid import storage_of

Extents = tuple[tuple[Any, ...], tuple[Any, ...]]


def micro_tiles(rows: Any, columns: Any, r: Any, s: Any, line: Any) -> Extents:
    """r x s micro-tiles of `rows` x `columns` elements whose rows are `line` apart."""
    return (rows // r, columns // s, r, s), (r * line, s, line, 1)


def column_blocks(k: Any, n: Any, s: Any, t: Any) -> Extents:
    """s x t micro-tiles of k rows of n elements, column block by column block.

    For column-major A (memory k x m) n and t stand for m and r: micro-tiles come in the order of `micro_tiles`, each
    transposed, for kernels that transpose registers.
    """
    return (n // t, k // s, s, t), (t, s * n, n, 1)


def slab_slice(type_: ElementType, in_lines: bool, k: Any, k_mt: Any, size: Any, s: Any, micro: Any) -> Extents:
    """One slice of k of a slab of `size` rows of A (columns of B), k_mt deep; `in_lines`: its memory runs along K."""
    if not in_lines:
        return column_blocks(k, size, s, micro)
    block, run = slab_block(type_)
    return micro_tiles(size // block, k * run, micro // block, s * run, k_mt * run)


def slab_block(type_: ElementType) -> tuple[int, int]:
    """Rows in a line of a slab, and memory elements of each of their positions along K: 1 but for block floats."""
    store = storage_of(type_, "row")
    return store.block, store.run


def c_lines(order: str, m: Any, n: Any, r: Any, t: Any) -> Extents:
    """C from m x n in micro-tiles back to rows, or from transposed micro-tiles to columns.

    The inverse of the order in which `micro_tiles(m, n, r, t, n)` makes them.
    """
    if order == "column":
        return (n // t, t, m // r, r), (r * t, r, r * n, 1)
    return (m // r, r, n // t, t), (r * n, t, r * t, 1)
