"""`bdforge route`: a design's text in physical form."""

import re

import pytest
from typer.testing import CliRunner

from bdforge.cli.commands import app
from bdforge.mlir import MlirError
from bdforge.routing import RoutingError
from support.array_text import flow, module, packet_flow, tile
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


def test_flows_that_do_not_fit_are_named():
    flows = [flow(f"01 DMA : {i}", f"0{2 + i // 2} DMA : {i % 2}") for i in range(6)]
    text = module("npu2_1col", *(tile(0, row) for row in range(6)), *flows, flow("00 DMA : 0", "05 DMA : 0"))
    with pytest.raises(RoutingError, match=r"7 streams must go north from memtile \(0, 1\), which has 6 ports"):
        physical_form(text)


def test_one_port_cannot_keep_and_drop_headers():
    text = module(
        "npu2_1col", tile(0, 1), tile(0, 2), packet_flow(1, "01 DMA : 0", "02 DMA : 0"),
        packet_flow(2, "01 DMA : 1", "02 DMA : 0", keep=True),
    )  # fmt: skip
    with pytest.raises(MlirError, match=r"packets 2 and 1 both arrive at .* but only one of these flows keeps"):
        physical_form(text)


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


@pytest.mark.parametrize("routed", [(), (0,), (1,), (0, 1)])
def test_tokens_of_every_shim_get_one_way_to_the_controller(routed: tuple[int, ...]):
    """Those that the text leads there stay as they are: here packets of id 7, of shims without one 15."""
    own = [packet_flow(7, f"{column}0 TileControl : 0", f"{column}0 South : 0") for column in routed]
    text = physical_form(module("npu2_2col", tile(0, 0), tile(1, 0), tile(0, 2), *own))
    rules = re.findall(r"aie.packet_rules\(TileControl : 0\) \{\s*aie.rule\(31, (\d+), %\d+\)", text)
    assert rules == ["7" if column in routed else "15" for column in (0, 1)]
    assert text.count("aie.packet_flow(") == 2
