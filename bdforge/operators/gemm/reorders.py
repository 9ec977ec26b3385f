"""The reorders of a GEMM between a memtile and a core: row-major slabs to micro-tiles and back.

Sizes are elements; `m k n` a core's tile, `r s t` the MAC shape. Micro-tiles follow each other row by row, each
row-major inside, which is how `aie::mmul` kernels read their operands. Every function raises PatternError
for sizes that do not divide.
"""

from bd_patterns.pattern import Pattern, PatternError


def _require_multiples(*pairs: tuple[str, int, str, int]) -> None:
    faults = [
        f"{name} = {size} is no multiple of {part_name} = {part}"
        for name, size, part_name, part in pairs
        if part < 1 or size < 1 or size % part
    ]
    if faults:
        raise PatternError("; ".join(faults))


def _block(rows: int, columns: int, row_stride: int | None, column: int) -> Pattern:
    """`rows` x `columns` elements at `column` of a row-major array whose rows are `row_stride` apart."""
    stride = columns if row_stride is None else row_stride
    if not 0 <= column <= stride - columns:
        raise PatternError(
            f"columns {column} to {column + columns - 1} lie outside a row of {stride} elements; check the row stride"
        )
    return Pattern((rows, columns), (stride, 1), column)


def a_micro_tiles(m: int, k: int, r: int, s: int, *, k_mt: int | None = None, column: int = 0) -> Pattern:
    """A from L2 to L1: `(m/r, r*k)(k/s, s)(r, k)(s, 1)`, r x s micro-tiles of an m x k tile.

    With `k_mt` the tile is k columns of an m x k_mt slab, starting at `column`.
    """
    _require_multiples(("m", m, "r", r), ("k", k, "s", s))
    return _block(m, k, k_mt, column).tiled(r, s)


def b_micro_tiles(k: int, n: int, s: int, t: int, *, row_stride: int | None = None, column: int = 0) -> Pattern:
    """Row-major B from L2 to L1: `(k/s, s*n)(n/t, t)(s, n)(t, 1)`, s x t micro-tiles of a k x n tile.

    With `row_stride` the tile is n columns of wider rows, starting at `column`.
    """
    _require_multiples(("k", k, "s", s), ("n", n, "t", t))
    return _block(k, n, row_stride, column).tiled(s, t)


def b_column_blocks(k: int, n: int, s: int, t: int, *, row: int = 0) -> Pattern:
    """Row-major B from L2 to L1, column block by column block: `(n/t, t)(k/s, s*n)(s, n)(t, 1)`.

    The tile is k rows of a slab of n columns, from `row` on. For column-major A (memory k x m) n and t stand for m
    and r: micro-tiles come in the order of `a_micro_tiles`, each transposed, for kernels that transpose registers.
    """
    _require_multiples(("k", k, "s", s), ("n", n, "t", t))
    return Pattern((n // t, k // s, s, t), (t, s * n, n, 1), row * n)


def b_column_major_micro_tiles(k: int, n: int, s: int, t: int) -> Pattern:
    """Column-major B (memory n x k, row-major) as transposed t x s micro-tiles: `(k/s, s)(n/t, t*k)(t, k)(s, 1)`.

    The micro-tiles come in the order of `b_micro_tiles`, each transposed, so that runs of s elements stay together;
    the kernel transposes t x s registers after loading them. Element by element only 32-bit ones could travel: a DMA
    moves words, and those of narrower types hold elements of different rows of the micro-tile.
    """
    _require_multiples(("k", k, "s", s), ("n", n, "t", t))
    return Pattern((k // s, n // t, t, s), (s, t * k, k, 1))


def c_rows(m: int, n: int, r: int, t: int) -> Pattern:
    """C from micro-tiles back to rows: `(m/r, r*n)(r, t)(n/t, r*t)(t, 1)`, read from m x n stored as r x t micro-tiles.

    The inverse of the order in which `a_micro_tiles(m, n, r, t)` made them.
    """
    _require_multiples(("m", m, "r", r), ("n", n, "t", t))
    return Pattern((m // r, r, n // t, t), (r * n, t, r * t, 1))


def c_columns(m: int, n: int, r: int, t: int) -> Pattern:
    """C from transposed micro-tiles to columns: `(n/t, r*t)(t, r)(m/r, r*n)(r, 1)`, read from t x r micro-tiles."""
    _require_multiples(("m", m, "r", r), ("n", n, "t", t))
    return Pattern((n // t, t, m // r, r), (r * t, r, r * n, 1))
