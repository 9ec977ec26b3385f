"""How the bytes of attention of few queries go: each core has a KV head of its own, with all query heads that share it.

One core of each column works. K comes by the first channel of its column's shim, V by the second one; both wait in the
memtile, which sends them as tiles. An item's queries come before its keys, as one more block of them.
"""

from collections.abc import Iterator

from bdforge.design import (
    Acquire,
    Allocation,
    Bd,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Release,
    Slots,
    Tile,
    placed,
)
from bdforge.devices import FIRST_CORE_ROW
from bdforge.operators.attention.mapping import (
    BF16,
    STREAMED,
    AttentionTiling,
    halves,
    of_blocks,
    of_item,
    own_buffers,
    taken,
    to_lines,
    to_tiles,
    told,
)

Y_CHANNELS = 2, 4
"""Of a memtile, from the core and to DRAM; K and V have 0 and 1 both ways."""


def map_few(name: str, device: str, tiling: AttentionTiling, stack_bytes: int, comment: str) -> Design:
    """The design for the array that MLIR calls `device`, without sequences."""
    columns = range(tiling.columns)
    tiles = [
        (Tile.shim(column), _memtile(tiling, column), _core_tile(tiling, column, stack_bytes, f"{name}.o"))
        for column in columns
    ]
    flows = tuple(flow for of_column in tiles for flow in _flows(*of_column))
    names = tuple(
        Allocation(f"{name}_{shim.column}", shim, direction, channel)
        for shim, _, _ in tiles
        for name, direction, channel in (("k", "MM2S", 0), ("v", "MM2S", 1), ("y", "S2MM", 0))
    )
    rows = tuple(tile for kind in zip(*tiles, strict=True) for tile in kind)
    return placed(Design(name, device, rows, flows, names, comments=(comment,)))


def _flows(shim: Tile, memtile: Tile, core: Tile) -> Iterator[Flow]:
    for channel, what in enumerate(("Q and K", "V")):
        yield Flow(shim.dma(channel), (memtile.dma(channel),), f"{what}: DRAM to memtiles")
        yield Flow(memtile.dma(channel), (core.dma(channel),), f"{what}: to the core")
    yield Flow(core.dma(0), (memtile.dma(Y_CHANNELS[0]),), "Y: of the core")
    yield Flow(memtile.dma(Y_CHANNELS[1]), (shim.dma(0),), "Y: memtiles to DRAM")


def _memtile(tiling: AttentionTiling, column: int) -> Tile:
    locks, block, shape = Locks(f"mem_{column}"), (tiling.block_elements, BF16), (tiling.keys, tiling.head_dim)
    k = Slots.of(locks, "k", *block, "block of K, or Q", count=STREAMED)
    v = Slots.of(locks, "v", *block, "block of V", count=STREAMED)
    y = Slots.of(locks, "y", tiling.q_elements, BF16, "Y")
    channels = (
        Channel("S2MM", 0, k.fill(), "Q and K from DRAM"),
        Channel("S2MM", 1, v.fill(), "V from DRAM"),
        Channel("S2MM", Y_CHANNELS[0], y.fill(), "Y from the core"),
        Channel("MM2S", 0, k.send(to_tiles(*shape)), "Q and K to the core"),
        Channel("MM2S", 1, v.send(to_tiles(*shape, across=True)), "V to the core"),
        Channel("MM2S", Y_CHANNELS[1], y.send(to_lines(tiling.queries, tiling.head_dim)), "Y to DRAM"),
    )
    return Tile.holding(locks, column, 1, (k, v, y), channels)


def _core_tile(tiling: AttentionTiling, column: int, stack_bytes: int, link_with: str) -> Tile:
    """A core: Y leaves from where sums of values stood."""
    locks = Locks(f"core_{column}_{FIRST_CORE_ROW}")
    k = Slots.of(locks, "k", tiling.block_elements, BF16, "block of K, or Q")
    v = Slots.of(locks, "v", tiling.block_elements, BF16, "block of V")
    own, parameters = own_buffers(tiling, locks.tile), told(locks)
    free, done = locks.pair("o", 1, "Y")
    body = (
        Acquire(free),
        *taken(k, lambda queries: of_item(own, queries, parameters, (column, 0)), "turn"),
        *of_blocks(own, k, v, tiling.capped),
        Release(done),
    )
    channels = (
        Channel("S2MM", 0, k.fill(), "Q and K in"),
        Channel("S2MM", 1, v.fill(), "V in"),
        Channel("MM2S", 0, (Bd(own["o"], halves(tiling), Acquire(done), Release(free)),), "Y out"),
    )
    core = Core((parameters.problems(Loop("rounds", body, "round")),), stack_bytes, link_with)
    return Tile.holding(locks, column, FIRST_CORE_ROW, (k, v), channels, core, *own.values(), parameters.buffer)
