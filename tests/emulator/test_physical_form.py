"""Switches given as such: they lead words where flows would, and what they leave out is missed."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, LoadError
from bdforge.array.emulator.timed import TimingOptions
from bdforge.array.emulator.tokens import lost_tokens
from bdforge.array.emulator.verification import verify_design
from bdforge.devices.txn_format.operations import LoadPdi, MaskWrite, Sync, Write
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    flow,
    header,
    lock,
    module,
    packet_flow,
    program,
    release,
    tile,
)
from support.decoded import device_of
from support.differences import same
from support.distribute import distribute
from support.physical_form import physical_form
from support.small_designs import loopback

DATA = np.random.default_rng(11).integers(-(2**31), 2**31, 96, np.int32)
TOKENS = r" *aie.packet_rules\(TileControl : 0\) \{\n.*\n *\}\n"
TOKEN_FLOW = r" *aie.packet_flow\(15\) \{\n(.*\n){2} *\}.*\n"


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("schedule", ["in-order", "random"])
def test_a_loopback_in_physical_form_returns_its_data(device, schedule):
    result = np.zeros(96, np.int32)
    run = bdforge.emulate(physical_form(loopback(device=device)), [DATA.copy(), result], schedule=schedule)
    same(result, DATA)
    assert not run.warnings


def test_a_timed_run_in_physical_form_takes_as_long_as_with_flows():
    arrays = [DATA.copy(), np.zeros(96, np.int32)]
    text = loopback().replace(
        "aie.tile(0, 0)", "aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}"
    )
    plain, physical = (bdforge.emulate(t, arrays, timing=TimingOptions()).timing for t in (text, physical_form(text)))
    assert plain is not None
    assert physical is not None
    assert plain.cycles == physical.cycles


def test_four_cores_are_served_in_both_forms():
    found = [bdforge.emulate(text, [DATA[:48].copy()]).buffers for text in (distribute(), physical_form(distribute()))]
    for name in ("got0", "got1", "got2", "got3"):
        same(found[0][name], found[1][name])


TILES = tuple(tile(column, row) for column in (0, 1) for row in range(4))
BROADCAST = module(
    "npu2_2col", *TILES, buffer("a", "01", 40, DATA[:40]),
    *(buffer(f"x{at}", at, 40) for at in ("02", "03", "12")),
    *(flow("01 DMA : 5", f"{at} DMA : 1") for at in ("02", "03", "12")),
    program("01", Task("MM2S", 5, [bd("a", 40)])),
    *(program(at, Task("S2MM", 1, [bd(f"x{at}", 40)])) for at in ("02", "03", "12")),
)  # fmt: skip


def test_a_broadcast_reaches_everybody():
    found = bdforge.emulate(physical_form(BROADCAST)).buffers
    for at in ("02", "03", "12"):
        same(found[f"x{at}"], DATA[:40])


def packets(keep: bool) -> str:
    """Ids 4, 5 and 9 of one source; 4 and 5 go to one place, 9 to another, each of 5 words."""
    length = 12 if keep else 10
    return module(
        "npu2_2col", *TILES, buffer("a", "01", 15, DATA[:15]), buffer("x", "02", length), buffer("y", "12", 5),
        packet_flow(4, "01 DMA : 0", "02 DMA : 0", keep=keep), packet_flow(5, "01 DMA : 0", "02 DMA : 0", keep=keep),
        packet_flow(9, "01 DMA : 0", "12 DMA : 1"),
        program("01", Task("MM2S", 0, [bd("a", 15, f"{5 * n}, 5", i) for n, i in enumerate((5, 9, 4))])),
        program("02", Task("S2MM", 0, [bd("x", length)])),
        program("12", Task("S2MM", 1, [bd("y", 5)])),
    )  # fmt: skip


@pytest.mark.parametrize("keep", [False, True])
def test_headers_are_dropped_or_kept_as_the_master_port_says(keep):
    found = bdforge.emulate(physical_form(packets(keep))).buffers
    first, last = ([header(0, 1, number)] if keep else [] for number in (5, 4))
    same(found["x"], [*first, *DATA[:5], *last, *DATA[10:15]])
    same(found["y"], DATA[5:10])


def test_a_rule_matches_every_id_under_its_mask():
    """One rule sends ids 4 and 5; under the mask of 28 a third one, 6, goes the same way."""
    text = physical_form(packets(False))
    assert "aie.rule(30, 4," in text
    assert "aie.rule(18, 0," in text  # of the source: most ids of other bits pass there too
    wider = text.replace("aie.rule(30, 4,", "aie.rule(28, 4,").replace("aie.rule(18, 0,", "aie.rule(16, 0,")
    wider = re.sub(TOKEN_FLOW.replace("15", "(4|5)"), "", wider).replace("pkt_id = 5>", "pkt_id = 6>")
    found = bdforge.emulate(wider).buffers
    same(found["x"], [*DATA[:5], *DATA[10:15]])


def test_an_id_that_no_rule_on_its_way_matches_is_named_when_it_is_sent():
    text = physical_form(packets(False))
    narrow = re.sub(TOKEN_FLOW.replace("15", "(4|5)"), "", text)
    last = narrow.rindex("aie.rule(30, 4,", 0, narrow.index("aie.switchbox(%t12)"))
    narrow = narrow[:last] + narrow[last:].replace("aie.rule(30, 4,", "aie.rule(31, 4,", 1)
    with pytest.raises(DmaError, match=r"packets 5 of memtile \(0, 1\) MM2S 0 do not arrive everywhere: .*"
                                       r"no rule of \(0, 2\) South : \d matches id 5"):  # fmt: skip
        bdforge.emulate(narrow)


def test_packets_of_which_a_copy_leaves_the_array_are_refused_when_they_are_sent():
    """A circuit may lead out of the array, where nobody takes its words; of packets nobody would be told."""
    text = physical_form(packets(False))
    place = text.index("aie.switchbox(%t01)")
    (every,) = set(re.findall(r"aie.rule\(18, 0, (%\w+)\)", text[place:]))
    copy = f"%copy = aie.masterset(South : 3, {every})\n      aie.packet_rules"
    copied = text[:place] + text[place:].replace("aie.packet_rules", copy, 1)
    out = """aie.switchbox(%t00) {
      %s = aie.amsel<4> (2)
      %m = aie.masterset(South : 3, %s)
      aie.packet_rules(North : 3) { aie.rule(0, 0, %s) }"""
    with pytest.raises(DmaError, match=r"packets 5 of memtile \(0, 1\) MM2S 0 do not arrive everywhere: .* leaves the"):
        bdforge.emulate(copied.replace("aie.switchbox(%t00) {", out, 1))


def test_an_id_that_the_source_does_not_know_is_refused():
    text = physical_form(packets(False)).replace("pkt_id = 9>", "pkt_id = 10>")
    with pytest.raises(DmaError, match="packet id 10"):
        bdforge.emulate(text)


def without_token_route() -> str:
    return re.sub(TOKENS, "", re.sub(TOKEN_FLOW, "", physical_form(loopback())))


ARRAYS = DATA, np.zeros(96, np.int32)


def test_verify_finds_waits_whose_tokens_do_not_arrive():
    assert not verify_design(physical_form(loopback())).faults
    (fault,) = verify_design(without_token_route(), "design.mlir").faults
    assert fault.startswith("design.mlir:30:7: the token of S2MM 0 of tile (0, 0) never reaches the controller")


AT, OTHER, ID = 0x1D200, 0x1D210, 0x1F00  # control of S2MM 0 and MM2S 0 of a shim, and the bits of its controller id
WAIT = Sync(direction=0, row=0, column=0, rows=1, columns=1, channel=0)
LOADED = LoadPdi(1, 0, 0, device="other")
SEQUENCES = {
    "the id that is led": ([MaskWrite(AT, 15 << 8, ID), WAIT], []),
    "the id that is led, written whole": ([Write(AT, 15 << 8), WAIT], []),
    "no id": ([WAIT], [0]),
    "another id": ([Write(AT, 14 << 8), WAIT], [14]),
    "another id, then the one that is led": ([Write(AT, 14 << 8), MaskWrite(AT, 15 << 8, ID), WAIT], []),
    "another id behind the wait": ([Write(AT, 15 << 8), WAIT, Write(AT, 14 << 8)], []),
    "other bits of the register": ([Write(AT, 15 << 8), MaskWrite(AT, 2, 2), WAIT], []),
    "the id of another channel": ([Write(OTHER, 15 << 8), WAIT], [0]),
    "a wait for the other channel": ([Write(OTHER, 15 << 8), replace(WAIT, direction=1)], []),
    "a tile above, whose tokens nobody leads": ([Write(AT, 15 << 8), replace(WAIT, rows=2)], [0]),
    "each of two waits": ([WAIT, WAIT], [0, 0]),
    "another device is loaded": ([LOADED, WAIT], []),
}


@pytest.mark.parametrize(("operations", "ids"), SEQUENCES.values(), ids=SEQUENCES)
def test_a_wait_is_lost_by_the_id_that_its_channel_has_then(operations, ids):
    device = device_of(physical_form(loopback()))
    assert [int(re.findall(r"packets (\d+) must go", lost)[0]) for lost in lost_tokens(device, operations)] == ids


def test_data_moves_all_the_same_without_a_route_for_tokens():
    arrays = [array.copy() for array in ARRAYS]
    run = bdforge.emulate(without_token_route(), arrays, permissive=["missing-token"])
    same(arrays[1], DATA)
    assert any("never reaches the controller" in warning for warning in run.warnings)


LOST = {
    "no route": (without_token_route(), r"packets 15 must go from TileControl : 0 of tile \(0, 0\) to South : 0"),
    "a route of another id": (
        re.sub(TOKEN_FLOW, "", physical_form(loopback())).replace("aie.rule(31, 15,", "aie.rule(31, 14,"),
        "packets 15 must go",
    ),
    "a header that is dropped": (
        re.sub(r"(aie.masterset\(South : 0, %\w+\)) \{keep_pkt_header = true\}", r"\1", physical_form(loopback())),
        "the header is dropped there",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), LOST.values(), ids=LOST)
def test_a_wait_whose_tokens_do_not_arrive_names_their_way(text: str, message: str):
    assert text != physical_form(loopback())
    with pytest.raises(LoadError, match=message):
        bdforge.emulate(text, [array.copy() for array in ARRAYS])


def test_a_shim_channel_that_its_mux_leaves_out_has_no_flow():
    text = physical_form(loopback()).replace("aie.connect<DMA : 0, North : 3>", "")
    with pytest.raises(Deadlock, match=r"memtile \(0, 1\) S2MM 0 waits for 32 words, but no flow leads to it"):
        bdforge.emulate(text, [array.copy() for array in ARRAYS])


def test_a_flow_that_the_switches_do_not_make_is_refused():
    extra = "aie.flow(%mem, DMA : 1, %shim, DMA : 1)\n    aie.shim_dma_allocation @in"
    text = physical_form(loopback()).replace("aie.shim_dma_allocation @in", extra)
    message = r"switchboxes of this device do not lead words from \(0, 1\) DMA : 1 to \(0, 0\) DMA : 1"
    with pytest.raises(LoadError, match=message):
        bdforge.emulate(text, [array.copy() for array in ARRAYS])


def crossing(second: int) -> str:
    """A packet to x is on its way when one to y starts, and x can only take the rest when y has arrived.

    `second` is the arbiter of the packets to y; those to x have arbiter 0.
    """
    return module(
        "npu2_2col", tile(0, 2), tile(0, 3), buffer("a", "02", 40, DATA[:40]), buffer("b", "02", 8, DATA[40:48]),
        buffer("x", "03", 40), buffer("y", "03", 8),
        lock("go", "03", 0), lock("begun", "03", 1), lock("later", "02", 0),
        f"aie.core(%t03) {{ {acquire('begun')} {release('later')} aie.end }}",
        f"""%s2 = aie.switchbox(%t02) {{
          %0 = aie.amsel<0> (0)
          %1 = aie.amsel<{second}> (1)
          %2 = aie.masterset(North : 0, %0)
          %3 = aie.masterset(North : 1, %1)
          aie.packet_rules(DMA : 0) {{ aie.rule(31, 1, %0) }}
          aie.packet_rules(DMA : 1) {{ aie.rule(31, 2, %1) }}
        }}
        %s3 = aie.switchbox(%t03) {{
          %0 = aie.amsel<3> (0)
          %1 = aie.amsel<4> (0)
          %2 = aie.masterset(DMA : 0, %0)
          %3 = aie.masterset(DMA : 1, %1)
          aie.packet_rules(South : 0) {{ aie.rule(31, 1, %0) }}
          aie.packet_rules(South : 1) {{ aie.rule(31, 2, %1) }}
        }}""",
        program("02", Task("MM2S", 0, [bd("a", 40, "", 1)]), Task("MM2S", 1, [acquire("later") + bd("b", 8, "", 2)])),
        program("03", Task("S2MM", 0, [bd("x", 40, "0, 4") + release("begun"), acquire("go") + bd("x", 40, "4, 36")]),
                Task("S2MM", 1, [bd("y", 8) + release("go")])),
    )  # fmt: skip


def test_packets_past_arbiters_of_their_own_do_not_wait_for_each_other():
    found = bdforge.emulate(crossing(1)).buffers
    same(found["x"], DATA[:40])
    same(found["y"], DATA[40:48])


def test_packets_past_one_arbiter_can_block_each_other():
    run = bdforge.emulate(crossing(0))
    same(run.buffers["y"], 0)
    assert "8 words were left in the input of core (0, 3) S2MM 0" in run.warnings[-1]
