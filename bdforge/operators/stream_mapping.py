"""How the bytes of operators on streams go: the design of the array.

Columns work alone. A memtile deals tiles of all inputs to its cores, in turn on one channel of each, and joins theirs
of the outputs, which leave a core in turn, too. Of several streams on a shim's channel it gets a panel of each in turn.
Tiles that come in chunks it deals once for each pass, and what is held, too, to all of its cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bdforge.design import Allocation, Channel, Design, Flow, Locks, Tile, in_turn, placed
from bdforge.devices import FIRST_CORE_ROW, Device, mlir_device_named
from bdforge.devices.limits import CORE, MEMTILE
from bdforge.operators.stream_cores import StreamKernel, core_tile
from bdforge.operators.stream_stores import TileStore, walkable
from bdforge.operators.tile_streams import DEAL, HOLD, StreamTiling

_FIRST_JOINED = 2
"""S2MM channel of a memtile for its first core's outputs."""


@dataclass(frozen=True, slots=True)
class _Memtile:
    """How a memtile does it: slots of a stream for each core, its MM2S channels to the cores, of all outputs, of what
    is held."""

    slots: int
    deal: tuple[int, ...]
    join: int
    hold: int


_WAYS = ((1, 3), 4, 5), ((1, 3, 5, 0), 4, 2), ((3, 5, 0, 2), 1, 4)
_MEMTILES = tuple(_Memtile(slots, *ways) for slots in (2, 1) for ways in _WAYS)
"""The first one that fits is taken: even channels share 24 BDs and odd ones 24, and either has most to do. With few
rows a memtile sends by odd ones that products do not use, so that both wait side by side."""


def map_streams(
    name: str, device: str, tiling: StreamTiling, symbols: tuple[str, ...], stack_bytes: int, comment: str
) -> Design:
    """The design for the array that MLIR calls `device`, without sequences; cores call the symbol of each pass.

    What no array holds is left to `bdforge.design.check`.
    """
    how = _way(tiling) or _MEMTILES[-1]
    columns, rows = range(tiling.columns), range(FIRST_CORE_ROW, FIRST_CORE_ROW + tiling.rows)
    shims = [Tile.shim(c) for c in columns]
    memtiles = [_memtile(tiling, c, how) for c in columns]
    vector = mlir_device_named(device).generation.vector_align_bytes
    call = StreamKernel(symbols, f"{name}.o", stack_bytes, vector)
    cores = [[core_tile(tiling, c, row, call) for row in rows] for c in columns]
    tiles = (*shims, *memtiles, *(tile for column in cores for tile in column))
    flows = tuple(_flows(tiling, how, shims, memtiles, cores))
    names = tuple(name for shim in shims for name in _names(tiling, shim))
    return placed(Design(name, device, tiles, flows, names, comments=(comment,)))


def _way(tiling: StreamTiling) -> _Memtile | None:
    ways = (how for how in _MEMTILES if tiling.rows <= len(how.deal))
    return next((how for how in ways if _fits(_memtile(tiling, 0, how))), None)


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
    given, made = (
        [
            [TileStore.of(tiling, store, locks, f"{row}", f"of core row {row}", how.slots) for row in rows]
            for store in tiling.stores(streams)
        ]
        for streams in (tiling.inputs, tiling.outputs)
    )
    parts = {
        stream: [(store, number) for store in by_row]
        for streams, stores in ((tiling.inputs, given), (tiling.outputs, made))
        for together, by_row in zip(tiling.stores(streams), stores, strict=True)
        for number, stream in enumerate(together)
    }
    channels = []
    for channel, streams in tiling.fed:
        filled = in_turn(store.fill_part(part) for stream in streams for store, part in parts[stream])
        channels.append(Channel("S2MM", channel, filled, f"{tiling.names(streams)} from DRAM"))
    for row in rows:
        joined = in_turn(s[row].fill() for s in made)
        dealt = in_turn(bds for s in given for bds in s[row].send(tiling.passes))
        channels.append(
            Channel("S2MM", _FIRST_JOINED + row, joined, f"{tiling.names(tiling.outputs)} from core row {row}")
        )
        channels.append(Channel("MM2S", how.deal[row], dealt, f"{tiling.names(tiling.inputs)} to core row {row}"))
    sent = in_turn(store.send_part(part) for stream in tiling.outputs for store, part in parts[stream])
    channels.append(Channel("MM2S", how.join, sent, f"{tiling.names(tiling.outputs)} of the column"))
    kept = [
        TileStore.of(tiling, store, locks, "", "of a problem", how.slots if tiling.repeats else 1)
        for store in tiling.stores(tiling.held)
    ]
    channels += _held_channels(tiling, kept, how)
    slots = [store.slots for stores in (*given, *made, kept) for store in stores]
    return Tile.holding(locks, column, 1, slots, channels)


def _held_channels(tiling: StreamTiling, kept: list[TileStore], how: _Memtile) -> Iterator[Channel]:
    if kept:
        names = tiling.names(tiling.held)
        filled = in_turn(store.fill_part(part) for store in kept for part in range(len(store.parts)))
        yield Channel("S2MM", HOLD, filled, f"{names} from DRAM")
        sent = in_turn(bds for store in kept for bds in store.send(tiling.passes))
        yield Channel("MM2S", how.hold, sent, f"{names} to all core rows")


def in_chunks(
    tiling: StreamTiling, device: str, passes: int, state_vectors: int, unit: int, stack_bytes: int
) -> StreamTiling:
    """A tiling whose tiles a core holds; else in `passes` over chunks of whole `unit`s of elements, with as few as fit.

    A core keeps `state_vectors` of a tile. On fewer core rows where memtiles hold no more; as it is where nothing fits.
    Tiles that several kernels work on come in no chunks.
    """
    vector = mlir_device_named(device).generation.vector_align_bytes
    if len(tiling.calls) > 1 or _core_holds(tiling, vector, stack_bytes):
        return on_fewer_rows(tiling)
    units = tiling.inputs[0].elements // unit
    counts = [chunks for chunks in range(2, units + 1) if units % chunks == 0]
    for rows in range(tiling.rows, 0, -1):
        for chunks in counts:
            cut = replace(tiling, rows=rows, chunks=chunks, passes=passes, state_bytes=state_vectors * vector)
            if _core_holds(cut, vector, stack_bytes) and _way(cut) is not None and walkable(cut):
                return cut
    return tiling


def on_fewer_rows(tiling: StreamTiling) -> StreamTiling:
    """A tiling on as many core rows as a memtile has BDs and room for; as it is where not even one fits."""
    fewer = (replace(tiling, rows=rows) for rows in range(tiling.rows, 0, -1))
    return next((one for one in fewer if _way(one) is not None), tiling)


def chunk_reasons(tiling: StreamTiling, device: Device, passes: int, units: int, stack_bytes: int) -> Iterator[str]:
    """Why rows of so many vectors, which no core holds, are in no chunks although it has room for a vector of each."""
    vector = device.generation.vector_align_bytes
    least = replace(tiling, chunks=units, passes=passes, state_bytes=vector * (passes > 1))
    whole = tiling.chunks > 1 or len(tiling.calls) > 1 or _core_holds(tiling, vector, stack_bytes)
    if not whole and _core_bytes(least, vector, stack_bytes) <= CORE.memory_bytes:
        yield (
            f"width = {tiling.inputs[0].elements} is {units} vectors: a core holds no whole row, and DMAs walk no "
            "chunks of them that a core holds; use a width with more divisors, such as a multiple of 1024"
        )


def _core_holds(tiling: StreamTiling, vector_bytes: int, stack_bytes: int) -> bool:
    bds = sum(len(channel.bds) for channel in _core(tiling, vector_bytes, stack_bytes).channels)
    return _core_bytes(tiling, vector_bytes, stack_bytes) <= CORE.memory_bytes and bds <= CORE.bds


def _core_bytes(tiling: StreamTiling, vector_bytes: int, stack_bytes: int) -> int:
    return sum(buffer.bytes for buffer in _core(tiling, vector_bytes, stack_bytes).buffers) + stack_bytes


def _core(tiling: StreamTiling, vector_bytes: int, stack_bytes: int) -> Tile:
    call = StreamKernel(("",) * (len(tiling.calls) or tiling.passes), "", stack_bytes, vector_bytes)
    return core_tile(tiling, 0, FIRST_CORE_ROW, call)
