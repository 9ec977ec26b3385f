"""Tables of what an image holds: partition and kernels, and of each configuration what registers and memories get."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table

from bdforge.array.images.read import Container, ImageContent
from bdforge.array.lower.array_state import ArrayState, StateError, TileState
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.common.screen import new_table
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import CORE_ENABLE, TILE_REGISTERS, address
from bdforge.devices.switch_registers import CASCADE
from bdforge.devices.txn_format.describe import fields_text

Rows = Iterator[tuple[str, ...]]
_MOST_SECONDS = 253402300799  # the last second that a date has


def image_tables(image: ImageContent) -> Iterator[RenderableType]:
    """All tables of a file; StateError for a write that no rule knows."""
    if image.container is not None:
        yield from _container(image.container)
    for number, operations in enumerate(image.configurations):
        state = ArrayState(operations)
        title = f"configuration {number}: " if len(image.configurations) > 1 else ""
        yield _tiles(state, f"{title}{len(operations)} register writes")
        yield from _tables(state)


def _container(container: Container) -> Iterator[RenderableType]:
    table = new_table("xclbin", "what", "value")
    table.add_row("uuid", container.uuid)
    table.add_row("time", _time(container.seconds))
    table.add_row("columns of partitions", ", ".join(map(str, container.columns)) or "no partition")
    for kernel in container.kernels:
        table.add_row("kernel", f"{kernel.name}, id {kernel.id:#x}")
    for place, functions in container.host_kernels.items():
        table.add_row(f"core {place}", f"no machine code; on the host: {', '.join(functions) or 'its body'}")
    table.add_row("sections", ", ".join(f"{name} {size} B" for name, size in container.section_kinds))
    yield table


def _time(seconds: int) -> str:
    if seconds > _MOST_SECONDS:
        return f"{seconds} s since 1970"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _tiles(state: ArrayState, title: str) -> Table:
    table = new_table(title, "tile", "core", ">program B", ">memory B", ">locks", ">BDs", ">tasks")
    for tile in _sorted(state):
        counts = (sum(tile.program.written), sum(tile.memory.written), len(tile.locks), len(tile.bds), len(tile.tasks))
        table.add_row(tile.name, _core(tile), *(str(count) if count else "" for count in counts))
    return table


def _sorted(state: ArrayState) -> list[TileState]:
    return [tile for _, tile in sorted(state.tiles.items())]


def _core(tile: TileState) -> str:
    """Whether the core runs, and where its cascade comes from and goes to."""
    control = tile.of(What.CORE).get(())
    words = [] if control is None else ["enabled" if control & CORE_ENABLE else "stopped"]
    if (word := tile.of(What.CASCADE).get(())) is not None:
        sides = CASCADE.decode([word])
        words.append(f"cascade {'West' if sides['input_west'] else 'North'} to "
                     f"{'East' if sides['output_east'] else 'South'}")  # fmt: skip
    return ", ".join(words)


def _tables(state: ArrayState) -> Iterator[RenderableType]:
    tables = [_of_tiles(state, *columns, rows=rows) for columns, rows in _OF_TILES.items()]
    yield from (table for table in (*tables, _routes(state)) if table.row_count)


def _of_tiles(state: ArrayState, title: str, *columns: str, rows: Callable[[TileState], Rows]) -> Table:
    table = new_table(title, "tile", *columns)
    for tile in _sorted(state):
        for row in rows(tile):
            table.add_row(tile.name, *row)
    return table


def _locks(tile: TileState) -> Rows:
    if values := ", ".join(f"{lock}: {value}" for lock, value in tile.locks.items() if value):
        yield (values,)


def _memory(tile: TileState) -> Rows:
    for name, memory in (("program", tile.program), ("data", tile.memory)):
        yield from ((name, f"{start:#x}", str(len(data))) for start, data in memory.spans())


def _bds(tile: TileState) -> Rows:
    for bd, words in sorted(tile.bds.items()):
        register = register_at(address(tile.column, tile.row, TILE_REGISTERS[tile.kind].bd_offset(bd)))
        yield str(bd), fields_text(register, words)


def _tasks(tile: TileState) -> Rows:
    for task in tile.tasks:
        yield f"{task.direction} {task.channel}", str(task.bd), str(task.repeat + 1), "yes" if task.token else ""


_OF_TILES = {
    ("locks that are not 0", "values"): _locks,
    ("memories", "memory", ">from", ">bytes"): _memory,
    ("BDs, in words", ">BD", "fields"): _bds,
    ("tasks", "channel", ">BD", ">runs", "token"): _tasks,
}
"""What gives the rows of a tile, by title and columns behind the tile's name."""


def _routes(state: ArrayState) -> Table:
    table = new_table("routes", "from", "packets", "to")
    try:
        streams = list(written_switches(state, smallest_device(state)).streams())
    except StateError as error:
        table.add_row("", "", f"cannot be followed: {error}")
        return table
    for stream in streams:
        packets = "" if stream.packet_id is None else str(stream.packet_id)
        table.add_row(
            str(stream.start),
            packets,
            ", ".join([*map(str, stream.ends.values()), *(f"lost: {why}" for why in stream.lost)]),
        )
    return table
