"""A document as a design: checked by its grammar, `for` and expressions made into what they stand for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from bdforge.common.files import SETTINGS_BYTES_MAX, parsed_toml, read_text
from bdforge.common.messages import clip, form_fault, listed
from bdforge.design.core_code import Core
from bdforge.design.document import grammar
from bdforge.design.document.expand import Expansion, Numbers, maybe, number, text, texts
from bdforge.design.document.program_reading import Surrounding, read_program
from bdforge.design.document.tables import DocumentError, Faults, Scope, Wrong, refuse
from bdforge.design.document.to_tile import TileUnderWay, channel_of, moved, packet
from bdforge.design.document.toml_places import Path
from bdforge.design.model import Allocation, Cascade, Design, Flow, Port, Tile
from bdforge.design.placement import placed
from bdforge.design.sequence import Event, LockWrite, RegisterWrite, RtpWrite, Sequence, Task, TaskBd, TokenWait
from bdforge.design.tile_memory import Buffer, Lock
from bdforge.devices import DeviceError, TileKind, mlir_device_named

_KIND = "design"
_STDIN = "-"
_ANY_SIZE = {"sequence", "operand"}
_OF_RUNS = {"problems"}  # which sizes are built in, whatever the design
_OF_ONE_BD = set(grammar.TaskBd.model_fields)
_ORDER = [TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE]


def document_in(path: File) -> str | None:
    """The text of the file of a document, None of a file of another kind; "-" is what comes on standard input.

    DocumentError for a file that cannot be read, or whose text is no TOML.
    """
    if str(path) == _STDIN:
        return read_text("/dev/stdin", DocumentError, SETTINGS_BYTES_MAX)
    text = read_text(path, DocumentError, SETTINGS_BYTES_MAX)
    return text if parsed_toml(text, path, DocumentError).get("kind") == _KIND else None


def design_of(content: str, where: str) -> Design:
    """The placed design that the text of a document says; DocumentError lists every reason why it says none.

    `where` names the text in messages, which tell lines and columns of it.
    """
    raw = parsed_toml(content, where, DocumentError)
    try:
        reader = _Reader(
            grammar.Document.model_validate({k: v for k, v in raw.items() if k not in _ANY_SIZE | _OF_RUNS})
        )
        design = reader.design()
        faults = Faults(reader.expansion.reasons)
        if design is not None and _ANY_SIZE & raw.keys():
            program = read_program(raw, Scope(reader.names, faults), surrounding(design))
            design = replace(design, program=program)
    except ValidationError as error:
        design, faults = None, Faults(_faults(raw, error))
    refuse(faults, content, where)
    assert design is not None
    return design


def surrounding(design: Design) -> Surrounding:
    """What a placed design's program may name of it."""
    return Surrounding(
        {one.name: (one.direction, one.channel, one.tile.column) for one in design.allocations},
        {buffer.name: tile.address(buffer) for tile in design.tiles for buffer in tile.buffers},
        {lock.name: tile.address(lock) for tile in design.tiles for lock in tile.locks},
    )


def _faults(raw: dict[str, Any], error: ValidationError) -> dict[Path, str]:
    """What the grammar refuses, by where it stands: pydantic's places name its own models, too."""
    found: dict[Path, str] = {}
    for fault in error.errors():
        path: Path = ()
        here: Any = raw
        for part in fault["loc"]:
            inside: dict[Any, Any] = dict(enumerate(here)) if isinstance(here, list) else here
            if isinstance(inside, dict) and part in inside:
                here, path = inside[part], (*path, part)
        reason = form_fault(fault, clip(fault["loc"][-1]))
        if expected := fault.get("ctx", {}).get("expected_tags"):
            reason = f"{clip(repr(here))} begins with none of {expected.replace(':', '')}"
        found.setdefault(path, reason)
    return found


@dataclass(slots=True)
class _Reader:
    form: grammar.Document
    names: dict[str, int] = field(default_factory=dict)
    everything: dict[str, Buffer | Lock] = field(default_factory=dict)
    expansion: Expansion = field(init=False)

    def __post_init__(self) -> None:
        self.expansion = Expansion.of(self.form)

    def design(self) -> Design | None:
        return self.expansion.made(self.form, self._design)

    def _design(self) -> Design:
        form, each = self.form, self.expansion.all
        for name, value in form.let.items():
            self.names[name] = number(value, self.names)
        tiles = {tile.name: tile for tile in self._tiles()}
        return placed(
            Design(
                form.name,
                form.device,
                tuple(tiles.values()),
                tuple(each(form.flow, self.names, _flow)),
                tuple(each(form.allocations, self.names, lambda one, names: _allocation(one, names, tiles))),
                tuple(each(form.cascade, self.names, _cascade)),
                tuple(map(self._sequence, form.runtime_sequence)),
                tuple(form.comments),
                reference=form.reference,
                made_from=form.made_from,
                kernels=tuple(form.kernels),
                macros=tuple(text(macro, self.names) for macro in form.macros),
            )
        )

    def _tiles(self) -> Iterable[Tile]:
        """Shims, memtiles, cores, each column by column."""
        try:
            array = mlir_device_named(self.form.device)
            found = self.expansion.all(
                self.form.tile, self.names, lambda one, names: TileUnderWay(one, names, self.expansion, self.everything)
            )
            kinds = {id(tile): array.kind(tile.column, tile.row) for tile in found}
        except DeviceError as error:
            raise Wrong(str(error)) from None
        found.sort(key=lambda tile: (_ORDER.index(kinds[id(tile)]), tile.column, tile.row))
        for tile in found:
            tile.hold()
        made = (self.expansion.made(tile.form, lambda one=tile: self._tile(one, kinds[id(one)])) for tile in found)
        return [tile for tile in made if tile is not None]

    def _tile(self, tile: TileUnderWay, kind: TileKind) -> Tile:
        form, names = tile.form, tile.names
        reserved = range(*(number(value, names) for value in form.reserved_bds)) if form.reserved_bds else range(0)
        buffers, locks, channels = tuple(tile.buffers), tuple(tile.locks), tuple(tile.channels())
        core = None if form.core is None else self._core(tile, text(form.core, names))
        return Tile(tile.name, tile.column, tile.row, kind, buffers, locks, channels, core, reserved)

    def _core(self, tile: TileUnderWay, name: str) -> Core:
        program = self.form.program.get(name)
        if program is None:
            raise Wrong(f"core: there is no program {clip(name)}; there is {listed(self.form.program) or 'none'}")
        link_with = program.link_with or (f"{self.form.name}.o" if self.form.kernels else "")
        return Core(tile.body(program.body), number(program.stack_bytes, tile.names), link_with)

    def _sequence(self, form: grammar.Sequence) -> Sequence:
        arguments = {
            one.name: Buffer(one.name, number(one.elements, self.names), one.type, one.role) for one in form.arguments
        }
        events = self.expansion.all(form.events, self.names, lambda one, names: self._event(one, names, arguments))
        return Sequence(form.name, form.comment, tuple(arguments.values()), tuple(events))

    def _event(self, event: grammar.Event, names: Numbers, arguments: Mapping[str, Buffer]) -> Event:
        each = self.expansion.all
        return Event(
            text(event.comment, names),
            tuple(each(event.tasks, names, lambda one, inner: _task(one, inner, arguments))),
            tuple(each(event.writes, names, self._write)),
            tuple(each(event.waits, names, _wait)),
            tuple(texts(event.free, names)),
        )

    def _write(self, write: Any, names: Numbers) -> RtpWrite | LockWrite | RegisterWrite:
        match write:
            case grammar.Rtp():
                slot, value = number(write.slot, names), number(write.value, names)
                return RtpWrite(self._find(text(write.rtp, names), Buffer), slot, value)
            case grammar.SetLock():
                return LockWrite(self._find(text(write.lock, names), Lock), number(write.value, names))
            case _:
                values = tuple(number(value, names) for value in write.values)
                return RegisterWrite(number(write.address, names), values, text(write.name, names))

    def _find(self, name: str, kind: type) -> Any:
        held = self.everything.get(name)
        if not isinstance(held, kind):
            raise Wrong(f"no tile has a {kind.__name__.lower()} {clip(name)}; give its whole name")
        return held


def _flow(flow: grammar.Flow, names: Numbers) -> Flow:
    source, targets = _port(text(flow.source, names)), tuple(map(_port, texts(flow.to, names)))
    return Flow(source, targets, text(flow.role, names), maybe(flow.packet, names), flow.keep_header)


def _port(found: str) -> Port:
    match found.split():
        case [tile, bundle, index] if index.isdecimal():
            return Port(tile, int(index), bundle)
    raise Wrong(f"{clip(repr(found))} is no port; write tile, bundle and number, such as 'mem_0 DMA 1'")


def _allocation(one: grammar.Allocation, names: Numbers, tiles: Mapping[str, Tile]) -> Allocation:
    tile, _, channel = text(one.channel, names).partition(" ")
    if tile not in tiles:
        raise Wrong(f"channel: there is no tile {clip(tile)}; there is {listed(tiles)}")
    return Allocation(text(one.name, names), tiles[tile], *channel_of(channel))


def _cascade(one: grammar.Cascade, names: Numbers) -> Cascade:
    return Cascade(text(one.source, names), text(one.to, names))


def _task(task: grammar.Task, names: Numbers, arguments: Mapping[str, Buffer]) -> Task:
    if task.bds and task.model_fields_set & _OF_ONE_BD:
        raise Wrong(f"{', '.join(sorted(task.model_fields_set & _OF_ONE_BD))} beside bds; say it in each of them")
    bds = tuple(_task_bd(bd, names, arguments) for bd in task.bds or [task])
    return Task(text(task.task, names), text(task.on, names), bds, number(task.repeat_count, names), task.token)


def _task_bd(bd: Any, names: Numbers, arguments: Mapping[str, Buffer]) -> TaskBd:
    if bd.argument not in arguments:
        raise Wrong(f"argument: there is no {clip(bd.argument)}; there is {listed(arguments) or 'none'}")
    if bd.id is None:
        raise Wrong("id: missing; add the number of the task's BD")
    buffer, label = arguments[bd.argument], text(bd.label, names)
    return TaskBd(buffer, moved(bd, buffer, names), number(bd.id, names), label, packet=packet(bd, names))


def _wait(wait: grammar.Wait, names: Numbers) -> TokenWait:
    direction, channel = channel_of(text(wait.token, names))
    return TokenWait(int(direction == "MM2S"), channel, number(wait.column, names), number(wait.columns, names))
