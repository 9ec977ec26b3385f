"""Registers of the array as named bit fields, in the datasheet's `[high:low]` notation.

Source of every layout and address: RT (`xaie2pgbl_params.h`, `xaiemlgbl_params.h`), the same on AIE2 and AIE2P.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.devices.bd_registers import CORE_BD, MEMTILE_BD, SHIM_BD, Bits, RegisterGroup
from bdforge.devices.limits import PROGRAM_MEMORY_BYTES, TileKind

QUEUE = RegisterGroup("task queue", 1, {"token": Bits(0, 31, 31), "repeat": Bits(0, 23, 16), "bd": Bits(0, 3, 0)})
MEMTILE_QUEUE = RegisterGroup(
    "memtile task queue", 1, {"token": Bits(0, 31, 31), "repeat": Bits(0, 23, 16), "bd": Bits(0, 5, 0)}
)

# Channel control. Finish-on-TLAST modes (S2MM only): 0 off, 1 no counts, 2 counts with token, 3 counts in a register.
SHIM_CONTROL = RegisterGroup("shim channel control", 1, {
    "finish_on_tlast": Bits(0, 17, 16), "controller_id": Bits(0, 15, 8), "out_of_order": Bits(0, 3, 3),
    "pause_stream": Bits(0, 2, 2), "pause_memory": Bits(0, 1, 1),
})  # fmt: skip
CONTROL = RegisterGroup("channel control", 1, {
    "finish_on_tlast": Bits(0, 17, 16), "controller_id": Bits(0, 15, 8), "compression": Bits(0, 4, 4),
    "out_of_order": Bits(0, 3, 3), "reset": Bits(0, 1, 1),
    "enable": Bits(0, 0, 0),  # core tiles only, seen on silicon (HS)
})  # fmt: skip

# First word of a packet, and of what follows it at a control port (020, RT). A word is odd in its number of ones.
PACKET_HEADER = RegisterGroup("packet header", 1, {
    "parity": Bits(0, 31, 31), "source_column": Bits(0, 27, 21), "source_row": Bits(0, 20, 16),
    "type": Bits(0, 14, 12), "id": Bits(0, 4, 0),
})  # fmt: skip
CONTROL_PACKET = RegisterGroup("control packet", 1, {
    "parity": Bits(0, 31, 31), "response_id": Bits(0, 30, 24), "operation": Bits(0, 23, 22),
    "words": Bits(0, 21, 20), "offset": Bits(0, 19, 0),  # words: minus 1; offset: bytes inside the tile
})  # fmt: skip

# Channel status, as far as this project models it; memtiles number their BD with two bits more. State: 0 idle,
# 1 starting, 2 running. Whether the queue's size counts the running task is open (TASK_QUEUE_ENTRIES).
_STATUS_FIELDS = {
    "queue_size": Bits(0, 22, 20), "running": Bits(0, 19, 19), "queue_overflow": Bits(0, 18, 18),
    "stream_stall": Bits(0, 4, 4), "acquire_stall": Bits(0, 2, 2), "state": Bits(0, 1, 0),
}  # fmt: skip
STATUS = RegisterGroup("channel status", 1, {"bd": Bits(0, 27, 24)} | _STATUS_FIELDS)
MEMTILE_STATUS = RegisterGroup("memtile channel status", 1, {"bd": Bits(0, 29, 24)} | _STATUS_FIELDS)

# What mlir-aie's runtime path writes (MA): the AXI cache code of shim BDs ("enable upsizing in NoC") and the bits of
# a channel's controller id, of which it writes five.
RUNTIME_AXI_CACHE = 2
CONTROLLER_ID_MASK = 0x1F00


@dataclass(frozen=True, slots=True)
class TileRegisters:
    """Where one kind of tile keeps its DMA and lock registers (offsets inside the tile, bytes)."""

    bd: RegisterGroup
    queue: RegisterGroup
    bd_base: int
    s2mm_base: int  # control of S2MM 0; its queue follows at + 4, the next channel at + 8
    mm2s_base: int
    lock_base: int
    s2mm_status: int  # of S2MM 0; the next channel at + 4
    mm2s_status: int
    gaps: tuple[range, ...]  # offsets where there is neither memory nor a register
    control: RegisterGroup = CONTROL
    status: RegisterGroup = STATUS
    pad_value_base: int | None = None  # of MM2S 0; the next channel at + 4; AIE2P only
    core_control: int | None = None  # bit 0 enables the core, bit 1 resets it
    program_memory: range = range(0)
    bd_stride: int = 0x20
    channel_stride: int = 8
    lock_stride: int = 0x10

    def bd_offset(self, bd: int) -> int:
        return self.bd_base + self.bd_stride * bd

    def control_offset(self, direction: str, channel: int) -> int:
        base = self.s2mm_base if direction == "S2MM" else self.mm2s_base
        return base + self.channel_stride * channel

    def queue_offset(self, direction: str, channel: int) -> int:
        """Offset of a channel's task queue register."""
        return self.control_offset(direction, channel) + 4

    def status_offset(self, direction: str, channel: int) -> int:
        return (self.s2mm_status if direction == "S2MM" else self.mm2s_status) + 4 * channel

    def lock_offset(self, lock: int) -> int:
        return self.lock_base + self.lock_stride * lock


TILE_REGISTERS: Mapping[TileKind, TileRegisters] = {
    TileKind.SHIM: TileRegisters(
        SHIM_BD, QUEUE, 0x1D000, 0x1D200, 0x1D210, 0x14000, 0x1D220, 0x1D228,
        gaps=(range(0x14000),), control=SHIM_CONTROL,
    ),
    TileKind.MEMTILE: TileRegisters(
        MEMTILE_BD, MEMTILE_QUEUE, 0xA0000, 0xA0600, 0xA0630, 0xC0000, 0xA0660, 0xA0680,
        gaps=(range(0x80000, 0x91000),), status=MEMTILE_STATUS,
        pad_value_base=0xA06E0,
    ),
    TileKind.CORE: TileRegisters(
        CORE_BD, QUEUE, 0x1D000, 0x1DE00, 0x1DE10, 0x1F000, 0x1DF00, 0x1DF10,
        gaps=(range(0x10000, 0x11000), range(0x24000, 0x30000)),
        core_control=0x32000, program_memory=range(0x20000, 0x20000 + PROGRAM_MEMORY_BYTES),
    ),
}  # fmt: skip

CORE_ENABLE, CORE_RESET = 1, 2  # bits of a core's control (RT)

MEMTILE_WINDOW_BYTES = 0x80000  # a memtile DMA sees west at 0, own at 0x80000, east at 0x100000 (MA, RT, 020)
MEMTILE_WINDOWS = 3
MEMTILE_WINDOW_LOCKS = 64  # and their locks at 0, 64, 128 (MA, 020)

OFFSET_MASK = 0xFFFFF  # bits of an address inside its tile (MA)


def address(column: int, row: int, offset: int) -> int:
    """Full address of a register or memory byte: column [31:25], row [24:20], offset [19:0]."""
    return column << 25 | row << 20 | offset


def split_address(full: int) -> tuple[int, int, int]:
    """(column, row, offset) of a full address."""
    return full >> 25, full >> 20 & 0x1F, full & OFFSET_MASK


def odd_parity(word: int) -> int:
    """The word with the parity bit that makes its number of ones odd; bit 31 must be 0."""
    return word if word.bit_count() % 2 else word | PACKET_HEADER.fields["parity"].mask


def packet_header(column: int, row: int, packet_type: int, packet_id: int) -> int:
    """Header of a packet that leaves the tile at (column, row)."""
    fields = {"source_column": column, "source_row": row, "type": packet_type, "id": packet_id}
    return odd_parity(PACKET_HEADER.encode(fields)[0])
