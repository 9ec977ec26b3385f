"""Memory around a kernel's arguments, which it must leave alone: compared before and after, in poison mode.

Compiled kernels get addresses, so what they write beyond a buffer lands in its neighbour, or behind the tile's memory,
which has RED_ZONE_BYTES on either side for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bdforge.array.emulator.errors import KernelError
from bdforge.array.emulator.poison import PoisonedView
from bdforge.array.emulator.tile import RED_ZONE_BYTES, EmulatedTile


@dataclass(frozen=True, slots=True)
class _Argument:
    """What an argument covers of a tile's memory, in bytes from its first on."""

    name: str
    start: int
    end: int


@contextmanager
def kept(tiles: Mapping[tuple[int, int], EmulatedTile], views: Sequence[PoisonedView], where: str) -> Iterator[None]:
    """Around a step of a kernel that got `views`: KernelError for bytes of tiles that it wrote beside them."""
    zones = _zones(tiles, views)
    before = [tile.guarded.copy() for tile, _ in zones]
    yield
    for (tile, arguments), old in zip(zones, before, strict=True):
        for argument in arguments:
            part = slice(RED_ZONE_BYTES + argument.start, RED_ZONE_BYTES + argument.end)
            old[part] = tile.guarded[part]
        if not np.array_equal(old, tile.guarded):
            raise KernelError(f"{where}: {_told(tile, arguments, np.flatnonzero(old != tile.guarded))}")


def _zones(
    tiles: Mapping[tuple[int, int], EmulatedTile], views: Sequence[PoisonedView]
) -> list[tuple[EmulatedTile, list[_Argument]]]:
    """The tiles in whose memory arguments lie, with these."""
    bounds = [(view.name, *np.lib.array_utils.byte_bounds(view)) for view in views if view.size]
    found: list[tuple[EmulatedTile, list[_Argument]]] = []
    for tile in tiles.values() if bounds else ():
        base, size = tile.bytes.ctypes.data, tile.bytes.nbytes
        inside = [_Argument(n, low - base, high - base) for n, low, high in bounds if base <= low < high <= base + size]
        if inside:
            found.append((tile, inside))
    return found


def _told(tile: EmulatedTile, arguments: list[_Argument], written: np.ndarray) -> str:
    """The first byte, and where it lies as seen from the argument that is nearest."""
    first = int(written[0]) - RED_ZONE_BYTES
    near = min(arguments, key=lambda a: max(a.start - first, first - a.end + 1))
    side = f"{near.start - first} bytes before" if first < near.start else f"{first - near.end} bytes behind the end of"
    return (
        f"it wrote {len(written)} bytes beside its arguments, the first at byte {first} of {tile.name}, {side} buffer "
        f"{near.name}, which has {near.end - near.start} bytes"
    )
