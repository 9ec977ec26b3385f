"""Memory maps of tiles, worked out by hand."""

from show_designs import CHAIN

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.show import Span, memory_map
from bdforge.array.show.memory_map import TileMemory
from support.named import fields_of, rows


def maps(text: str):
    return memory_map(next(op for op in parse(text).walk() if isinstance(op, DeviceOp)))


def by_name(tile: TileMemory) -> dict[str, tuple[int, int]]:
    """First byte and end of what a tile's memory holds."""
    found = {span.what: (span.start, span.end) for span in tile.spans}
    assert len(found) == len(tile.spans), "two spans of one name"
    return found


def design(body: str) -> str:
    return f"module {{ aie.device(npu2) {{ {body} }} }}"


def test_a_map_has_stack_buffers_and_free_space_without_gaps():
    memtile, core = maps(CHAIN.read_text())
    assert by_name(core) == {
        "stack": (0, 0xD00), "@ca0": (0xD00, 0xF00), "@ca1": (0xF00, 0x1100), "@cc0": (0x1100, 0x1300),
        "@rtp": (0x1300, 0x1308), "free": (0x1308, 0x10000),
    }  # fmt: skip
    assert list(core.spans) == sorted(core.spans)
    assert core.used_bytes == 0xD00 + 3 * 512 + 8
    assert core.limit_bytes == 65536
    # mc0 stands at 4096; the others start at 0, since a memtile has no stack.
    assert [tuple(span) for span in memtile.spans] == [
        (0, 1024, "@ma0"), (1024, 2048, "@ma1"), (2048, 4096, "free"), (4096, 4608, "@mc0"), (4608, 524288, "free"),
    ]  # fmt: skip


def test_tiles_without_memory_are_left_out_and_empty_ones_are_free():
    (tile,) = maps(design("%s = aie.tile(3, 0) %c = aie.tile(3, 4)"))
    names = "column row used_bytes spans"
    assert fields_of([tile], names) == rows(names, (3, 4, 0, (Span(0, 65536, "free"),)))


def test_a_full_tile_has_no_free_span():
    (tile,) = maps(design("%t = aie.tile(0, 1) %b = aie.buffer(%t) : memref<131072xi32>"))
    assert tile.spans == (Span(0, 524288, "unnamed buffer"),)
