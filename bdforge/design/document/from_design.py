"""A design as a document: its tables in the order in which they stand there, what repeats said once.

Addresses and numbers of BDs are left out where `placed` gives the same.
"""

from dataclasses import replace
from typing import Any

from bdforge.design.document.from_core import programs_of
from bdforge.design.document.from_tile import Plain, element, plain_packet, plain_pattern, plain_tile
from bdforge.design.document.program_writing import Homes, plain_program
from bdforge.design.document.repeats import NUMBER, Repeating, written
from bdforge.design.document.to_design import ARGUMENT, DOCUMENT, EVENT, FLOW, TASK, TASK_BD, WAIT
from bdforge.design.document.toml_text import toml_text
from bdforge.design.events import homes_of
from bdforge.design.model import Design, Flow, Port, Tile
from bdforge.design.placement import placed
from bdforge.design.sequence import Event, LockWrite, RegisterWrite, RtpWrite, Sequence, Task, TaskBd, TokenWait
from bdforge.design.tile_memory import Lock
from bdforge.devices import TileKind

_PLACES, _OF_SEQUENCES = "crijkl", ("col", "row", "at", "at2", "at3", "at4")
"""Variables of what stands in columns and rows, and of what repeats in the sequence of any size."""


def document(design: Design) -> str:
    """The text of the document of a placed design; `bdforge.design.document.design_of` reads it."""
    return toml_text(_tables(design))


def _tables(design: Design) -> Plain:
    programs, run = programs_of(design.tiles)
    implied = _without_places(design)
    tiles = [plain_tile(tile, bare, run.get(tile.name, "")) for tile, bare in zip(design.tiles, implied, strict=True)]
    names = [
        {"name": named.name, "channel": f"{named.tile.name} {named.direction} {named.channel}"}
        for named in design.allocations
    ]
    cascades = [{"from": each.source, "to": each.target} for each in design.cascades]
    sequence, operands = _program(design)
    return DOCUMENT.filled(
        kind="design",
        name=design.name,
        device=design.device,
        comments=list(design.comments),
        reference=design.reference,
        kernels=list(design.kernels),
        macros=list(design.macros),
        code_at_end=design.code_at_end,
        allocations=written(Repeating(names), _PLACES),
        tile=[one for alike in _alike(tiles) for one in written(Repeating(alike, longest=1), _PLACES)],
        flow=written(Repeating([_flow(flow) for flow in design.flows]), _PLACES),
        cascade=written(Repeating(cascades), _PLACES),
        program=written(programs),
        runtime_sequence=written([_sequence(sequence) for sequence in design.sequences]),
        sequence=written(sequence, _OF_SEQUENCES),
        operand=written(operands),
        problems=[dict(problem) for problem in design.problems],
        made_from=design.made_from,
    )


def _program(design: Design) -> tuple[Plain, list[Plain]]:
    """The tables of the sequence of any size and of its operands; empty ones where there is none."""
    if design.program is None:
        return {}, []
    channels = {(one.direction, one.channel, one.tile.column): one.name for one in design.allocations}
    return plain_program(design.program, channels, _homes(design), _roles(design))


def _roles(design: Design) -> dict[tuple[str, int], str]:
    """What the shims' channels of a number are for, where all of them are for one thing."""
    shims = {tile.name for tile in design.tiles if tile.kind is TileKind.SHIM}
    found: dict[tuple[str, int], set[str]] = {}
    for flow in design.flows:
        for way, port in (("MM2S", flow.source), *(("S2MM", target) for target in flow.targets)):
            if port.tile in shims and port.bundle == "DMA":
                found.setdefault((way, port.index), set()).add(flow.role)
    return {channel: next(iter(roles)) for channel, roles in found.items() if len(roles) == 1}


def _homes(design: Design) -> Homes:
    homes = homes_of(design).items()
    return {at: {"lock": held.name} if isinstance(held, Lock) else element(*held, "rtp", "slot") for at, held in homes}


def _alike(tiles: list[Plain]) -> list[list[Plain]]:
    """Tiles by what they are but for numbers: in the text they stand by kind and place, whatever their order here."""
    groups: dict[str, list[Plain]] = {}
    for tile in tiles:
        groups.setdefault(NUMBER.sub("0", repr(tile)), []).append(tile)
    return list(groups.values())


def _without_places(design: Design) -> list[Tile]:
    """Tiles of the design as they may be written: what `placed` gives them again is left out."""
    bare = [_bare(tile) for tile in design.tiles]
    again = placed(replace(design, tiles=tuple(bare)))
    pairs = zip(design.tiles, bare, again.tiles, strict=True)
    return [short if _places(back) == _places(tile) else tile for tile, short, back in pairs]


def _bare(tile: Tile) -> Tile:
    buffers = tuple(replace(buffer, address=None, banks=range(0)) for buffer in tile.buffers)
    channels = tuple(
        replace(channel, bds=tuple(replace(bd, bd_id=None) for bd in channel.bds)) for channel in tile.channels
    )
    return replace(tile, buffers=buffers, channels=channels)


def _places(tile: Tile) -> tuple:
    return tuple(b.address for b in tile.buffers), tuple(bd.bd_id for c in tile.channels for bd in c.bds)


def _flow(flow: Flow) -> Plain:
    return FLOW.filled(
        role=flow.role, from_=_port(flow.source), to=_texts([_port(port) for port in flow.targets]),
        packet=flow.packet, keep_header=flow.keep_header,
    )  # fmt: skip


def _port(port: Port) -> str:
    return f"{port.tile} {port.bundle} {port.index}"


def _texts(texts: list[str]) -> Any:
    return texts[0] if len(texts) == 1 else Repeating([{"name": text} for text in texts])


def _sequence(sequence: Sequence) -> Plain:
    arguments = [
        ARGUMENT.filled(name=b.name, elements=b.elements, type=b.type, role=b.role) for b in sequence.arguments
    ]
    events = Repeating([_event(event) for event in sequence.events])
    return {"name": sequence.name, "comment": sequence.comment, "arguments": arguments, "events": events}


def _event(event: Event) -> Plain:
    return EVENT.filled(
        comment=event.comment,
        tasks=Repeating([_task(task) for task in event.tasks]),
        writes=Repeating([_write(write) for write in event.writes], least=3),
        waits=Repeating([_wait(wait) for wait in event.waits]),
        free=_texts(list(event.free)),
    )


def _task(task: Task) -> Plain:
    bds = [_task_bd(bd) for bd in task.bds]
    moved = bds[0] if len(bds) == 1 else {"bds": bds}
    return TASK.filled(task=task.name, on=task.allocation, **moved, repeat_count=task.repeat_count, token=task.token)


def _task_bd(bd: TaskBd) -> Plain:
    moved = plain_pattern(bd.pattern, bd.buffer) | plain_packet(bd.packet)
    return TASK_BD.filled(argument=bd.buffer.name, **moved, label=bd.label, id=bd.bd_id)


def _write(write: RtpWrite | LockWrite | RegisterWrite) -> Plain:
    match write:
        case RtpWrite(buffer, slot, value):
            return element(buffer, slot, "rtp", "slot") | {"value": value}
        case LockWrite(lock, value):
            return {"lock": lock.name, "value": value}
        case RegisterWrite(address, values, name):
            return {"address": address, "values": list(values)} | ({"name": name} if name else {})


def _wait(wait: TokenWait) -> Plain:
    direction = "MM2S" if wait.direction else "S2MM"
    return WAIT.filled(token=f"{direction} {wait.channel}", column=wait.column, columns=wait.columns)
