"""Layouts of memrefs: what memory is and what a view makes of it; others are refused rather than ignored."""

import pytest

from bdforge.array.mlir import MlirError, parse

ORIGINS = {
    "buffer": "%b = aie.buffer(%t) : {}",
    "external_buffer": "%b = aie.external_buffer : {}",
    "global": "memref.global @g : {}",
    "argument": "aie.runtime_sequence(%a : {}) {{}}",
    "alloca": "aie.core(%t) {{ %a = memref.alloca() : {} aie.end }}",
}
LAYOUTS = {
    "memref<4x8xi32>": True,
    "memref<4x8xi32, 1>": True,
    "memref<4x8xi32, 2 : i32>": True,
    "memref<4x8xi32, strided<[8, 1]>>": True,
    "memref<1x8xi32, strided<[99, 1]>>": True,
    "memref<4x8xi32, affine_map<(d0, d1) -> (d0, d1)>>": True,
    "memref<4x8xi32, strided<[16, 1]>>": False,
    "memref<4x8xi32, strided<[8, 1], offset: 4>>": False,
    "memref<4x8xi32, strided<[8, 1], offset: ?>>": False,
    "memref<4x8xi32, strided<[?, 1]>>": False,
    "memref<4x8xi32, strided<[1]>>": False,
    "memref<4x8xi32, affine_map<(d0, d1) -> (d1, d0)>>": False,
    "memref<8xi32, affine_map<(d0) -> (d0 * 2)>>": False,
}


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_memory_begins_in_row_major_order(origin: str, kind: str):
    text = f"aie.device(npu2) {{ %t = aie.tile(0, 2)\n{ORIGINS[origin].format(kind)} }}"
    if LAYOUTS[kind]:
        parse(text)
        return
    with pytest.raises(MlirError, match="the layout of memref"):
        parse(text)


VIEWS = {  # of a memref<8x8xi32>, and whether that is what it makes
    "memref.subview %a[2, 1] [2, 4] [1, 1] : memref<8x8xi32> to memref<2x4xi32, {}>": {
        "strided<[8, 1], offset: 17>": True, "strided<[8, 1], offset: ?>": True, "strided<[?, 1], offset: 17>": True,
        "strided<[4, 1], offset: 17>": False, "strided<[8, 1], offset: 16>": False, "strided<[8, 1]>": False,
        "affine_map<(d0, d1) -> (d0, d1)>": False,
    },
    "memref.subview %a[3, 0] [1, 4] [1, 2] : memref<8x8xi32> to memref<4xi32, {}>": {
        "strided<[2], offset: 24>": True, "strided<[1], offset: 24>": False, "strided<[2], offset: 3>": False,
    },
    "memref.reinterpret_cast %a to offset: [4], sizes: [2, 2], strides: [16, 2] : memref<8x8xi32> "
    "to memref<2x2xi32, {}>": {
        "strided<[16, 2], offset: 4>": True, "strided<[?, ?], offset: ?>": True,
        "strided<[2, 1], offset: 4>": False, "strided<[16, 2]>": False,
    },
    "memref.cast %a : memref<8x8xi32> to memref<8x8xi32, {}>": {
        "strided<[8, 1]>": True, "strided<[?, ?], offset: ?>": True, "strided<[16, 1]>": False,
        "strided<[8, 1], offset: 8>": False,
    },
}  # fmt: skip
CASES = [(view, layout, good) for view, layouts in VIEWS.items() for layout, good in layouts.items()]


@pytest.mark.parametrize("place", ["aie.runtime_sequence(%a : memref<8x8xi32>) {{ {} }}",
                                   "aie.core(%t) {{ %a = memref.alloca() : memref<8x8xi32> {} aie.end }}"])  # fmt: skip
@pytest.mark.parametrize(("view", "layout", "good"), CASES)
def test_a_view_has_the_layout_that_it_makes(view: str, layout: str, good: bool, place: str):
    text = f"aie.device(npu2) {{ %t = aie.tile(0, 2)\n{place.format('%v = ' + view.format(layout))} }}"
    if good:
        parse(text)
        return
    with pytest.raises(MlirError, match=r"layout of memref|as it is made here"):
        parse(text)


@pytest.mark.parametrize(
    ("shift", "kind", "reason"),
    [
        (0, "8x8xi32", None), (32, "7x8xi32", None), (33, "7x8xi32", "begins at byte 33, inside an element of 4 bytes"),
        (36, "7x8xi32", "224 bytes from byte 36 on leave memref<256xi8>, which has 256; move it"),
        (-4, "1xi32", "4 bytes from byte -4 on leave"), (255, "1xi8", None), (256, "0xi8", None), (1, "2xi4", None),
    ],
)  # fmt: skip
def test_a_view_of_bytes_holds_whole_elements_of_them(shift: int, kind: str, reason: str | None):
    text = f"""aie.device(npu2) {{ %t = aie.tile(0, 2) aie.core(%t) {{ %a = memref.alloca() : memref<256xi8>
      %n = arith.constant {shift} : index
      %v = memref.view %a[%n][] : memref<256xi8> to memref<{kind}> aie.end }} }}"""
    if reason is None:
        parse(text)
        return
    with pytest.raises(MlirError, match=reason):
        parse(text)


def test_a_view_of_every_row_alone_may_leave_its_strides_out():
    parse("""aie.device(npu2) { aie.runtime_sequence(%a : memref<8x8xi32>) {
        %v = memref.subview %a[0, 0] [2, 8] [1, 1] : memref<8x8xi32> to memref<2x8xi32> } }""")


def test_what_a_sequence_gets_from_another_may_be_a_view():
    kind = "memref<4xi32, strided<[1], offset: 4>>"
    text = f"""aie.device(npu2) @main {{ aie.runtime_sequence @all(%a : memref<8xi32>) {{
        %v = memref.subview %a[4] [4] [1] : memref<8xi32> to {kind}
        aiex.configure @part {{ aiex.run @go(%v) : ({kind}) }} }} }}
      aie.device(npu2) @part {{ aie.runtime_sequence @go(%a : {kind}) {{ }} }}"""
    parse(text)
    with pytest.raises(MlirError, match="the layout of memref"):
        parse(text.partition("aie.device(npu2) @part")[2].join(["aie.device(npu2) @part", ""]))
