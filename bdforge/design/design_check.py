"""Whether an array can hold a design, with every reason why not: tile, channel, BD, value and limit."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from bdforge.common.messages import clip, listed
from bdforge.design.check_program import program_reasons
from bdforge.design.check_tile import tile_reasons
from bdforge.design.lowering import Kernels, core_program
from bdforge.design.model import Allocation, Cascade, Design, Flow, Port, Tile
from bdforge.design.modes import parts_of
from bdforge.design.reasons import Reason, told_once, within
from bdforge.devices import DeviceError, Generation, TileKind, switch_of
from bdforge.devices.limits import SHIM
from bdforge.devices.rules import outside

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(design: Design) -> list[Reason]:
    """Every reason why the array of a placed design cannot hold it; empty when it can.

    Sequences are judged where they are made.
    """
    try:
        generation = design.array.generation
        wrong = list(_names_and_places(design))
        for tile in design.tiles:
            if tile.kind is not (kind := design.array.kind(tile.column, tile.row)):
                what = f"{tile.name} is no {tile.kind} but a {kind}"
                wrong.append(Reason("kind", what, "change its row", about=(tile.name,)))
    except DeviceError as error:
        return [Reason("device", str(error), "choose another device or place")]
    if not wrong:
        return told_once([*_tiles(design, generation), *((None, r) for r in _ways(design))], design.place_of)
    return told_once([(None, reason) for reason in wrong], design.place_of)


def _names_and_places(design: Design) -> Iterator[Reason]:
    """Names and places that two have, and names that no MLIR text can hold."""
    names = [tile.name for tile in design.tiles] + [allocation.name for allocation in design.allocations]
    names += [named.name for tile in design.tiles for named in (*tile.buffers, *tile.locks)]
    names += [sequence.name for sequence in design.sequences]
    names += dict.fromkeys(part.within.name for part in parts_of(design.tiles).values())
    for name, count in Counter(names).items():
        if not NAME.fullmatch(name):
            what = f"{clip(name)!r} is no name in MLIR"
            yield Reason("name", what, "use letters, digits and _", about=(name,))
        if count > 1:
            what = f"{count} of tiles, buffers, locks, allocations and sequences are called {clip(name)}"
            yield Reason("name", what, "rename them", about=(name,))
    for tile in design.tiles:
        if tile.core and not all(char.isprintable() and char not in '"\\' for char in tile.core.link_with):
            what = f"link_with = {clip(repr(tile.core.link_with))} cannot stand in MLIR's quotes"
            step = "leave out quotes and backslashes; a spec's file names its kernels: rename it"
            yield Reason("name", what, step, about=(tile.name,))
    last = {(tile.column, tile.row): tile.name for tile in design.tiles}
    for place, count in Counter((tile.column, tile.row) for tile in design.tiles).items():
        if count > 1:
            what = f"{count} tiles stand at {place}"
            yield Reason("place", what, "give all of a tile in one", about=(last[place],))


def _tiles(design: Design, generation: Generation) -> Iterator[tuple[Tile, Reason]]:
    places = {(tile.column, tile.row): tile for tile in design.tiles}
    kernels: Kernels = {}
    parts = parts_of(design.tiles)
    packets: dict[Port, set[int | None]] = {}
    for flow in design.flows:
        packets.setdefault(flow.source, set()).add(flow.packet)
    for tile in design.tiles:
        yield from ((tile, reason) for reason in tile_reasons(tile, places, generation))
        yield from ((tile, reason) for reason in _headers(packets, tile))
        wrong = list(program_reasons(tile, places))
        if tile.core and not wrong:
            wrong = list(within(("core",), core_program(tile, tile.core, (), kernels, parts)[1]))
        yield from ((tile, reason) for reason in wrong)


def _headers(packets: Mapping[Port, set[int | None]], tile: Tile) -> Iterator[Reason]:
    """BDs whose packets no flow leads on, where flows are circuits too; headers that lie in memory are left alone, and
    channels without any flow."""
    for index, channel in enumerate(tile.channels):
        ids = packets.get(tile.dma(channel.index), ())
        for place, bd in enumerate(channel.bds):
            if bd.packet and channel.direction == "MM2S" and ids and bd.packet.id not in ids:
                carried = listed(sorted(number for number in ids if number is not None))
                what = f"it sends packet {bd.packet.id}, flows from there {f'carry {carried}' if carried else 'none'}"
                where = f"MM2S {channel.index}, BD {place}"
                yield Reason("packet", what, "give a flow that packet, or the BD another", where, about=(index, place))


def _ways(design: Design) -> Iterator[Reason]:
    tiles = {tile.name: tile for tile in design.tiles}
    last: dict[Port, int] = {}
    for index, flow in enumerate(design.flows):
        yield from within(("flow", index), _flow(design, tiles, flow))
        last |= dict.fromkeys(flow.targets, index)
    circuits = Counter(target for flow in design.flows if flow.packet is None for target in flow.targets)
    for port, count in circuits.items():
        if count > 1:
            what = f"{count} circuits end at {_named(port)}"
            yield Reason("flow", what, "join them as packets or elsewhere", about=("flow", last[port]))
    for index, cascade in enumerate(design.cascades):
        yield from within(("cascade", index), _cascade(tiles, cascade))
    for named in design.allocations:
        yield from within((named.name,), _allocation(design, tiles, named))


def _allocation(design: Design, tiles: dict[str, Tile], named: Allocation) -> Iterator[Reason]:
    if named.tile.kind is not TileKind.SHIM:
        yield Reason("allocation", f"{named.name} names a channel of a {named.tile.kind}", "name a shim's")
    yield from _port(design, tiles, named.tile.dma(named.channel), sends=named.direction == "MM2S")


def _flow(design: Design, tiles: dict[str, Tile], flow: Flow) -> Iterator[Reason]:
    yield from _port(design, tiles, flow.source, sends=True)
    for target in flow.targets:
        yield from _port(design, tiles, target, sends=False)
    if flow.packet is not None and (problem := outside("pkt_id", flow.packet, SHIM)) is not None:
        yield Reason("packet", f"the flow from {_named(flow.source)}: {problem}", "use one of those")


def _cascade(tiles: dict[str, Tile], cascade: Cascade) -> Iterator[Reason]:
    if missing := {cascade.source, cascade.target} - tiles.keys():
        yield Reason("cascade", f"a cascade joins {', '.join(sorted(missing))}, no tile of the design", "add it")
        return
    source, target = tiles[cascade.source], tiles[cascade.target]
    step = target.column - source.column, target.row - source.row
    if step not in ((1, 0), (0, -1)) or target.kind is not TileKind.CORE or source.kind is not TileKind.CORE:
        what = f"the cascade from {source.name} to {target.name} leads to no core in the east or the south"
        yield Reason("cascade", what, "use a neighbour there")


def _port(design: Design, tiles: dict[str, Tile], port: Port, *, sends: bool) -> Iterator[Reason]:
    if port.tile not in tiles:
        yield Reason("flow", f"{_named(port)} is at no tile of the design", "add the tile")
        return
    tile = tiles[port.tile]
    switch = switch_of(design.array, tile.column, tile.row)
    ports = (switch.slaves if sends else switch.masters).get(port.bundle, 0)  # type: ignore[call-overload]
    if tile.kind is TileKind.SHIM and port.bundle == "DMA":
        ports = design.array.limits(tile.column, tile.row).channels
    if not 0 <= port.index < ports:
        what = f"{_named(port)} does not {'send' if sends else 'receive'}: a {tile.kind} has {ports} of {port.bundle}"
        yield Reason("flow", what, "use one of those" if ports else "use another port")


def _named(port: Port) -> str:
    return f"{port.tile}'s {port.bundle} : {port.index}"
