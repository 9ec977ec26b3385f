"""Cores: reset, programs and enabling; their cascades.

Source: mlir-aie 5ff2ab97 (`AIERT.cpp`, `AIETargetCDODirect.cpp`), aie-rt cc68248 (`xaie_elfloader.c`).
"""

import struct
from collections.abc import Iterable
from typing import Protocol

from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.stream_ops import CascadeFlowOp, ConfigureCascadeOp
from bdforge.array.txn.target import lowering_error
from bdforge.array.txn.writer import Tile, Writer
from bdforge.devices import Device, PortBundle, TileKind
from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS, CORE_OWN_MEMORY, GRANULE_BYTES, PROGRAM_MEMORY_BYTES
from bdforge.devices.registers import CORE_ENABLE, CORE_RESET, TILE_REGISTERS
from bdforge.devices.switch_registers import CASCADE, CASCADE_OFFSET

_REGISTERS = TILE_REGISTERS[TileKind.CORE]
_CONTROL = _REGISTERS.core_control or 0
_CHANNELS = tuple((d, c) for d in ("MM2S", "S2MM") for c in range(CORE.channels))
_FIRST_WINDOW = CORE_OWN_MEMORY - CORE.memory_bytes * (len(CORE_LOCK_WINDOWS) - 1)


class ProgramSegment(Protocol):
    """Bytes of a program at an address as the core sees it (`bdforge.core.isa.elf.Segment`)."""

    @property
    def address(self) -> int:
        """Where they go: program memory below 0x4000, data memory from 0x40000 on."""
        ...

    @property
    def data(self) -> bytes:
        """The bytes."""
        ...

    @property
    def tail(self) -> bytes:
        """What completes the last word of code: the loader takes whole words, and so what follows in the file."""
        ...


def load_program(writer: Writer, core: CoreOp, pieces: Iterable[ProgramSegment], device: Device) -> None:
    """Stop a core and its channels, write its program and data, release the channels; LoweringError for the ELF."""
    tile = core.tile.place
    writer.mask(core, tile, _CONTROL, CORE_ENABLE, 0)
    _reset_channels(writer, core, tile, 1)
    for piece in pieces:
        if piece.address < PROGRAM_MEMORY_BYTES:
            _code(writer, core, tile, piece)
        else:
            _data(writer, core, tile, piece, device)
    _reset_channels(writer, core, tile, 0)


def _reset_channels(writer: Writer, core: CoreOp, tile: Tile, value: int) -> None:
    bits = _REGISTERS.control.fields["reset"].mask
    for direction, channel in _CHANNELS:
        writer.mask(core, tile, _REGISTERS.control_offset(direction, channel), bits, bits * value)


def _code(writer: Writer, core: CoreOp, tile: Tile, piece: ProgramSegment) -> None:
    if (end := piece.address + len(piece.data)) > PROGRAM_MEMORY_BYTES:
        raise lowering_error(core, f"{core.elf_file}: code ends at {end:#x}, beyond {PROGRAM_MEMORY_BYTES:#x}")
    if piece.address % GRANULE_BYTES:
        raise lowering_error(core, f"{core.elf_file}: code at {piece.address:#x}; it starts at multiples of 4")
    missing = -len(piece.data) % GRANULE_BYTES
    data = piece.data + piece.tail[:missing].ljust(missing, b"\0")
    words = struct.unpack(f"<{len(data) // GRANULE_BYTES}I", data)
    writer.block(core, tile, _REGISTERS.program_memory.start + piece.address, words)


def _data(writer: Writer, core: CoreOp, tile: Tile, piece: ProgramSegment, device: Device) -> None:
    """Bytes for the four memories that a core reaches, split where one ends."""
    address, data = piece.address, piece.data
    while data:
        window, offset = divmod(address - _FIRST_WINDOW, CORE.memory_bytes)
        owner = _owner(tile, window, device)
        if owner is None:
            raise lowering_error(core, f"{core.elf_file}: data at {address:#x} is in no memory that the core reaches")
        part, data = data[: CORE.memory_bytes - offset], data[CORE.memory_bytes - offset :]
        writer.fill(core, owner, offset, part)
        address += len(part)


def _owner(tile: Tile, window: int, device: Device) -> Tile | None:
    """The core tile whose memory a core sees in a window; None if there is none."""
    if not 0 <= window < len(CORE_LOCK_WINDOWS):
        return None
    column, row = (a + b for a, b in zip(tile, CORE_LOCK_WINDOWS[window], strict=True))
    inside = 0 <= column < device.columns and 0 <= row < device.rows
    return (column, row) if inside and device.kind(column, row) is TileKind.CORE else None


def reset_core(writer: Writer, core: CoreOp) -> None:
    """Reset a core and set all of its tile's locks to 0."""
    tile = core.tile.place
    writer.mask(core, tile, _CONTROL, CORE_RESET, CORE_RESET)
    writer.mask(core, tile, _CONTROL, CORE_RESET, 0)
    for lock in range(CORE.locks):
        writer.write(core, tile, _REGISTERS.lock_offset(lock), 0)


def enable_core(writer: Writer, core: CoreOp) -> None:
    """Let a core run from program address 0 on."""
    writer.mask(core, core.tile.place, _CONTROL, CORE_ENABLE, CORE_ENABLE)


def set_cascades(writer: Writer, device: DeviceOp) -> None:
    """Sides of cascades as the text gives them, then those of its flows; LoweringError for what no array can do.

    As mlir-aie lowers flows, a core that only takes or only gives gets North and South for its other side.
    """
    gives: dict[Tile, Tile] = {}
    takes: dict[Tile, Tile] = {}
    flows: dict[Tile, CascadeFlowOp] = {}
    for op in device.body.block.ops:
        if isinstance(op, ConfigureCascadeOp):
            _set_cascade(writer, op, op.tile.place, op.input is PortBundle.WEST, op.output is PortBundle.EAST)
        elif isinstance(op, CascadeFlowOp):
            _join(op, gives, takes)
            flows |= {op.source.place: op, op.destination.place: op}
    for tile, op in sorted(flows.items(), key=lambda item: item[0]):
        _set_cascade(writer, op, tile, takes.get(tile, tile)[0] < tile[0], gives.get(tile, tile)[0] > tile[0])


def _join(op: CascadeFlowOp, gives: dict[Tile, Tile], takes: dict[Tile, Tile]) -> None:
    """A cascade runs south or east, and each core has one each way."""
    source, target = op.source.place, op.destination.place
    north = target[1] > source[1]
    if north or target[0] < source[0]:
        raise lowering_error(
            op,
            f"a cascade runs to the core south or east of its source; {source} to {target} is "
            f"{'north' if north else 'west'}",
        )
    if (taker := gives.setdefault(source, target)) != target:
        raise lowering_error(op, f"core {source} has one cascade output, which leads to core {taker} already")
    if (giver := takes.setdefault(target, source)) != source:
        raise lowering_error(op, f"core {target} has one cascade input, which comes from core {giver} already")


def _set_cascade(
    writer: Writer, op: ConfigureCascadeOp | CascadeFlowOp, tile: Tile, from_west: bool, to_east: bool
) -> None:
    """Sides that a core has for it, as mlir.verify_array sees to."""
    values = {"input_west": int(from_west), "output_east": int(to_east)}
    writer.write(op, tile, CASCADE_OFFSET, CASCADE.encode(values)[0])
