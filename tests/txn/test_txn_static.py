"""Words of static BDs field by field; what they reach: windows of memtiles, a buffer's end; values without a field."""

from types import SimpleNamespace

import pytest

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.images.image_build import program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import MlirError
from bdforge.array.mlir.allocate import allocate
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.txn.static_bd import lost_pad_value, static_words, window
from bdforge.devices import TileKind
from bdforge.devices.registers import TILE_REGISTERS
from support.decoded import device_of

MEMTILE, CORE, SHIM = TileKind.MEMTILE, TileKind.CORE, TileKind.SHIM


def at(column: int, row: int, kind: TileKind = MEMTILE) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, column=column, row=row, place=(column, row))


@pytest.mark.parametrize(("column", "side"), [(3, 0), (4, 1), (5, 2)])
def test_a_memtile_sees_its_own_memory_between_those_of_its_neighbours(column: int, side: int):
    assert window(at(4, 1), at(column, 1)) == side  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [CORE, SHIM])
def test_other_tiles_see_only_themselves(kind: TileKind):
    assert window(at(4, 1, kind), at(4, 1)) == 0  # type: ignore[arg-type]


def bd(offset: int, length: int, dims: str = "", behind: int = 256) -> str:
    """A memtile that sends part of 64 words, behind which another buffer lies."""
    return f"""aie.device(npu2) {{
    %m = aie.tile(1, 1)
    %b = aie.buffer(%m) {{sym_name = "b", address = 0 : i32}} : memref<64xi32>
    %c = aie.buffer(%m) {{sym_name = "c", address = {behind} : i32}} : memref<64xi32>
    aie.memtile_dma(%m) {{
      %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%b : memref<64xi32>, {offset}, {length}{dims})
      aie.next_bd ^bd
    ^end:
      aie.end
    }} }}"""


@pytest.mark.parametrize(
    ("kind", "row", "taken"), [("shim_dma", 0, True), ("memtile_dma", 1, False), ("mem", 2, False)]
)
def test_host_memory_is_for_the_static_bds_of_shims(kind: str, row: int, taken: bool):
    text = f"""aie.device(npu2) {{
    %t = aie.tile(1, {row})
    %b = aie.external_buffer {{address = 4096 : i64}} : memref<64xi32>
    aie.{kind}(%t) {{
      %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%b : memref<64xi32>, 0, 64)
      aie.next_bd ^bd
    ^end:
      aie.end
    }} }}"""
    if taken:
        assert warnings(text) == ""
        return
    with pytest.raises(MlirError, match=r"needs an aie.buffer, or on a shim an aie.external_buffer"):
        warnings(text)


def warnings(text: str) -> str:
    strictness = Strictness()
    configuration(device_of(text), program_of, strictness)
    return "\n".join(strictness.warnings)


APART = ", [<size = 2, stride = 62>, <size = 2, stride = 1>]"


@pytest.mark.parametrize(
    ("offset", "length", "dims", "last"),
    [(0, 64, "", 0), (0, 65, "", 259), (48, 16, "", 0), (49, 16, "", 259), (0, 4, APART, 0), (1, 4, APART, 259)],
)
def test_a_bd_may_end_with_its_buffer_and_is_told_where_it_ends_behind_it(
    offset: int, length: int, dims: str, last: int
):
    found = warnings(bd(offset, length, dims))
    assert bool(found) == bool(last)
    told = f"8:7: aie.dma_bd: the BD moves words up to byte {last} of buffer @b, which has 256 bytes and runs into @c"
    assert told in found or not last


def test_padding_takes_no_words_of_a_buffer():
    """4 words of the buffer's end and 4 zeros; without padding all 8 would be read."""
    dims = ", [<size = 1, stride = 8>, <size = {0}, stride = 1>]"
    padding = ", [<const_pad_before = 0, const_pad_after = 0>, <const_pad_before = 0, const_pad_after = 4>]"
    assert warnings(bd(60, 8, dims.format(4) + padding)) == ""
    assert "runs into @c" in warnings(bd(60, 8, dims.format(8)))


@pytest.mark.parametrize(("behind", "met"), [(256, True), (288, True), (320, False)])
def test_only_a_buffer_that_is_met_is_named(behind: int, met: bool):
    """80 words end at byte 320."""
    assert (" and runs into @c" in warnings(bd(0, 80, behind=behind))) == met


@pytest.mark.parametrize(("value", "padding", "lost"), [(5, [(1, 0)], True), (5, [], False), (0, [(1, 0)], False)])
def test_only_a_value_that_pads_is_lost(value: int, padding: list, lost: bool):
    told = lost_pad_value(SimpleNamespace(pad_value=value, padding=padding))  # type: ignore[arg-type]
    assert (told is not None) == lost


ARRAY = """aie.device(npu2) {{
  %s = aie.tile(1, 0)
  %m = aie.tile(1, 1)
  %east = aie.tile(2, 1)
  %c = aie.tile(1, 2)
  %sb = aie.external_buffer {{address = 8589938688 : i64}} : memref<4096xi32>
  %mb = aie.buffer(%east) {{address = 256 : i32}} : memref<4096xi16>
  %cb = aie.buffer(%c) {{address = 512 : i32}} : memref<4096xi16>
  %sl = aie.lock(%s, 5)
  %ml = aie.lock(%east, 6)
  %cl = aie.lock(%c, 7)
  aie.{dma}(%{tile}) {{
    aie.dma_start(MM2S, 0, ^bd, ^end)
  ^bd:
    aie.use_lock(%{tile}l, AcquireGreaterEqual, 3)
    aie.dma_bd(%{tile}b : memref<4096x{type}>, {bd}
    aie.use_lock(%{tile}l, Release, 2)
    aie.next_bd ^bd
  ^end:
    aie.end
  }}
}}"""
PACKET = "packet = #aie.packet_info<pkt_type = 3, pkt_id = 9>"
DIMS = "[<size = 2, stride = 512>, <size = 3, stride = 64>, <size = 4, stride = 8>, <size = 8, stride = 1>]"
PADS = ", ".join(
    f"<const_pad_before = {before}, const_pad_after = {after}>" for before, after in ((0, 0), (1, 2), (3, 4), (6, 8))
)
STATIC = {
    "shim_dma": (
        "s", "i32",
        f"16, 32, [<size = 4, stride = 16>, <size = 8, stride = 1>]) {{{PACKET}, burst_length = 128 : i32}}",
        {"length": 32, "address_low": 4096 + 64, "address_high": 2, "d0_wrap": 8, "d1_wrap": 4, "d1_step": 15,
         "burst": 1, "acquire_id": 5, "release_id": 5},
    ),
    "memtile_dma": (
        "m", "i16", f"16, 2904, {DIMS}, [{PADS}]) {{{PACKET}}}",
        {"length": 1452, "address": (0x100000 + 256 + 32) // 4, "d0_wrap": 4, "d1_wrap": 4, "d1_step": 3, "d2_wrap": 3,
         "d2_step": 31, "d3_step": 255, "d0_pad_before": 3, "d0_pad_after": 4, "d1_pad_before": 3, "d1_pad_after": 4,
         "d2_pad_before": 1, "d2_pad_after": 2, "acquire_id": 134, "release_id": 134},
    ),
    "mem": (
        "c", "i16", f"16, 32, [<size = 4, stride = 16>, <size = 8, stride = 1>]) {{{PACKET}}}",
        {"length": 16, "address": (512 + 32) // 4, "d0_wrap": 4, "d1_wrap": 4, "d1_step": 7, "acquire_id": 7,
         "release_id": 7},
    ),
}  # fmt: skip
SHARED = {
    "packet_enable": 1, "packet_type": 3, "packet_id": 9, "use_next": 1, "next": 11, "valid": 1, "acquire_enable": 1,
    "acquire_value": -3, "release_value": 2,
}  # fmt: skip


def static_fields(text: str, policy: Strictness, next_bd: int | None = None) -> dict[str, int]:
    """The fields that are not 0 of a text's only BD."""
    device = device_of(text)
    (program,) = (op for op in device.walk() if isinstance(op, DmaProgramOp))
    (transfer,) = program.bds
    words = static_words(program.tile, transfer, next_bd, allocate(device), policy)
    found = TILE_REGISTERS[program.tile.kind].bd.decode(words)
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("dma", STATIC)
def test_each_part_of_a_static_bd_reaches_its_field(dma: str):
    tile, type_, bd, fields = STATIC[dma]
    text = ARRAY.format(dma=dma, tile=tile, type=type_, bd=bd)
    assert static_fields(text, Strictness(), next_bd=11) == SHARED | fields


LOCKED = """aie.device(npu2) {{
  %m = aie.tile(1, 1)
  %east = aie.tile(2, 1)
  %b = aie.buffer(%m) {{sym_name = "b", address = 0 : i32}} : memref<4096xi32>
  %l = aie.lock(%m, 4)
  %k = aie.lock(%east, 9)
  aie.memtile_dma(%m) {{
    aie.dma_start(MM2S, 0, ^bd, ^end)
  ^bd:
    {before}
    aie.dma_bd(%b : memref<4096xi32> offset = 0 len = 64) {{{options}}}
    {behind}
    aie.next_bd ^end
  ^end:
    aie.end
  }}
}}"""


def memtile_fields(before: str = "", behind: str = "", options: str = "") -> tuple[dict[str, int], list[str]]:
    """The fields that are not 0 of such a BD, and the cautions about it."""
    one = "%one = arith.constant 1 : i32\n    "
    policy = Strictness()
    found = static_fields(LOCKED.format(before=one + before, behind=behind, options=options), policy)
    return {name: value for name, value in found.items() if name not in ("address", "valid")}, policy.warnings


TAKE, GIVE = "aie.use_lock({}, AcquireGreaterEqual, %one)", "aie.use_lock({}, Release, %one)"


@pytest.mark.parametrize(
    ("take", "give", "ids", "cautions"),
    [("%l", "%l", (68, 68), 0), ("%k", "%k", (137, 137), 0), ("%l", "%k", (132, 137), 1), ("%k", "%l", (73, 68), 1)],
)
def test_both_locks_of_a_bd_are_counted_in_the_window_of_the_last(take: str, give: str, ids, cautions: int):
    """Locks of a memtile stand at 64, those of its eastern neighbour at 128; mlir-aie takes one window for both."""
    found, told = memtile_fields(TAKE.format(take), GIVE.format(give))
    assert (found["acquire_id"], found["release_id"]) == ids
    assert [caution.endswith("[lock-windows]") for caution in told] == [True] * cautions
    assert not told or "its locks are in tiles (" in told[0]


def test_a_bd_without_locks_and_its_iteration():
    iteration = "iteration = #aie.bd_iteration<size = 3, stride = 100, current = 0>"
    assert memtile_fields() == ({"length": 64}, [])
    assert memtile_fields(options=iteration) == ({"length": 64, "iteration_wrap": 2, "iteration_step": 99}, [])
