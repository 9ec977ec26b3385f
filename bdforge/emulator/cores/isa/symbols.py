"""Names of a design as the program of one of its cores knows them: addresses of buffers, numbers of locks."""

from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS, TileKind
from bdforge.emulator.cores.isa.memory import FIRST, WINDOW_BYTES
from bdforge.mlir.allocate import allocate
from bdforge.mlir.array_ops import BufferOp, DeviceOp, LockOp


def core_symbols(device: DeviceOp, column: int, row: int) -> dict[str, int]:
    """Named buffers and locks that the core at (column, row) reaches, in its own and its neighbours' tiles.

    Names of its own tile that begin with `core_COLUMN_ROW_` are known without that too, so that cores with the same
    layout can share a program.
    """
    allocation = allocate(device)
    found: dict[str, int] = {}
    windows = {(column + east, row + north): window for window, (east, north) in enumerate(CORE_LOCK_WINDOWS)}
    for op, at in (*allocation.buffers.items(), *allocation.locks.items()):
        window = windows.get((op.tile.column, op.tile.row))
        if window is not None and op.symbol and device.device.kind(op.tile.column, op.tile.row) is TileKind.CORE:
            found[op.symbol] = at + _first(op, window)
    own = f"core_{column}_{row}_"
    return found | {name.removeprefix(own): value for name, value in found.items() if name.startswith(own)}


def _first(op: BufferOp | LockOp, window: int) -> int:
    return CORE.locks * window if isinstance(op, LockOp) else FIRST + WINDOW_BYTES * window
