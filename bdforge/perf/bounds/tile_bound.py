"""A tile for designs whose tile nobody published: the fastest modelled one that fits a core."""

from collections.abc import Callable
from itertools import product
from math import ceil

from bdforge.design.buffer_addresses import occupied
from bdforge.devices.limits import CORE
from bdforge.operators.gemm.core_tiles import core_parts
from bdforge.operators.specs import STACK_BYTES
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate

CANDIDATES = ((32, 48, 64, 96, 128), (32, 64, 128), (32, 48, 64, 96, 128))
"""m, k and n that are tried: multiples of every native matrix shape."""


def fits(case: GemmCase) -> bool:
    """Whether a plan can place A and B twice and C in a core's memory, with the usual stack."""
    a, b, c = case.element_bytes
    sizes = ceil(case.m * case.k * a / case.rho), ceil(case.k * case.n * b), ceil(case.m * case.n * c)
    return occupied(STACK_BYTES, core_parts(*sizes, c_buffers=case.c_buffers)) <= CORE.memory_bytes


def fastest_tile(
    known: tuple[int | None, int | None, int | None], make: Callable[[int, int, int], GemmCase]
) -> tuple[int, int, int]:
    """The m, k, n with the highest modelled TOPS of `make(m, k, n)` that fits; sizes that are known stay.

    When nothing fits, the smallest candidates fill the gaps.
    """
    sizes = [(size,) if size else candidates for size, candidates in zip(known, CANDIDATES, strict=True)]
    tiles = [tile for tile in product(*sizes) if fits(make(*tile))]
    if not tiles:
        return sizes[0][0], sizes[1][0], sizes[2][0]
    m, k, n = max(tiles, key=lambda tile: estimate(make(*tile)).tops)
    return m, k, n
