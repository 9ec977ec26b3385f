"""Reasons that specs of all operators share: the array that they ask for, and what a mapped design takes of it."""

from collections.abc import Iterator, Mapping

from bdforge.design import Design, check
from bdforge.devices import DEVICES, Device


def array_reasons(array: str | None, rows: int, columns: int, device: Device) -> Iterator[str]:
    """Why a product has not `rows` x `columns` cores, or is not the `array` that a spec is made for."""
    if array not in (None, device.mlir):
        others = ", ".join(other.name for other in DEVICES.values() if other.mlir == array)
        yield f"array.device = {array}, but {device.name} is an {device.mlir}; build for {others}"
    if columns > device.columns:
        yield f"array.columns = {columns}, but {device.name} has {device.columns}; use fewer"
    if rows > device.core_rows:
        yield f"array.rows = {rows}, but {device.name} has {device.core_rows} rows of cores"


def stack_reasons(setting: str, stack_bytes: int, device: Device) -> Iterator[str]:
    """Why a stack of that size, as `setting` of a spec says it, cannot lie below buffers."""
    align = device.generation.vector_align_bytes
    if stack_bytes % align:
        yield f"{setting} = {stack_bytes} is not a multiple of {align}; the buffers behind it would misalign"


def design_reasons(design: Design, settings: Mapping[str, str]) -> list[str]:
    """Why no array holds a mapped design: whole vectors, memory, BDs, locks and what the registers hold.

    `settings` name what of a spec helps, by the rule that is broken.
    """
    align = design.array.generation.vector_align_bytes
    cores = [tile for tile in design.tiles if tile.core]
    odd = dict.fromkeys((b.role, b.bytes) for tile in cores for b in tile.buffers if b.bytes % align)
    reasons = [f"core: {role}: {size} bytes are not a multiple of {align}; use a larger tile" for role, size in odd]
    found = [(reason, settings.get(reason.rule)) for reason in check(design)]
    return reasons + [f"{reason}: {help_}" if help_ else str(reason) for reason, help_ in found]
