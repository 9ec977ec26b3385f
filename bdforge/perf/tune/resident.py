"""Panels of B that stay in memtiles, for many candidates at once: room for tiles, the share of a panel that stays."""

from typing import Any

import numpy as np

from bdforge.design.placement import occupied
from bdforge.devices import TileKind
from bdforge.operators.gemm.memtiles import Share
from bdforge.operators.gemm.resident import POOL_ADDRESS, Room, Size, bd_room, share_of
from bdforge.perf.tune.space import SearchSpace, buffer_bytes


def room_of(space: SearchSpace, c_memtile_buffers: int) -> Room:
    """Parts and chunks of B beside so many tiles of C for each core."""
    return bd_room(space.rows, c_memtile_buffers)


def pool_tiles(space: SearchSpace, sizes: Any) -> np.ndarray:
    """Tiles of B for which A and C leave room; `sizes` has m, k, n, k_mt, a_shims and c_memtile_buffers."""
    memory = space.device.generation.limits(TileKind.MEMTILE).memory_bytes
    a = Share.slab(sizes.k_mt, sizes.m // sizes.a_shims, sizes.k)
    c = Share(sizes.m * sizes.n, sizes.c_memtile_buffers)
    held = occupied(0, (
        (a.buffers, buffer_bytes(a.elements, space.kernel.a)),
        (space.rows * c.buffers, buffer_bytes(c.elements, space.c_type)),
    ))  # fmt: skip
    tile = buffer_bytes(sizes.k * sizes.n, space.kernel.b)
    return np.maximum((memory - POOL_ADDRESS - held) // np.maximum(tile, 1), 0)


def kept_shares(space: SearchSpace, sizes: Any, depth: int) -> np.ndarray:
    """Which share of panels `depth` deep stays."""
    slabs = -(-depth // sizes.k_mt) * sizes.k_mt // sizes.k
    pairs = np.stack([pool_tiles(space, sizes), slabs], axis=-1)
    known, place = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    room = room_of(space, 1)
    shares = np.array([share_of(Size(int(tiles), room), int(tiles_deep), False) for tiles, tiles_deep in known])
    return shares[place.reshape(-1)].reshape(pairs.shape[:-1])
