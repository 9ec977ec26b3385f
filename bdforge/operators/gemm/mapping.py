"""The GEMM mapping: tiles, buffers, locks, channels and flows.

Output-stationary: core (row i, column j) owns one m x n tile of C at a time. A is broadcast along rows, B along
columns, the C tiles of a column are joined in its memtile. Channel numbers are those that the real toolchain
was seen to route: memtile S2MM 0 = B, 1 = A, 2.. = C; MM2S 0 = B, 1 = A, 2 = C; core S2MM 0 = A, 1 = B.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bdforge.design.model import Allocation, Array, Flow, FlowGroup, Tile
from bdforge.design.placement import placed
from bdforge.devices import TileKind
from bdforge.operators.gemm.core_tiles import FIRST_CORE_ROW, CoreProgram, core_program, core_tile
from bdforge.operators.gemm.finish import epilogue_bytes
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.memtiles import A_CHANNELS, B_CHANNEL, C_IN_CHANNEL, C_OUT_CHANNEL, memtiles
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.gemm.types import TYPES


def tiling_of(spec: GemmSpec) -> Tiling:
    """The tiles of a spec, as walks know them."""
    tile, layouts = spec.tile, spec.layouts
    stores = {name: TYPES[getattr(spec, name)].storage(getattr(layouts, name)) for name in "abc"}
    buffers = spec.buffers
    fed_bytes = epilogue_bytes(spec) if spec.epilogue.fed else (0, 0)
    sizes = (tile.rows, tile.k, tile.n, buffers.k_mt, spec.rows, spec.columns)
    return Tiling(*sizes, **stores, a_shims=buffers.a_shims, fed_bytes=fed_bytes)


def map_gemm(spec: GemmSpec, kernel: Kernel) -> tuple[Array, tuple[CoreProgram, ...]]:
    """The array configuration of a spec, and what its cores run."""
    return _Mapping(spec, kernel).array()


@dataclass(frozen=True, slots=True)
class _Mapping:
    spec: GemmSpec
    kernel: Kernel

    @property
    def tiling(self) -> Tiling:
        return tiling_of(self.spec)

    def array(self) -> tuple[Array, tuple[CoreProgram, ...]]:
        columns = range(self.spec.columns)
        rows = range(FIRST_CORE_ROW, FIRST_CORE_ROW + self.spec.rows)
        shims = [Tile(f"shim_{c}", c, 0, TileKind.SHIM) for c in columns]
        cores = [core_tile(self.spec, self.kernel, c, r) for c in columns for r in rows]
        tiles = placed([*memtiles(self.spec, self.kernel, self.tiling), *cores], self.kernel.generation, self.stack)
        mem, cores = tiles[: len(columns)], tiles[len(columns) :]
        by_column = [cores[len(rows) * c :][: len(rows)] for c in columns]
        flows = self.flows(shims, mem, by_column)
        return Array((*shims, *tiles), tuple(flows), tuple(self.allocations(shims))), tuple(map(core_program, cores))

    @property
    def stack(self) -> int:
        return self.spec.buffers.stack_bytes

    def a_channel(self, row: int) -> int:
        """The memtile's MM2S channel that sends A to core row `row`."""
        column = self.tiling.a_column(row)
        return A_CHANNELS[row - next(i for i in range(row + 1) if self.tiling.a_column(i) == column)]

    def flows(self, shims, mem, cores) -> Iterable[FlowGroup]:
        columns, rows = range(self.spec.columns), range(self.spec.rows)
        fed = {feed.column for feed in self.tiling.feeds()}
        yield FlowGroup("A: DRAM to memtiles", tuple(
            Flow(shims[c], 0, mem[c], A_CHANNELS[0]) for c in columns if c in fed
        ))  # fmt: skip
        yield FlowGroup("A: broadcast along each row of cores", tuple(
            Flow(mem[self.tiling.a_column(i)], self.a_channel(i), cores[c][i], 0) for i in rows for c in columns
        ))  # fmt: skip
        yield FlowGroup("B: DRAM to memtiles", tuple(Flow(shims[c], 1, mem[c], B_CHANNEL) for c in columns))
        yield FlowGroup("B: broadcast up each column", tuple(
            Flow(mem[c], B_CHANNEL, cores[c][i], 1) for c in columns for i in rows
        ))  # fmt: skip
        yield FlowGroup("C: tiles of a column join in its memtile", tuple(
            Flow(cores[c][i], 0, mem[c], C_IN_CHANNEL + i) for c in columns for i in rows
        ))  # fmt: skip
        yield FlowGroup("C: memtiles to DRAM", tuple(Flow(mem[c], C_OUT_CHANNEL, shims[c], 0) for c in columns))

    def allocations(self, shims: list[Tile]) -> Iterable[Allocation]:
        fed = {feed.column for feed in self.tiling.feeds()}
        for c, shim in enumerate(shims):
            if c in fed:
                yield Allocation(f"a_{c}", shim, "MM2S", 0)
            yield Allocation(f"b_{c}", shim, "MM2S", 1)
            yield Allocation(f"c_{c}", shim, "S2MM", 0)
