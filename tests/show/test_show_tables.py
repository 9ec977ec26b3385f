"""Tables of designs."""

from pathlib import Path

import pytest
from show_designs import CHAIN, MIXED, TWO_DEVICES

from bdforge.array.mlir import MlirError, parse
from bdforge.array.routing import RoutingError
from bdforge.array.show import ShowError, as_text, command, tables
from bdforge.array.show.array_use import places, ranges
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import GemmProblem, load_spec, plan_gemm

ROOT = Path(__file__).resolve().parents[2]


def test_tables_of_one_column(file_regression):
    file_regression.check(as_text(tables(parse(CHAIN.read_text()))), extension=".txt")


def test_tables_of_packets_trace_and_cascades(file_regression):
    file_regression.check(as_text(tables(parse(MIXED))), extension=".txt")


CHAINS = {
    GemmProblem(256, 2560, 2560): None,
    GemmProblem(256, 384, 2560): None,
    GemmProblem(256, 2688, 2560): "(0, 2, 4, 6; 0) MM2S 0 2 5 4",
}


@pytest.fixture(scope="module")
def whole_array() -> str:
    """Tables of the whole array with a sequence for each problem of CHAINS."""
    plan = plan_gemm(load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml"), device_named("strix_halo"))
    return as_text(tables(parse(render(plan, list(CHAINS)))))


@pytest.mark.slow
def test_tiles_that_are_alike_share_rows(whole_array):
    text = whole_array
    assert sum(line.startswith(" (0-7, 2-5)") for line in text.splitlines()) == 1
    assert "fullest links: (0-7, 2) south, 4 of 4 wires" in text
    assert "bank conflicts: 32 pairs of buffers share a bank, none of them turns of one channel" in text
    assert len(text.splitlines()) < 116
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.slow
def test_chains_that_repeat_on_shims_are_told(whole_array):
    """K of whole slabs, or of two, takes one BD; three and more with one moved back a chain for each column step."""
    for problem, row in CHAINS.items():
        told = [" ".join(line.split()) for line in whole_array.splitlines() if problem.sequence in line]
        assert told == ([f"{problem.sequence} {row}"] if row else [])
    assert "Chains of BDs that repeat" in whole_array
    assert "Chains of BDs that repeat" not in as_text(tables(parse(CHAIN.read_text())))


def test_every_device_has_its_tables():
    text = as_text(tables(parse(TWO_DEVICES)))
    assert "device @one: npu2_1col, 1 tile, 0 streams" in text
    assert "device @two: npu2_1col, 1 tile, 0 streams" in text
    assert "Streams" not in text


@pytest.mark.parametrize(
    ("tiles", "text"),
    [
        ([(0, 2)], "(0, 2)"),
        ([(c, r) for c in range(8) for r in range(2, 6)], "(0-7, 2-5)"),
        ([(6, 1), (0, 1), (2, 1), (4, 1)], "(0, 2, 4, 6; 1)"),
        ([(0, 2), (0, 3), (0, 2)], "(0; 2, 3)"),
        ([(0, 2), (0, 3), (2, 3)], "(0, 2) (0, 2; 3)"),
    ],
)
def test_places_are_written_by_columns_and_rows(tiles, text):
    assert places(tiles) == text


def test_ranges_join_runs_of_three():
    assert ranges([5, 0, 1, 2, 3, 7, 8]) == "0-3, 5, 7, 8"
    assert ranges([]) == ""


def test_a_design_that_does_not_route_is_refused_with_its_place(tmp_path):
    path = tmp_path / "twice.mlir"
    flows = "\n".join(f"aie.flow(%a, DMA : {channel}, %b, DMA : 0)" for channel in (0, 1))
    path.write_text(f"module {{ aie.device(npu1) {{\n%a = aie.tile(0, 2)\n%b = aie.tile(0, 1)\n{flows}\n}} }}")
    with pytest.raises(RoutingError) as caught:
        command(path)
    assert str(caught.value).startswith(f"{path}:5:1: 2 streams end in (0, 1) DMA : 0, which carries 1 circuit")
    assert isinstance(caught.value, MlirError)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ShowError, match=r"missing\.mlir: cannot be read: No such file"):
        command(tmp_path / "missing.mlir")
    (tmp_path / "binary.mlir").write_bytes(b"\xff\xfe")
    with pytest.raises(ShowError, match=r"binary\.mlir: cannot be read: not UTF-8 text"):
        command(tmp_path / "binary.mlir")


def test_an_unknown_device_is_refused_without_a_picture_too(tmp_path):
    path = tmp_path / "one.mlir"
    path.write_text("module { aie.device(npu1) @main {\n%a = aie.tile(0, 2)\n} }")
    with pytest.raises(ShowError, match="there is no device @other to draw; the module has @main"):
        command(path, device="other")


def test_bds_without_id_are_marked():
    text = as_text(
        tables(
            parse("""
module { aie.device(npu1) {
  %s = aie.tile(0, 0)
  aie.shim_dma_allocation @in (%s, MM2S, 1)
  aie.runtime_sequence(%x: memref<64xi32>) {
    aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1]) {id = 3 : i64, metadata = @in} : memref<64xi32>
    %t = aiex.dma_configure_task(%s, S2MM, 0) {
      aie.dma_bd(%x : memref<64xi32>, 0, 64)
      aie.end
    }
  }
} }""")
        )
    )
    (row,) = [line.split() for line in text.splitlines() if line.startswith(" (0, 0)")]
    cells = dict(zip(("BDs in sequence", "of", "BDs of a shim", "S2MM", "MM2S"), row[-5:], strict=True))
    assert cells == {"BDs in sequence": "1+", "of": "/", "BDs of a shim": "16", "S2MM": "0", "MM2S": "1"}
