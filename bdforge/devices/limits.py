"""Limits of the tiles of AIE2 (XDNA) and AIE2P (XDNA2).

Both generations share all counts and register widths below (RT, compared field by field);
they differ in stream width, burst length, padding value and MAC rate.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bdforge.devices.bd_registers import CORE_BD, MEMTILE_BD, SHIM_BD, RegisterGroup
from bdforge.devices.capacities import AIE2_CAPACITIES, AIE2P_CAPACITIES, StreamCapacities

BYTE_BITS = 8
GRANULE_BYTES = 4  # a DMA addresses and counts 32-bit words (RT, MA)
GRANULE_BITS = BYTE_BITS * GRANULE_BYTES
BUFFER_ALIGN_BYTES = 64  # strictest alignment of a vector access on any generation (API, `detail/ld_st.hpp`)


class TileKind(StrEnum):
    """What a tile is; decides memory, locks, channels and BD layout."""

    SHIM = "shim"
    MEMTILE = "memtile"
    CORE = "core"


@dataclass(frozen=True, slots=True)
class TileLimits:
    """What one tile of a kind offers. Sizes and steps of BDs are in granules (32-bit words).

    `wraps` are the largest sizes that the registers of the inner dimensions hold, innermost first; dimensions
    beyond them have no size field: the length ends them. `static_size` is the largest size that `aie.dma_bd`'s
    verifier accepts outside a runtime sequence. `banks` are those by which compilers place buffers: equal parts of the
    memory, one after another.
    """

    kind: TileKind
    memory_bytes: int
    banks: int
    locks: int
    lock_value_max: int
    channels: int  # per direction
    bds: int
    dims: int
    wraps: tuple[int, ...]
    step_max: int
    length_max: int
    iteration_wrap_max: int
    static_size: int
    pad_max: tuple[int, ...] = ()  # words before or after, innermost first; memtile MM2S only

    def bds_of_channel(self, channel: int) -> range:
        """BDs that a channel may use: a memtile's even channels own the lower half, odd ones the upper (MA, 020)."""
        if self.kind is not TileKind.MEMTILE:
            return range(self.bds)
        half = self.bds // 2
        return range(half) if channel % 2 == 0 else range(half, self.bds)

    @property
    def bank_bytes(self) -> int:
        """Size of a bank; only of tiles that have memory."""
        return self.memory_bytes // self.banks

    def banks_of(self, start: int, size_bytes: int) -> range:
        """Banks that hold bytes of `size_bytes` from address `start` on."""
        return range(start // self.bank_bytes, -(-(start + size_bytes) // self.bank_bytes))


def _held(bd: RegisterGroup) -> dict[str, Any]:
    """What the fields of a BD hold. Steps, and runs of the iteration, are stored minus 1."""

    def most(name: str) -> int:
        return bd.fields[name].bounds[1]

    def of_dims(name: str) -> tuple[int, ...]:
        return tuple(most(f"d{n}_{name}") for n in range(4) if f"d{n}_{name}" in bd.fields)

    return {
        "dims": len(of_dims("step")), "wraps": of_dims("wrap"), "step_max": most("d0_step") + 1,
        "length_max": most("length"), "iteration_wrap_max": most("iteration_wrap") + 1,
        "pad_max": of_dims("pad_before"),
    }  # fmt: skip


# Sizes and steps: as the registers hold them. Counts: MA, RT. Static sizes: MA verifier (512), tightened to the 8-bit
# wrap of core tiles. Banks: MA (`getNumBanks`). A core's are physical pairs of 8 KiB (020): core and DMA wait for each
# other in one. A memtile's count for allocators alone: its physical banks are interleaved by 16 bytes (AIE2) or 32
# (AIE2P) out of reset, so that every buffer lies in all of them (020, AM027).
SHIM = TileLimits(
    kind=TileKind.SHIM, memory_bytes=0, banks=0, locks=16, lock_value_max=63, channels=2, bds=16, static_size=512,
    **_held(SHIM_BD),
)  # fmt: skip
MEMTILE = TileLimits(
    kind=TileKind.MEMTILE, memory_bytes=0x80000, banks=8, locks=64, lock_value_max=63, channels=6, bds=48,
    static_size=512, **_held(MEMTILE_BD),
)  # fmt: skip
CORE = TileLimits(
    kind=TileKind.CORE, memory_bytes=0x10000, banks=4, locks=16, lock_value_max=63, channels=2, bds=16,
    static_size=255, **_held(CORE_BD),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Generation:
    name: str
    stream_bytes: int  # per cycle and port; AIE2P inferred from AM027's 64-bit switches and published kernel rates
    bursts: tuple[int, ...]  # bytes, in order of the register code (MA, RT)
    vector_align_bytes: int  # strictest alignment of a vector access (API, `detail/ld_st.hpp`)
    instruction_generation: int  # byte 2 of an instruction stream (MA)
    peano_target: str  # triple of clang++ (mlir-aie makefiles)
    compiler_architecture: int  # __AIE_ARCH__ (API)
    capacities: StreamCapacities
    tiles: tuple[TileLimits, TileLimits, TileLimits] = (SHIM, MEMTILE, CORE)

    def limits(self, kind: TileKind) -> TileLimits:
        return next(t for t in self.tiles if t.kind is kind)


AIE2 = Generation("AIE2", 4, (64, 128, 256), 32, 3, "aie2-none-unknown-elf", 20, AIE2_CAPACITIES)
AIE2P = Generation("AIE2P", 8, (64, 128, 256, 512), 64, 4, "aie2p-none-unknown-elf", 21, AIE2P_CAPACITIES)

DEFAULT_STACK_BYTES = 0x400  # at the bottom of a core's data memory (MA)
CORE_OWN_MEMORY = 0x70000  # where a core sees its own data memory, below it its neighbours' (MA)
PROGRAM_MEMORY_BYTES = 0x4000  # per core (RT, 020)
PROGRAM_LINE_BYTES = 16  # what a core fetches at once, the longest bundle (ISA)
TASK_QUEUE_ENTRIES = 4  # per channel (RT, 020); the running task is counted, the safe reading
HOST_BUFFERS = 5  # arguments of a sequence whose addresses the firmware translates (HUSRCF/hipscope, txn.rs)
TASK_REPEAT_MAX = 256  # 8 bits, stored minus 1 (RT)
MEMTILE_NEIGHBOUR_CHANNELS = 4  # memtile channels 0 to 3 reach the neighbours' memory and locks (MA, 020)
STATIC_STRIDE_END = 1 << 19  # elements; aie.dma_bd wants strides below it, on every tile kind (MA verifier)
RUNTIME_ELEMENT_BITS_MAX = 32  # widest element of npu.dma_memcpy_nd (MA verifier)
PACKET_IDS = 32  # 5 bits (RT)
# Packet ids of a tile's tokens by its row, as aie-assign-tile-controller-ids gives them in every column (MA).
CONTROLLER_IDS = (15, 26, 27, 29, 30, 31)
SHIM_CONTROLLER_ID = CONTROLLER_IDS[0]
PACKET_TYPES = 8  # 3 bits (RT)
CORE_STREAM_PORTS = 1  # of a core itself, per direction (MA, RT)
CORE_LOCK_WINDOWS = ((0, -1), (-1, 0), (0, 1), (0, 0))  # whose 16 locks a core counts from 0, 16, 32, 48 (MA, 020)
CASCADE_BITS = 512  # moved at a time between neighbouring cores (MA, 020)
CASCADE_FIFO_VALUES = 2  # that the FIFO at each end of a cascade holds (020)


def core_lock(column: int, row: int, number: int) -> tuple[int, int, int]:
    """Column, row and id of the lock that the core of a tile calls `number`; ValueError if it has no such number."""
    window, lock = divmod(number, CORE.locks)
    if not 0 <= window < len(CORE_LOCK_WINDOWS):
        raise ValueError(f"lock {number} is outside 0 to {CORE.locks * len(CORE_LOCK_WINDOWS) - 1}, a core's numbers")
    east, north = CORE_LOCK_WINDOWS[window]
    return column + east, row + north, lock
