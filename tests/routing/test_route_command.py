"""`bdforge route`: a design's text in physical form."""

import re

import pytest
from typer.testing import CliRunner

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import route
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.physical import switches_of
from bdforge.cli.commands import app
from bdforge.devices import PortBundle
from support.array_text import flow, module, packet_flow, tile
from support.decoded import device_of
from support.physical_form import physical_form
from support.processes import ends
from support.small_designs import loopback


def test_the_command_prints_or_writes_the_physical_form(tmp_path):
    design, out = tmp_path / "design.mlir", tmp_path / "physical.mlir"
    design.write_text(loopback())
    printed = CliRunner().invoke(app, ["route", str(design)])
    assert printed.exit_code == 0
    assert printed.stdout == physical_form(loopback())
    written = CliRunner().invoke(app, ["route", str(design), "--out", str(out)])
    assert written.exit_code == 0
    assert out.read_text() == printed.stdout
    assert CliRunner().invoke(app, ["route", str(design), "--out", str(out)]).exit_code != 0  # nothing is overwritten
    ends(CliRunner().invoke(app, ["verify", str(out)]))


@pytest.mark.parametrize("last", [True, False])
def test_the_last_flow_to_a_port_decides_about_headers(last: bool):
    text = module(
        "npu2_1col", tile(0, 1), tile(0, 2), packet_flow(1, "01 DMA : 0", "02 DMA : 0", keep=not last),
        packet_flow(2, "01 DMA : 1", "02 DMA : 0", keep=last),
    )  # fmt: skip
    (masterset,) = (line for line in physical_form(text).splitlines() if "aie.masterset(DMA" in line)
    assert ("keep_pkt_header = true" in masterset) == last


@pytest.mark.parametrize("keep", [True, False])
def test_only_the_last_port_says_that_it_keeps_headers(keep: bool):
    """Ports between switches keep them anyway; what the flow says stands with the flow and with its end."""
    text = physical_form(
        module("npu2_1col", tile(0, 2), tile(0, 4), packet_flow(1, "02 DMA : 0", "04 DMA : 0", keep=keep))
    )
    saying = [line.strip() for line in text.splitlines() if "keep_pkt_header" in line]
    assert [line.partition(", %")[0] for line in saying] == (
        ["} {keep_pkt_header = true}", "%5 = aie.masterset(DMA : 0"] if keep else []
    )  # fmt: skip


def test_rules_are_written_in_the_order_in_which_they_were_found():
    """Ids 0 to 7 of one source: those below 4, 4 and 5, 6, and 7 go to places of their own."""
    places = ["02 TileControl : 0"] * 4 + ["02 Core : 0"] * 2 + ["02 FIFO : 0", "03 DMA : 0"]
    flows = [packet_flow(i, "02 DMA : 0", place) for i, place in enumerate(places)]
    text = module("npu2_1col", tile(0, 2), tile(0, 3), *flows)
    designs = [
        next(op for op in parse(form).walk() if isinstance(op, DeviceOp)) for form in (text, physical_form(text))
    ]
    ours, written = ({str(slave): rules for slave, rules in route(design).rules.items()} for design in designs)
    assert len(ours["(0, 2) DMA : 0"]) == 4
    assert written == ours


def test_controller_ids_of_the_text_stay_and_name_its_tokens():
    own = "%t00 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 1, pkt_id = 7>}"
    text = physical_form(module("npu2_2col", own, tile(1, 0), *(tile(0, row) for row in range(1, 6))))
    ids = re.findall(
        r"aie.tile\((\d), (\d)\) \{controller_id = #aie.packet_info<pkt_type = (\d), pkt_id = (\d+)>\}", text
    )
    assert {tuple(map(int, found)) for found in ids} == {
        (0, 0, 1, 7), (1, 0, 0, 15), (0, 1, 0, 26), (0, 2, 0, 27), (0, 3, 0, 29), (0, 4, 0, 30), (0, 5, 0, 31),
    }  # fmt: skip
    assert re.findall(r"aie.packet_flow\((\d+)\)", text) == ["7", "15"]


TOKEN_FLOWS = {  # of the text, and the ids that go from the shim's control port to the controller then
    "none": ([], {15}),
    "the same without headers": ([packet_flow(15, "00 TileControl : 0", "00 South : 0")], {15}),
    "the same with headers": ([packet_flow(15, "00 TileControl : 0", "00 South : 0", keep=True)], {15}),
    "the same twice": ([packet_flow(15, "00 TileControl : 0", "00 South : 0")] * 2, {15}),
    "one end twice": ([packet_flow(15, "00 TileControl : 0", "00 South : 0", "00 South : 0")], {15}),
    "another id": ([packet_flow(7, "00 TileControl : 0", "00 South : 0")], {7, 15}),
    "of a memtile": ([packet_flow(26, "01 TileControl : 0", "00 South : 0")], {15}),
}


@pytest.mark.parametrize("flows", TOKEN_FLOWS)
def test_tokens_of_every_shim_get_a_way_to_the_controller_with_their_headers(flows: str):
    own, ids = TOKEN_FLOWS[flows]
    text = physical_form(module("npu2_2col", tile(0, 0), tile(0, 1), tile(1, 0), *own))
    switches = switches_of(device_of(text))
    for column, wanted in ((0, ids), (1, {15})):
        port, end = SwitchPort(column, 0, PortBundle.TILE_CONTROL, 0), SwitchPort(column, 0, PortBundle.SOUTH, 0)
        found = {number: switches.follow(port, number) for number in range(32)}
        assert {number for number, leaves in found.items() if leaves} == wanted
        assert all([(leaf.master, leaf.keeps_header) for leaf in found[i]] == [(end, True)] for i in wanted)
    assert text.count("aie.packet_flow(") == len(own) + 2


def test_a_circuit_of_the_text_for_tokens_of_a_shim_stays_alone():
    text = physical_form(module("npu2_2col", tile(0, 0), tile(1, 0), flow("00 TileControl : 0", "00 South : 0")))
    assert re.findall(r"aie.rule\(31, (\d+)", text) == ["15"]
