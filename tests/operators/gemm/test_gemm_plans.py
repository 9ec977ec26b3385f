"""What a GEMM's plan says of itself: kernels and their macros, arguments and operands, tiles, cost, padding."""

from typing import Any

import numpy as np
import pytest

from bdforge.design.sequences import place
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import GemmProblem, sequence, spec_from
from bdforge.operators.gemm.grid import Feed, Tiling, feeding_column, storage_of
from bdforge.operators.gemm.mapping import kept_share
from bdforge.operators.gemm.resident import Room, bd_room
from support.built_designs import small_gemm, spec_content
from support.differences import same

INT8, BF16, BLOCKS = ("int8", "int8", "int32"), ("bf16", "bf16", "f32"), ("bfp16", "bfp16", "bfp16")
ROWS, FED = "row row row", ("int8", "int8", "bf16")


DEFINES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing else": ({"types": INT8}, ""),
    "parts of A": ({"types": INT8, "rho": 2}, "DIM_RHO=2 MEETS=0,0,25"),
    "C in parts": ({"types": INT8, "rho": 2, "c_in_parts": True, "k_mt": 32}, "DIM_RHO=2 C_IN_PARTS MEETS=0,0,25"),
    "A turned": ({"types": INT8, "layouts": "column row row"}, "A_TRANSPOSED"),
    "B turned": ({"types": INT8, "layouts": "row column row"}, "B_TRANSPOSED"),
    "C turned": ({"types": INT8, "layouts": "row packed column"}, "C_TRANSPOSED"),
    "all turned": ({"types": BF16, "layouts": "column column column"}, "A_TRANSPOSED B_TRANSPOSED C_TRANSPOSED"),
    "a shift": ({"types": ("int8", "int8", "int8"), "epilogue": {"shift": 7}}, "SHIFT=7"),
    "a rounding": ({"types": ("int8", "int8", "int8"), "epilogue": {"rounding": "floor"}}, "ROUNDING=floor"),
    "both and relu": (
        {"types": ("int8", "int8", "int16", "int32"), "epilogue": {"shift": 1, "rounding": "conv_odd", "relu": True}},
        "SHIFT=1 ROUNDING=conv_odd RELU",
    ),
    "scales": ({"types": FED, "k": 64, "epilogue": {"scale": True}}, "MEETS=0,0,25 ARRAY_ROWS=2 SCALE"),
    "biases of three rows": (
        {"types": FED, "k": 64, "rows": 3, "columns": 3, "epilogue": {"bias": True, "relu": True}},
        "MEETS=0,0,25 ARRAY_ROWS=3 BIAS RELU",
    ),
    "fields": ({"types": ("int8", "int2", "int8")}, "FIELD_SCALED"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINES)
def test_kernels_are_compiled_with_what_the_spec_says(name: str):
    content, macros = DEFINES[name]
    found = small_gemm(**content).kernels
    assert found.defines == ("DIM_M=16", f"DIM_K={content.get('k', 16)}", "DIM_N=32", *macros.split())
    assert found.sources == tuple(f"kernels/aie2p/{symbol}.cc" for symbol in found.symbols)


OPERANDS: dict[str, tuple[dict[str, Any], str, str]] = {
    # arguments with their types, operands with theirs: (* staged or packed) and the number of their argument.
    "packed": ({"types": INT8}, "A:int8 B:int8 C:int32", "A0 B1 C2"),
    "row-major": ({"types": INT8, "layouts": ROWS}, "A:int8 B:int8 C:int32", "A0 B1 C2"),
    "ternary": ({}, "A:int8 B:int2 C:int32", "A0 B1 C2"),
    "scales": (
        {"types": FED, "k": 64, "epilogue": {"scale": True}}, "A:int8 B:int8 C:bf16 R:f32 S:f32",
        "A0 B1 C2 row_scales3 column_scales4",
    ),
    "sums as they are": ({"types": FED}, "A:int8 B:int8 C:bf16", "A0 B1 C2"),
    "biases of integers, which are added to scaled ones": (
        {"types": FED, "k": 64, "epilogue": {"bias": True}}, "A:int8 B:int8 C:bf16 R:f32 S:f32",
        "A0 B1 C2 row_scales3 column_scales4 bias4",
    ),
    "biases of floats alone": (
        {"types": ("bf16", "bf16", "bf16", "f32"), "k": 64, "epilogue": {"bias": True}},
        "A:bf16 B:bf16 C:bf16 R:i8 S:f32", "A0 B1 C2 bias4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_a_program_has_the_arguments_and_operands_of_its_epilogue(name: str):
    content, arguments, operands = OPERANDS[name]
    program = small_gemm(**content).program
    types = {operand.argument: operand.type for operand in program.operands}
    shown = [f"{x.name}:{types.get(number, x.type)}" for number, x in enumerate(program.arguments)]
    assert " ".join(shown) == arguments
    assert " ".join(f"{operand.name}{operand.argument}" for operand in program.operands) == operands
    stands_for = {"row_scales": 1.0, "column_scales": 1.0, "bias": 0.0}  # what is left out
    same([one.missing for one in program.operands], [stands_for.get(one.name) for one in program.operands])


@pytest.mark.parametrize(("layouts", "types"), [
    ("row packed row", "i8 i8 i32"), (ROWS, "i8 i8 i32"),
])  # fmt: skip
def test_arguments_hold_bytes_of_packed_b_and_elements_of_others(layouts: str, types: str):
    assert " ".join(x.type for x in small_gemm(types=INT8, layouts=layouts).program.arguments) == types
    floats = small_gemm(types=BF16, layouts=layouts).program
    b = "i8" if "packed" in layouts else "bf16"
    assert [(x.type, x.bits) for x in floats.arguments] == [("bf16", 16), (b, 8 if b == "i8" else 16), ("f32", 32)]


@pytest.mark.parametrize(("M", "panels"), [
    # Two core rows of 16 rows: whole panels move back together, one that is less tile by tile.
    (31, [[0, 15]]), (32, [[0, 16]]), (33, [[0, 16], [1, 17]]), (16, [[0, 0]]),
])  # fmt: skip
def test_an_epilogue_s_numbers_lie_tile_by_tile(M: int, panels: list[list[int]]):
    """[panel][core row][16] scales of rows, each panel in a half of B's tile; [n-tile][32 scales, 32 biases]."""
    plan = small_gemm(types=FED, k=64, epilogue={"scale": True, "bias": True})
    rows, columns, bias = np.arange(1, M + 1), 1000 + np.arange(70), 5000 + np.arange(70)
    found = sequence(plan, M, 64, 70)
    buffers = [np.zeros(size, np.uint8) for size in found.argument_bytes]
    for name, array in (("row_scales", rows), ("column_scales", columns), ("bias", bias)):
        operand = next(operand for operand in found.program.operands if operand.name == name)
        place(operand, found.values, array.astype(np.float32), buffers[operand.argument])
    by_panel, by_tile = 4 * 2 * 16, 64 * 32 - 4 * 2 * 16
    assert plan.tiling.fed_bytes == (by_panel, by_tile)
    assert found.argument_bytes[3:] == [len(panels) * by_panel, 3 * by_tile]
    wanted = [rows[start : start + 16] for panel in panels for start in panel]
    same(buffers[3].view(np.float32).reshape(-1, 16), np.array(wanted, np.float32), "scales of rows")
    tiles = buffers[4].view(np.float32).reshape(3, -1)
    for tile, start in enumerate((0, 32, 38)):
        same(tiles[tile, :32], columns[start : start + 32], f"scales of n-tile {tile}")
        same(tiles[tile, 32:64], bias[start : start + 32], f"biases of n-tile {tile}")


def test_scales_of_rows_lie_at_whole_micro_tiles_where_few_are_used():
    """Three of eight rows in each of two core rows: 3 scales, then 5 that none is."""
    plan = small_gemm(types=FED, m=8, m_used=3, k=64, epilogue={"scale": True})
    found = sequence(plan, 6, 64, 64)
    assert plan.tiling.fed_bytes == (4 * 2 * 8, 64 * 32 - 4 * 2 * 8)
    buffer = np.zeros(found.argument_bytes[3], np.uint8)
    operand = next(operand for operand in found.program.operands if operand.name == "row_scales")
    place(operand, found.values, np.arange(1, 7, dtype=np.float32), buffer)
    same(buffer.view(np.float32).reshape(-1, 8)[:2, :3], np.array([[1, 2, 3], [4, 5, 6]], np.float32))


def test_a_memtile_holds_an_epilogue_of_biases_alone():
    types = ("bf16", "bf16", "bf16", "f32")
    assert small_gemm(types=types, k=64, epilogue={"bias": True}).tiling.fed_bytes == (128, 64 * 32 * 2 - 128)
    assert small_gemm(types=types, k=64).tiling.fed_bytes == (0, 0)


@pytest.mark.parametrize(("rows", "columns", "fed"), [
    (4, 8, "0 2 4 6"), (4, 4, "0 1 2 3"), (2, 8, "0 4"), (3, 8, "0 2 5"), (4, 2, "0 0 1 1"), (4, 3, "0 0 1 2"),
    (4, 1, "0 0 0 0"), (3, 2, "0 0 1"), (1, 8, "0"),
])  # fmt: skip
def test_columns_feed_core_rows_as_evenly_as_can_be(rows: int, columns: int, fed: str):
    assert " ".join(str(feeding_column(row, rows, columns)) for row in range(rows)) == fed


@pytest.mark.parametrize(("rows", "columns", "shims", "feeds"), [
    (2, 4, 1, [(0, 0, 0, 16), (2, 1, 0, 16)]), (4, 2, 1, [(0, 0, 0, 32), (1, 2, 0, 32)]),
    (3, 2, 1, [(0, 0, 0, 32), (1, 2, 0, 16)]),
    (2, 4, 2, [(0, 0, 0, 8), (1, 0, 8, 8), (2, 1, 0, 8), (3, 1, 8, 8)]), (1, 3, 2, [(0, 0, 0, 8), (1, 0, 8, 8)]),
])  # fmt: skip
def test_a_shim_feeds_the_rows_of_its_memtile(rows: int, columns: int, shims: int, feeds: list[tuple[int, ...]]):
    tiling = Tiling(16, 16, 32, 32, rows, columns, a_shims=shims)
    same(tiling.feeds(), [Feed(*feed) for feed in feeds])
    assert tiling.least["M"] == (16 if rows <= columns else 16 * rows)
    assert (tiling.panel_rows, tiling.step_columns) == (16 * rows, 32 * columns)


@pytest.mark.parametrize(("types", "layouts", "granules"), [
    # What M, K and N are multiples of, for tiles to start at whole words of 4 bytes, or at lines of 8 rows.
    ("int8 int8 int32", "row packed row", (1, 4, 1)), ("int8 int8 int8", "row packed row", (1, 4, 4)),
    ("int8 int8 int16", "row row row", (1, 4, 4)), ("int8 int8 int32", "row row row", (1, 4, 4)),
    ("int8 int8 int32", "row column row", (1, 4, 1)), ("int8 int8 int32", "column column row", (4, 4, 1)),
    ("int8 int8 int32", "column row row", (4, 1, 4)), ("int8 int8 int16", "row packed column", (2, 4, 1)),
    ("int8 int8 int16", "column packed column", (4, 1, 1)), ("bf16 bf16 f32", "row row row", (1, 2, 2)),
    ("bf16 bf16 bf16", "column column column", (2, 2, 1)), ("bf16 bf16 f32", "column packed column", (2, 1, 1)),
    ("bfp16 bfp16 bfp16", "row packed row", (8, 8, 8)), ("bf16 bfp16 f32", "row packed row", (1, 2, 1)),
    ("bf16 bfp16 bfp16", "row packed row", (8, 2, 8)),
])  # fmt: skip
def test_sizes_are_walked_in_whole_words(types: str, layouts: str, granules: tuple[int, int, int]):
    pairs = zip(types.split(), layouts.split(), strict=True)
    a, b, c = (storage_of(TYPES[type_], order) for type_, order in pairs)  # type: ignore[arg-type]
    assert Tiling(16, 16, 32, 32, a=a, b=b, c=c).granules == dict(zip("MKN", granules, strict=True))


@pytest.mark.parametrize(("rows", "buffers", "room"), [
    # 24 numbers of even channels less C's of every second row; parts are sent twice by two panels, 4 numbers stay.
    (1, 1, Room(4, 12)), (2, 1, Room(4, 12)), (3, 1, Room(4, 12)), (4, 1, Room(4, 12)),
    (1, 2, Room(4, 12)), (2, 2, Room(4, 12)), (3, 2, Room(4, 10)), (4, 2, Room(4, 10)),
])  # fmt: skip
def test_bds_of_c_leave_numbers_for_parts_and_chunks(rows: int, buffers: int, room: Room):
    assert bd_room(rows, buffers) == room
    assert room.bds + buffers * -(-rows // 2) <= 24


def test_what_a_pool_may_take_is_what_the_spec_says_or_all_but_the_first_word():
    whole, small = (small_gemm(residency="b", m=8, c_memtile_buffers=1, pool_bytes=size) for size in (0, 9 * 128 + 127))
    tiles = [plan.design.tiles for plan in (whole, small)]
    pools = [next(b for tile in each for b in tile.buffers if b.name == "mem_0_b") for each in tiles]
    others = (
        sum(-(-b.bytes // 64) * 64 for tile in tiles[0] for b in tile.buffers if tile.name == "mem_0") - pools[0].bytes
    )
    assert [pool.bytes for pool in pools] == [(0x80000 - 64 - others) // 128 * 128, 9 * 128]
    assert {pool.address for pool in pools} == {64}


@pytest.mark.parametrize(("sizes", "padding", "macs"), [
    ((32, 32, 64), "none", 1), ((33, 32, 65), "M 33→64, N 65→128", 4),
    ((1, 33, 64), "M 1→32, K 33→48, A and C staged", 1.5),
    ((32, 30, 64), "K 30→32, A staged", 1), ((64, 32, 64), "none", 2),
])  # fmt: skip
def test_padding_and_cost_are_of_whole_tiles(sizes: tuple[int, int, int], padding: str, macs: float):
    """Of 2 x 2 cores of 16 x 16 x 32 tiles: a panel of 32 rows, a step of 64 columns; 512 MACs a cycle of a core."""
    plan = small_gemm()
    found = sequence(plan, *sizes)
    assert plan.padding(found) == padding
    cost = plan.cost(GemmProblem(*sizes))
    assert cost.core_cycles == macs * 16 * 32 * 32 / 512
    assert cost.operations == sizes[0] * sizes[1] * sizes[2]
    assert found.counts().macs == macs * 32 * 32 * 64
    assert GemmProblem(*sizes).macs == cost.operations


def test_a_plan_is_told_in_a_line():
    plan = small_gemm(device="phoenix", types=("int8", "int8", "int16"), rows=3, columns=4)
    told = "small: int8 x int8 -> int16, tile 16x16x32 on 3 x 4 cores of phoenix"
    assert (plan.summary, repr(plan)) == (told, f"<Plan {told}>")
    assert plan.note(sequence(plan, 48, 16, 128)) == "C (48 x 128) = A (48 x 16) B (16 x 128), edges: none"
    assert plan.note(sequence(plan, 49, 16, 128)) == (
        "C (49 x 128) = A (49 x 16) B (16 x 128), edges: A reads 47 rows again; C writes 47 rows again"
    )


@pytest.mark.parametrize(("facts", "depth", "share"), [
    # 16 tiles of 16 deep: 8 stay whole, of 17 too many tiles some pass through two slots, 97 are too deep.
    ({"pool_bytes": 16 * 128}, 8 * 16, 1.0), ({"pool_bytes": 16 * 128}, 16 * 16, 1.0),
    ({"pool_bytes": 16 * 128}, 15 * 16 + 1, 1.0), ({"pool_bytes": 16 * 128}, 17 * 16, 13 / 17),
    ({"pool_bytes": 16 * 128}, 97 * 16, 0.0), ({"residency": "none"}, 8 * 16, 0.0),
    ({"pool_bytes": 16 * 128, "k_mt": 64}, 16 * 16 + 1, 14 / 20),
])  # fmt: skip
def test_a_share_of_a_panel_stays(facts: dict[str, Any], depth: int, share: float):
    facts = {"m": 8, "k": 16, "n": 32, "residency": "b", "c_memtile_buffers": 1, **facts}
    content = spec_content(**facts)
    assert kept_share(spec_from(content, "small"), device_named("strix_halo"), depth) == share


def test_only_leading_dimensions_can_be_said_beside_sizes():
    with pytest.raises(TypeError, match=r"^sequence\(\) takes lda, ldb, ldc, not ldd, lde$"):
        sequence(small_gemm(), 16, 16, 32, lda=32, lde=1, ldd=2)
    walk = sequence(small_gemm(), 16, 16, 32, lda=None, ldc=40).walk
    assert (walk.lda, walk.ldb, walk.ldc) == (16, 0, 40)


def test_the_array_multiplies_whole_tiles_where_few_rows_are_used():
    """Two core rows with 3 rows each of 8: 6 rows are a panel, 7 are two."""
    plan = small_gemm(m=8, m_used=3)
    for M, panels in ((6, 1), (7, 2), (13, 3)):
        found = sequence(plan, M, 16, 64)
        assert (found.counts().output_tiles, found.counts().macs) == (4 * panels, 4 * panels * 8 * 16 * 32)
        assert found.processed == (6 * panels, 16, 64)
        assert plan.cost(GemmProblem(M, 16, 64)).core_cycles == panels * 8 * 16 * 32 / 512
