"""Register writes as they are collected: addresses of tiles, words from bytes, places in the text."""

import struct
from collections.abc import Sequence

from xdsl.ir import Operation as MlirOperation

from bdforge.array.mlir.locations import location
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import address
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write

WORD_MASK = 0xFFFFFFFF
Tile = tuple[int, int]
"""Column and row."""


class Writer:
    """Writes in order; offsets count from the start of their tile."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def write(self, op: MlirOperation, tile: Tile, offset: int, value: int) -> None:
        """Set a register."""
        at = address(*tile, offset)
        self.operations.append(Write(at, value & WORD_MASK, location=location(op), origin=op.name))

    def mask(self, op: MlirOperation, tile: Tile, offset: int, mask: int, value: int) -> None:
        """Set the bits of a register that `mask` names."""
        at = address(*tile, offset)
        self.operations.append(MaskWrite(at, value, mask, location=location(op), origin=op.name))

    def block(self, op: MlirOperation, tile: Tile, offset: int, words: Sequence[int]) -> None:
        """Set consecutive registers."""
        at = address(*tile, offset)
        self.operations.append(BlockWrite(at, tuple(words), location=location(op), origin=op.name))

    def fill(self, op: MlirOperation, tile: Tile, offset: int, data: bytes) -> None:
        """Put bytes into data memory as aie-rt does (`xaie_mem.c`): whole words, then the bytes that remain by a mask.

        From an offset that is no multiple of 4 on aie-rt fills from the *next* word on, with a masked write of nothing
        before: callers refuse such an offset or warn of it.
        """
        if offset % GRANULE_BYTES:
            offset -= offset % GRANULE_BYTES
            self.mask(op, tile, offset, 0, 0)
            offset += GRANULE_BYTES
        whole = len(data) // GRANULE_BYTES
        if whole:
            self.block(op, tile, offset, struct.unpack_from(f"<{whole}I", data))
        if rest := data[GRANULE_BYTES * whole :]:
            mask = (1 << 8 * len(rest)) - 1
            self.mask(op, tile, offset + GRANULE_BYTES * whole, mask, int.from_bytes(rest, "little"))
