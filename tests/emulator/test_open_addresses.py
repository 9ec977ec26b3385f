"""Sequences that rely on addresses which the text leaves to aiecc: one warning, and none where the text says them."""

import numpy as np
import pytest
from typer.testing import CliRunner

from bdforge.array.emulator import emulate
from bdforge.array.emulator.verification import verify_design
from bdforge.cli.commands import app

TEXT = """
module {{
  aie.device(npu2_2col) {{
    %t = aie.tile(0, 2) {scheme}
    %u = aie.tile(1, 2)
    %big = aie.buffer(%t) {{sym_name = "big"}} : memref<256xi32>
    %rtp = aie.buffer(%t) {{{address}sym_name = "rtp"}} : memref<16xi32>
    %other = aie.buffer(%u) {{sym_name = "other"}} : memref<16xi32>
    aie.runtime_sequence(%x: memref<16xi32>) {{
      {writes}
    }}
  }}
}}
"""
RTP = "aiex.npu.rtp_write(@rtp, 0, 5)"
WRITES = {
    "rtp_write": RTP,
    "write32": "aiex.npu.write32 {address = 1 : ui32, value = 7 : ui32, buffer = @rtp}",
    "maskwrite32": "aiex.npu.maskwrite32 {address = 1 : ui32, value = 7 : ui32, mask = 1 : ui32, buffer = @rtp}",
}
BASIC = '{allocation_scheme = "basic-sequential"}'


def text(writes: str = RTP, scheme: str = "", address: str = "") -> str:
    return TEXT.format(writes=writes, scheme=scheme, address=address)


def of_verify(mlir: str) -> list[str]:
    found = verify_design(mlir, "open.mlir")
    assert found.faults == ()
    return [warning for warning in found.warnings if "[open-address]" in warning]


@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES)
def test_each_way_to_write_a_buffer_of_open_address_is_warned_of(writes: str):
    (warning,) = of_verify(text(writes))
    assert warning.startswith("open.mlir:10:7: aiex.npu.")
    assert "the text gives no address to buffer @rtp of core (0, 2); these words" in warning
    assert "its default is bank-aware" in warning
    assert 'allocation_scheme = "basic-sequential"' in warning
    assert warning.endswith("[open-address]")


def test_several_buffers_and_writes_are_one_warning():
    writes = "\n      ".join([RTP, RTP, "aiex.npu.rtp_write(@other, 1, 5)", "aiex.npu.rtp_write(@big, 1, 5)"])
    (warning,) = of_verify(text(writes))
    assert "buffer @rtp of core (0, 2), buffer @other of core (1, 2), buffer @big of core (0, 2); these" in warning


@pytest.mark.parametrize(
    ("scheme", "address", "writes"),
    [
        (BASIC, "", RTP),  # placed as told, so that the words are known
        ("", "address = 2048 : i32, ", RTP),
        ("", "", "aiex.npu.write32 {address = 0 : ui32, value = 1 : ui32, column = 0 : i32, row = 2 : i32}"),
    ],
)
def test_what_the_text_says_needs_no_warning(scheme: str, address: str, writes: str):
    assert of_verify(text(writes, scheme, address)) == []


def test_a_run_warns_too_and_the_warning_has_a_switch():
    warnings = emulate(text(), [np.zeros(16, np.int32)]).warnings
    assert sum("[open-address]" in warning for warning in warnings) == 1
    assert emulate(text(), [np.zeros(16, np.int32)], permissive=["open-address"]).warnings == ()


def test_encoding_warns_and_writes_the_words(tmp_path):
    design, out = tmp_path / "open.mlir", tmp_path / "insts.bin"
    design.write_text(text())
    result = CliRunner().invoke(app, ["insts", "encode", str(design), "--out", str(out)])
    assert result.exit_code == 0
    assert result.stderr.count("warning: ") == 1
    assert "bank-aware" in result.stderr
    assert out.stat().st_size == 4 * (4 + 6)
