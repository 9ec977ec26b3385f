"""C (M x N, int32) = A (M x K, int8) . B (K x N, int8) of any size on 4 x 8 cores, each with a tile of C at a time.

bdforge render examples/python/gemm_i8.py --shape 256x512x512
"""

from dataclasses import replace

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Bd,
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
    placed,
    ring,
    rtp_addresses,
)
from bdforge.design.sequences import Axis, Builder, ceildiv
from bdforge.devices.types import TYPES

ROWS, COLUMNS = 4, 8
m, k, n, k_mt = 64, 64, 64, 256
SLICES = k_mt // k
INT8, INT32 = TYPES["int8"], TYPES["int32"]


def slab(locks: Locks, name: str, elements: int, role: str) -> Slots:
    """Two slabs that come whole and leave in slices: their locks count slices."""
    buffers = Slots.of(Locks(locks.tile), name, elements, INT8, role).buffers
    return Slots(buffers, *locks.pair(name, 2 * SLICES, role))


def slices(slabs: Slots, walks: list[Pattern]) -> tuple[Bd, ...]:
    """BDs that send the slices of one slab, then those of the other."""
    acquire, release = Acquire(slabs.full), Release(slabs.free)
    return tuple(Bd(buffer, walk, acquire, release) for buffer in slabs.buffers for walk in walks)


def memtile(column: int) -> Tile:
    """Slabs of A (in even columns) and B leave as micro-tiles of 8 x 8; tiles of C come as these and leave as rows."""
    locks, channels = Locks(f"mem_{column}"), []
    cuts = [(i * k, (i + 1) * k) for i in range(SLICES)]
    slabs = [slab(locks, "b", k_mt * n, "slab of B, k_mt x n")]
    walks = [Pattern.of_shape((k_mt, n)).sliced(0, *cut).tiled(8, 8).permuted((1, 0, 2, 3)) for cut in cuts]
    channels += [Channel("MM2S", 0, slices(slabs[0], walks), "B up the column")]
    if column % 2 == 0:
        slabs += [slab(locks, "a", m * k_mt, "slab of A, m x k_mt")]
        walks = [Pattern.of_shape((m, k_mt)).sliced(1, *cut).tiled(8, 8) for cut in cuts]
        channels += [Channel("MM2S", 1, slices(slabs[1], walks), f"A along core row {column // 2}")]
    for index, store in enumerate(slabs):
        channels += [Channel("S2MM", index, ring(store.buffers, store.free, store.full, SLICES), "from DRAM")]
    tiles = [Slots.of(locks, f"c{r}", m * n, INT32, f"tile of C of core row {r}") for r in range(ROWS)]
    channels += [Channel("S2MM", r + 2, tile.fill(), f"C from core row {r}") for r, tile in enumerate(tiles)]
    rows = Pattern.of_shape((m // 8, n // 8, 8, 8)).permuted((0, 2, 1, 3))
    out = tuple(bd for turn in zip(*(tile.send(rows) for tile in tiles), strict=True) for bd in turn)
    channels += [Channel("MM2S", 2, out, "C to DRAM")]
    return Tile.holding(locks, column, 1, (*slabs, *tiles), channels)


def core(column: int, row: int) -> Tile:
    """Told of K / k and of how many tiles, a core makes one after the other."""
    locks, turn = Locks(f"core_{column}_{row}"), Rotation("turn")
    a = Slots.of(locks, "a", m * k, INT8, "tile of A, micro-tiles")
    b = Slots.of(locks, "b", k * n, INT8, "tile of B, micro-tiles")
    c = Slots.of(locks, "c", m * n, INT32, "tile of C, micro-tiles", 1)
    told = Parameters.of(locks, "K / k, tiles of C", ("k_steps", "tiles"))
    multiply = Call("mm_i8_i8_i32", (turn.of(a.buffers), turn.of(b.buffers), *c.buffers))
    step = Acquire(a.full), Acquire(b.full), multiply, Release(a.free), Release(b.free), Advance(turn)
    tile = Acquire(c.free), Call("zero_i32", c.buffers), Loop("k_steps", step, "step"), Release(c.full)
    body = told.problems(Loop("tiles", tile, "tile"))
    channels = (
        Channel("S2MM", 0, a.fill(), "A in"),
        Channel("S2MM", 1, b.fill(), "B in"),
        Channel("MM2S", 0, c.send(), "C out"),
    )
    program = Core((body,), link_with="gemm_i8.o")
    return Tile.holding(locks, column, row + 2, (a, b, c), channels, program, told.buffer)


shims, memtiles = [*map(Tile.shim, range(COLUMNS))], [*map(memtile, range(COLUMNS))]
cores = {(c, r): core(c, r) for c in range(COLUMNS) for r in range(ROWS)}
flows, names = [], []
for r in range(ROWS):
    shim, mem = shims[2 * r], memtiles[2 * r]
    flows += [Flow(shim.dma(0), (mem.dma(1),), "A: DRAM to memtiles")]
    flows += [Flow(mem.dma(1), tuple(cores[c, r].dma(0) for c in range(COLUMNS)), "A: along each row of cores")]
    names += [Allocation(f"a_{r}", shim, "MM2S", 0)]
for c, (shim, mem) in enumerate(zip(shims, memtiles, strict=True)):
    flows += [Flow(shim.dma(1), (mem.dma(0),), "B: DRAM to memtiles")]
    flows += [Flow(mem.dma(0), tuple(cores[c, r].dma(1) for r in range(ROWS)), "B: up each column")]
    flows += [Flow(cores[c, r].dma(0), (mem.dma(r + 2),), "C: to memtiles") for r in range(ROWS)]
    flows += [Flow(mem.dma(2), (shim.dma(0),), "C: memtiles to DRAM")]
    names += [Allocation(f"b_{c}", shim, "MM2S", 1), Allocation(f"c_{c}", shim, "S2MM", 0)]
design = placed(
    Design(
        "gemm_i8",
        "npu2",
        (*shims, *memtiles, *cores.values()),
        tuple(flows),
        tuple(names),
        reference="references.py:gemm_i8",
        kernels=("mm_i8_i8_i32.cc", "zero_i32.cc"),
        macros=(f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}"),
    )
)

# Hosts copy operands into buffers of whole tiles, with zeros behind: Mt x Kt, Kt x Nt, Mt x Nt.
build = Builder(["M", "K", "N"])
M, K, N = map(build.parameter, "MKN")
panels, steps = build.named("panels", ceildiv(M, ROWS * m)), build.named("steps", ceildiv(N, COLUMNS * n))
slabs = build.named("slabs", ceildiv(K, k_mt))
Mt, Kt, Nt = panels * ROWS * m, slabs * k_mt, steps * COLUMNS * n
build.require(K <= 131072, "K = {} could overflow the sums; at most 131072", K)
A, B = build.argument("A", "i8", 8, Mt * Kt), build.argument("B", "i8", 8, Kt * Nt)
C = build.argument("C", "i32", 32, Mt * Nt)
build.operand("A", A, "in", "int8", 8, [Axis(M, Mt), Axis(K, Kt)])
build.operand("B", B, "in", "int8", 8, [Axis(K, Kt), Axis(N, Nt)])
build.operand("C", C, "out", "int32", 32, [Axis(M, Mt), Axis(N, Nt)])
with (
    build.loop(panels, "p") as p,
    build.loop(steps, "s") as s,
    build.step([("S2MM", 0, 0, COLUMNS)], "panel {}, column step {}", (p, s)),
):
    for r in range(ROWS):
        walk = build.bd(A, (p * ROWS + r) * m * Kt, [slabs, m, k_mt], [k_mt, Kt, 1])
        build.task("MM2S", 0, 2 * r, walk)
    for c in range(COLUMNS):
        build.task("MM2S", 1, c, build.bd(B, (s * COLUMNS + c) * n, [Kt, 1, n], [Nt, 0, 1]))
    with build.when(p.equals(0) * s.equals(0)):
        for at in rtp_addresses(design):
            build.set_parameters(at.parameters, {0: Kt // k, 1: panels * steps}, at.go)
    for c in range(COLUMNS):
        walk = build.bd(C, p * ROWS * m * Nt + (s * COLUMNS + c) * n, [ROWS * m, n], [Nt, 1])
        build.task("S2MM", 0, c, walk, token=True)

DESIGN = replace(design, program=build.program)
