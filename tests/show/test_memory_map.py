"""Memory maps of tiles, worked out by hand."""

from show_designs import CHAIN

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.show import Span, as_text, memory_map, tables
from bdforge.array.show.memory_map import TileMemory, buffer_views
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


def core(row: int, inside: str) -> str:
    return f"""%t{row} = aie.tile(1, {row})
      %b{row} = aie.buffer(%t{row}) {{address = 4096 : i32, sym_name = "b{row}"}} : memref<64xi8>
      %core{row} = aie.core(%t{row}) {{
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c16 = arith.constant 16 : index
        {inside}
        aie.end
      }}
"""


def test_views_lie_where_their_buffer_does_and_stand_once():
    """One of a view, one of the neighbour's buffer, the same again; those that only data place or end do not count."""
    own = """%whole = memref.view %b2[%c16][] : memref<64xi8> to memref<48xi8>
      %half = memref.view %whole[%c8][] : memref<48xi8> to memref<4x2xi16>
      %next = arith.addi %c8, %c8 : index
      %moving = memref.view %b2[%next][] : memref<64xi8> to memref<4xi8>
      %long = memref.view %b2[%c0][%next] : memref<64xi8> to memref<?xi8>"""
    other = """%half = memref.view %whole[%c8][] : memref<48xi8> to memref<4x2xi16>
      %mine = memref.view %b3[%c0][] : memref<64xi8> to memref<bf16>"""
    other = f"%whole = memref.view %b2[%c16][] : memref<64xi8> to memref<48xi8>\n{other}"
    module = parse(design(core(2, own) + core(3, other)))
    (device,) = (op for op in module.walk() if isinstance(op, DeviceOp))
    assert [tuple(view) for view in buffer_views(device)] == [
        ((1, 2), 4112, 4160, "%whole", "%b2"), ((1, 2), 4120, 4136, "%half", "%whole"),
        ((1, 3), 4096, 4098, "%mine", "%b3"),
    ]  # fmt: skip
    lines = [line.split() for line in as_text(tables(module)).splitlines()]
    assert ["core", "(1,", "2)", "0x1010", "0x1040", "48", "%whole", "%b2"] in lines
    assert ["0x1018", "0x1028", "16", "%half", "%whole"] in lines
