"""What mlir-aie refuses although each operation reads well: `verify` says so with the place, without a run."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import verification as verify
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import MlirError
from bdforge.array.routing.nets import routing_error
from support.differences import same
from support.small_designs import loopback

DESIGN = """aie.device(npu2_2col) {{
  %s = aie.tile(0, 0)
  %m = aie.tile(0, 1)
  %n = aie.tile(1, 1)
  %c = aie.tile(0, 2)
  %mb = aie.buffer(%m) : memref<128xi32>
  %cb = aie.buffer(%c) : memref<128xi32>
  %l = aie.lock(%m, 0) {{init = 1 : i32}}
  %k = aie.lock(%m, 1)
  %e = aie.lock(%n, 2)
  %0 = aie.memtile_dma(%m) {{
    %1 = aie.dma_start(MM2S, {channel}, ^a, ^e)
  ^a:
    {acquire}
    aie.dma_bd({bd})
    {release}
    aie.next_bd ^a
  ^e:
    aie.end
  }}
  {extra}
}}
"""
PARTS = {
    "channel": "0",
    "acquire": "aie.use_lock(%l, AcquireGreaterEqual, 1)",
    "bd": "%mb : memref<128xi32>",
    "release": "aie.use_lock(%k, Release, 1)",
    "extra": "",
}
CORE_BD = """%2 = aie.mem(%c) {
    %3 = aie.dma_start(MM2S, 0, ^a, ^e)
  ^a:
    aie.dma_bd(%cb : memref<128xi32>, 16384, 128)
    aie.next_bd ^e
  ^e:
    aie.end
  }"""
TASK = """aie.runtime_sequence() {
    %t = aiex.dma_configure_task(%m, MM2S, 2) {
      aie.dma_bd(%mb : memref<128xi32>, 262144, 128)
      aie.end
    }
  }"""
REFUSED = {
    "only an acquire": ({"release": ""}, "d.mlir:15:5: aie.dma_bd: it acquires a lock and releases none"),
    "only a release": ({"acquire": ""}, "d.mlir:15:5: aie.dma_bd: it releases a lock and acquires none"),
    "lower half of an upper channel": (
        {"channel": "1", "bd": "%mb : memref<128xi32>) {bd_id = 3 : i32}  aie.dma_bd_packet(0, 1"},
        "memtile (0, 1) MM2S 1 cannot use BD 3, only 24 to 47 (d.mlir:15:5)",
    ),
    "upper half of a lower channel": (
        {"bd": "%mb : memref<128xi32>) {bd_id = 24 : i32}  aie.dma_bd_packet(0, 1"},
        "memtile (0, 1) MM2S 0 cannot use BD 24, only 0 to 23 (d.mlir:15:5)",
    ),
    "beyond every window": (
        {"bd": "%mb : memref<128xi32>, 262144, 128"}, "BD 0 (d.mlir:15:5) reaches memory beyond the array's edge"
    ),
    "the end beyond a window": (
        {"bd": "%mb : memref<128xi32>, 131000, 128"}, "BD 0 (d.mlir:15:5) touches words 131000 to 131127",
    ),
    "beyond a core's memory": ({"extra": CORE_BD}, "d.mlir:24:5: aie.dma_bd: core tile BD: address = "),
    "a task beyond every window": (
        {"extra": TASK}, "d.mlir:23:7: aie.dma_bd: the transfer starts at byte 0x180000 as its DMA counts",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "fault"), REFUSED.values(), ids=REFUSED)
def test_verify_names_the_place_of_what_mlir_aie_refuses(parts, fault):
    found = verify_design(DESIGN.format(**PARTS | parts), "d.mlir").faults
    assert [f for f in found if fault in f], found


def test_the_design_next_to_them_has_no_fault():
    found = verify_design(DESIGN.format(**PARTS), "d.mlir")
    assert (found.faults, found.warnings) == ((), ())


def test_verify_names_the_check_of_a_fault():
    (fault,) = verify_design(DESIGN.format(**PARTS | {"release": ""}), "d.mlir").faults
    assert fault.endswith(" [bd-locks]")


@pytest.mark.parametrize(("init", "taken"), [(-1, False), (0, True), (63, True), (64, False)])
def test_a_lock_starts_within_its_range(init, taken):
    found = verify_design(DESIGN.format(**PARTS).replace("{init = 1 : i32}", f"{{init = {init} : i32}}"), "d.mlir")
    fault = f"d.mlir:8:8: aie.lock: init: lock value = {init} is outside 0 to 63, what a lock holds [lock-range]"
    assert found.faults == (() if taken else (fault,))


def test_verify_lets_pass_what_is_switched_off():
    found = verify_design(DESIGN.format(**PARTS | {"release": ""}), "d.mlir", ["bd-locks"])
    assert found.faults == ()


def test_locks_of_two_memtiles_in_one_bd_are_a_warning():
    text = DESIGN.format(**PARTS | {"release": "aie.use_lock(%e, Release, 1)"})
    (warning,) = verify_design(text, "d.mlir").warnings
    assert warning.startswith("d.mlir:15:5: its locks are in tiles (0, 1) and (1, 1)")
    assert warning.endswith("[lock-windows]")


TRACE = """aie.device(npu2_1col) {{
  %s = aie.tile(0, 0)
  %m = aie.tile(0, 1)
  aie.flow(%m, DMA : 0, %s, DMA : 1)
  %b = aie.buffer(%m) {{sym_name = "b"}} : memref<8xi32> = dense<7>
  aie.runtime_sequence(%a: memref<8xi32>) {{
    aiex.npu.write32 {{address = 118784 : ui32, column = 0 : i32, row = 0 : i32, value = 8 : ui32}}
    aiex.npu.write32 {{address = 118812 : ui32, column = 0 : i32, row = 0 : i32, value = 33554432 : ui32}}
    aiex.npu.push_queue(0, 0, S2MM : 1) {{bd_id = 0 : i32, issue_token = false, repeat_count = 0 : i32}}
    {send}
  }}
}}
"""
SEND = """%t = aiex.dma_configure_task(%m, MM2S, 0) {
      aie.dma_bd(%b : memref<8xi32>)
      aie.end
    }
    aiex.dma_start_task(%t)"""


def test_an_unpatched_bd_for_which_no_word_comes_is_a_warning():
    *_, warning = bdforge.emulate(TRACE.format(send=""), [np.zeros(8, np.int32)]).warnings
    assert "shim (0, 0) S2MM 1, BD 0" in warning
    assert "was pushed, but its address was never patched; no word came" in warning
    silent = bdforge.emulate(TRACE.format(send=""), [np.zeros(8, np.int32)], permissive=["unpatched-address"])
    assert not [w for w in silent.warnings if "patched" in w]


def test_an_unpatched_bd_for_which_words_come_is_an_error():
    with pytest.raises(
        bdforge.array.emulator.DmaError, match="host address 0x0, which belongs to no argument; patch it"
    ):
        bdforge.emulate(TRACE.format(send=SEND), [np.zeros(8, np.int32)])


FLOWS = """aie.device(npu2_2col) {{
  %s = aie.tile(0, 0)
  %m = aie.tile(0, 1)
  %c = aie.tile(0, 2)
  %t = aie.tile(0, 5)
  aie.flow(%s, DMA : 0, %m, DMA : 0)
  {flow}
}}
"""


@pytest.mark.parametrize(
    ("flow", "fault"),
    [
        ("aie.flow(%s, South : 0, %m, DMA : 1)", "shim (0, 0) South : 0 is the way in from outside of the array"),
        (
            "aie.packet_flow(1) { aie.packet_source<%s, South : 3> aie.packet_dest<%c, DMA : 0> }",
            "South : 3 is the way",
        ),
        ("aie.flow(%t, North : 0, %c, DMA : 0)", "core (0, 5) has no slave port North"),
        ("aie.flow(%c, DMA : 0, %m, West : 0)", "memtile (0, 1) has no master port West"),
        ("aie.flow(%c, North : 4, %c, DMA : 0)", "core (0, 2) has slave ports North 0 to 3, not 4"),
        ("aie.flow(%c, DMA : 2, %m, DMA : 1)", "core (0, 2) has MM2S channels 0 to 1, not 2"),
    ],
)
def test_ends_that_no_flow_can_have_are_faults(flow, fault):
    (found,) = verify_design(FLOWS.format(flow=flow), "d.mlir").faults
    assert found.startswith("d.mlir:7:3: ")
    assert fault in found


@pytest.mark.parametrize(
    ("flow", "caution"),
    [
        ("aie.flow(%s, DMA : 0, %m, DMA : 0)", "says line 6 again; one of both is enough [duplicate-flow]"),
        ("aie.flow(%c, North : 1, %c, DMA : 0)", "has an end between two switches; nothing starts or ends there"),
        ("aie.flow(%c, DMA : 0, %m, South : 2)", "from (0, 2) DMA : 0 to (0, 1) South : 2 has an end between"),
        ("aie.flow(%m, DMA : 3, %s, South : 1)", "leaves the array, where nothing here reads the words"),
        (
            "aie.packet_flow(1) { aie.packet_source<%c, DMA : 0> aie.packet_dest<%c, South : 1> }",
            "between two switches",
        ),
    ],
)
def test_flows_that_carry_nothing_are_warnings_of_verify_and_run(flow, caution):
    found = verify_design(FLOWS.format(flow=flow), "d.mlir")
    assert found.faults == ()
    (warning,) = found.warnings
    assert warning.startswith("d.mlir:7:3: aie.")
    assert caution in warning
    name = warning.rpartition("[")[2].removesuffix("]")
    for run, permissive in (("permitted", [name]), ("the first strict", []), ("the next, from what is kept", [])):
        told = bdforge.emulate(FLOWS.format(flow=flow), file="d.mlir", permissive=permissive).warnings
        assert told == (() if permissive else (warning,)), f"{run} run of one text, {name}"


def test_a_flow_said_twice_moves_each_word_once():
    text = loopback(8, 2).replace(
        "    aie.flow(%shim", "    aie.flow(%shim, DMA : 0, %mem, DMA : 0)\n    aie.flow(%shim", 1
    )
    a, b = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    bdforge.emulate(text, [a, b])
    same(a, b)


SHARED = """%b = aie.buffer(%c) {address = 1536 : i32, sym_name = "one"} : memref<8xi32>
  %d = aie.buffer(%c) {address = ADDRESS : i32, sym_name = "two"} : memref<8xi32>"""
PADDED = """%b = aie.buffer(%m) {sym_name = "b"} : memref<16xi32>
  %0 = aie.memtile_dma(%m) {
    %1 = aie.dma_start(MM2S, 1, ^bd, ^end)
  ^bd:
    aie.dma_bd(%b : memref<16xi32>, 0, 4, [<size = 2, stride = 1>], [<const_pad_before = 2, const_pad_after = 0>]VALUE)
    aie.next_bd ^end
  ^end:
    aie.end
  }"""
LOST = {
    "buffers that share bytes": (SHARED, "ADDRESS", "1564", "1568", "buffer @two at 0x61c overlaps buffer @one"),
    "a BD's own padding value": (PADDED, "VALUE", ", pad_value = 7", "", "pad"),
}


@pytest.mark.parametrize(("body", "place", "bad", "good", "message"), LOST.values(), ids=LOST)
def test_what_mlir_aie_takes_and_loses_is_a_warning_of_verify_and_run(body, place, bad, good, message):
    text = FLOWS.format(flow=body.replace(place, bad))
    found = verify_design(text)
    assert found.faults == ()
    (warning,) = found.warnings
    assert message in warning
    assert bdforge.emulate(text).warnings == (warning,)
    text = FLOWS.format(flow=body.replace(place, good))
    assert bdforge.emulate(text).warnings == verify_design(text).warnings == ()


@pytest.mark.parametrize("poison", [False, True])
def test_a_permitted_buffer_beyond_memory_has_all_its_bytes(poison: bool):
    values = list(range(100, 116))
    buffer = '%b = aie.buffer(%c) {address = 65504 : i32, sym_name = "b"} : memref<16xi32> = dense<'
    text = FLOWS.format(flow=f"{buffer}{values}>")
    found = bdforge.emulate(text, permissive=["memory-overflow"], poison=poison)
    assert found.buffers["b"].tolist() == values
    with pytest.raises(MlirError, match="buffer @b at 0xffe0 with 64 bytes ends beyond the tile's 65536 bytes"):
        bdforge.emulate(text, poison=poison)


def test_bits_in_a_buffer_are_seen_as_bytes():
    flow = '%b = aie.buffer(%c) {sym_name = "b"} : memref<1xi1> = dense<true>'
    found = bdforge.emulate(FLOWS.format(flow=flow)).buffers["b"]
    assert (found.dtype, found.tolist()) == (np.uint8, [1])


@pytest.mark.parametrize("rows", [(2, 3), (3, 2)])
@pytest.mark.parametrize("ids", [(5, 5), (5, 6)])
def test_two_tiles_of_a_column_cannot_share_a_controller_id(rows: tuple[int, int], ids: tuple[int, int]):
    tile = "%t{} = aie.tile(0, {}) {{controller_id = #aie.packet_info<pkt_type = 0, pkt_id = {}>}}"
    lines = [tile.format(row, row, number) for row, number in zip(rows, ids, strict=True)]
    text = "\n".join(["aie.device(npu2_2col) {", *lines, tile.format("other", 2, 5).replace("(0, 2)", "(1, 2)"), "}"])
    found = verify_design(text).faults
    first, second = rows
    shared = f"tiles (0, {first}) and (0, {second}) share controller id 5, by which their column's tokens are routed"
    assert [shared in fault for fault in found] == [True] * (ids[0] == ids[1])


@pytest.mark.parametrize("definite", [True, False])
def test_flows_that_only_our_router_cannot_lead_are_no_fault(definite: bool, monkeypatch):
    def fail(device):
        raise routing_error(device, "no way is left", definite)

    monkeypatch.setattr(verify, "lowered", lambda device, policy: fail(device))
    found = verify_design(FLOWS.format(flow=""))
    assert ["no way is left" in one for one in (found.faults if definite else found.warnings)] == [True]
    assert len(found.faults) == definite
