"""Which blocks cover a tile of C: shapes by the cycles that they take, with smaller ones at the edges."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import inf

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.block_dataflow import steppers
from bdforge.core.codegen.pipeline.product import LOAD_UNITS, BlockRegion, MatrixProduct
from bdforge.core.codegen.pipeline.steady_block import Scheduled, scheduled

_AROUND = 70  # cycles of a region besides its blocks: set-up, fill and drain
_SETUP = 25  # without what its last block shows of fill and drain
_WAIT = 0.06  # cycles that a load of A or B waits for a bank that a DMA uses, about (docs/assembled.md)
_LANES = 4  # of a block; for more there are too few registers that count the steps of pointers


def covers(product: MatrixProduct) -> list[list[BlockRegion]]:
    """Regions that together are all of C, in several ways, the one of the least cycles by slots first."""
    rows, columns = product.m // product.vectors.rows, product.n // product.vectors.columns
    shapes = [shape for shape in _shapes(product) if product.shape in (None, shape)]
    if not shapes:
        found = ", ".join(f"{r}x{c}" for r, c in _shapes(product))
        raise CodegenError(f"no blocks have {'x'.join(map(str, product.shape or ()))} micro-tiles: there are {found}")
    return sorted((_covered(product, shape, rows, columns) for shape in shapes), key=_cost)


def best(product: MatrixProduct) -> list[Scheduled]:
    """Schedules of the way to cover C that takes the least cycles; CodegenError where none is found."""
    found: list[Scheduled] = []
    least = inf
    for regions in covers(product):
        if _cost(regions) >= least:
            break
        with suppress(CodegenError):
            blocks = [scheduled(_directed(region)) for region in regions]
            cycles = sum(_SETUP + (block.region.blocks - 1) * block.cost + max(block.issues) for block in blocks)
            cycles += _WAIT * _loads(regions)  # so 2 x 1 blocks lose: 5 cycles of issue less, 220 of waits more
            found, least = (blocks, cycles) if cycles < least else (found, least)
    if not found:
        raise CodegenError(f"no schedule was found for any block of {product}")
    return found


def expected_by_shape(product: MatrixProduct) -> dict[tuple[int, int], float]:
    """About what a call takes with each shape of blocks, the best last, by slots alone."""
    return {(ways[0].rows, ways[0].columns): _cycles(ways) for ways in reversed(covers(product))}


def expected_cycles(product: MatrixProduct) -> float:
    """About what a call takes, within a few percent, without a schedule."""
    return _cycles(covers(product)[0])


def _shapes(product: MatrixProduct) -> list[tuple[int, int]]:
    """Shapes whose micro-tiles leave an accumulator for what comes from memory."""
    most = product.vectors.accumulators // 2 if product.joint else min(_LANES, product.vectors.accumulators - 1)
    sides = range(1, _LANES + 1)
    columns = (1, 2) if product.weights == "i2" else sides
    shapes = [(rows, across) for rows in sides for across in columns if rows * across <= most]
    return shapes[::-1] if product.joint else shapes  # taller ones leave B's loads, whose bank C may share, more room


def _covered(product: MatrixProduct, shape: tuple[int, int], rows: int, columns: int) -> list[BlockRegion]:
    found = []
    for top, down, height in split_side(rows, shape[0]):
        width = shape[1] if height == shape[0] else _best_width(product, height, columns)
        for left, across, size in split_side(columns, width):
            found.append(BlockRegion(product, height, size, (top, down), (left, across)))
    return found


def _directed(region: BlockRegion) -> BlockRegion:
    """Going downwards, if there are registers for such steps; fields of a byte are side by side."""
    downwards = replace(region, downwards=True)
    if region.product.weights == "i2":
        return region
    try:
        steppers(downwards)
    except CodegenError:
        return region
    return downwards


def _best_width(product: MatrixProduct, height: int, columns: int) -> int:
    widths = [across for rows, across in _shapes(product) if rows == height]
    return min(widths, key=lambda w: (BlockRegion(product, height, w).step_cycles / (height * w), w > columns))


def split_side(tiles: int, size: int) -> Iterator[tuple[int, int, int]]:
    """(first, blocks, micro-tiles of a block) along one side."""
    whole, rest = divmod(tiles, size)
    if whole:
        yield 0, whole, size
    if rest:
        yield whole * size, 1, rest


def _cost(regions: list[BlockRegion]) -> float:
    """Cycles of all regions, and those that their loads wait: memory has others to serve too."""
    return _cycles(regions) + _WAIT * _loads(regions)


def _cycles(regions: list[BlockRegion]) -> float:
    return sum(_AROUND + r.blocks * r.unrolled * _block_cycles(r) for r in regions)


def _loads(regions: list[BlockRegion]) -> int:
    """Of A and B."""
    return sum(r.loads * r.blocks * r.unrolled * r.product.steps for r in regions)


def _block_cycles(region: BlockRegion) -> float:
    """Of a block: its steps, unless C's accesses take longer; masks of fields take slots that steps may fill."""
    product, rows, columns = region.product, region.rows, region.columns
    step, c = region.step_cycles, rows * columns * product.c_accesses
    masks = 2 * columns if product.weights == "i2" and columns * 2 >= step else 0
    if product.blocks:  # stores that convert find no cycle behind a conversion, nor do others find all of them
        return step * product.steps + (c if product.c_bytes == 2 else 2)
    loads = region.loads * product.steps
    return max(step * product.steps + masks, c, (loads + c) / LOAD_UNITS)
