"""The GEMM mapping: tiles, buffers, locks, channels and flows.

Output-stationary: core (row i, column j) owns one m x n tile of C at a time. A is broadcast along rows, B along
columns, the C tiles of a column are joined in its memtile. Channel numbers are those that the real toolchain
was seen to route: memtile S2MM 0 = B, 1 = A, 2.. = C; MM2S 0 = B, 1 = A, 2 = C; core S2MM 0 = A, 1 = B.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from bdforge.design.model import Allocation, Design, Flow, Tile
from bdforge.design.parameters import RtpAddresses, rtp_addresses
from bdforge.design.placement import placed
from bdforge.devices import FIRST_CORE_ROW, Device, TileKind, TileLimits
from bdforge.devices.types import TYPES, peak_macs
from bdforge.operators.gemm.core_tiles import core_tile
from bdforge.operators.gemm.finish import epilogue_bytes
from bdforge.operators.gemm.grid import Tiling, storage_of
from bdforge.operators.gemm.kernels import Kernel, kernel_for
from bdforge.operators.gemm.memtiles import c_out_channel, memtiles, room_of_b
from bdforge.operators.gemm.resident import Pool, Size, pool_of, share_of
from bdforge.operators.gemm.slabs import A_CHANNELS, B_CHANNEL, C_IN_CHANNEL
from bdforge.operators.gemm.spec import GemmSpec


def tiling_of(spec: GemmSpec) -> Tiling:
    """The tiles of a spec, as walks know them."""
    tile, layouts = spec.tile, spec.layouts
    stores = {name: storage_of(TYPES[getattr(spec, name)], getattr(layouts, name)) for name in "abc"}
    buffers = spec.buffers
    fed_bytes = epilogue_bytes(spec) if spec.epilogue.fed else (0, 0)
    sizes = (tile.rows, tile.k, spec.c_columns, buffers.k_mt, spec.rows, spec.columns)
    facts = {"fed_bytes": fed_bytes, "matrices": spec.matrices, "outputs": spec.outputs}
    return Tiling(*sizes, **stores, a_shims=buffers.a_shims, **facts)


@dataclass(frozen=True, repr=False)
class MappedGemm:
    """A spec on a product: all that its sequences depend on."""

    spec: GemmSpec
    device: Device
    kernel: Kernel
    tiling: Tiling
    design: Design

    @property
    def limits(self) -> TileLimits:
        """Of the shims."""
        return self.device.generation.limits(TileKind.SHIM)

    @property
    def channels(self) -> tuple[tuple[str, int], ...]:
        """The shims' channels of A, B and C, by direction and number."""
        found = {a.name[0]: (a.direction, a.channel) for a in self.design.allocations}
        return found["a"], found["b"], found["c"]

    @property
    def outputs(self) -> tuple[str, ...]:
        """What leading dimensions call C, or the arrays that take its columns."""
        return tuple(one.name for one in self.tiling.outputs) or ("c",)

    @property
    def types(self) -> tuple[str, str, str]:
        """Of A, B and C."""
        return self.spec.a, self.spec.b, self.spec.c

    @property
    def memory(self) -> list[str]:
        """MLIR types of A, B and C in host memory."""
        stores = (self.tiling.a, self.tiling.b, self.tiling.c)
        return ["i8" if s.order == "packed" else TYPES[t].memory for s, t in zip(stores, self.types, strict=True)]

    @property
    def peak_macs(self) -> float:
        """MACs of a core in a cycle, at most."""
        return peak_macs(self.device.generation.name, self.spec.a, self.spec.b)

    @cached_property
    def cores(self) -> tuple[RtpAddresses, ...]:
        """Where cores are told what to do."""
        return rtp_addresses(self.design)

    @cached_property
    def pool(self) -> Pool | None:
        """Where panels of B stay, if they do."""
        return pool_of(self.spec, self.design) if self.spec.buffers.residency == "b" else None


def map_gemm(spec: GemmSpec, kernel: Kernel, device: str) -> Design:
    """The design of a spec for the array that MLIR calls `device`, without sequences."""
    tiling, columns = tiling_of(spec), range(spec.columns)
    rows = range(FIRST_CORE_ROW, FIRST_CORE_ROW + spec.rows)
    shims, mem = [Tile.shim(c) for c in columns], memtiles(spec, kernel, tiling)
    cores = [[core_tile(spec, kernel, c, r) for r in rows] for c in columns]
    tiles = (*shims, *mem, *(core for column in cores for core in column))
    flows, allocations = tuple(_flows(spec, tiling, shims, mem, cores)), tuple(_allocations(tiling, shims))
    return placed(Design(spec.name, device, tiles, flows, allocations, comments=_comments(spec)))


def kept_share(spec: GemmSpec, device: Device, depth: int) -> float:
    """Which share of a panel of B, `depth` rows deep, stays in the memtiles of a design that can be built."""
    kernel = kernel_for(device.generation, spec)
    if spec.buffers.residency != "b" or kernel is None:
        return 0.0
    tiles = -(-depth // spec.buffers.k_mt) * spec.buffers.k_mt // spec.tile.k
    return share_of(Size.of(spec, room_of_b(spec, kernel, tiling_of(spec))), tiles, spec.epilogue.fed)


def _comments(spec: GemmSpec) -> tuple[str, str]:
    tile = spec.tile
    return (
        f"{spec.name}: {spec.a} x {spec.b} -> {spec.c}, tile {tile.m} x {tile.k} x {tile.n} (m x k x n), "
        f"{spec.rows} x {spec.columns} cores (rows x columns).",
        f"Rendered by bdforge from spec {spec.hash}; edit the spec or the templates instead.",
    )


def _flows(
    spec: GemmSpec, tiling: Tiling, shims: list[Tile], mem: list[Tile], cores: list[list[Tile]]
) -> Iterator[Flow]:
    for c in sorted({feed.column for feed in tiling.feeds()}):
        yield Flow(shims[c].dma(0), (mem[c].dma(A_CHANNELS[0]),), "A: DRAM to memtiles")
    starting = [tiling.a_column(row) for row in range(spec.rows)]
    for row, column in enumerate(starting):
        source = mem[column].dma(A_CHANNELS[row - starting.index(column)])
        yield Flow(source, tuple(each[row].dma(0) for each in cores), "A: broadcast along each row of cores")
    for shim, tile in zip(shims, mem, strict=True):
        yield Flow(shim.dma(1), (tile.dma(B_CHANNEL),), "B: DRAM to memtiles")
    for tile, column in zip(mem, cores, strict=True):
        yield Flow(tile.dma(B_CHANNEL), tuple(core.dma(1) for core in column), "B: broadcast up each column")
    for tile, column in zip(mem, cores, strict=True):
        for i, core in enumerate(column):
            yield Flow(core.dma(0), (tile.dma(C_IN_CHANNEL + i),), "C: tiles of a column join in its memtile")
    for tile, shim in zip(mem, shims, strict=True):
        yield Flow(tile.dma(c_out_channel(spec)), (shim.dma(0),), "C: memtiles to DRAM")


def _allocations(tiling: Tiling, shims: list[Tile]) -> Iterator[Allocation]:
    fed = {feed.column for feed in tiling.feeds()}
    for c, shim in enumerate(shims):
        if c in fed:
            yield Allocation(f"a_{c}", shim, "MM2S", 0)
        yield Allocation(f"b_{c}", shim, "MM2S", 1)
        yield Allocation(f"c_{c}", shim, "S2MM", 0)
