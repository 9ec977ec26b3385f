"""Registers of stream switches and shim muxes as named bit fields; offsets of a tile's ports.

Source of layouts and offsets: RT, the same on AIE2 and AIE2P; which values mlir-aie writes: MA (`AIERT.cpp`).
"""

from bdforge.devices.bd_registers import Bits, RegisterGroup
from bdforge.devices.limits import TileKind

CIRCUIT_MASTER = RegisterGroup("circuit master", 1, {
    "enable": Bits(0, 31, 31), "packet": Bits(0, 30, 30), "slave": Bits(0, 6, 0),
})  # fmt: skip
PACKET_MASTER = RegisterGroup("packet master", 1, {
    "enable": Bits(0, 31, 31), "packet": Bits(0, 30, 30), "drop_header": Bits(0, 7, 7), "msels": Bits(0, 6, 3),
    "arbiter": Bits(0, 2, 0),
})  # fmt: skip
SLAVE = RegisterGroup("slave", 1, {"enable": Bits(0, 31, 31), "packet": Bits(0, 30, 30)})
RULE = RegisterGroup("packet rule", 1, {
    "id": Bits(0, 28, 24), "mask": Bits(0, 20, 16), "enable": Bits(0, 8, 8), "msel": Bits(0, 5, 4),
    "arbiter": Bits(0, 2, 0),
})  # fmt: skip

# A shim's mux leads streams of its South slaves into the array, its demux those of its South masters out of it.
SHIM_MUX_OFFSET, SHIM_DEMUX_OFFSET = 0x1F000, 0x1F004
SHIM_MUX = RegisterGroup("shim mux", 1, {
    "south_2": Bits(0, 9, 8), "south_3": Bits(0, 11, 10), "south_6": Bits(0, 13, 12), "south_7": Bits(0, 15, 14),
})  # fmt: skip
SHIM_DEMUX = RegisterGroup("shim demux", 1, {
    "south_2": Bits(0, 5, 4), "south_3": Bits(0, 7, 6), "south_4": Bits(0, 9, 8), "south_5": Bits(0, 11, 10),
})  # fmt: skip
MUX_TO_DMA = 1  # value of a mux field; 0 fabric, 2 NoC

CASCADE_OFFSET = 0x36060  # accumulator control of a core tile
CASCADE = RegisterGroup("cascade", 1, {"output_east": Bits(0, 1, 1), "input_west": Bits(0, 0, 0)})

_SLAVES, _RULES, _RULE_STRIDE, _WORD = 0x100, 0x200, 0x10, 4


def switch_base(kind: TileKind) -> int:
    """Offset of a tile's first master port."""
    return 0xB0000 if kind is TileKind.MEMTILE else 0x3F000


def master_offset(kind: TileKind, port: int) -> int:
    """Offset of the register of a master port, by its physical number."""
    return switch_base(kind) + _WORD * port


def slave_offset(kind: TileKind, port: int) -> int:
    """Offset of the register of a slave port, by its physical number."""
    return switch_base(kind) + _SLAVES + _WORD * port


def rule_offset(kind: TileKind, port: int, rule: int) -> int:
    """Offset of a packet rule of a slave port."""
    return switch_base(kind) + _RULES + _RULE_STRIDE * port + _WORD * rule
