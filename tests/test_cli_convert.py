"""`bdforge convert` and `render --dialect`: what they print and refuse."""

import sys

import pytest

from bdforge.cli import main
from bdforge.mlir import Era, convert
from support.built_designs import ROOT
from support.small_designs import loopback


@pytest.fixture
def command(monkeypatch, capfd, tmp_path):
    """Runs a command line: exit code, standard output, standard error."""
    (tmp_path / "copy.mlir").write_text(loopback())
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bdforge", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capfd.readouterr()

    return run


def test_convert_prints_the_other_form(command):
    code, out, _ = command("convert", "copy.mlir", "--dialect", "1.4")
    assert (code, out) == (0, convert(loopback(), Era.MODERN))
    assert " offset = 0 len = " in out


def test_convert_names_what_is_wrong(command, tmp_path):
    (tmp_path / "bad.mlir").write_text("aie.device(npu2) {\n%t = aie.tile(9, 9)\n}")
    code, out, error = command("convert", "bad.mlir", "--dialect", "march")
    assert (code, out) == (2, "")
    assert error.startswith("bdforge: bad.mlir:2:6: aie.tile: column 9")
    assert (
        command("convert", "none.mlir", "--dialect", "1.4")[2]
        == "bdforge: none.mlir: cannot be read: No such file or directory\n"
    )


def test_the_form_is_a_choice(command):
    code, _, error = command("convert", "copy.mlir", "--dialect", "1.5")
    assert code == 2
    assert "'1.5' is not one of" in error


def test_render_takes_the_form(command):
    design = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
    _, march, _ = command("render", design, "--shape", "64,128,64")
    _, modern, _ = command("render", design, "--shape", "64,128,64", "--dialect", "1.4")
    assert modern == convert(march, Era.MODERN) != march
