"""How the bytes of attention of few queries go: each core has a KV head of its own, with all query heads that share it.

One core of each column works. K comes by the first channel of its column's shim, V by the second one; both wait in the
memtile, which sends them as tiles. An item's queries come before its keys, as one more block of them.

Where keys of a KV head are split, columns side by side have a range of its blocks each. A core reaches the memory of
the one to the west: it adds what that one has found to its own sums, from the first range to the last, whose core has
the result. No DMA moves sums, which are more than Y by far.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bdforge.design import (
    Acquire,
    Allocation,
    Bd,
    Buffer,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Load,
    Lock,
    Locks,
    Loop,
    Release,
    Slots,
    Tile,
    placed,
)
from bdforge.design.core_code import Statement
from bdforge.devices import FIRST_CORE_ROW
from bdforge.operators.attention.core_memory import BF16, HAS_MOVED, in_banks, own_buffers, y_in_o
from bdforge.operators.attention.mapping import (
    STREAMED,
    begin,
    of_blocks,
    queries,
    result,
    taken,
    to_lines,
    to_tiles,
    told,
)
from bdforge.operators.attention.tiling import SYMBOLS, AttentionTiling

Y_CHANNELS = 2, 4
"""Of a memtile, from the core and to DRAM; K and V have 0 and 1 both ways."""


@dataclass(frozen=True)
class _Sums:
    """What a core has found of its keys, in buffers `own` of its tile: `done` tells of it, `free` that it is taken."""

    own: Mapping[str, Buffer]
    free: Lock
    done: Lock

    @property
    def buffers(self) -> tuple[Buffer, Buffer]:
        """Sums of values, and the state with those of weights."""
        return self.own["o"], self.own["state"]


def map_few(name: str, device: str, tiling: AttentionTiling, stack_bytes: int, comment: str) -> Design:
    """The design for the array that MLIR calls `device`, without sequences."""
    columns = range(tiling.columns)
    shims, memtiles = [Tile.shim(column) for column in columns], [_memtile(tiling, column) for column in columns]
    cores = tuple(_cores(tiling, stack_bytes, f"{name}.o"))
    tiles = list(zip(shims, memtiles, cores, strict=True))
    flows = tuple(flow for of_column in tiles for flow in _flows(tiling, *of_column))
    names = tuple(
        Allocation(f"{name}_{shim.column}", shim, direction, channel)
        for shim in shims
        for name, direction, channel in (("k", "MM2S", 0), ("v", "MM2S", 1), ("y", "S2MM", 0))
        if name != "y" or tiling.ends(shim.column)
    )
    return placed(Design(name, device, (*shims, *memtiles, *cores), flows, names, comments=(comment,)))


def _flows(tiling: AttentionTiling, shim: Tile, memtile: Tile, core: Tile) -> Iterator[Flow]:
    for channel, what in enumerate(("Q and K", "V")):
        yield Flow(shim.dma(channel), (memtile.dma(channel),), f"{what}: DRAM to memtiles")
        yield Flow(memtile.dma(channel), (core.dma(channel),), f"{what}: to the core")
    if tiling.ends(shim.column):
        yield Flow(core.dma(0), (memtile.dma(Y_CHANNELS[0]),), "Y: of the core")
        yield Flow(memtile.dma(Y_CHANNELS[1]), (shim.dma(0),), "Y: memtiles to DRAM")


def _memtile(tiling: AttentionTiling, column: int) -> Tile:
    locks, block, shape = Locks(f"mem_{column}"), (tiling.block_elements, BF16), (tiling.keys, tiling.head_dim)
    k = Slots.of(locks, "k", *block, "block of K, or Q", count=STREAMED)
    v = Slots.of(locks, "v", *block, "block of V", count=STREAMED)
    stores, channels = [k, v], [
        Channel("S2MM", 0, k.fill(), "Q and K from DRAM"),
        Channel("S2MM", 1, v.fill(), "V from DRAM"),
        Channel("MM2S", 0, k.send(to_tiles(*shape)), "Q and K to the core"),
        Channel("MM2S", 1, v.send(to_tiles(*shape, across=True)), "V to the core"),
    ]  # fmt: skip
    if tiling.ends(column):
        y = Slots.of(locks, "y", tiling.q_elements, BF16, "Y")
        lines = to_lines(tiling.queries, tiling.head_dim)
        stores.append(y)
        channels.append(Channel("S2MM", Y_CHANNELS[0], y.fill(), "Y from the core"))
        channels.append(Channel("MM2S", Y_CHANNELS[1], y.send(lines), "Y to DRAM"))
    return Tile.holding(locks, column, 1, stores, channels)


def _cores(tiling: AttentionTiling, stack_bytes: int, link_with: str) -> Iterator[Tile]:
    """Cores from the west on, each of which knows the sums of the one before."""
    before = None
    for column in range(tiling.columns):
        core, before = _core_tile(tiling, column, stack_bytes, link_with, before)
        yield core


def _core_tile(
    tiling: AttentionTiling, column: int, stack_bytes: int, link_with: str, before: _Sums | None
) -> tuple[Tile, _Sums]:
    """A core, and its sums: Y leaves from where those of values stood."""
    locks = Locks(f"core_{column}_{FIRST_CORE_ROW}")
    k = Slots.of(locks, "k", tiling.block_elements, BF16, "block of K, or Q")
    v = Slots.of(locks, "v", tiling.block_elements, BF16, "block of V")
    own, parameters = own_buffers(tiling, locks.tile), told(locks)
    ends, place = tiling.ends(column), tiling.place_of(column)
    sums = _Sums(own, *locks.pair("o", 1, "Y" if ends else "sums of a range"))
    body = (
        Acquire(sums.free),
        begin(own, parameters, place),
        *taken(k, lambda given: Loop(tiling.pairs, (queries(own, given),), "pair"), "turn"),
        *of_blocks(own, k, v, tiling.capped),
        *(_joined(before, sums) if before and tiling.joins(column) else ()),
        *((Loop(tiling.pairs, (result(own),), "pair"),) if ends else ()),
        Release(sums.done),
    )
    channels = [Channel("S2MM", 0, k.fill(), "Q and K in"), Channel("S2MM", 1, v.fill(), "V in")]
    if ends:
        y = Bd(own["o"], y_in_o(tiling), Acquire(sums.done), Release(sums.free))
        channels.append(Channel("MM2S", 0, (y,), "Y out"))
    core = Core((parameters.problems(Loop("rounds", body, "round")),), stack_bytes, link_with)
    tile = Tile.holding(locks, column, FIRST_CORE_ROW, (k, v), channels, core, *own.values(), parameters.buffer)
    return in_banks(tile), sums


def _joined(before: _Sums, sums: _Sums) -> tuple[Statement, ...]:
    """What the ranges before have found, added where both have one M, which few have to be given."""
    state, both = sums.own["state"], (*before.buffers, *sums.buffers)
    return (
        Acquire(before.done),
        Call(SYMBOLS["meet"], (before.own["state"], state)),
        Load("has_met", state, HAS_MOVED),
        Loop("has_met", (Call(SYMBOLS["align"], both),), "met"),
        Call(SYMBOLS["join"], both),
        Release(before.free),
    )
