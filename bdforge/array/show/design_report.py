"""Tables of a design: tiles, streams, switches, memory and locks. Tiles that are alike share a row."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.task_ops import ConfigureTaskOp
from bdforge.array.routing import LinkUse, Net
from bdforge.array.show.array_use import Coordinates, DesignUse, TileUse, devices_of, places, ranges, use_of
from bdforge.array.show.bank_use import BankUse
from bdforge.array.show.memory_map import FREE, STACK, BufferView, Span, buffer_views
from bdforge.common.screen import new_table
from bdforge.devices import TileKind

Item = TypeVar("Item")


def tables(module: ModuleOp) -> list[RenderableType]:
    """Tables of every device of a module, for a rich console.

    AllocationError and RoutingError (both MlirError) where a design does not fit.
    """
    return [part for device in devices_of(module) for part in design_tables(use_of(device))]


def design_tables(use: DesignUse) -> list[RenderableType]:
    """Tables of one device."""
    parts = [_summary(use), _tile_table(use), _stream_table(use), _memory_table(use), _view_table(use)]
    parts += [_bank_table(use), _lock_table(use), _chain_table(use)]
    return [part for part in parts if not isinstance(part, Table) or part.row_count]


def _summary(use: DesignUse) -> Text:
    device, routing = use.device, use.routing
    counts = f"{_count(len(use.tiles), 'tile')}, {_count(len(routing.nets), 'stream')}"
    lines = [f"device @{device.symbol}: {device.device_name}, {counts}"]
    if (busiest := routing.busiest) is not None:
        kind = device.device.kind(busiest.column, busiest.row)
        lines.append(
            f"busiest switch: {kind} ({busiest.column}, {busiest.row}), {busiest.masters} of "
            f"{busiest.masters_available} masters and {busiest.slaves} of {busiest.slaves_available} slaves in use"
        )
    if routing.links:
        lines.append(f"fullest links: {_fullest(routing.links)}")
    if any(tile.banks for tile in use.tiles.values()):
        lines.append(f"bank conflicts: {_conflicts(use)}")
    return Text("\n".join(lines) + "\n")


def _conflicts(use: DesignUse) -> str:
    """How many pairs of buffers share a bank, and how many of them are ping and pong."""
    found = {(at, pair) for at, tile in use.tiles.items() for bank in tile.banks for pair in bank.conflicts}
    turns = sum(pair.turns for _, pair in found)
    if not found:
        return "none"
    return f"{_count(len(found), 'pair')} of buffers share a bank, {turns or 'none'} of them turns of one channel"


def _chain_table(use: DesignUse) -> Table:
    """Tasks that repeat a chain of BDs on a shim: where a first run on silicon may differ."""
    columns = ("sequence", "shims", "channel", ">BDs", ">runs", ">tasks")
    table = new_table("Chains of BDs that repeat on shims (nowhere shown on silicon)", *columns)
    for chain, tiles in repeated_chains(use.device).items():
        where = places(sorted(set(tiles)))
        table.add_row(chain.sequence, where, chain.channel, str(chain.bds), str(chain.runs), str(len(tiles)))
    return table


class RepeatedChain(NamedTuple):
    """What tasks have in common: where they run, how many BDs they chain, how often the chain runs."""

    sequence: str
    channel: str
    bds: int
    runs: int


def repeated_chains(device: DeviceOp) -> dict[RepeatedChain, list[tuple[int, int]]]:
    """The shims of every task that repeats a chain, one entry for a task, by what the tasks have in common."""
    found: dict[RepeatedChain, list[tuple[int, int]]] = defaultdict(list)
    for sequence in (op for op in device.walk() if isinstance(op, RuntimeSequenceOp)):
        for chain, place in _chains(sequence):
            found[chain].append(place)
    return found


def _chains(sequence: RuntimeSequenceOp) -> Iterator[tuple[RepeatedChain, tuple[int, int]]]:
    for task in (op for op in sequence.walk() if isinstance(op, ConfigureTaskOp)):
        bds = len(task.bds)
        if bds < 2 or not task.repeat_count:
            continue
        with suppress(ValueError):  # a name of nothing is left to the verifier
            if task.tile.kind is TileKind.SHIM:
                channel = f"{task.direction.value} {task.channel}"
                place = task.tile.column, task.tile.row
                yield RepeatedChain(sequence.symbol, channel, bds, task.repeat_count + 1), place


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _fullest(links: Sequence[LinkUse]) -> str:
    """Links with the largest share of their wires in use, by side."""
    share = max(link.used / link.available for link in links)
    sides: dict[str, list[LinkUse]] = defaultdict(list)
    for link in links:
        if link.used / link.available == share:
            sides[f"{link.side.lower()}, {link.used} of {link.available} wires"].append(link)
    return "; ".join(f"{places([(link.column, link.row) for link in same])} {text}" for text, same in sides.items())


def _alike(items: Iterable[tuple[Hashable, Item]]) -> list[list[Item]]:
    """Items with equal keys together, in the order of the first of each."""
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for key, item in items:
        groups[key].append(item)
    return list(groups.values())


def _tile_table(use: DesignUse) -> Table:
    table = new_table("Tiles", "tile", "kind", ">buffers", ">memory, bytes", ">locks", ">BDs", ">BDs in sequence",
                   "S2MM", "MM2S")  # fmt: skip
    for group in _alike((_tile_row(tile), tile) for tile in use.tiles.values()):
        table.add_row(places([(t.column, t.row) for t in group]), *_tile_row(group[0]))
    return table


def _tile_row(tile: TileUse) -> tuple[str, ...]:
    limits, memory = tile.limits, tile.memory
    runtime = f"{len(tile.runtime_bds)}{'+' if tile.open_bds else ''}" if tile.runtime_bds or tile.open_bds else "-"
    return (
        tile.kind,
        str(len(tile.buffers)) if memory else "-",
        f"{memory.used_bytes} / {memory.limit_bytes}" if memory else "-",
        f"{len(tile.locks)} / {limits.locks}",
        f"{tile.static_bds} / {limits.bds}",
        runtime if runtime == "-" else f"{runtime} / {limits.bds}",
        _channels(tile, Direction.S2MM),
        _channels(tile, Direction.MM2S),
    )


def _channels(tile: TileUse, direction: Direction) -> str:
    return ranges(channel for way, channel in tile.channels if way is direction) or "-"


def _stream_table(use: DesignUse) -> Table:
    table = new_table("Streams", "from", "port", "to", "port", "kind", ">streams", ">ends", ">hops")
    for nets in _alike((_stream_key(net), net) for net in use.routing.nets):
        ends = [end for net in nets for end in net.ends.values()]
        hops = {path.hops for net in nets for path in use.routing.paths(net)}
        table.add_row(
            _where([(net.start.tile.column, net.start.tile.row) for net in nets], nets[0].start.tile.kind),
            f"{nets[0].start.bundle} : {nets[0].start.channel}",
            _where([(end.tile.column, end.tile.row) for end in ends], *{end.tile.kind: None for end in ends}),
            ", ".join(sorted({f"{end.bundle} : {end.channel}" for end in ends})),
            _kind(nets), str(len(nets)), str(len(ends)),
            str(min(hops)) if len(hops) == 1 else f"{min(hops)}-{max(hops)}",
        )  # fmt: skip
    for source, sink in use.cascades:
        table.add_row(_where([source], "core"), "cascade", _where([sink], "core"), "cascade", "cascade", "1", "1", "1")
    return table


def _stream_key(net: Net) -> Hashable:
    ends = tuple(sorted({(end.tile.kind, end.bundle, end.channel) for end in net.ends.values()}))
    return net.start.tile.kind, net.start.bundle, net.start.channel, net.packet_id is None, ends


def _kind(nets: Sequence[Net]) -> str:
    ids = [net.packet_id for net in nets if net.packet_id is not None]
    return f"packets {ranges(ids)}" if ids else "circuit"


def _where(tiles: Sequence[Coordinates], *kinds: str) -> str:
    return f"{'/'.join(kinds)} {places(tiles)}"


def _memory_table(use: DesignUse) -> Table:
    table = new_table("Memory, bytes", "tile", ">start", ">end", ">size", "holds")
    maps = [tile.memory for tile in use.tiles.values() if tile.memory and tile.memory.used_bytes]
    for group in _alike(((m.kind, tuple((s.start, s.end, s.what in (FREE, STACK)) for s in m.spans)), m) for m in maps):
        first = group[0]
        labels = _labels(first.kind, [(m.column, m.row) for m in group])
        for span, label in zip_longest(first.spans, labels[: len(first.spans)], fillvalue=""):
            assert isinstance(span, Span)
            table.add_row(label, f"{span.start:#x}", f"{span.end:#x}", str(span.size_bytes), Text(span.what))
        table.add_section()
    return table


def _view_table(use: DesignUse) -> Table:
    """Of cores: modes of a tile, which share bytes, are such views."""
    table = new_table("Views of buffers, bytes", "tile", ">start", ">end", ">size", "view", "of")
    tiles: dict[Coordinates, list[BufferView]] = defaultdict(list)
    for view in buffer_views(use.device):
        tiles[view.place].append(view)
    for group in _alike((tuple((v.start, v.end) for v in views), views) for views in tiles.values()):
        labels = _labels(use.tiles[group[0][0].place].kind, [views[0].place for views in group])
        for view, label in zip_longest(group[0], labels[: len(group[0])], fillvalue=""):
            assert isinstance(view, BufferView)
            size = str(view.end - view.start)
            table.add_row(label, f"{view.start:#x}", f"{view.end:#x}", size, Text(view.name), Text(view.within))
        table.add_section()
    return table


def _bank_table(use: DesignUse) -> Table:
    table = new_table("Banks, bytes", "tile", ">bank", ">in use", "holds", "in use at once")
    holders = [tile for tile in use.tiles.values() if tile.banks]
    for group in _alike((_bank_key(tile), tile) for tile in holders):
        first = group[0]
        labels = _labels(first.kind, [(t.column, t.row) for t in group])
        for bank, label in zip_longest(first.banks, labels[: len(first.banks)], fillvalue=""):
            assert isinstance(bank, BankUse)
            conflicts = ", ".join(dict.fromkeys(map(str, bank.conflicts)))
            used = f"{bank.used_bytes} / {first.limits.bank_bytes}"
            table.add_row(label, str(bank.bank), used, Text(", ".join(bank.holds)), conflicts or "-")
        table.add_section()
    return table


def _bank_key(tile: TileUse) -> Hashable:
    return tile.kind, tuple((b.bank, b.used_bytes, len(b.holds), tuple(map(str, b.conflicts))) for b in tile.banks)


def _lock_table(use: DesignUse) -> Table:
    table = new_table("Locks", "tile", "id:name=first value")
    holders = [tile for tile in use.tiles.values() if tile.locks]
    for group in _alike(((tile.kind, tuple((i, op.init) for i, op in tile.locks)), tile) for tile in holders):
        first = group[0]
        label = "\n".join(_labels(first.kind, [(t.column, t.row) for t in group]))
        texts = [f"{i}:{'@' + op.symbol if op.symbol else '-'}={op.init}" for i, op in first.locks]
        table.add_row(label, Text(", ".join(texts)))
    return table


def _labels(kind: str, tiles: Sequence[Coordinates]) -> list[str]:
    """What stands beside tiles that are alike, line by line."""
    label = f"{kind} {places(tiles)}"
    return [label] if len(tiles) == 1 else [label, f"  names of ({tiles[0][0]}, {tiles[0][1]})"]
