"""Numbers that feed an epilogue, in the order in which cores take them."""

from dataclasses import dataclass

import numpy as np

from bdforge.emulator import ArgumentError
from bdforge.operators.gemm import GemmSequence

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """What C is multiplied with and what is added: one float32 for each row (M), each column (N), each column (N).

    None stands for ones, or for no bias.
    """

    rows: np.ndarray | None = None
    columns: np.ndarray | None = None
    bias: np.ndarray | None = None


NO_SCALES = Scales()


def fed_operands(planned: GemmSequence, scales: Scales) -> list[np.ndarray]:
    """The buffers R (for row panels) and S (for n-tiles), or none where the design's epilogue takes no numbers.

    ArgumentError for numbers that the design does not take, and for wrong lengths.
    """
    _check(planned, scales)
    if not planned.plan.spec.epilogue.fed:
        return []
    problem = planned.problem
    rows = _vector("row scales", scales.rows, problem.M, 1)
    columns = _vector("column scales", scales.columns, problem.N, 1)
    bias = _vector("bias", scales.bias, problem.N, 0)
    return [buffer.view(np.uint8) for buffer in (_by_panel(planned, rows), _by_tile(planned, columns, bias))]


def _check(planned: GemmSequence, scales: Scales) -> None:
    epilogue = planned.plan.spec.epilogue
    if (scales.rows is not None or scales.columns is not None) and not epilogue.scale:
        raise ArgumentError(f"design {planned.plan.spec.name} takes no scales; build it with epilogue.scale = true")
    if scales.bias is not None and not epilogue.bias:
        raise ArgumentError(f"design {planned.plan.spec.name} takes no bias; build it with epilogue.bias = true")


def _vector(name: str, values: np.ndarray | None, size: int, default: float) -> np.ndarray:
    if values is None:
        return np.full(size, default, np.float32)
    if values.dtype != np.float32 or values.shape != (size,):
        raise ArgumentError(f"{name} must be float32 of shape ({size},), got {values.dtype} of shape {values.shape}")
    return values


def _by_panel(planned: GemmSequence, rows: np.ndarray) -> np.ndarray:
    """The scales of every row panel's tiles, core row by core row; rows that only pad have none."""
    grid, tile = planned.grid, planned.plan.spec.tile
    unused = np.zeros(tile.m - tile.rows, np.float32)
    padded = np.zeros(max(planned.sizes.M, len(rows)), np.float32)
    padded[: len(rows)] = rows
    starts = [start for panel in range(grid.panels) for start in grid.row_starts(panel)]
    return np.concatenate([part for start in starts for part in (padded[start : start + tile.rows], unused)])


def _by_tile(planned: GemmSequence, columns: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Scales and biases of every n-tile's columns, and what fills the tile."""
    grid, n = planned.grid, planned.plan.spec.tile.n
    padded = np.zeros((2, max(planned.sizes.N, len(columns))), np.float32)
    padded[:, : len(columns)] = columns, bias
    tiles = np.zeros((grid.n_tiles, planned.plan.tiling.fed_bytes[1] // _FLOAT_BYTES), np.float32)
    for n_tile in range(grid.n_tiles):
        start = grid.tile_column(n_tile)
        tiles[n_tile, : 2 * n] = padded[:, start : start + n].ravel()
    return tiles
