"""How the bytes of C = A W go: W once from DRAM through every column to all cores, A past them again and again.

A column takes *groups*, tiles of C side by side, one for each of its cores: a core makes a tile of m x n from all of K
in chunks of k, while all of A goes by from one shim to every core, a *pass*. Columns take different shares of N, so a
core lets the passes go by in which its column has nothing to do. A core's m rows are whole blocks of the kernel's;
where A has less than one block, memtiles fill it with zeros on A's way to the cores and send only its lines of C.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    Slots,
    Tile,
    in_turn,
    placed,
)
from bdforge.devices import FIRST_CORE_ROW
from bdforge.devices.types import ElementType
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemv.weights import Weights

A_SHIM_CHANNEL, A_IN, A_OUT = 0, 1, 4
"""A comes by column 0: its shim's MM2S, its memtile's S2MM and MM2S."""
C_IN, C_OUT, C_SHIM_CHANNEL = 2, 5, 0
"""First S2MM channel of a memtile for C, its MM2S, the shim's S2MM. W leaves by MM2S 0 to 3."""
TILES, IDLE, CHUNKS, BETWEEN = range(4)
"""Run-time parameters: a core's tiles of C, passes that it lets go by at first, K/k, and, for cores whose channel has
the work of half a shim, passes that it lets go by before each tile."""


@dataclass(frozen=True, slots=True)
class GemvTiling:
    """What of a spec its mapping depends on.

    A core's tile of W is k x n, of C `height` x n, where `lines` rows hold data: whole blocks of the kernel's r, or
    less than one. `channels` of each shim bring W, but for column 0's, of which one brings A. A core has `held` buffers
    for tiles of W, and its memtile `memtile_held`.
    """

    weights: Weights
    c: ElementType
    lines: int
    rows: int
    columns: int
    channels: int = 1
    held: int = 2
    memtile_held: int = 2

    @property
    def kernel(self) -> Kernel:
        """What multiplies a tile."""
        return self.weights.kernel

    @property
    def w(self) -> ElementType:
        """The type of a weight."""
        return self.weights.type

    @property
    def k(self) -> int:
        """Rows of a tile of W."""
        return self.weights.k

    @property
    def n(self) -> int:
        """Columns of a tile of W, and of C."""
        return self.weights.n

    @property
    def height(self) -> int:
        """Rows of a core's tile: whole blocks of the kernel's."""
        return -(-self.lines // self.kernel.r) * self.kernel.r

    @property
    def group(self) -> int:
        """Columns of C in a group."""
        return self.rows * self.n

    def lags(self, column: int) -> bool:
        """Whether a column has one channel for W where others have two."""
        return self.channels > len(self.feeds(column))

    def memtile_channel(self, row: int) -> int:
        """A memtile's channel for a core row: of one alone an odd one, as W comes by an even one and even and odd
        channels have BDs of their own."""
        return row if self.rows > 1 else 1

    def feeds(self, column: int) -> list[tuple[int, range]]:
        """(channel of the shim, core rows) of each channel that brings W; the memtile takes them by S2MM 0 and 1."""
        if self.channels == 1 or column == 0:
            return [(1, range(self.rows))]
        half = self.rows // 2
        return [(0, range(half)), (1, range(half, self.rows))]


def map_gemv(
    name: str, device: str, tiling: GemvTiling, symbols: tuple[str, ...], stack_bytes: int, comment: str
) -> Design:
    """The design for the array that MLIR calls `device`, without sequences.

    `symbols` are the kernels that cores call: multiply, zero, and what makes C of the sums, where that is needed.
    """
    columns, rows = range(tiling.columns), range(tiling.rows)
    shims = [Tile.shim(c) for c in columns]
    memtiles = [_memtile(tiling, c) for c in columns]
    cores = [
        [_core(tiling, c, FIRST_CORE_ROW + row, symbols, stack_bytes, f"{name}.o") for row in rows] for c in columns
    ]
    tiles = (*shims, *memtiles, *(tile for column in cores for tile in column))
    flows = tuple(_flows(tiling, shims, memtiles, cores))
    return placed(Design(name, device, tiles, flows, tuple(_names(tiling, shims)), comments=(comment,)))


def _names(tiling: GemvTiling, shims: list[Tile]) -> Iterator[Allocation]:
    yield Allocation("a", shims[0], "MM2S", A_SHIM_CHANNEL)
    for shim in shims:
        for channel, _ in tiling.feeds(shim.column):
            yield Allocation(f"w_{shim.column}_{channel}", shim, "MM2S", channel)
        yield Allocation(f"c_{shim.column}", shim, "S2MM", C_SHIM_CHANNEL)


def _flows(tiling: GemvTiling, shims: list[Tile], memtiles: list[Tile], cores: list[list[Tile]]) -> Iterator[Flow]:
    yield Flow(shims[0].dma(A_SHIM_CHANNEL), (memtiles[0].dma(A_IN),), "A: DRAM to a memtile")
    yield Flow(memtiles[0].dma(A_OUT), tuple(core.dma(0) for column in cores for core in column), "A: to every core")
    for shim, memtile in zip(shims, memtiles, strict=True):
        for number, (channel, _) in enumerate(tiling.feeds(shim.column)):
            yield Flow(shim.dma(channel), (memtile.dma(number),), "W: DRAM to memtiles")
    for memtile, column in zip(memtiles, cores, strict=True):
        for row, core in enumerate(column):
            yield Flow(memtile.dma(tiling.memtile_channel(row)), (core.dma(1),), "W: each core's tiles")
    for memtile, column in zip(memtiles, cores, strict=True):
        for row, core in enumerate(column):
            into = memtile.dma(C_IN + tiling.memtile_channel(row))
            yield Flow(core.dma(0), (into,), "C: tiles of a column join in its memtile")
    for memtile, shim in zip(memtiles, shims, strict=True):
        yield Flow(memtile.dma(C_OUT), (shim.dma(C_SHIM_CHANNEL),), "C: memtiles to DRAM")


def _memtile(tiling: GemvTiling, column: int) -> Tile:
    """Each core row has slots of its own: with some for all, a fast core would take a slow one's turn."""
    locks, kernel, rows = Locks(f"mem_{column}"), tiling.kernel, range(tiling.rows)
    weights, sums = (tiling.k * tiling.n, tiling.w), (tiling.height * tiling.n, tiling.c)
    w = [Slots.of(locks, f"w{row}", *weights, f"W of core row {row}", tiling.memtile_held) for row in rows]
    c = [Slots.of(locks, f"c{row}", *sums, f"C of core row {row}") for row in rows]
    a = [Slots.of(locks, "a", tiling.lines * tiling.k, kernel.a, "chunk of A")] if column == 0 else []
    channels = [channel for slots in a for channel in _a_channels(tiling, slots)]
    for number, (_, fed) in enumerate(tiling.feeds(column)):
        channels.append(Channel("S2MM", number, in_turn(w[row].fill() for row in fed), "W from DRAM"))
    for row in rows:
        channel = tiling.memtile_channel(row)
        channels.append(Channel("MM2S", channel, w[row].send(), f"W to core row {row}"))
        channels.append(Channel("S2MM", C_IN + channel, c[row].fill(), f"C from core row {row}"))
    lines = in_turn(slots.send(_lines(tiling)) for slots in c)
    channels.append(Channel("MM2S", C_OUT, lines, "C of the column, line by line of each tile"))
    return Tile.holding(locks, column, 1, (*w, *a, *c), channels)


def _a_channels(tiling: GemvTiling, slots: Slots) -> Iterator[Channel]:
    """Chunks of A, line by line, leave as micro-tiles: `(height/r, r*k)(k/s, s)(r, k)(s, 1)`, with zeros below."""
    kernel, k, height = tiling.kernel, tiling.k, tiling.height
    missing = height - tiling.lines  # less than a block of r rows: there is but one
    sizes = (height // kernel.r, k // kernel.s, kernel.r - missing, kernel.s)
    micro_tiles = Pattern(sizes, ((kernel.r - missing) * k, kernel.s, k, 1))
    padding = ((0, 0), (0, 0), (0, missing), (0, 0)) if missing else ()
    yield Channel("S2MM", A_IN, slots.fill(), "A from DRAM")
    yield Channel("MM2S", A_OUT, slots.send(micro_tiles, padding), "A to every core")


def _lines(tiling: GemvTiling) -> Pattern:
    """A tile of C from r x t micro-tiles to lines: `(height/r, r*n)(r, t)(n/t, r*t)(t, 1)`, without the padded rows."""
    kernel, n, missing = tiling.kernel, tiling.n, tiling.height - tiling.lines
    r, t = kernel.r, kernel.t
    return Pattern((tiling.height // r, r - missing, n // t, t), (r * n, t, r * t, 1))


def _core(
    tiling: GemvTiling, column: int, row: int, symbols: tuple[str, ...], stack_bytes: int, link_with: str
) -> Tile:
    locks, kernel = Locks(f"core_{column}_{row}"), tiling.kernel
    a = Slots.of(locks, "a", tiling.height * tiling.k, kernel.a, "chunk of A, micro-tiles")
    w = Slots.of(locks, "w", tiling.k * tiling.n, tiling.w, "tile of W, in the order of the kernel", tiling.held)
    c = Slots.of(locks, "c", tiling.height * tiling.n, kernel.accumulator, "tile of C, micro-tiles")
    words = ("tiles", "idle", "chunks", "between") if tiling.lags(column) else ("tiles", "idle", "chunks")
    parameters = Parameters.of(locks, "tiles of C, idle passes, K/k", words)
    body = (parameters.problems(*_problem(a, w, c, symbols, tiling.lags(column))),)
    held = tiling.height * tiling.n * tiling.c.bits // kernel.accumulator.memory_bits  # C may be the narrower type
    channels = (
        Channel("S2MM", 0, a.fill(), "A in"),
        Channel("S2MM", 1, w.fill(), "W in"),
        Channel("MM2S", 0, c.send(Pattern((held,), (1,))), "C out"),
    )
    core = Core(body, stack_bytes, link_with)
    return Tile.holding(locks, column, row, (a, w, c), channels, core, parameters.buffer)


def _problem(a: Slots, w: Slots, c: Slots, symbols: tuple[str, ...], lags: bool) -> Iterator[Loop]:
    """Let the first passes of A go by, then multiply one with each tile of C, with others in between where W lags.

    The last pass is one with a tile, so that its C tells that a core is done with the problem.
    """
    multiply, zero, *finish = symbols
    a_turn, w_turn, c_turn = Rotation("a"), Rotation("w", len(w.buffers)), Rotation("c")
    a_now, w_now, c_now = a_turn.of(a.buffers), w_turn.of(w.buffers), c_turn.of(c.buffers)
    past = (Loop("chunks", (Acquire(a.full), Release(a.free), Advance(a_turn)), "chunk"),)
    step = (
        *(Acquire(a.full), Acquire(w.full), Call(multiply, (a_now, w_now, c_now))),
        *(Release(a.free), Release(w.free), Advance(a_turn), Advance(w_turn)),
    )
    tile = (
        *(Acquire(c.free), Call(zero, (c_now,)), Loop("chunks", step, "chunk")),
        *(Call(symbol, (c_now,)) for symbol in finish),
        *(Release(c.full), Advance(c_turn)),
    )
    yield Loop("idle", past, "idle_pass")
    yield Loop("tiles", (*([Loop("between", past, "idle_pass")] if lags else []), *tile), "tile")
