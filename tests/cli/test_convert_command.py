"""`bdforge convert` and `render --dialect`: what they print and refuse."""

import pytest

from bdforge.array.mlir import Era, convert
from support.built_designs import ROOT
from support.small_designs import loopback


@pytest.fixture(autouse=True)
def design(tmp_path):
    (tmp_path / "copy.mlir").write_text(loopback())


def test_convert_prints_the_other_form(run):
    code, out, _ = run("convert", "copy.mlir", "--dialect", "1.4")
    assert (code, out) == (0, convert(loopback(), Era.MODERN))
    assert " offset = 0 len = " in out


def test_convert_names_what_is_wrong(run, tmp_path):
    (tmp_path / "bad.mlir").write_text("aie.device(npu2) {\n%t = aie.tile(9, 9)\n}")
    code, out, error = run("convert", "bad.mlir", "--dialect", "march")
    assert (code, out) == (2, "")
    assert error.startswith("bdforge: bad.mlir:2:6: aie.tile: column 9")
    assert (
        run("convert", "none.mlir", "--dialect", "1.4")[2]
        == "bdforge: none.mlir: cannot be read: No such file or directory\n"
    )


def test_render_takes_the_form(run):
    design = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    _, march, _ = run("render", design, "--shape", "64,128,64")
    _, modern, _ = run("render", design, "--shape", "64,128,64", "--dialect", "1.4")
    assert modern == convert(march, Era.MODERN) != march
