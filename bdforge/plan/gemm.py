"""The GEMM mapping: a spec becomes an array of tiles, buffers, locks, channels and flows.

Output-stationary: core (row i, column j) owns one m x n tile of C at a time. A is broadcast along rows, B along
columns, the C tiles of a column are joined in its memtile. Channel numbers are those that the real toolchain
was seen to route: memtile S2MM 0 = B, 1 = A, 2.. = C; MM2S 0 = B, 1 = A, 2 = C; core S2MM 0 = A, 1 = B.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bd_patterns import Pattern, a_micro_tiles, c_rows
from bdforge.devices import Device, TileKind
from bdforge.plan.check import array_problems, spec_problems
from bdforge.plan.kernels import KERNELS, Kernel
from bdforge.plan.model import Allocation, Array, Bd, Buffer, Channel, Flow, FlowGroup, Lock, Tile
from bdforge.plan.spec import GemmSpec, SpecError

FIRST_CORE_ROW = 2
PING_PONG = ("ping", "pong")
RTP_ELEMENTS = 16  # two slots are used; 64 bytes keep the buffers behind it aligned for vectors
RTP_K_STEPS, RTP_OUTPUT_TILES = 0, 1


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """What one core runs: buffers and locks by role."""

    tile: Tile
    a: tuple[Buffer, ...]
    b: tuple[Buffer, ...]
    c: tuple[Buffer, ...]
    rtp: Buffer
    locks: dict[str, Lock]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every number of a GEMM design."""

    spec: GemmSpec
    device: Device
    mlir_device: str
    kernel: Kernel
    array: Array
    cores: tuple[CoreProgram, ...]

    @property
    def link_with(self) -> str:
        """Object file that holds all kernels."""
        return f"{self.spec.name}.o"


def plan_gemm(spec: GemmSpec, device: Device) -> Plan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    if reasons := spec_problems(spec, device):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    kernel = KERNELS[spec.a, spec.b, spec.c]
    builder = _Builder(spec, kernel)
    array = builder.array()
    if reasons := array_problems(array, device.generation, spec.stack_bytes):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    cores = tuple(builder.program(tile) for tile in array.of_kind(TileKind.CORE))
    whole = spec.columns == device.columns
    mlir_device = device.mlir if whole else f"{device.mlir}_{spec.columns}col"
    return Plan(spec, device, mlir_device, kernel, array, cores)


class _Builder:
    """Builds the tiles of one spec; methods are named after what they return."""

    def __init__(self, spec: GemmSpec, kernel: Kernel):
        self.spec, self.kernel, self.size = spec, kernel, spec.tile
        self.slices = spec.k_mt // spec.tile.k
        self.a_stride = spec.columns // spec.rows  # row i of A enters through column i * a_stride

    def array(self) -> Array:
        columns = range(self.spec.columns)
        shims = [Tile(f"shim_{c}", c, 0, TileKind.SHIM) for c in columns]
        memtiles = [self.memtile(c) for c in columns]
        rows = range(FIRST_CORE_ROW, FIRST_CORE_ROW + self.spec.rows)
        cores = [[self.core(c, r) for r in rows] for c in columns]
        return Array(
            tuple(shims + memtiles + [tile for column in cores for tile in column]),
            tuple(self.flows(shims, memtiles, cores)),
            tuple(self.allocations(shims)),
        )

    def a_row(self, column: int) -> int | None:
        """Core row (from 0) whose A enters through `column`, if any."""
        row, rest = divmod(column, self.a_stride)
        return row if rest == 0 and row < self.spec.rows else None

    def flows(self, shims, memtiles, cores) -> Iterable[FlowGroup]:
        columns = range(self.spec.columns)
        rows = range(self.spec.rows)
        sources = {self.a_row(c): memtiles[c] for c in columns}
        yield FlowGroup("A: DRAM to memtiles", tuple(
            Flow(shims[c], 0, memtiles[c], 1) for c in columns if self.a_row(c) is not None
        ))  # fmt: skip
        yield FlowGroup("A: broadcast along each row of cores", tuple(
            Flow(sources[i], 1, cores[c][i], 0) for i in rows for c in columns
        ))  # fmt: skip
        yield FlowGroup("B: DRAM to memtiles", tuple(Flow(shims[c], 1, memtiles[c], 0) for c in columns))
        yield FlowGroup("B: broadcast up each column", tuple(
            Flow(memtiles[c], 0, cores[c][i], 1) for c in columns for i in rows
        ))  # fmt: skip
        yield FlowGroup("C: tiles of a column join in its memtile", tuple(
            Flow(cores[c][i], 0, memtiles[c], 2 + i) for c in columns for i in rows
        ))  # fmt: skip
        yield FlowGroup("C: memtiles to DRAM", tuple(Flow(memtiles[c], 2, shims[c], 0) for c in columns))

    def allocations(self, shims: list[Tile]) -> Iterable[Allocation]:
        for c, shim in enumerate(shims):
            if self.a_row(c) is not None:
                yield Allocation(f"a_{c}", shim, "MM2S", 0)
            yield Allocation(f"b_{c}", shim, "MM2S", 1)
            yield Allocation(f"c_{c}", shim, "S2MM", 0)

    def memtile(self, column: int) -> Tile:
        name = f"mem_{column}"
        row = self.a_row(column)
        parts = [self.memtile_b(name)]
        if row is not None:
            parts.append(self.memtile_a(name, row))
        parts.extend(self.memtile_c(name, i) for i in range(self.spec.rows))
        out = Channel("MM2S", 2, tuple(bd for bd in self.c_out(parts)), "C of the column, row-major, top tile first")
        channels = [channel for _, _, part in parts for channel in part] + [out]
        return Tile(
            name, column, 1, TileKind.MEMTILE,
            tuple(buffer for buffers, _, _ in parts for buffer in buffers),
            tuple(lock for _, locks, _ in parts for lock in locks),
            tuple(sorted(channels, key=lambda c: (c.direction != "S2MM", c.index))),
        )  # fmt: skip

    def memtile_b(self, tile: str):
        elements = self.kernel.b_tile_elements(self.size.k, self.size.n)
        buffers = self.pair(f"{tile}_b", elements, self.kernel.memory_b, "B tile, packed, in the order of the kernel")
        free, full = self.lock_pair(f"{tile}_b", 0, 2, "B")
        whole = Pattern((elements,), (1,))
        fill = tuple(Bd(b, whole, free, full) for b in buffers)
        send = tuple(Bd(b, whole, full, free) for b in buffers)
        return buffers, (free, full), [Channel("S2MM", 0, fill, "B from DRAM"), Channel("MM2S", 0, send, "B up")]

    def memtile_a(self, tile: str, row: int):
        m, k_mt = self.size.m, self.spec.k_mt
        buffers = self.pair(f"{tile}_a", m * k_mt, self.kernel.memory_a, f"slab of A, {m} x {k_mt}, for core row {row}")
        # Counted in k-slices of a slab: a slab is filled at once and leaves slice by slice.
        free, full = self.lock_pair(f"{tile}_a", 2, 2 * self.slices, "A, in slices of k")
        fill = tuple(Bd(b, Pattern((m * k_mt,), (1,)), free, full, self.slices) for b in buffers)
        k, r, s = self.size.k, self.kernel.r, self.kernel.s
        slices = [a_micro_tiles(m, k, r, s, k_mt=k_mt, column=i * k) for i in range(self.slices)]
        send = tuple(Bd(b, pattern, full, free) for b in buffers for pattern in slices)
        return (
            buffers,
            (free, full),
            [Channel("S2MM", 1, fill, "A from DRAM"), Channel("MM2S", 1, send, "A along the row")],
        )

    def memtile_c(self, tile: str, row: int):
        elements = self.size.m * self.size.n
        name = f"{tile}_c{row}"
        buffers = self.pair(name, elements, self.kernel.memory_c, f"C tile of core row {row}")
        # One pair for each core: with a pair for all, a fast core would take a slow one's turn.
        free, full = self.lock_pair(name, 4 + 2 * row, 2, f"C of core row {row}")
        fill = tuple(Bd(b, Pattern((elements,), (1,)), free, full) for b in buffers)
        return buffers, (free, full), [Channel("S2MM", 2 + row, fill, f"C from core row {row}")]

    def c_out(self, parts) -> Iterable[Bd]:
        joined = parts[-self.spec.rows :]
        rows = c_rows(self.size.m, self.size.n, self.kernel.r, self.kernel.t)
        for turn in range(len(PING_PONG)):
            for buffers, (free, full), _ in joined:
                yield Bd(buffers[turn], rows, full, free)

    def core(self, column: int, row: int) -> Tile:
        m, k, n = self.size.m, self.size.k, self.size.n
        name = f"core_{column}_{row}"
        a = self.pair(f"{name}_a", m * k, self.kernel.memory_a, "A tile, r x s micro-tiles")
        b = self.pair(f"{name}_b", self.kernel.b_tile_elements(k, n), self.kernel.memory_b, "B tile, packed")
        c = self.pair(f"{name}_c", m * n, self.kernel.memory_c, "C tile, r x t micro-tiles")[: self.spec.c_buffers]
        rtp = Buffer(f"{name}_rtp", RTP_ELEMENTS, "i32", "run-time parameters: K/k, output tiles")
        a_locks = self.lock_pair(f"{name}_a", 0, 2, "A")
        b_locks = self.lock_pair(f"{name}_b", 2, 2, "B")
        c_locks = self.lock_pair(f"{name}_c", 4, len(c), "C")
        go = Lock(f"{name}_go", 6, 0, "set by the host when the run-time parameters are in place")
        channels = (
            Channel("S2MM", 0, self.ring(a, *a_locks), "A in"),
            Channel("S2MM", 1, self.ring(b, *b_locks), "B in"),
            Channel("MM2S", 0, self.ring(c, *reversed(c_locks)), "C out"),
        )
        locks = (*a_locks, *b_locks, *c_locks, go)
        return Tile(name, column, row, TileKind.CORE, (*a, *b, *c, rtp), locks, channels)

    def program(self, tile: Tile) -> CoreProgram:
        """The core program of `tile`, whose buffers and locks it finds by name."""

        def buffers(part: str) -> tuple[Buffer, ...]:
            return tuple(b for b in tile.buffers if b.name.startswith(f"{tile.name}_{part}_"))

        locks = {lock.name.removeprefix(f"{tile.name}_"): lock for lock in tile.locks}
        return CoreProgram(tile, buffers("a"), buffers("b"), buffers("c"), tile.buffer(f"{tile.name}_rtp"), locks)

    def pair(self, name: str, elements: int, type_: str, role: str) -> tuple[Buffer, ...]:
        return tuple(Buffer(f"{name}_{turn}", elements, type_, f"{role}, {turn}") for turn in PING_PONG)

    def lock_pair(self, name: str, first_id: int, turns: int, role: str) -> tuple[Lock, Lock]:
        free = Lock(f"{name}_free", first_id, turns, f"{role}: room")
        return free, Lock(f"{name}_full", first_id + 1, 0, f"{role}: data")

    def ring(self, buffers: Iterable[Buffer], acquire: Lock, release: Lock) -> tuple[Bd, ...]:
        return tuple(Bd(b, Pattern((b.elements,), (1,)), acquire, release) for b in buffers)
