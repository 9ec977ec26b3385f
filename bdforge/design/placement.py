"""Where a tile's buffers stand and which BDs its channels use: in the text every address and id is given.

Hosts write parameters to addresses, so that none may be left to a tool's default. Buffers that are used at the same
time lie in different banks where they can: core and DMA stall each other in one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from itertools import chain, count
from typing import TypeVar, cast

from bdforge.design.model import Channel, Design, Flow, Port, Tile
from bdforge.design.modes import modes
from bdforge.design.tile_memory import Bd, Buffer, Lock
from bdforge.devices import TileKind, TileLimits
from bdforge.devices.limits import BUFFER_ALIGN_BYTES, CORE

T = TypeVar("T")
Weights = tuple[tuple[int, ...], ...]
"""What it costs when two buffers share a bank, symmetric; the diagonal counts nothing."""

_STEPS = 50_000  # of a search; six buffers never need so many, and the first placement of many is rarely beaten


@lru_cache(maxsize=4096)
def apart(sizes: tuple[int, ...], weights: Weights, start: int, limits: TileLimits) -> tuple[int, ...]:
    """Addresses from `start` on for buffers of these sizes, with the least sum of the weights of those sharing banks.

    Exact for as many buffers as a core has: in any placement each buffer can move down to the end of the one before,
    or to the start of the bank in which it begins, without touching another bank, and an empty bank between two can be
    closed; so only these two places are tried. One after the other, beyond the memory too, where they do not fit.
    Sizes and `start` are multiples of the alignment. The same answer for the same question.
    """
    search = _Search(sizes, weights, limits, start + sum(sizes) <= limits.memory_bytes)
    search.run(start)
    return tuple(search.best[i] for i in range(len(sizes)))


@dataclass(slots=True)
class _Search:
    sizes: tuple[int, ...]
    weights: Weights
    limits: TileLimits
    fits: bool
    steps: int = 0
    cost: float = float("inf")
    best: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

    def run(self, start: int) -> None:
        if self.fits:
            self.extend(start, 0, sum(self.sizes))
            return
        for index, size in enumerate(self.sizes):
            self.best[index] = start
            start += size

    def extend(self, at: int, cost: int, left: int) -> None:
        """Place what is left from `at` on, cheapest choice first; `left` bytes are to come."""
        if len(self.taken) == len(self.sizes):
            self.cost, self.best = cost, dict(self.taken)
            return
        for added, address, index in sorted(self.choices(at, left)):
            if cost + added >= self.cost or (self.best and self.steps >= _STEPS):
                return
            self.steps += 1
            self.taken[index] = address
            self.extend(address + self.sizes[index], cost + added, left - self.sizes[index])
            del self.taken[index]

    def choices(self, at: int, left: int) -> Iterator[tuple[int, int, int]]:
        """(added cost, address, buffer) of each buffer that could come next.

        Nothing placed reaches beyond `at`: there a buffer shares the bank that `at` is in, at a border none.
        """
        bank, most = self.limits.bank_bytes, self.limits.memory_bytes - left
        border = at + -at % bank
        here = [index for index, start in self.taken.items() if start + self.sizes[index] > border - bank]
        for index, weights in enumerate(self.weights):
            if index in self.taken:
                continue
            if at <= most:
                yield sum(weights[i] for i in here) if at < border else 0, at, index
            if at < border <= most:
                yield 0, border, index


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


def placed(design: Design) -> Design:
    """`design` with an address for each buffer, cores' above their stack, and a number for each BD.

    Those that have one keep it, and the rest of their tile's buffers lie behind them. What a tile cannot hold lies
    beyond its limits, for `check` to name.
    """
    limits = design.array.generation.limits
    return replace(design, tiles=tuple(_placed(tile, limits(tile.kind)) for tile in design.tiles))


_LAST = CORE.channels - 1  # MM2S channel of a core's tile


def from_end(design: Design) -> Design:
    """A placed design with the last locks and BDs of each tile and channels of cores' that send instead of the first,
    and code that ends where program memory does: beside one that begins at the start it takes nothing from that.
    """
    limits = design.array.generation.limits
    moved: dict[Lock, Lock] = {
        lock: replace(lock, id=limits(tile.kind).locks - 1 - lock.id) for tile in design.tiles for lock in tile.locks
    }
    tiles = (_from_end(tile, limits(tile.kind)) for tile in design.tiles)
    tiles = tuple(_rewritten(tile, lambda part: moved.get(part) if isinstance(part, Lock) else None) for tile in tiles)
    cores = {tile.name for tile in design.tiles if tile.kind is TileKind.CORE}
    flows = tuple(_sent_by_last(flow) if flow.source.tile in cores else flow for flow in design.flows)
    return replace(design, tiles=tiles, flows=flows, code_at_end=True)


def _sent_by_last(flow: Flow) -> Flow:
    """A core's flow from the channel that `_from_end` takes."""
    source = flow.source
    return replace(flow, source=replace(source, index=_LAST - source.index)) if source.bundle == "DMA" else flow


def moved(design: Design, columns: int, rows: int) -> Design:
    """A design so many columns further east, and its cores so many rows further up; parts that are named after their
    tiles take the others' names."""

    def place(tile: Tile) -> tuple[int, int]:
        return tile.column + columns, tile.row + (rows if tile.kind is TileKind.CORE else 0)

    names = {tile.name: re.sub(r"(_\d+)+$", "", tile.name) for tile in design.tiles}
    for tile in design.tiles:
        column, row = place(tile)
        names[tile.name] += f"_{column}" + (f"_{row}" if tile.kind is TileKind.CORE else "")
    of_tile = re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))

    def elsewhere_named(name: str) -> str:
        return of_tile.sub(lambda found: names[found[0]], name, count=1)

    def renamed(part: object) -> object:
        if isinstance(part, Port):
            return replace(part, tile=names[part.tile])
        if isinstance(part, Buffer):
            return replace(part, name=elsewhere_named(part.name), over=elsewhere_named(part.over))
        return replace(part, name=elsewhere_named(part.name)) if isinstance(part, Lock) else None

    def elsewhere(tile: Tile) -> Tile:
        column, row = place(tile)
        return replace(_rewritten(tile, renamed), name=names[tile.name], column=column, row=row)

    return replace(
        design,
        tiles=tuple(map(elsewhere, design.tiles)),
        flows=_rewritten(design.flows, renamed),
        allocations=tuple(replace(one, tile=elsewhere(one.tile)) for one in design.allocations),
    )


def _from_end(tile: Tile, limits: TileLimits) -> Tile:
    """The BDs of each channel counted from the end of those that it may use, and cores' channels that send too."""
    channels = []
    for channel in tile.channels:
        share = limits.bds_of_channel(channel.index)
        ids = [None if bd.bd_id is None else share[0] + share[-1] - bd.bd_id for bd in channel.bds]
        bds = tuple(replace(bd, bd_id=number) for bd, number in zip(channel.bds, ids, strict=True))
        turned = tile.kind is TileKind.CORE and channel.direction == "MM2S"
        index = _LAST - channel.index if turned else channel.index
        channels.append(replace(channel, bds=bds, index=index))
    return replace(tile, channels=tuple(channels))


def _rewritten(part: T, other_of: Callable[[object], object]) -> T:
    """A part of a design with others for what it holds, wherever it does; those of which there are None stay."""
    if (instead := other_of(part)) is not None:
        return cast("T", instead)
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        return cast("T", tuple(_rewritten(one, other_of) for one in part))
    if not is_dataclass(part) or isinstance(part, type):
        return part
    held = {one.name: getattr(part, one.name) for one in fields(part) if one.init}
    other = {name: _rewritten(value, other_of) for name, value in held.items()}
    return replace(part, **other) if any(other[name] is not held[name] for name in held) else part


def _placed(tile: Tile, limits: TileLimits) -> Tile:
    buffers = {b.name: b for b in _addressed(tile, limits)} if limits.banks else {}
    channels = tuple(_numbered(tile, limits))
    return replace(tile, buffers=tuple(buffers.get(b.name, b) for b in tile.buffers), channels=channels)


def _addressed(tile: Tile, limits: TileLimits) -> list[Buffer]:
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
    weights = tuple(tuple(_weight(kind, one, other) for other in turns) for one in turns)
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


def _numbered(tile: Tile, limits: TileLimits) -> Iterator[Channel]:
    """Channels with their BDs in order, from those that each may use."""
    taken = {bd.bd_id for channel in tile.channels for bd in channel.bds}.union(tile.reserved_bds)
    free: dict[range, Iterator[int]] = {}
    for channel in tile.channels:
        share = limits.bds_of_channel(channel.index)
        ids = free.setdefault(share, (i for i in chain(share, count(limits.bds)) if i not in taken))
        bds: list[Bd] = [replace(bd, bd_id=next(ids)) if bd.bd_id is None else bd for bd in channel.bds]
        yield replace(channel, bds=tuple(bds))
