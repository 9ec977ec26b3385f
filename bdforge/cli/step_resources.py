"""What each design of a composition takes of its tiles, below what these have."""

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from bdforge.array.images.programs import read_programs
from bdforge.array.mlir import parsed
from bdforge.array.show.array_use import TileUse, devices_of, use_of
from bdforge.common.files import read_bytes
from bdforge.common.screen import new_table
from bdforge.devices import TileKind
from bdforge.devices.limits import PROGRAM_MEMORY_BYTES
from bdforge.runtime.built_design import BuildError, BuiltDesign

_KINDS = (TileKind.CORE, TileKind.MEMTILE)


def resource_table(designs: Sequence[BuiltDesign]) -> Table:
    """A row a design: cores, the longest program, and the most that a tile of each kind takes; a last one of limits.

    BuildError for images that cannot be read.
    """
    columns = (f">{what}" for kind in _KINDS for what in (f"{kind} B", "locks", "BDs"))
    table = new_table("what a tile needs at most: code, memory, locks, BDs", "=design", ">cores", ">code B", *columns)
    for design in designs:
        table.add_row(design.name, *_row(design))
    table.add_section()
    limits = (designs[0].array.generation.limits(kind) for kind in _KINDS)
    most = ((each.memory_bytes, each.locks, each.bds) for each in limits)
    table.add_row("there are", "", str(PROGRAM_MEMORY_BYTES), *(str(number) for three in most for number in three))
    return table


def _row(design: BuiltDesign) -> Iterator[str]:
    (device,) = devices_of(parsed(design.mlir, str(design.mlir_file)))
    tiles = use_of(device).tiles.values()
    programs = read_programs(read_bytes(design.image("xclbin"), BuildError))
    yield str(sum(tile.kind is TileKind.CORE for tile in tiles))
    yield str(max(sum(len(segment.data) for segment in program.code) for program in programs))
    for kind in _KINDS:
        yield from map(str, _most(tile for tile in tiles if tile.kind is kind))


def _most(tiles: Iterable[TileUse]) -> Sequence[int]:
    """Bytes, locks and BDs of the tile that has most of each."""
    found = [(tile.memory.used_bytes if tile.memory else 0, len(tile.locks), tile.static_bds) for tile in tiles]
    return [max(numbers) for numbers in zip(*found, strict=True)] or [0] * 3
