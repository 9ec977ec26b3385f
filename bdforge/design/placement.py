"""Where a tile's buffers stand and which BDs its channels use: in the text every address and id is given.

Hosts write parameters to addresses, so that none may be left to a tool's default.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import chain, count
from typing import TypeVar, cast

from bdforge.design.buffer_addresses import addressed
from bdforge.design.model import Channel, Design, Flow, Port, Tile
from bdforge.design.tile_memory import Bd, Buffer, Lock
from bdforge.devices import TileKind, TileLimits
from bdforge.devices.limits import CORE

T = TypeVar("T")


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
    buffers = {b.name: b for b in addressed(tile, limits)} if limits.banks else {}
    channels = tuple(_numbered(tile, limits))
    return replace(tile, buffers=tuple(buffers.get(b.name, b) for b in tile.buffers), channels=channels)


def _numbered(tile: Tile, limits: TileLimits) -> Iterator[Channel]:
    """Channels with their BDs in order, from those that each may use."""
    taken = {bd.bd_id for channel in tile.channels for bd in channel.bds}.union(tile.reserved_bds)
    free: dict[range, Iterator[int]] = {}
    for channel in tile.channels:
        share = limits.bds_of_channel(channel.index)
        ids = free.setdefault(share, (i for i in chain(share, count(limits.bds)) if i not in taken))
        bds: list[Bd] = [replace(bd, bd_id=next(ids)) if bd.bd_id is None else bd for bd in channel.bds]
        yield replace(channel, bds=tuple(bds))
