"""Products of block floats in memory, on AIE2P: `mm_bfp16_bfp16_*`, `mm_bf16_bfp16_*`, with the bits of C++."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.block_float_region import (
    ARGUMENTS,
    CONF,
    SCRATCH,
    SIDE,
    BlockFloatProduct,
    StoredBlockRegion,
)
from bdforge.core.codegen.kernels.block_float_streams import (
    LINE_BYTES,
    TILE,
    kept_positions,
    restored_positions,
    set_turns,
    tile_bytes,
)
from bdforge.core.codegen.kernels.digit_products import minus_identity
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.pipeline.pipelined_function import function, set_control, set_register
from bdforge.core.codegen.pipeline.product import BLOCK_CONF
from bdforge.core.codegen.pipeline.tile_cover import split_side

BLOCK_FLOAT_PRODUCTS = [f"mm_{a}_bfp16_{c}" for a in ("bf16", "bfp16") for c in ("bf16", "f32", "bfp16")]
_IDLE = {
    "bfp16": {"bfp16": (2, 1.5), "bf16": (1.8, 1), "f32": (7.8, 5.5)},
    "bf16": {"bfp16": (2, 2), "bf16": (4, 4), "f32": (8, 8)},
    "turned": {"bfp16": (2.1, 2.6), "bf16": (3.9, 3.9), "f32": (9.4, 13.5)},
}
"""Cycles beside steps, for each tile of a block, by A (bfloat16 that is turned has its own), C and run: as schedules of
many sizes have them."""
_CALL, _AROUND = 15, 35  # cycles of a call, and of a region, besides blocks


def _regions(p: BlockFloatProduct) -> list[StoredBlockRegion]:
    """Blocks of 2 x 2 tiles, and of less at the edges."""
    return [
        StoredBlockRegion(p, height, width, (top, down), (left, across))
        for top, down, height in split_side(p.rows, SIDE)
        for left, across, width in split_side(p.columns, SIDE)
    ]


def expected_block_floats(name: str, generation: str, options: Options) -> float:
    """About what a call takes; CodegenError as `block_float_product`."""
    p = _product_of(name, generation, options)
    idle = _IDLE["turned" if p.turns_a else p.a][p.c][p.run - 1]
    blocks = ((r.down[1] * r.across[1], p.steps * r.interval + idle * r.rows * r.columns) for r in _regions(p))
    return _CALL + sum(_AROUND + count * cycles for count, cycles in blocks)


def block_float_product(name: str, generation: str, options: Options) -> Maker:
    """What writes a product of block floats in memory; CodegenError for sizes or layouts without one."""
    return partial(_made, name, _product_of(name, generation, options), options.hardware_loops)


def _product_of(name: str, generation: str, options: Options) -> BlockFloatProduct:
    """What a kernel multiplies; CodegenError as `block_float_product`."""
    _, a, _, c = name.split("_")
    if generation != "aie2p":
        raise CodegenError(f"{name} is not assembled for {generation}, only for aie2p")
    refused = "A" * (a == "bfp16") + "B" + "C" * (c == "bfp16")
    if turned := [f"{side}_TRANSPOSED" for side in refused if options.has(f"{side}_TRANSPOSED")]:
        raise CodegenError(f"{name} is not assembled with {turned[0]}")
    parts, (m, k, n) = options.number("DIM_RHO", 1), (options.number(f"DIM_{axis}") for axis in "MKN")
    if any(size % TILE for size in (m // parts, k, n)):
        raise CodegenError(f"{name}: m/rho, k, n = {m // parts}, {k}, {n} are no multiples of {TILE}, {TILE}, {TILE}")
    shape = options.shape or (SIDE, SIDE)
    if shape != (SIDE, SIDE):
        raise CodegenError(f"{name}: no blocks have {'x'.join(map(str, shape))} micro-tiles: there are 2x2")
    tiles = (m // parts // TILE, k // TILE, n // TILE)
    return BlockFloatProduct(a, c, *tiles, parts, options.has("C_TRANSPOSED"), options.has("A_TRANSPOSED"))


def _made(name: str, p: BlockFloatProduct, hardware: bool) -> AssemblyKernel:
    regions = _regions(p)
    parts = [region.part([] if number else list(_setup(p))) for number, region in enumerate(regions)]
    rows, depth, columns = (TILE * tiles for tiles in (p.rows, p.depth, p.columns))
    part, made_of = ", r0 = part" if p.parts > 1 else "", zip(regions, parts, strict=True)
    made = function(
        name, "aie2p", [*parts, restored_positions()],
        f"{name}: C += A B, {rows} x {depth} x {columns} a call: {{cycles}} cycles (exact), {{rate}} MACs a cycle.",
        f"p0 = A, p1 = B, p2 = C, at multiples of {LINE_BYTES}{part}; layouts as in {name}.cc.",
        *(f"{one.times} blocks of {r.rows} x {r.columns} tiles, one in {one.period} cycles." for r, one in made_of),
        hardware=hardware,
    )  # fmt: skip
    assert made.cycles
    return replace(made, text=made.text.replace("{rate}", f"{rows * depth * columns / made.cycles:.0f}"))


def _setup(product: BlockFloatProduct) -> Iterator[AssemblyOp]:
    """What callers keep, arguments, the part of C, and constants."""
    yield from kept_positions()
    if product.parts > 1:
        yield set_register("r8", product.rows * product.columns * tile_bytes(product.c))
        yield from (AssemblyOp("mul r0, r0, r8", "rows of this part"), AssemblyOp(f"mov {SCRATCH}, r0"))
        yield AssemblyOp(f"padda [p2], {SCRATCH}")
    yield from (AssemblyOp(f"mov {kept}, p{i}") for i, kept in enumerate(ARGUMENTS.values()))
    yield from set_control("crRnd", ROUNDINGS["conv_even"])
    if product.c == "bfp16":
        yield from minus_identity()
    if product.turns_a:
        yield from set_turns()
    yield set_register(CONF, BLOCK_CONF, "kind of products")
