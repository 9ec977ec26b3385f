"""A core's tile: its buffers, locks and channels, and what its program uses."""

from dataclasses import dataclass

from bd_patterns import Pattern
from bdforge.design.model import Bd, Buffer, Channel, Lock, Tile
from bdforge.design.parts import Locks, ping_pong, ring
from bdforge.devices import TileKind
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.gemm.types import TYPES

FIRST_CORE_ROW = 2
RTP_ELEMENTS = 16  # two slots are used
_RTP_BYTES = 4 * RTP_ELEMENTS


def core_parts(a, b, c, c_buffers):
    """(buffers, bytes of each) of a core for `occupied`, from the bytes of one A, B and C; numbers or arrays."""
    return (2, a), (2, b), (c_buffers, c), (1, _RTP_BYTES)


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """What one core runs: buffers and locks by role."""

    tile: Tile
    a: tuple[Buffer, ...]
    b: tuple[Buffer, ...]
    c: tuple[Buffer, ...]
    rtp: Buffer
    locks: dict[str, Lock]
    row: int
    """Core row, from 0."""


def core_tile(spec: GemmSpec, kernel: Kernel, column: int, row: int) -> Tile:
    """The core at (column, row), with A in parts of m/rho rows."""
    m, k, n = spec.tile.m, spec.tile.k, spec.tile.n
    name, locks = f"core_{column}_{row}", Locks(f"core_{column}_{row}")
    a = ping_pong(f"{name}_a", m // spec.buffers.rho * k, kernel.a, "A tile, micro-tiles")
    b = ping_pong(f"{name}_b", k * n, kernel.b, "B tile, micro-tiles")
    c = ping_pong(f"{name}_c", m * n, kernel.accumulator, "C tile, micro-tiles", spec.buffers.c_buffers)
    rtp = Buffer(f"{name}_rtp", RTP_ELEMENTS, "i32", "run-time parameters: K/k, output tiles")
    a_locks, b_locks, c_locks = locks.pair("a", 2, "A"), locks.pair("b", 2, "B"), locks.pair("c", len(c), "C")
    go = Lock(f"{name}_go", len(locks.taken), 0, "set by the host when the run-time parameters are in place")
    free, full = c_locks
    out = _c_elements(spec, kernel)
    channels = (
        Channel("S2MM", 0, ring(a, *a_locks), "A in"),
        Channel("S2MM", 1, ring(b, *b_locks), "B in"),
        Channel("MM2S", 0, tuple(Bd(buffer, Pattern((out,), (1,)), full, free) for buffer in c), "C out"),
    )
    return Tile(name, column, row, TileKind.CORE, (*a, *b, *c, rtp), (*locks.taken, go), channels)


def _c_elements(spec: GemmSpec, kernel: Kernel) -> int:
    """Elements of the accumulators' buffer that hold finished C: its start, where C is the narrower type."""
    bits = spec.tile.m * spec.tile.n * TYPES[spec.c].bits
    return bits // kernel.accumulator.memory_bits


def core_program(tile: Tile) -> CoreProgram:
    """The core program of `tile`, whose buffers and locks it finds by name."""

    def buffers(part: str) -> tuple[Buffer, ...]:
        return tuple(b for b in tile.buffers if b.name.startswith(f"{tile.name}_{part}_"))

    locks = {lock.name.removeprefix(f"{tile.name}_"): lock for lock in tile.locks}
    rtp = tile.buffer(f"{tile.name}_rtp")
    return CoreProgram(tile, buffers("a"), buffers("b"), buffers("c"), rtp, locks, tile.row - FIRST_CORE_ROW)
