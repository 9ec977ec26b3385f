"""Rules of switches in physical form: ports that exist, connections that silicon makes, arbiters used one way."""

import pytest
from mlir_texts import device, fault

from bdforge.array.mlir import parse, print_generic, print_module


def box(body: str, tile: str = "c") -> str:
    return device(f"%x = aie.switchbox(%{tile}) {{\n{body}\n}}")


def mux(body: str, tile: str = "s") -> str:
    return device(f"%x = aie.shim_mux(%{tile}) {{\n{body}\n}}")


AMSELS = "%a = aie.amsel<0> (0)\n%b = aie.amsel<1> (0)\n"
REFUSED = {
    "memtile side": (box("aie.connect<DMA : 0, East : 0>", "m"), "memtile (0, 1) has no master ports East"),
    "array's edge": (box("aie.connect<DMA : 0, West : 0>"), "core (0, 2) has no master ports West"),
    "memtile lane": (box("aie.connect<South : 1, North : 2>", "m"), "pass through a memtile on the same channel only"),
    "memtile lane down": (box("aie.connect<North : 0, South : 3>", "m"), "on the same channel only"),
    "memtile DMA": (box("aie.connect<DMA : 0, DMA : 1>", "m"), "between ports of one side only the same channel"),
    "control to DMA": (box("aie.connect<TileControl : 0, DMA : 0>"), "cannot join TileControl : 0 to DMA : 0"),
    "core to itself": (box("aie.connect<Core : 0, Core : 0>"), "what comes from Core never goes back there"),
    **{
        f"control of a {tile} to itself": (
            box("aie.connect<TileControl : 0, TileControl : 0>", tile), "what comes from TileControl never goes back",
        ) for tile in "cms"
    },
    "turn back": (box("aie.connect<North : 0, North : 1>"), "between ports of one side only the same channel passes"),
    "lane by packets": (
        box(AMSELS + "aie.masterset(North : 1, %a)\naie.packet_rules(South : 0) { aie.rule(31, 1, %a) }", "m"),
        "cannot join South : 0 to North : 1",
    ),
    "lane by packets of the second msel": (
        box(
            AMSELS + "%d = aie.amsel<0> (1)\naie.masterset(North : 1, %d, %a)\n"
            "aie.packet_rules(South : 0) { aie.rule(31, 1, %a) }", "m",
        ), "cannot join South : 0 to North : 1",
    ),
    "master without an msel": (
        box('"aie.masterset"() {dest_bundle = 3 : i32, dest_channel = 0 : i32} : () -> index'),
        "at least one aie.amsel",
    ),
    "master twice": (
        box("aie.connect<DMA : 0, South : 0>\naie.connect<DMA : 1, South : 0>"), "0 of tile (0, 2) is set already",
    ),
    "master of both kinds": (
        box(AMSELS + "aie.connect<DMA : 0, South : 0>\naie.masterset(South : 0, %a)"), "is set already",
    ),
    "slave of both kinds": (
        box(AMSELS + "aie.connect<DMA : 0, South : 0>\naie.packet_rules(DMA : 0) { aie.rule(31, 1, %a) }"),
        "slave port DMA : 0 of tile (0, 2) is set already",
    ),
    "slave twice": (
        box(AMSELS + "aie.packet_rules(DMA : 0) { aie.rule(31, 1, %a) }\naie.packet_rules(DMA : 0) { }"),
        "slave port DMA : 0 of tile (0, 2) is set already",
    ),
    "two arbiters": (box(AMSELS + "aie.masterset(South : 0, %a, %b)"), "packets of one arbiter, not of 0, 1"),
    "msel twice": (box(AMSELS + "%d = aie.amsel<1> (0)"), "arbiter 1 msel 0 is named twice"),
    "no msel": (box("%ms = aie.masterset(South : 0, %c)"), "must come from aie.amsel"),
    "switchbox twice": (
        device("%x = aie.switchbox(%c) {}\n%y = aie.switchbox(%c) {}"), "tile (0, 2) has one already",
    ),
    "flow inside": (box("aie.flow(%c, DMA : 0, %c, DMA : 0)"), "cannot stand in aie.switchbox"),
    "connect outside": (device("aie.connect<DMA : 0, South : 0>"), "must stand in an aie.switchbox or aie.shim_mux"),
    "mux of a core": (mux("", "c"), "only a shim has a mux"),
    "mux port": (mux("aie.connect<DMA : 0, North : 7>"), "the mux of a shim joins DMA : 0 to North : 3, DMA : 1 to"),
}  # fmt: skip


@pytest.mark.parametrize("rule", REFUSED)
def test_switch_settings_that_no_switch_has_are_refused(rule):
    text, words = REFUSED[rule]
    assert words in fault(text)


GOOD = (
    box("aie.connect<South : 1, North : 1>\naie.connect<North : 3, South : 3>\naie.connect<DMA : 2, DMA : 2>", "m"),
    box("aie.connect<South : 5, North : 5>\naie.connect<Core : 0, East : 3>\naie.connect<Trace : 1, South : 2>"),
    box(
        "%a = aie.amsel<5> (3)\n%b = aie.amsel<5> (1)\n"
        "%ms = aie.masterset(South : 0, %a, %b) {keep_pkt_header = true}\n"
        "aie.packet_rules(TileControl : 0) {\naie.rule(31, 15, %a)\naie.rule(16, 0, %b)\n}",
        "s",
    ),
    mux("aie.connect<DMA : 1, North : 7>\naie.connect<North : 2, DMA : 0>"),
    device("%x = aie.switchbox(%c) {}\naie.wire(%c : Core, %x : Core)"),
)


@pytest.mark.parametrize("text", GOOD)
def test_switch_settings_read_back_from_both_forms(text):
    module = parse(text)
    for print_form in (print_module, print_generic):
        assert parse(print_form(module)).is_structurally_equivalent(module)
