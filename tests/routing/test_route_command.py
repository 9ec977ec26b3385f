"""`bdforge route`: a design's text in physical form."""

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
