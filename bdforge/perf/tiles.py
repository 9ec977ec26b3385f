"""A tile for designs whose tile nobody published: the fastest modelled one that fits a core."""

from collections.abc import Callable
from itertools import product

from bdforge.devices.limits import CORE, DEFAULT_STACK_BYTES
from bdforge.perf.case import GemmCase
from bdforge.perf.core import core_memory_bytes
from bdforge.perf.estimate import estimate

CANDIDATES = ((32, 48, 64, 96, 128), (32, 64, 128), (32, 48, 64, 96, 128))
"""m, k and n that are tried: multiples of every native matrix shape."""


def fits(case: GemmCase) -> bool:
    """Whether A and B twice and C fit a core's memory beside its stack."""
    needed = core_memory_bytes(
        case.m, case.k, case.n, *case.element_bytes, c_buffers=case.c_buffers, rho=case.rho
    )  # fmt: skip
    return needed <= CORE.memory_bytes - DEFAULT_STACK_BYTES


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
