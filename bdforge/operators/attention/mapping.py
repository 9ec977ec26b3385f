"""How the bytes of attention go: a core takes queries of one head, a row of cores the keys and values of one KV head.

An *item* is a block of queries of one head. A row of cores works on a *pass*, an item for each column, while its blocks
of K and V go by once for all of them; rows are independent of each other. K comes by the shim of an even column and
waits in its memtile, V by the next one's; the first of both memtiles sends them in turn along the row. Q and Y go as
operands of element-wise operators do: the column's memtile deals tiles to its cores, and joins theirs of Y.
"""

from collections.abc import Callable, Iterator

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Bd,
    Buffer,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Load,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotating,
    Rotation,
    Slots,
    Tile,
    in_turn,
    placed,
)
from bdforge.design.core_code import Statement
from bdforge.devices import FIRST_CORE_ROW
from bdforge.operators.attention.core_memory import (
    BF16,
    BLOCKS,
    HAS_MASK,
    HAS_MOVED,
    halves_in_o,
    in_banks,
    own_buffers,
)
from bdforge.operators.attention.tiling import SYMBOLS, AttentionTiling

ROUNDS, QUERIES, KEYS = range(3)
"""Run-time parameters: rounds of items, and sizes of the problem."""
DEAL_CHANNELS, STREAM_CHANNEL, JOIN_CHANNEL = (0, 2, 3, 5), 1, 4
"""MM2S channels of a memtile: Q to each core row, K and V along a row, Y. S2MM: Q = 0, K or V = 1, from 2 on Y.
Channels of even numbers share 24 BDs: eight each of Q and Y, and two for each store of the others."""
STREAMED = 4  # blocks of K or V in a memtile


def map_attention(name: str, device: str, tiling: AttentionTiling, stack_bytes: int, comment: str) -> Design:
    """The design for the array that MLIR calls `device`, without sequences."""
    columns, rows = range(tiling.columns), range(tiling.rows)
    shims, memtiles = [Tile.shim(c) for c in columns], _memtiles(tiling)
    cores = [[_core_tile(tiling, c, row, stack_bytes, f"{name}.o") for row in rows] for c in columns]
    tiles = (*shims, *memtiles, *(tile for column in cores for tile in column))
    flows, names = tuple(_flows(tiling, shims, memtiles, cores)), tuple(_names(tiling, shims))
    return placed(Design(name, device, tiles, flows, names, comments=(comment,)))


def _streams(tiling: AttentionTiling) -> dict[int, str]:
    """What shims bring beside Q, by column."""
    starts = [tiling.stream_column(row) for row in range(tiling.rows)]
    return {start + i: name for start in starts for i, name in enumerate("kv")}


def _names(tiling: AttentionTiling, shims: list[Tile]) -> Iterator[Allocation]:
    for shim in shims:
        yield Allocation(f"q_{shim.column}", shim, "MM2S", 0)
        if (name := _streams(tiling).get(shim.column)) is not None:
            yield Allocation(f"{name}_{shim.column}", shim, "MM2S", 1)
        yield Allocation(f"y_{shim.column}", shim, "S2MM", 0)


def _flows(tiling: AttentionTiling, shims: list[Tile], memtiles: list[Tile], cores: list[list[Tile]]) -> Iterator[Flow]:
    for shim, memtile in zip(shims, memtiles, strict=True):
        yield Flow(shim.dma(0), (memtile.dma(0),), "Q: DRAM to memtiles")
    for column, name in _streams(tiling).items():
        yield Flow(shims[column].dma(1), (memtiles[column].dma(1),), f"{name.upper()}: DRAM to memtiles")
    for row in range(tiling.rows):
        source = memtiles[tiling.stream_column(row)].dma(STREAM_CHANNEL)
        yield Flow(source, tuple(column[row].dma(1) for column in cores), "K and V: along each row of cores")
    for memtile, column in zip(memtiles, cores, strict=True):
        for channel, core in zip(DEAL_CHANNELS, column, strict=False):
            yield Flow(memtile.dma(channel), (core.dma(0),), "Q: an item to each core")
    for memtile, column in zip(memtiles, cores, strict=True):
        for row, core in enumerate(column):
            yield Flow(core.dma(0), (memtile.dma(2 + row),), "Y: items of a column join in its memtile")
    for shim, memtile in zip(shims, memtiles, strict=True):
        yield Flow(memtile.dma(JOIN_CHANNEL), (shim.dma(0),), "Y: memtiles to DRAM")


def to_tiles(rows: int, columns: int, across: bool = False) -> Pattern:
    """Lines as tiles of 8 x 8: those of 8 lines one after the other, or (`across`) those of 8 columns."""
    tiles = ((rows // 8, 8 * columns), (columns // 8, 8))
    outer, inner = reversed(tiles) if across else tiles
    return Pattern((outer[0], inner[0], 8, 8), (outer[1], inner[1], columns, 1))


def to_lines(rows: int, columns: int) -> Pattern:
    """Tiles of 16 x 8, those of 16 lines one after the other, as lines."""
    return Pattern((rows // 16, 16, columns // 8, 8), (16 * columns, 8, 128, 1))


def _memtiles(tiling: AttentionTiling) -> list[Tile]:
    """The memtile of every column. Each core row has stores of its own, so that none takes another one's turn."""
    locks, rows = [Locks(f"mem_{column}") for column in range(tiling.columns)], range(tiling.rows)
    item, block = (tiling.q_elements, BF16), (tiling.block_elements, BF16)
    held = {
        column: Slots.of(locks[column], name, *block, f"block of {name.upper()}", count=STREAMED)
        for column, name in _streams(tiling).items()
    }
    tiles = []
    for column, own in enumerate(locks):
        q, y = ([Slots.of(own, f"{x}{row}", *item, f"{x.upper()} of core row {row}") for row in rows] for x in "qy")
        channels = [Channel("S2MM", 0, in_turn(x.fill() for x in q), "Q from DRAM")]
        kept = [held[column]] if column in held else []
        channels += [Channel("S2MM", 1, x.fill(), "K or V from DRAM") for x in kept]
        channels += [Channel("S2MM", 2 + row, y[row].fill(), f"Y from core row {row}") for row in rows]
        for row in rows:
            sent = q[row].send(to_tiles(tiling.queries, tiling.head_dim))
            channels.append(Channel("MM2S", DEAL_CHANNELS[row], sent, f"Q to core row {row}"))
            if tiling.stream_column(row) == column:
                sent = _stream(tiling, held[column], held[column + 1])
                channels.append(Channel("MM2S", STREAM_CHANNEL, sent, f"K and V along core row {row}"))
        lines = to_lines(tiling.queries, tiling.head_dim)
        channels.append(Channel("MM2S", JOIN_CHANNEL, in_turn(x.send(lines) for x in y), "Y of the column"))
        tiles.append(Tile.holding(own, column, 1, (*q, *y, *kept), channels))
    return tiles


def _stream(tiling: AttentionTiling, k: Slots, v: Slots) -> tuple[Bd, ...]:
    """A block of K from here, then one of V from the memtile to the east, whose tiles follow along the keys."""
    shape = (tiling.keys, tiling.head_dim)
    return in_turn((k.send(to_tiles(*shape)), v.send(to_tiles(*shape, across=True))))


def _core_tile(tiling: AttentionTiling, column: int, row: int, stack_bytes: int, link_with: str) -> Tile:
    """A core: by pairs of rows of tiles the next Q comes to where sums will stand, while Y leaves from beside it."""
    tile = FIRST_CORE_ROW + row
    locks = Locks(f"core_{column}_{tile}")
    k = Slots.of(locks, "k", tiling.block_elements, BF16, "block of K")
    v = Slots.of(locks, "v", tiling.block_elements, BF16, "block of V", count=1)
    own, parameters = own_buffers(tiling, locks.tile), told(locks)
    o = own["o"]
    (q_free, q_full), (y_free, y_full) = (locks.pair(name, tiling.pairs, name.upper()) for name in "qy")
    body = (
        begin(own, parameters, (row, column)),
        Loop(tiling.pairs, (Acquire(q_full), Acquire(y_free), queries(own, o)), "pair"),
        *of_blocks(own, k, v, tiling.capped),
        Loop(tiling.pairs, (result(own), Release(y_full), Release(q_free)), "pair"),
    )
    q_in = tuple(Bd(o, half, Acquire(q_free), Release(q_full)) for half in halves_in_o(tiling, 1))
    y_out = tuple(Bd(o, half, Acquire(y_full), Release(y_free)) for half in halves_in_o(tiling, 0))
    channels = (
        Channel("S2MM", 0, q_in, "Q in"),
        Channel("S2MM", 1, in_turn((k.fill(), v.fill() * 2)), "K and V in"),
        Channel("MM2S", 0, y_out, "Y out"),
    )
    core = Core((parameters.problems(Loop("rounds", body, "round")),), stack_bytes, link_with)
    return in_banks(Tile.holding(locks, column, tile, (k, v), channels, core, *own.values(), parameters.buffer))


def told(locks: Locks) -> Parameters:
    """What a core is told."""
    return Parameters.of(locks, "rounds, queries, keys", ("rounds", "queries", "keys"))


def begin(own: dict[str, Buffer], parameters: Parameters, place: tuple[int, int]) -> Call:
    """Finds out which item is next; `place` is the core's stream, and where on it the core is."""
    return Call(SYMBOLS["begin"], (own["state"], parameters.buffer, "round", *place))


def queries(own: dict[str, Buffer], given: Buffer | Rotating) -> Call:
    """Keeps a pair of its rows of tiles."""
    return Call(SYMBOLS["queries"], (given, own["q"], own["o"], "pair"))


def of_blocks(own: dict[str, Buffer], k: Slots, v: Slots, capped: bool) -> tuple[Statement, ...]:
    """All blocks of an item's keys: sums of weights, and of values."""
    return Load("blocks", own["state"], BLOCKS), Loop("blocks", _block(own, k, v, capped), "block")


def result(own: dict[str, Buffer]) -> Call:
    """A pair's sums become Y."""
    return Call(SYMBOLS["end"], (own["o"], own["state"], "pair"))


def _block(own: dict[str, Buffer], k: Slots, v: Slots, capped: bool) -> tuple[Statement, ...]:
    """A block of keys; what only some need is done as often as the state says, once or not at all."""
    p, state, q, s, o = own.values()
    weights = Call(SYMBOLS["weights"], (s, p, state))
    return (
        *taken(k, lambda keys: Call(SYMBOLS["scores"], (q, keys, s, state)), "turn"),
        *((Call(SYMBOLS["cap"], (s,)),) if capped else ()),
        Load("has_mask", state, HAS_MASK),
        Loop("has_mask", (Call(SYMBOLS["mask"], (s, state)),), "mask"),
        weights,
        Load("has_moved", state, HAS_MOVED),
        Loop("has_moved", (Call(SYMBOLS["rescale"], (s, o, state)), weights), "move"),
        *taken(v, lambda values: Call(SYMBOLS["values"], (p, values, o, state)), "value_turn"),
    )


def taken(slots: Slots, call: Callable[[Buffer | Rotating], Statement], name: str) -> tuple[Statement, ...]:
    """A call with the next one of buffers in turn, which `name` counts."""
    if len(slots.buffers) == 1:
        return Acquire(slots.full), call(slots.buffers[0]), Release(slots.free)
    turn = Rotation(name, len(slots.buffers))
    return Acquire(slots.full), call(turn.of(slots.buffers)), Release(slots.free), Advance(turn)
