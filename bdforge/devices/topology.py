"""Devices by the names that people and mlir-aie use."""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.common.messages import InputError
from bdforge.devices.limits import AIE2, AIE2P, Generation, TileKind, TileLimits

FIRST_CORE_ROW = 2  # above shims and memtiles (MA)


class DeviceError(InputError):
    """An unknown device, or a tile outside of one."""


@dataclass(frozen=True, slots=True)
class Device:
    """An array: row 0 shims, row 1 memtiles, then core rows (MA)."""

    name: str
    mlir: str  # name in `aie.device(...)`
    generation: Generation
    columns: int
    rows: int = 6

    @property
    def core_rows(self) -> int:
        """Rows that hold cores."""
        return self.rows - FIRST_CORE_ROW

    def part(self, columns: int) -> str:
        """MLIR's name of so many of its columns, all of them or fewer."""
        return self.mlir if columns == self.columns else f"{self.mlir}_{columns}col"

    def kind(self, column: int, row: int) -> TileKind:
        """Kind of the tile at (column, row); DeviceError outside the device."""
        if not 0 <= column < self.columns:
            raise DeviceError(f"column {column} is outside {self.mlir}, which has columns 0 to {self.columns - 1}")
        if not 0 <= row < self.rows:
            raise DeviceError(f"row {row} is outside {self.mlir}, which has rows 0 to {self.rows - 1}")
        return (TileKind.SHIM, TileKind.MEMTILE)[row] if row < FIRST_CORE_ROW else TileKind.CORE

    def limits(self, column: int, row: int) -> TileLimits:
        """Limits of the tile at (column, row)."""
        return self.generation.limits(self.kind(column, row))


def _mlir_devices() -> Mapping[str, Device]:
    partitions = [("npu1", AIE2, 4), ("npu2", AIE2P, 8)]  # columns seen by mlir-aie (MA)
    whole = {name: Device(name, name, generation, columns) for name, generation, columns in partitions}
    parts = {
        f"{name}_{n}col": Device(f"{name}_{n}col", f"{name}_{n}col", generation, n)
        for name, generation, columns in partitions
        for n in range(1, columns)
    }
    return whole | parts


MLIR_DEVICES = _mlir_devices()
"""Every device name that `aie.device` takes for an NPU."""

# Products and their arrays: DRV (PCI ids) and MA.
_PRODUCTS = {"strix_halo": "npu2", "strix": "npu2", "krackan": "npu2", "phoenix": "npu1", "hawk_point": "npu1"}

DEVICES: Mapping[str, Device] = {
    name: Device(name, mlir, MLIR_DEVICES[mlir].generation, MLIR_DEVICES[mlir].columns)
    for name, mlir in _PRODUCTS.items()
}
"""Products by name, as `device=` takes them."""


def device_named(name: str) -> Device:
    """The product called `name`; DeviceError lists the known ones."""
    if name not in DEVICES:
        raise DeviceError(f"unknown device {name!r}; known devices: {', '.join(DEVICES)}")
    return DEVICES[name]


def mlir_device_named(name: str) -> Device:
    """The array called `name` in MLIR; DeviceError lists the known ones."""
    if name not in MLIR_DEVICES:
        raise DeviceError(f"unknown device {name!r}; known: {', '.join(MLIR_DEVICES)}")
    return MLIR_DEVICES[name]
