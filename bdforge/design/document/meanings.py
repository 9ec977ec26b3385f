"""What a BD's dimensions mean, in a few words, for readers of documents."""

from bd_patterns import Pattern


def meaning(pattern: Pattern) -> str:
    """Rows, columns, tiles and slabs that a pattern walks; "" for one that is none of these."""
    dims = [(size, stride) for size, stride in pattern.dims() if size > 1]
    if not dims or dims[-1][1] != 1:
        return _columns(dims)
    sizes, strides = zip(*dims, strict=True)
    match len(dims):
        case 1:
            return f"{sizes[0]} in a row"
        case 2:
            return f"{sizes[0]} rows of {sizes[1]}, {strides[0]} apart"
        case 3:
            return _slabs(sizes, strides)
        case 4:
            return _tiles(sizes, strides)
    return ""


def _columns(dims: list[tuple[int, int]]) -> str:
    if len(dims) == 2 and dims[0][1] == 1:
        return f"{dims[0][0]} columns of {dims[1][0]}, from rows {dims[1][1]} apart"
    return ""


def _slabs(sizes: tuple[int, ...], strides: tuple[int, ...]) -> str:
    """Blocks of rows: side by side, or one behind the other."""
    count, rows, run = sizes
    if strides[1] == run:
        return f"{count} times {rows * run} in a row, {strides[0]} apart"
    if strides[0] == run:
        return f"{count} slabs of {rows} x {run}, side by side in rows {strides[1]} apart"
    return f"{count} blocks of {rows} x {run}, {strides[0]} apart; rows are {strides[1]} apart"


def _tiles(sizes: tuple[int, ...], strides: tuple[int, ...]) -> str:
    """Tiles of a matrix that lies in rows; of a whole one that is as well rows of one that lies in tiles."""
    (first, second, line, _), (down, across, rows, run) = strides, sizes
    if (second, first) == (rows * line, run):
        return f"{across * rows} x {down * run} as tiles of {rows} x {run}, column by column; rows are {line} apart"
    if (first, second) != (rows * line, run):
        return ""
    matrix = f"{down * rows} x {across * run}"
    if line == across * run:
        return f"{matrix} as tiles of {rows} x {run}, or tiles of {across} x {run} as {down * across} x {rows * run}"
    return f"{matrix} as tiles of {rows} x {run}, row by row; rows are {line} apart"
