"""Names of a design as the program of one of its cores knows them: addresses of buffers, numbers of locks."""

from bdforge.array.mlir.allocate import AddressMap, allocate
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS, CORE_OWN_MEMORY, TileKind

_OWN_WINDOW = len(CORE_LOCK_WINDOWS) - 1


def core_symbols(device: DeviceOp, column: int, row: int, allocation: AddressMap | None = None) -> dict[str, int]:
    """Named buffers and locks that the core at (column, row) reaches, in its own and its neighbours' tiles.

    Names of its own tile that begin with `core_COLUMN_ROW_` are known without that too, so that cores with the same
    layout can share a program. `allocation` is the device's, where it is known already.
    """
    found = {op.symbol: number for op, number in reach(device, column, row, allocation).items() if op.symbol}
    own = f"core_{column}_{row}_"
    return found | {name.removeprefix(own): value for name, value in found.items() if name.startswith(own)}


def reach(
    device: DeviceOp, column: int, row: int, allocation: AddressMap | None = None
) -> dict[BufferOp | LockOp, int]:
    """Addresses of buffers and numbers of locks as the core at (column, row) knows them, of all that it reaches."""
    allocation = allocation or allocate(device)
    found: dict[BufferOp | LockOp, int] = {}
    windows = {(column + east, row + north): window for window, (east, north) in enumerate(CORE_LOCK_WINDOWS)}
    for op, at in (*allocation.buffers.items(), *allocation.locks.items()):
        place = op.tile.column, op.tile.row
        if place in windows and device.device.kind(*place) is TileKind.CORE:
            found[op] = at + _first(op, windows[place])
    return found


def _first(op: BufferOp | LockOp, window: int) -> int:
    if isinstance(op, LockOp):
        return CORE.locks * window
    return CORE_OWN_MEMORY - CORE.memory_bytes * (_OWN_WINDOW - window)
