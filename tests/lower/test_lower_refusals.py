"""What no register holds is refused with its place; what the real tool writes otherwise than it reads is warned of."""

import pytest

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.images.image_build import program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import MlirError, parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write

BD = """
    %m = aie.tile(1, 1)
    %w = aie.tile(0, 1)
    %b = aie.buffer(%m) {{sym_name = "b", address = 64 : i32}} : memref<64xi32>
    %f = aie.lock(%m, 1) {{init = 1 : i32}}
    %g = aie.lock(%w, 2) {{init = 0 : i32}}
    aie.memtile_dma(%m) {{
      %0 = aie.dma_start(MM2S, {channel}, ^bd, ^end{repeat})
    ^bd:
      aie.use_lock(%f, AcquireGreaterEqual, {value})
      aie.dma_bd(%b : memref<64xi32>, 0, 16) {{bd_id = {id} : i32}}
      aie.use_lock({other}, Release, 1)
      aie.next_bd ^bd
    ^end:
      aie.end
    }}"""
GOOD = {"channel": 0, "repeat": "", "value": 1, "id": 3, "other": "%f"}


def lowered(body: str, device: str = "npu2"):
    module = parse(f"module {{\n  aie.device({device}) {{{body}\n  }}\n}}", "d.mlir")
    strictness = Strictness()
    found = configuration(next(op for op in module.walk() if isinstance(op, DeviceOp)), program_of, strictness)
    return found, strictness.warnings


def bd(**changes) -> str:
    return BD.format(**GOOD | changes)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (bd(value=65), "d.mlir:12:7: aie.dma_bd: memtile BD: acquire_value = -65 does not fit"),
        (
            bd(repeat=", repeat_count = 256"),
            "d.mlir:9:12: aie.dma_start: repeat_count = 256 is outside 0 to 255",
        ),
        ("%t = aie.tile(0, 2)\n%l = aie.lock(%t, 0) {init = 64 : i32}", "d.mlir:3:6: aie.lock: init: lock value = 64"),
        (
            '%t = aie.tile(0, 2)\n%c = aie.core(%t) {\naie.end\n} {elf_file = "no.elf"}',
            "d.mlir:3:6: aie.core: elf_file no.elf: No such file or directory",
        ),
        (
            """%t = aie.tile(0, 2)\n%u = aie.tile(0, 3)
            %x = aie.switchbox(%u) {\naie.connect<South : 0, DMA : 0>\n}
            aie.flow(%t, DMA : 0, %u, DMA : 1)""",
            "the switchboxes of this device do not lead words from (0, 2) DMA : 0 to (0, 3) DMA : 1; route this flow",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(body, message):
    with pytest.raises(MlirError) as caught:
        lowered(body)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 4096


def test_a_switch_that_leads_no_tokens_gets_a_warning():
    box = """%s = aie.tile(0, 0)
    %x = aie.switchbox(%s) {
      aie.connect<South : 3, North : 0>
      TOKENS
    }
    %m = aie.shim_mux(%s) {
      aie.connect<DMA : 0, North : 3>
    }"""
    tokens = """%0 = aie.amsel<5> (3)
      %1 = aie.masterset(South : 0, %0) {keep_pkt_header = true}
      aie.packet_rules(TileControl : 0) {
        aie.rule(31, 15, %0)
      }"""
    found, (warning,) = lowered(box.replace("TOKENS", ""))
    assert warning.startswith("d.mlir:3:10: nothing leads from TileControl : 0 of shim (0, 0) to its South : 0")
    assert warning.endswith("[token-route]")
    assert Write(0x3F008, 0xC0000045) not in found.operations
    found, warnings = lowered(box.replace("TOKENS", tokens))
    assert warnings == []
    assert Write(0x3F008, 0xC0000045) in found.operations


def test_a_master_port_listens_to_all_msels_that_it_names():
    """Hand-worked: enabled, packets, msels 1 and 3 of arbiter 5."""
    found, _ = lowered("""%s = aie.tile(0, 0)
    %x = aie.switchbox(%s) {
      %0 = aie.amsel<5> (3)
      %1 = aie.amsel<5> (1)
      %2 = aie.masterset(South : 0, %0, %1) {keep_pkt_header = true}
    }""")
    assert found.operations == (Write(0x3F008, 0xC0000055),)


@pytest.mark.parametrize(
    ("left_out", "has", "lacks"), [("Release", "acquires", "releases"), ("AcquireG", "releases", "acquires")]
)
def test_a_bd_of_one_lock_is_refused(left_out: str, has: str, lacks: str):
    lines = [line for line in bd().splitlines() if left_out not in line]
    with pytest.raises(MlirError, match=f"it {has} a lock and {lacks} none; mlir-aie writes") as raised:
        lowered("\n".join(lines))
    assert raised.value.__notes__ == ["[bd-locks]"]


def test_values_at_odd_addresses_get_a_warning():
    """Hand-worked after aie-rt: a masked write of nothing, then all bytes from the next word on."""
    body = '%t = aie.tile(0, 2)\n%b = aie.buffer(%t) {address = AT : i32, sym_name = "b"} : memref<5xi8> = dense<2>'
    found, (warning,) = lowered(body.replace("AT", "1030"))
    assert warning.startswith("d.mlir:3:6: 5 bytes for 0x406 are written from 0x408 on")
    assert warning.endswith("[unaligned-data]")
    assert found.init == (MaskWrite(0x200404, 0, 0), BlockWrite(0x200408, (0x02020202,)), MaskWrite(0x20040C, 2, 0xFF))
    assert lowered(body.replace("AT", "1028"))[1] == []


@pytest.mark.parametrize(
    ("kind", "stored"), [("i4", b"\x01\x0f"), ("i24", b"\x01\x00\x00\xff\xff\xff"), ("i1", b"\1\1")]
)
def test_elements_take_whole_bytes(kind, stored):
    body = f"%t = aie.tile(0, 2)\n%b = aie.buffer(%t) {{address = 1024 : i32}} : memref<2x{kind}> = dense<[1, -1]>"
    data = b""
    for op in lowered(body)[0].init:
        assert isinstance(op, BlockWrite | MaskWrite)
        words = op.words if isinstance(op, BlockWrite) else (op.value,)
        data += b"".join(word.to_bytes(4, "little") for word in words)
    assert data[: len(stored)] == stored


def test_buffers_that_share_bytes_are_taken_as_the_text_says():
    """As aiecc's default scheme leaves neighbouring addresses."""
    body = """%t = aie.tile(0, 2)
    %a = aie.buffer(%t) {address = 1536 : i32, sym_name = "a"} : memref<128xi32> = dense<1>
    %b = aie.buffer(%t) {address = 1792 : i32, sym_name = "b"} : memref<64xi32> = dense<2>"""
    found, (warning,) = lowered(body)
    assert "buffer @b at 0x700 overlaps buffer @a, which ends at 0x800" in warning
    assert warning.endswith("[buffer-overlap]")
    assert [op.address for op in found.init if isinstance(op, BlockWrite)] == [0x200600, 0x200700]


def test_a_padding_value_of_a_bd_is_lost():
    body = """%m = aie.tile(1, 1)
    %b = aie.buffer(%m) {sym_name = "b", address = 0 : i32} : memref<64xi32>
    aie.memtile_dma(%m) {
      %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%b : memref<64xi32>, 0, 10, [<size = 8, stride = 1>],
                 [<const_pad_before = 1, const_pad_after = 1>], pad_value = VALUE) {bd_id = 0 : i32}
      aie.next_bd ^bd
    ^end:
      aie.end
    }"""
    found, (warning,) = lowered(body.replace("VALUE", "7"))
    assert warning.endswith("[pad-value]")
    without, warnings = lowered(body.replace("VALUE", "0"))
    assert warnings == []
    assert found.operations == without.operations
