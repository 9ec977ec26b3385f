"""How the bytes of operators on streams go: the design of the array.

Columns work alone. A memtile deals tiles of all inputs to its cores, in turn on one channel of each, and joins theirs
of the outputs, which leave a core in turn, too. Of several streams on a shim's channel it gets a panel of each in turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Bd,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    Slots,
    Tile,
    in_turn,
    placed,
)
from bdforge.devices import FIRST_CORE_ROW, mlir_device_named
from bdforge.devices.limits import BYTE_BITS, MEMTILE
from bdforge.operators.tile_streams import DEAL, HOLD, StreamTiling, TileStream

_FIRST_JOINED = 2
"""S2MM channel of a memtile for its first core's outputs."""


@dataclass(frozen=True, slots=True)
class _Memtile:
    """How a memtile does it: slots of a stream for each core, its MM2S channels to the cores, of all outputs, of what
    is held."""

    slots: int
    deal: tuple[int, int, int, int]
    join: int
    hold: int


_WAYS = ((1, 3, 5, 0), 4, 2), ((3, 5, 0, 2), 1, 4)
_MEMTILES = tuple(_Memtile(slots, *ways) for slots in (2, 1) for ways in _WAYS)
"""The first one that fits is taken: even channels share 24 BDs and odd ones 24, and either has most to do."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What cores call, from which object file, with how much stack; and the vectors of their memory."""

    symbol: str
    link_with: str
    stack_bytes: int
    vector_bytes: int


def map_streams(name: str, device: str, tiling: StreamTiling, symbol: str, stack_bytes: int, comment: str) -> Design:
    """The design for the array that MLIR calls `device`, without sequences; cores call `symbol` with tiles of all.

    What no array holds is left to `bdforge.design.check`.
    """
    how = next((how for how in _MEMTILES if _fits(_memtile(tiling, 0, how))), _MEMTILES[-1])
    columns, rows = range(tiling.columns), range(FIRST_CORE_ROW, FIRST_CORE_ROW + tiling.rows)
    shims = [Tile.shim(c) for c in columns]
    memtiles = [_memtile(tiling, c, how) for c in columns]
    vector = mlir_device_named(device).generation.vector_align_bytes
    call = _Kernel(symbol, f"{name}.o", stack_bytes, vector)
    cores = [[_core_tile(tiling, c, row, call) for row in rows] for c in columns]
    tiles = (*shims, *memtiles, *(tile for column in cores for tile in column))
    flows = tuple(_flows(tiling, how, shims, memtiles, cores))
    names = tuple(name for shim in shims for name in _names(tiling, shim))
    return placed(Design(name, device, tiles, flows, names, comments=(comment,)))


def _fits(memtile: Tile) -> bool:
    """Whether each half of a memtile's channels has enough BDs, and its memory holds the slots."""
    used = [sum(len(c.bds) for c in memtile.channels if c.index % 2 == odd) for odd in (0, 1)]
    enough = all(count <= len(MEMTILE.bds_of_channel(odd)) for odd, count in enumerate(used))
    return enough and sum(buffer.bytes for buffer in memtile.buffers) <= MEMTILE.memory_bytes


def _names(tiling: StreamTiling, shim: Tile) -> Iterator[Allocation]:
    """Channels of a shim by the streams that they carry."""
    ways = [("MM2S", channel, streams) for channel, streams in tiling.fed]
    ways += [("MM2S", HOLD, tiling.held)] if tiling.held else []
    for way, channel, streams in (*ways, ("S2MM", 0, tiling.outputs)):
        yield Allocation("_".join((*(s.name.lower() for s in streams), str(shim.column))), shim, way, channel)


def _flows(
    tiling: StreamTiling, how: _Memtile, shims: list[Tile], memtiles: list[Tile], cores: list[list[Tile]]
) -> Iterator[Flow]:
    what, held, made = (tiling.names(streams) for streams in (tiling.inputs, tiling.held, tiling.outputs))
    for shim, memtile in zip(shims, memtiles, strict=True):
        for channel, _ in tiling.fed:
            yield Flow(shim.dma(channel), (memtile.dma(channel),), f"{what}: DRAM to memtiles")
        if held:
            yield Flow(shim.dma(HOLD), (memtile.dma(HOLD),), f"{held}: DRAM to memtiles")
    if held:
        for memtile, column in zip(memtiles, cores, strict=True):
            every = tuple(core.dma(HOLD) for core in column)
            yield Flow(memtile.dma(how.hold), every, f"{held}: to all cores of a column")
    for memtile, column in zip(memtiles, cores, strict=True):
        for channel, core in zip(how.deal, column, strict=False):
            yield Flow(memtile.dma(channel), (core.dma(DEAL),), f"{what}: tiles in turn to each core")
    for memtile, column in zip(memtiles, cores, strict=True):
        for row, core in enumerate(column):
            target = (memtile.dma(_FIRST_JOINED + row),)
            yield Flow(core.dma(0), target, f"{made}: tiles of a column join in its memtile")
    for shim, memtile in zip(shims, memtiles, strict=True):
        yield Flow(memtile.dma(how.join), (shim.dma(0),), f"{made}: memtiles to DRAM")


def _memtile(tiling: StreamTiling, column: int, how: _Memtile) -> Tile:
    """Each core row has stores of its own: with one for all, a fast core would take a slow one's turn."""
    locks, rows = Locks(f"mem_{column}"), range(tiling.rows)
    slots = {
        stream: [
            Slots.of(locks, f"{x}{row}", tiling.elements(stream), stream.type, f"{x} of core row {row}", how.slots)
            for row in rows
        ]
        for stream in (*tiling.inputs, *tiling.outputs)
        for x in [stream.name.lower()]
    }
    given, made = ([slots[stream] for stream in streams] for streams in (tiling.inputs, tiling.outputs))
    channels = []
    for channel, streams in tiling.fed:
        filled = in_turn(slots[stream][row].fill() for stream in streams for row in rows)
        channels.append(Channel("S2MM", channel, filled, f"{tiling.names(streams)} from DRAM"))
    for row in rows:
        joined, dealt = in_turn(s[row].fill() for s in made), in_turn(s[row].send() for s in given)
        channels.append(
            Channel("S2MM", _FIRST_JOINED + row, joined, f"{tiling.names(tiling.outputs)} from core row {row}")
        )
        channels.append(Channel("MM2S", how.deal[row], dealt, f"{tiling.names(tiling.inputs)} to core row {row}"))
    sent = in_turn(s[row].send() for s in made for row in rows)
    channels.append(Channel("MM2S", how.join, sent, f"{tiling.names(tiling.outputs)} of the column"))
    kept = _held(tiling, locks)
    if kept:
        names = tiling.names(tiling.held)
        channels.append(Channel("S2MM", HOLD, in_turn(s.fill() for s in kept), f"{names} from DRAM"))
        channels.append(Channel("MM2S", how.hold, in_turn(s.send() for s in kept), f"{names} to all core rows"))
    return Tile.holding(locks, column, 1, (*(s for x in (*given, *made) for s in x), *kept), channels)


def _held(tiling: StreamTiling, locks: Locks) -> tuple[Slots, ...]:
    """Where what is held lies, once."""
    named = ((stream, stream.name.lower()) for stream in tiling.held)
    return tuple(Slots.of(locks, x, s.elements, s.type, f"{x} of a problem", count=1) for s, x in named)


def _core_tile(tiling: StreamTiling, column: int, row: int, call: _Kernel) -> Tile:
    """A core: once told of how many tiles, for each it waits for its inputs and room for outputs."""
    locks = Locks(f"core_{column}_{row}")
    given, made = (
        [_core_slots(tiling, stream, locks, call.vector_bytes) for stream in streams]
        for streams in (tiling.inputs, tiling.outputs)
    )
    kept = _held(tiling, locks)
    parameters = Parameters.of(locks, "tiles", ["tiles"])
    turn = Rotation("turn", tiling.buffers)
    buffers = (*(turn.of(x.buffers) for x in given), *(x.buffers[0] for x in kept), *(turn.of(x.buffers) for x in made))
    tile = (
        *(Acquire(lock) for lock in (*(x.full for x in given), *(x.free for x in made))),
        Call(call.symbol, buffers),
        *(Release(lock) for lock in (*(x.free for x in given), *(x.full for x in made))),
        Advance(turn),
    )
    held, given_back = (Acquire(x.full) for x in kept), (Release(x.free) for x in kept)
    body = (parameters.problems(*held, Loop("tiles", tile, "tile"), *given_back),)
    alone = [tiling.elements(stream) == 1 for stream in (*tiling.inputs, *tiling.outputs)]
    moved = [x.fill() for x in given] + [x.send() for x in made]
    chains = [_first_elements(bds) if one else bds for bds, one in zip(moved, alone, strict=True)]
    channels = [
        Channel("S2MM", DEAL, in_turn(chains[: len(given)]), f"{tiling.names(tiling.inputs)} in"),
        Channel("MM2S", 0, in_turn(chains[len(given) :]), f"{tiling.names(tiling.outputs)} out"),
    ]
    if kept:
        channels.append(Channel("S2MM", HOLD, in_turn(x.fill() for x in kept), f"{tiling.names(tiling.held)} in"))
    core = Core(body, call.stack_bytes, call.link_with)
    return Tile.holding(locks, column, row, (*given, *kept, *made), channels, core, parameters.buffer)


def _core_slots(tiling: StreamTiling, stream: TileStream, locks: Locks, vector_bytes: int) -> Slots:
    elements, name = tiling.elements(stream), stream.name.lower()
    room = elements if elements > 1 else vector_bytes * BYTE_BITS // stream.type.bits
    return Slots.of(locks, name, room, stream.type, f"{name} tile", count=tiling.buffers)


def _first_elements(bds: tuple[Bd, ...]) -> tuple[Bd, ...]:
    return tuple(replace(bd, pattern=Pattern((1,), (1,))) for bd in bds)
