"""Views of host memory, patches, other devices' sequences, and what a policy lets pass."""

import pytest
from txn_texts import TEXT, lowered, refused, task

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir import context, parse
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.errors import SourceText
from bdforge.array.mlir.parser import parse_text
from bdforge.array.txn.lower import LoweringError, lower, lower_module, select_sequence
from bdforge.array.txn.target import ControllerIds
from bdforge.array.txn.writer import Writer
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, MaskWrite, Patch, Write


def view(offsets: str, sizes: str, layout: str) -> str:
    source = "memref<8x1x16xi32>"
    shape = "x".join(sizes.split(", "))
    return f"%v = memref.subview %y[{offsets}] [{sizes}] [1, 1, 1] : {source} to memref<{shape}xi32, {layout}>"


@pytest.mark.parametrize(
    ("offsets", "sizes", "start", "contiguous"),
    [
        ("2, 0, 0", "3, 1, 16", 32, True), ("2, 0, 4", "1, 1, 8", 36, True), ("2, 0, 4", "2, 1, 8", 36, False),
        ("0, 0, 0", "8, 1, 15", 0, False),
    ],
)  # fmt: skip
def test_views_are_linear_where_their_elements_follow_one_another(
    offsets: str, sizes: str, start: int, contiguous: bool
):
    layout = f"strided<[16, 16, 1], offset: {start}>"
    type_ = f"memref<{'x'.join(sizes.split(', '))}xi32, {layout}>"
    lines = view(offsets, sizes, layout), task(f"aie.dma_bd(%v : {type_}, 0, 8)")
    if contiguous:
        assert [op for op in lowered(*lines) if isinstance(op, Patch)] == [Patch(0x1D004, 1, 4 * start)]
        return
    refused("elements do not follow one another", *lines)
    cast = f"%u = memref.cast %v : {type_} to {type_.replace(str(start) + '>', '?>')}"
    later = lines[1].replace("%v", "%u").replace(f"offset: {start}>", "offset: ?>")
    refused("elements do not follow one another", lines[0], cast, later)


def test_views_of_tiles_memory_and_wide_elements_are_refused():
    refused(
        "memref.cast of a tile's buffer; only host memory has views",
        "%v = memref.cast %mb : memref<1024xi32> to memref<?xi32>",
    )


@pytest.mark.parametrize("name", ["arg_idx", "arg_plus"])
def test_patches_count_from_0(name: str):
    values = {"arg_idx": 1, "arg_plus": 0} | {name: -1}
    given = ", ".join(f"{key} = {value} : i32" for key, value in values.items())
    refused(f"{name} is -1; it must be 0 or more", f"aiex.npu.address_patch {{addr = 4 : ui32, {given}}}")


def test_a_patch_by_a_view_counts_from_its_argument():
    lines = (
        view("2, 0, 0", "3, 1, 16", "strided<[16, 16, 1], offset: 32>"),
        "%p = arith.constant 12 : i32",
        "aiex.npu.address_patch(%p : i32) buffer %v : memref<3x1x16xi32, strided<[16, 16, 1], offset: 32>> "
        "{addr = 64 : ui32}",
    )
    assert lowered(*lines) == [Patch(64, 1, 140)]


def test_a_loaded_pdi_has_its_own_numbers():
    line = "aiex.npu.load_pdi {id = 7 : i32, size = 96 : i32, address = 4096 : ui64}"
    assert lowered(line) == [LoadPdi(7, 96, 4096)]
    assert lowered("aiex.npu.load_pdi {device_ref = @main, id = 7 : i32}") == [LoadPdi(7, 0, 0)]


DEVICES = """module {
  aie.device(npu2) @one {
    %c = aie.tile(1, 2)
    %b = aie.buffer(%c) {sym_name = "b", address = 1024 : i32} : memref<4xi32>
    aie.runtime_sequence @go() { aiex.npu.rtp_write(@b, 0, 1) }
  }
  aie.device(npu2) @main {
    %c = aie.tile(3, 2)
    %b = aie.buffer(%c) {sym_name = "b", address = 2048 : i32} : memref<4xi32>
    aie.runtime_sequence @all() {
      aiex.configure @one { aiex.run @go() : () }
      aiex.npu.rtp_write(@b, 0, 2)
      TAIL
    }
  }
}"""


def test_behind_a_configuration_the_sequences_own_device_is_meant():
    operations = lower_module(parse(DEVICES.replace("TAIL", "")), "all")[1]
    assert operations == [LoadPdi(1, 0, 0), Write(0x02200400, 1), Write(0x06200800, 2)]


def test_a_sequence_that_runs_itself_is_refused():
    text = DEVICES.replace("TAIL", "aiex.configure @main { aiex.run @all() : () }")
    with pytest.raises(LoweringError, match="runtime sequence @all runs itself"):
        lower_module(parse_text(context(), SourceText(text, "d.mlir")), "all")


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, " and 1 more")])
def test_buffers_without_an_address_are_named_up_to_four(count: int, more: str):
    buffers = "".join(f'%b{i} = aie.buffer(%c) {{sym_name = "b{i}"}} : memref<4xi32>\n' for i in range(count))
    writes = "\n".join(f"aiex.npu.rtp_write(@b{i}, 0, 1)" for i in range(count))
    text = f"aie.device(npu2) {{\n%c = aie.tile(0, 2)\n{buffers}aie.runtime_sequence() {{\n{writes}\n}}\n}}"
    policy = Strictness()
    lower(select_sequence(parse(text, "d.mlir")), policy=policy)
    (told,) = policy.warnings
    assert told.endswith("[open-address]")
    names = ", ".join(f"buffer @b{i} of core (0, 2)" for i in range(4))
    assert f"gives no address to {names}{more}; these words are" in told


def test_a_policy_that_lets_wide_numbers_pass_gets_their_lower_bits():
    """Four bits of a BD's number at a push; an address inside of what a core's DMA reaches."""
    push = "aiex.npu.push_queue(0, 1, MM2S : 0) {issue_token = false, repeat_count = 0 : i32, bd_id = 21 : i32}"
    core = task("aie.dma_bd(%cb : memref<64xi32>, 0, 4)", "%c, MM2S, 0")
    buffer = '%cb = aie.buffer(%c) {sym_name = "cb", address = 65792 : i32} : memref<64xi32>\n  aie.runtime'
    text = TEXT.replace("LINES", f"{push}\n    {core}").replace("aie.runtime", buffer)
    checks = ["memory-overflow", "field-width", "dma-bounds"]
    policy = Strictness.without(checks)
    write, _, point = lower(select_sequence(parse(text, "d.mlir")), policy=policy, controller_ids=ControllerIds.TEXT)
    assert write == Write(0x1A0634, 5)
    assert point == MaskWrite(0x21D000, 256 // 4 << 14, 0x0FFFC000)
    assert [warning.partition(" (permitted): ")[0] for warning in policy.warnings] == checks


@pytest.mark.parametrize("size", range(10))
@pytest.mark.parametrize("start", [0x400, 0x401, 0x403])
def test_memory_is_filled_word_by_word_and_the_rest_by_a_mask(size: int, start: int):
    """As aie-rt does: from an offset inside a word on it writes nothing there, and all from the next word on."""
    (op,) = (op for op in parse("aie.device(npu2) { %t = aie.tile(3, 2) }").walk() if isinstance(op, TileOp))
    writer, data = Writer(), bytes(range(0xF1, 0xF1 + size))
    writer.fill(op, (3, 2), start, data)
    base, whole = 3 << 25 | 2 << 20, size // 4
    wanted, at = ([MaskWrite(base + 0x400, 0, 0)], 0x404) if start % 4 else ([], 0x400)
    words = tuple(int.from_bytes(data[4 * i : 4 * i + 4], "little") for i in range(whole))
    wanted += [BlockWrite(base + at, words)] * bool(whole)
    rest = data[4 * whole :]
    masks = {0: 0, 1: 0xFF, 2: 0xFFFF, 3: 0xFFFFFF}
    wanted += [MaskWrite(base + at + 4 * whole, int.from_bytes(rest, "little"), masks[len(rest)])] * bool(rest)
    assert writer.operations == wanted
