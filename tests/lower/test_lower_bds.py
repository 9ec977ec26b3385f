"""What a static BD reaches: windows of memtiles, its buffer's end, and padding values that have no field."""

from types import SimpleNamespace

import pytest

from bdforge.devices import TileKind
from bdforge.emulator.strictness import Strictness
from bdforge.images.build import program_of
from bdforge.lower import configuration
from bdforge.mlir import DeviceOp, parse
from bdforge.txn.bd import BdError
from bdforge.txn.static_bd import lost_pad_value, window

MEMTILE, CORE, SHIM = TileKind.MEMTILE, TileKind.CORE, TileKind.SHIM


def at(column: int, row: int, kind: TileKind = MEMTILE) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, column=column, row=row)


@pytest.mark.parametrize(("column", "side"), [(3, 0), (4, 1), (5, 2)])
def test_a_memtile_sees_its_own_memory_between_those_of_its_neighbours(column: int, side: int):
    assert window(at(4, 1), at(column, 1), "buffer") == side  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "column", "row"), [
    (MEMTILE, 2, 1), (MEMTILE, 6, 1), (MEMTILE, 4, 2), (CORE, 3, 1), (CORE, 5, 1), (CORE, 4, 2), (SHIM, 4, 2),
])  # fmt: skip
def test_what_lies_farther_is_refused_by_both_tiles(kind: TileKind, column: int, row: int):
    message = rf"the DMA of {kind} \(4, 1\) cannot reach a lock of tile \({column}, {row}\)"
    with pytest.raises(BdError, match=message):
        window(at(4, 1, kind), at(column, row), "lock")  # type: ignore[arg-type]
    assert window(at(4, 1, CORE), at(4, 1), "lock") == 0  # type: ignore[arg-type]


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


def warnings(text: str) -> str:
    strictness = Strictness()
    module = parse(text, "d.mlir")
    configuration(next(op for op in module.walk() if isinstance(op, DeviceOp)), program_of, strictness)
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
