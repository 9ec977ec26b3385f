"""Where a tile's buffers stand: above the stack what is of no mode, above that each of its modes, as banks want it."""

from collections.abc import Iterable
from dataclasses import replace

from bdforge.design.bank_search import apart
from bdforge.design.model import Tile
from bdforge.design.modes import modes
from bdforge.design.tile_memory import Buffer
from bdforge.devices import TileKind, TileLimits
from bdforge.devices.limits import BUFFER_ALIGN_BYTES

# What it costs when two buffers share a bank. Ping and pong of an operand, of which a DMA has one and the core the
# other, come before everything; then what a core reads and writes together; then what it has while a DMA has the other.
TURNS, TOGETHER, CROSSWISE = 100, 10, 4


def aligned(size_bytes):
    """`size_bytes`, a number or an array of them, up to where the next buffer may start."""
    return -(-size_bytes // BUFFER_ALIGN_BYTES) * BUFFER_ALIGN_BYTES


def occupied(stack_bytes, parts: Iterable[tuple]):
    """Bytes that a tile needs for its stack and for `parts`, each a number of buffers and the bytes of one.

    They fit whenever this is no more than the tile's memory. Numbers or arrays of them.
    """
    used = aligned(stack_bytes)
    for buffers, size_bytes in parts:
        used = used + buffers * aligned(size_bytes)
    return used


def addressed(tile: Tile, limits: TileLimits) -> list[Buffer]:
    """Those of no mode lie right above the stack, in a row where there are modes; each mode begins above them."""
    in_modes, stack = modes(tile.buffers), aligned(tile.stack_bytes)
    given = _end(b for b in tile.buffers if b.mode and b.address is not None and not b.over)
    own = [buffer for buffer in tile.buffers if not buffer.mode]
    laid = _laid(tile, own, max(given, stack), limits, spread=not in_modes)
    floor = max(_end(laid), stack)
    for held in sorted(in_modes.values(), key=lambda held: any(buffer.over for buffer in held)):
        laid += _of_mode(tile, held, {buffer.name: buffer for buffer in laid}, floor, limits)
    known = {buffer.name: buffer for buffer in laid}
    return laid + [_over(b, known, limits) for b in tile.buffers if b.over in known and b.name not in known]


def _over(buffer: Buffer, laid: dict[str, Buffer], limits: TileLimits) -> Buffer:
    return _at(buffer, laid[buffer.over].address or 0, limits)


def _of_mode(tile: Tile, held: list[Buffer], laid: dict[str, Buffer], floor: int, limits: TileLimits) -> list[Buffer]:
    """A mode's buffers: those that lie over what is laid where that is, the others around them, if any, where there is
    room first; else as banks want it."""
    over = [_over(buffer, laid, limits) for buffer in held if buffer.over in laid]
    rest = [buffer for buffer in held if not buffer.over]
    if not over:
        return _laid(tile, rest, floor, limits, spread=True)
    taken = over + [_at(b, b.address, limits) for b in rest if b.address is not None]
    for buffer in sorted((b for b in rest if b.address is None), key=lambda b: -b.bytes):
        taken.append(_at(buffer, _gap(taken, buffer.bytes, floor), limits))
    return taken


def _gap(taken: list[Buffer], size: int, at: int) -> int:
    """The first place from `at` on where so many bytes touch nothing that is taken."""
    for start, end in sorted((b.address or 0, (b.address or 0) + b.bytes) for b in taken):
        if at < end and start < at + size:
            at = aligned(end)
    return at


def _end(buffers: Iterable[Buffer]) -> int:
    """Where the next buffer may start."""
    return max((aligned((buffer.address or 0) + buffer.bytes) for buffer in buffers), default=0)


def _laid(tile: Tile, buffers: Iterable[Buffer], at: int, limits: TileLimits, *, spread: bool) -> list[Buffer]:
    """What no channel moves, a core's parameters, lies first, from `at` on; the rest behind it, if `spread` as banks
    want it."""
    turns, laid = _turns(tile), [_at(b, b.address, limits) for b in buffers if b.address is not None]
    at, open_ = max(at, _end(laid)), [buffer for buffer in buffers if buffer.address is None]
    moved = sorted((b for b in open_ if b.name in turns), key=lambda b: (turns[b.name][1], -b.bytes))
    for buffer in [b for b in open_ if b.name not in turns] + ([] if spread else moved):
        laid.append(_at(buffer, at, limits))
        at += aligned(buffer.bytes)
    return laid + (_apart(tile.kind, moved, [turns[b.name] for b in moved], at, limits) if spread else [])


def _apart(kind: TileKind, moved: list[Buffer], turns: list["_Turn"], at: int, limits: TileLimits) -> list[Buffer]:
    sizes = tuple(aligned(b.bytes) for b in moved)
    numbered = list(enumerate(turns))
    weights = tuple(tuple(_weight(kind, one, other) if i != j else 0 for j, other in numbered) for i, one in numbered)
    return [_at(b, address, limits) for b, address in zip(moved, apart(sizes, weights, at, limits), strict=True)]


def _at(buffer: Buffer, address: int, limits: TileLimits) -> Buffer:
    return replace(buffer, address=address, banks=limits.banks_of(address, buffer.bytes))


_Turn = tuple[str, int, bool]  # the lock that guards a buffer's operand, its turn there, whether it only leaves


def _turns(tile: Tile) -> dict[str, _Turn]:
    """By name, what the tile's channels move: buffers that take turns wait for one lock, or have a channel of none."""
    found: dict[str, _Turn] = {}
    own = {buffer.name for buffer in tile.buffers}
    for channel in sorted(tile.channels, key=lambda channel: channel.direction != "S2MM"):
        turns: dict[str, dict[str, int]] = {}
        for bd in channel.bds:
            guard = bd.acquire.lock.name if bd.acquire else f"{channel.direction} {channel.index}"
            order = turns.setdefault(guard, {})
            turn = order.setdefault(bd.buffer.name, len(order))
            if bd.buffer.name in own:
                found.setdefault(bd.buffer.name, (guard, turn, channel.direction == "MM2S"))
    return found


def _weight(kind: TileKind, one: _Turn, other: _Turn) -> int:
    if one[0] == other[0]:
        return TURNS
    if kind is TileKind.MEMTILE:  # more buffers than banks, and all channels at work
        return 0
    return TOGETHER if one[1] == other[1] or one[2] or other[2] else CROSSWISE
