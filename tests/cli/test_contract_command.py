"""`bdforge contract`: every step of planning is shown."""

from typer.testing import CliRunner

from bdforge.cli.commands import app
from bdforge.design.sequences.program_check import load_program
from support.built_designs import ROOT

DESIGN = str(ROOT / "designs" / "gemm_bf16_bf16_f32_64x64x64.toml")
ARGS = ["contract", "acd,db->abc", "--sizes", "a=96,b=376,c=376,d=384", "--design", DESIGN]


def test_every_step_is_told():
    found = CliRunner().invoke(app, ARGS)
    assert found.exit_code == 0, found.output
    for text in ("M a = 96, strides 144384, -, 141376", "tiles of 64 x 64 x 64", "operands", "prim", "(modelled)"):
        assert text in found.output


def test_a_contraction_has_a_design_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted, found = (CliRunner().invoke(app, words) for words in (ARGS, ARGS[:-2]))
    assert (found.exit_code, found.output) == (0, wanted.output)


def test_a_program_is_written(tmp_path):
    out = tmp_path / "program.json"
    found = CliRunner().invoke(app, [*ARGS, "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert {argument.name for argument in load_program(__import__("json").loads(out.read_text())).arguments} == set(
        "ABC"
    )
