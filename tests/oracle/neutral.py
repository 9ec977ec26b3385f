"""Descriptions of array designs as neutral designs; core bodies and sequences stay text, which a template adds."""

from pathlib import Path

from bd_patterns import Pattern
from bdforge import design as neutral
from bdforge.devices import TileKind
from oracle.array_design import Bd, Buffer, Design, Flow, Lock, Port, Program, Tile, UseLock
from oracle.array_text import kernel_calls, kernel_line, sequence_lines
from oracle.core_text import CoreText

TEMPLATE = Path(__file__).with_name("neutral.mlir.j2")


def neutral_text(design: Design) -> str:
    """The MLIR of a description as `bdforge.design` places, checks and writes it."""
    lines = [kernel_line(design, call) for call in kernel_calls(design)]
    lines += [line for core in design.cores for line in CoreText(design, core).lines()]
    return neutral.render(neutral_design(design), TEMPLATE, lines=[*lines, *sequence_lines(design)])


def neutral_design(design: Design) -> neutral.Design:
    """The same tiles, buffers, locks, DMA programs and flows."""
    buffers = {
        b.name: neutral.Buffer(b.name, b.elements, b.element, "", b.address, values=b.values or ())
        for b in design.buffers
    }
    locks = {lock.name: neutral.Lock(lock.name, lock.id, lock.init) for lock in design.locks}
    tiles = tuple(_tile(design, tile, buffers, locks) for tile in design.tiles())
    return neutral.placed(neutral.Design("random", design.device, tiles, tuple(map(_flow, design.flows))))


def _tile(design: Design, tile: Tile, buffers: dict, locks: dict) -> neutral.Tile:
    def here(things: tuple[Buffer, ...] | tuple[Lock, ...]) -> list[str]:
        return [thing.name for thing in things if thing.tile == tile]

    channels = [channel for p in design.programs if p.port.tile == tile for channel in _channels(p, buffers, locks)]
    return neutral.Tile(
        tile.name, tile.column, tile.row, TileKind(tile.kind),
        tuple(buffers[name] for name in here(design.buffers)), tuple(locks[name] for name in here(design.locks)),
        tuple(channels), neutral.Core(()) if tile.kind == "core" else None,
    )  # fmt: skip


def _channels(program: Program, buffers: dict, locks: dict) -> list[neutral.Channel]:
    return [
        neutral.Channel(
            program.port.direction, program.port.channel, tuple(_bd(bd, buffers, locks) for bd in chain.bds),
            back=0 if chain.loops else None, runs=chain.runs,
        )
        for chain in program.tasks
    ]  # fmt: skip


def _bd(bd: Bd, buffers: dict, locks: dict) -> neutral.Bd:
    sizes, strides = [d.size for d in bd.dims] or [bd.length], [d.stride for d in bd.dims] or [1]
    padded = any(d.before or d.after for d in bd.dims)
    made = neutral.Bd(
        buffers[bd.memory], Pattern(tuple(sizes), tuple(strides), bd.offset), _acquire(bd.acquire, locks),
        neutral.Release(locks[bd.release.lock], bd.release.value) if bd.release else None,
        tuple((d.before, d.after) for d in bd.dims) if padded else (),
        neutral.Packet(bd.packet[1], bd.packet[0]) if bd.packet else None, bd.bd_id,
    )  # fmt: skip
    assert made.elements == bd.length
    return made


def _acquire(use: UseLock | None, locks: dict) -> neutral.Acquire | None:
    return neutral.Acquire(locks[use.lock], use.value, use.action == "Acquire") if use else None


def _flow(flow: Flow) -> neutral.Flow:
    def port(end: Port) -> neutral.Port:
        return neutral.Port(end.tile.name, end.channel)

    return neutral.Flow(port(flow.source), tuple(map(port, flow.sinks)), "", flow.packet_id, flow.keep_header)
