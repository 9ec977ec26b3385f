"""Cores of operators on streams: their memory, what they wait for, and how their DMAs fill and empty it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lcm

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Bd,
    Buffer,
    Call,
    Channel,
    Core,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    Slots,
    Tile,
    in_turn,
    ping_pong,
)
from bdforge.design.core_code import Argument, Statement
from bdforge.devices.limits import BYTE_BITS, GRANULE_BITS
from bdforge.operators.stream_stores import chunk_slots
from bdforge.operators.tile_streams import DEAL, HOLD, StreamTiling, TileStream


@dataclass(frozen=True, slots=True)
class StreamKernel:
    """What cores call in each pass, from which object file, with how much stack; and the vectors of their memory."""

    symbols: tuple[str, ...]
    link_with: str
    stack_bytes: int
    vector_bytes: int


def core_tile(tiling: StreamTiling, column: int, row: int, call: StreamKernel) -> Tile:
    """A core: once told of how many tiles, for each it waits for its inputs and room for outputs."""
    return (_whole if tiling.passes == 1 else _chunked)(tiling, column, row, call)


def _whole(tiling: StreamTiling, column: int, row: int, call: StreamKernel) -> Tile:
    """Of tiles that it holds, or chunk by chunk of those that are cut freely."""
    locks = Locks(f"core_{column}_{row}")
    given, made = (
        [_core_slots(tiling, store, locks, call.vector_bytes) for store in _core_stores(tiling, streams)]
        for streams in (tiling.inputs, tiling.outputs)
    )
    cut = [_core_slots(tiling, (s,), locks, call.vector_bytes) for s in tiling.held if tiling.repeats]
    kept = [] if tiling.repeats else _held_slots(tiling, locks, call.vector_bytes)
    parameters = Parameters.of(locks, "tiles", ["tiles"])
    taken, held, room = ([slots for slots, _ in some] for some in (given, cut, made))
    tile = _tile(tiling, call, taken, held or kept, room)
    first = [Acquire(x.full, len(kept)) for x in kept[:1]]
    last = [Release(x.free, len(kept)) for x in kept[:1]]
    body = (parameters.problems(*first, Loop("tiles", tile, "tile"), *last),)
    ways = (
        _given_bds(tiling, given),
        in_turn(_some(x.fill(), moved) for x, moved in cut) if cut else _held_bds(tiling, kept),
        in_turn(_some(x.send(), moved) for x, moved in made),
    )
    core, slots = Core(body, call.stack_bytes, call.link_with), (*taken, *held, *kept, *room)
    return Tile.holding(locks, column, row, slots, _channels(tiling, *ways), core, parameters.buffer)


def _core_stores(tiling: StreamTiling, streams: tuple[TileStream, ...]) -> tuple[tuple[TileStream, ...], ...]:
    """Chunks lie apart, as whole tiles do."""
    return tiling.stores(streams) if tiling.chunks == 1 else tuple((stream,) for stream in streams)


def _tile(
    tiling: StreamTiling, call: StreamKernel, given: list[Slots], kept: list[Slots], made: list[Slots]
) -> tuple[Statement, ...]:
    """What a core does for a tile: its kernels, or for each chunk one while it has what chunks share."""
    turn = Rotation("turn", tiling.buffers)
    shared = [x for x, stream in zip(given, tiling.inputs, strict=False) if tiling.shares(stream)]
    full = [x.full for x in given if x not in shared] + [x.full for x in kept if tiling.repeats]
    free = [x.free for x in given if x not in shared] + [x.free for x in kept if tiling.repeats]
    buffers = (
        *(x.buffers[0] if x in shared else turn.of(x.buffers) for x in given),
        *(turn.of(x.buffers) if tiling.repeats else x.buffers[0] for x in kept),
        *(turn.of(x.buffers) for x in made),
    )
    piece = (
        *(Acquire(lock) for lock in (*full, *(x.free for x in made))),
        *_calls(tiling, call, buffers),
        *(Release(lock) for lock in (*free, *(x.full for x in made))),
        Advance(turn),
    )
    if tiling.chunks == 1:
        return piece
    first, last = ([step(lock) for lock in locks] for step, locks in (
        (Acquire, [x.full for x in shared]), (Release, [x.free for x in shared])
    ))  # fmt: skip
    return (*first, Loop(tiling.chunks, piece, "chunk"), *last)


def _given_bds(tiling: StreamTiling, given: list[tuple[Slots, int]]) -> tuple[Bd, ...]:
    """Those that fill slots of inputs: of what chunks share the only one, then those of a tile's chunks."""
    filled = [_some(x.fill(), moved) for x, moved in given]
    shared = [bds for bds, stream in zip(filled, tiling.inputs, strict=False) if tiling.shares(stream)]
    cut = in_turn(bds for bds in filled if bds not in shared)
    if not shared:
        return cut
    of_tile = len(cut) // tiling.buffers * tiling.chunks
    tiles = lcm(of_tile, len(cut)) // of_tile
    chain = cut * (tiles * of_tile // len(cut))
    return tuple(
        bd for i in range(tiles) for bd in (*(bds[0] for bds in shared), *chain[i * of_tile : (i + 1) * of_tile])
    )


def _calls(tiling: StreamTiling, call: StreamKernel, buffers: tuple[Argument, ...]) -> Iterator[Call]:
    """Of a tile's kernels with the buffers of streams, one of each in their order."""
    if not tiling.calls:
        yield Call(call.symbols[0], buffers)
        return
    streams = (*tiling.inputs, *tiling.held, *tiling.outputs)
    named = {stream.name: buffer for stream, buffer in zip(streams, buffers, strict=True)}
    for symbol, names in zip(call.symbols, tiling.calls, strict=True):
        yield Call(symbol, tuple(named[name] for name in names))


def _chunked(tiling: StreamTiling, column: int, row: int, call: StreamKernel) -> Tile:
    """Of tiles that come in chunks, in each pass."""
    locks = Locks(f"core_{column}_{row}")
    ways = [
        [chunk_slots(tiling, streams, locks, call.vector_bytes) for streams in tiling.stores(some)]
        for some in (tiling.inputs, tiling.held, tiling.outputs)
    ]
    given, kept, made = ([slots for slots, _ in way] for way in ways)
    chains = [
        in_turn(_first_elements(x.send() if way is ways[-1] else x.fill(), moved) for x, moved in way) for way in ways
    ]
    words = tiling.state_bytes * BYTE_BITS // GRANULE_BITS
    zeros = (0,) * words  # a first chunk reads what it does not use
    state = Buffer(f"{locks.tile}_state", words, "i32", "what stays of a row", values=zeros)
    parameters = Parameters.of(locks, "tiles", ["tiles"])
    turn, out = Rotation("turn", tiling.buffers), Rotation("out", tiling.buffers)
    buffers = (*(turn.of(x.buffers) for x in (*given, *kept)), *(out.of(x.buffers) for x in made), state, "chunk")

    def chunk(symbol: str, last: bool) -> Iterator[Statement]:
        """Outputs of any pass but the last one are room to work in, which is given back."""
        yield from (Acquire(lock) for lock in (*(x.full for x in (*given, *kept)), *(x.free for x in made)))
        yield Call(symbol, buffers)
        yield from (Release(x.free) for x in (*given, *kept))
        yield from (Release(x.full if last else x.free) for x in made)
        yield from (Advance(turn), *((Advance(out),) if last else ()))

    passes = [
        Loop(tiling.chunks, tuple(chunk(symbol, number == tiling.passes - 1)), "chunk")
        for number, symbol in enumerate(call.symbols)
    ]
    body = (parameters.problems(Loop("tiles", tuple(passes), "tile")),)
    core = Core(body, call.stack_bytes, call.link_with)
    return Tile.holding(
        locks, column, row, (*given, *kept, *made), _channels(tiling, *chains), core, parameters.buffer, state
    )


def _channels(tiling: StreamTiling, given: tuple[Bd, ...], kept: tuple[Bd, ...], made: tuple[Bd, ...]) -> list[Channel]:
    channels = [
        Channel("S2MM", DEAL, given, f"{tiling.names(tiling.inputs)} in"),
        Channel("MM2S", 0, made, f"{tiling.names(tiling.outputs)} out"),
    ]
    return channels + ([Channel("S2MM", HOLD, kept, f"{tiling.names(tiling.held)} in")] if kept else [])


def _core_slots(
    tiling: StreamTiling, streams: tuple[TileStream, ...], locks: Locks, vector_bytes: int
) -> tuple[Slots, int]:
    """Of a store, and how many elements DMAs move."""
    if len(streams) > 1:
        return chunk_slots(tiling, streams, locks, vector_bytes)
    (stream,) = streams
    elements, name = tiling.piece(stream), stream.name.lower()
    room = elements if elements > 1 else vector_bytes * BYTE_BITS // stream.type.bits
    role, count = f"{name} {'tile' if tiling.chunks == 1 else 'chunk'}", 1 if tiling.shares(stream) else tiling.buffers
    return Slots.of(locks, name, room, stream.type, role, count=count), stream.type.memory_elements(elements)


def _held_slots(tiling: StreamTiling, locks: Locks, vector_bytes: int) -> list[Slots]:
    """Of what is held, in whole vectors; it comes and goes together, so that two locks do for all."""
    if not tiling.held:
        return []
    names = [stream.name.lower() for stream in tiling.held]
    pair = locks.pair("_".join(names), len(names), f"{' and '.join(names)} of a problem")
    made = []
    for name, stream in zip(names, tiling.held, strict=True):
        lanes = vector_bytes * BYTE_BITS // stream.type.bits
        room = -(-stream.elements // lanes) * lanes
        buffers = ping_pong(f"{locks.tile}_{name}", room, stream.type.memory, f"{name} of a problem", 1)
        made.append(Slots(buffers, *pair))
    return made


def _held_bds(tiling: StreamTiling, kept: list[Slots]) -> tuple[Bd, ...]:
    """Those that fill them, as far as something comes."""
    filled = zip(tiling.held, (slots.fill() for slots in kept), strict=True)
    return in_turn(_some(bds, s.elements) for s, bds in filled)


def _some(bds: tuple[Bd, ...], count: int) -> tuple[Bd, ...]:
    """Of so many elements, if that is not all."""
    return bds if bds[0].buffer.elements == count else _first_elements(bds, count)


def _first_elements(bds: tuple[Bd, ...], count: int) -> tuple[Bd, ...]:
    return tuple(replace(bd, pattern=Pattern((count,), (1,))) for bd in bds)
