"""Tables of what an image holds: partition and kernels, and of each configuration what registers and memories get."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table

from bdforge.array.images.read import Container, ImageContent
from bdforge.array.lower.array_state import ArrayState, PushedTask, StateError, TileState
from bdforge.array.lower.switch_state import smallest_device, written_switches
from bdforge.common.screen import new_table
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import CORE_ENABLE, TILE_REGISTERS, address
from bdforge.devices.switch_registers import CASCADE
from bdforge.devices.txn_format.describe import fields_text

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
        table.add_row(
            tile.name,
            _core(tile),
            _count(sum(tile.program.written)),
            _count(sum(tile.memory.written)),
            _count(len(tile.locks)),
            _count(len(tile.bds)),
            _count(len(tile.tasks)),
        )
    return table


def _sorted(state: ArrayState) -> list[TileState]:
    return [tile for _, tile in sorted(state.tiles.items())]


def _count(number: int) -> str:
    return str(number) if number else ""


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
    tables = (_locks(state), _memory(state), _bds(state), _tasks(state), _routes(state))
    yield from (table for table in tables if table.row_count)


def _locks(state: ArrayState) -> Table:
    table = new_table("locks that are not 0", "tile", "values")
    for tile in _sorted(state):
        if values := ", ".join(f"{lock}: {value}" for lock, value in tile.locks.items() if value):
            table.add_row(tile.name, values)
    return table


def _memory(state: ArrayState) -> Table:
    table = new_table("memories", "tile", "memory", ">from", ">bytes")
    for tile in _sorted(state):
        for name, memory in (("program", tile.program), ("data", tile.memory)):
            for start, data in memory.spans():
                table.add_row(tile.name, name, f"{start:#x}", str(len(data)))
    return table


def _bds(state: ArrayState) -> Table:
    table = new_table("BDs, in words", "tile", ">BD", "fields")
    for tile in _sorted(state):
        base = TILE_REGISTERS[tile.kind]
        for bd, words in sorted(tile.bds.items()):
            register = register_at(address(tile.column, tile.row, base.bd_offset(bd)))
            table.add_row(tile.name, str(bd), fields_text(register, words))
    return table


def _tasks(state: ArrayState) -> Table:
    table = new_table("tasks", "tile", "channel", ">BD", ">runs", "token")
    for tile in _sorted(state):
        for task in tile.tasks:
            table.add_row(tile.name, *_task(task))
    return table


def _task(task: PushedTask) -> tuple[str, ...]:
    return f"{task.direction} {task.channel}", str(task.bd), str(task.repeat + 1), "yes" if task.token else ""


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
