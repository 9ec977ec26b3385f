"""Moves programs of memtiles and cores from the static regions into the runtime sequence."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from oracle.array_design import Bd, Chain, Configure, Design, Operation, Program, Start, Tile
from oracle.random_patterns import LIMITS

QUEUE_BD_IDS = 16  # the queue word that mlir-aie writes for a task holds four bits


def can_move(design: Design, program: Program) -> bool:
    """Whether the runtime path expresses a program: three dimensions, no padding, own memory and locks."""
    tile = program.port.tile
    if tile.kind == "shim" or (
        tile.kind == "memtile" and (design.device.startswith("npu1") or program.port.channel % 2)
    ):
        return False
    places = {m.name: m.tile for m in (*design.buffers, *design.locks)}
    bds = [bd for chain in program.tasks for bd in chain.bds]
    uses = [use.lock for bd in bds for use in (bd.acquire, bd.release) if use]
    plain = all(len(bd.dims) <= 3 and not any(d.before or d.after for d in bd.dims) for bd in bds)
    return plain and all(places[name] == tile for name in (*uses, *(bd.memory for bd in bds)))


def numbered(programs: list[Program], ids: dict[int, Iterator[int]]) -> list[Program]:
    """The programs with explicit BD ids, taken from those of each parity of channels."""

    def chain(parity: int, old: Chain) -> Chain:
        return replace(old, bds=tuple(replace(bd, bd_id=next(ids[parity])) for bd in old.bds))

    return [Program(p.port, tuple(chain(p.port.channel % 2, t) for t in p.tasks)) for p in programs]


def free_ids(tile: Tile) -> dict[int, Iterator[int]]:
    limits = LIMITS[tile.kind]
    if tile.kind == "memtile":
        return {parity: iter(limits.bds_of_channel(parity)) for parity in (0, 1)}
    together = iter(range(limits.bds))
    return {0: together, 1: together}


def bds_of(programs: list[Program]) -> list[Bd]:
    return [bd for p in programs for chain in p.tasks for bd in chain.bds]


def with_runtime_tasks(random: Random, design: Design) -> Design:
    """Some programs become tasks at the start of the sequence; all BDs of their tiles then have explicit ids."""
    kept: list[Program] = []
    opening: list[Operation] = []
    for tile, programs in design.programs_by_tile():
        moved = [p for p in programs if can_move(design, p) and random.random() < 0.3]
        if not moved or len(bds_of(moved)) > QUEUE_BD_IDS:
            kept += programs
            continue
        ids = free_ids(tile)
        for program in numbered(moved, ids):
            opening += tasks_of(program)
        kept += numbered([p for p in programs if p not in moved], ids)
    return design.with_changes(programs=tuple(kept), sequence=(*opening, *design.sequence))


def tasks_of(program: Program) -> list[Operation]:
    """Configures and starts every task of a program."""
    port = program.port
    found: list[Operation] = []
    for number, chain in enumerate(program.tasks):
        name = f"{port.tile.name}_{port.direction.lower()}_{port.channel}_{number}"
        found += [Configure(name, port, chain, token=False, by_name=False), Start(name)]
    return found
