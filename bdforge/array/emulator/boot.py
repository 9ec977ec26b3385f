"""How an array boots: the state that register writes leave becomes that of its tiles, streams and cores.

Configurations of any origin come here: a lowered text, CDO, PDI, xclbin. Writes name where they come from.
"""

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.cores.load_machine_code import ProgramMemories
from bdforge.array.emulator.errors import LoadError
from bdforge.array.emulator.streams import WrittenStreams
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.array.lower.array_state import ArrayState, TileState
from bdforge.devices import DeviceError
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import CORE_ENABLE
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write


def boot(array: Array, state: ArrayState, programs: ProgramMemories) -> None:
    """Configure an array that was restarted; cores whose program memory was written run from address 0 on.

    LoadError for tiles that the device has not and for streams that no array can have, DmaError for tasks.
    """
    array.programs = programs
    for (column, row), written in sorted(state.tiles.items()):
        # All tiles first: a configuration for another array is refused before it changes any.
        try:
            array.tile(column, row)
        except DeviceError as error:
            raise LoadError(f"{written.name} is configured: {error}") from None
    for place, written in sorted(state.tiles.items()):
        _memories(array.tile(*place), written, programs)
    array.streams = WrittenStreams(array, state)
    for place, written in sorted(state.tiles.items()):
        set_dmas(array.tile(*place), written)
    for place in enabled_cores(state):
        if state.tiles[place].program.written.find(1) >= 0:  # without a program the text's body runs
            programs.start(place)


def enabled_cores(state: ArrayState) -> list[tuple[int, int]]:
    """Columns and rows of the cores that are to run."""
    return [place for place, tile in sorted(state.tiles.items()) if tile.of(What.CORE).get((), 0) & CORE_ENABLE]


def source_of(operation: Operation) -> str:
    """Where a write comes from, as a suffix of messages: the text, else the register."""
    if operation.location is not None:
        return f" ({operation.location})"
    assert isinstance(operation, Write | MaskWrite | BlockWrite)
    return f" ({register_at(operation.address)})"


def _memories(tile: EmulatedTile, written: TileState, programs: ProgramMemories) -> None:
    for lock, value in written.locks.items():
        tile.locks[lock].set(value)
    for start, data in written.memory.spans():
        tile.fill(start, data)
    for start, data in written.program.spans():
        programs.fill((tile.column, tile.row), start, data)


def set_dmas(tile: EmulatedTile, written: TileState) -> None:
    """BDs, what channels are set to, and their tasks; DmaError for tasks that no channel runs."""
    layout = tile.registers
    for bd, words in sorted(written.bds.items()):
        source = source_of(written.origins[What.BD, "", (bd,)])
        tile.write_block(layout.bd_offset(bd), words, source)
    for (what, direction, index), value in sorted(written.registers.items()):
        if what is What.CONTROL:
            source = source_of(written.origins[what, direction, index])
            tile.write(layout.control_offset(direction, index[0]), value, source)
        elif what is What.PAD_VALUE and layout.pad_value_base is not None:
            tile.write(layout.pad_value_base + GRANULE_BYTES * index[0], value)
    for task, push in zip(written.tasks, written.pushes, strict=True):
        tile.map.start(tile.channels[task.direction, task.channel])
        word = layout.queue.encode({"bd": task.bd, "repeat": task.repeat, "token": int(task.token)})[0]
        tile.write(layout.queue_offset(task.direction, task.channel), word, source_of(push))
