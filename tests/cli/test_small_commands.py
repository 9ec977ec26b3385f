"""`bdforge contract`, `convert`, `render --dialect` and `doctor`: what they print and write."""

import platform
from pathlib import Path

import bdforge
from bdforge.array.mlir import Era, convert
from bdforge.cli import doctor
from bdforge.common.files import read_json
from bdforge.design.sequences.program_check import load_program
from bdforge.runtime.toolchain.doctor import examine
from support.built_designs import ROOT
from support.small_designs import loopback

CONTRACT = ("contract", "acd,db->abc", "--sizes", "a=96,b=376,c=376,d=384")


def test_a_contraction_is_told_step_by_step_and_has_a_design_in_any_folder(run):
    code, out, err = run(*CONTRACT)
    assert code == 0, err
    for text in ("M a = 96, strides 144384, -, 141376", "tiles of 64 x 64 x 64", "operands", "prim", "(modelled)"):
        assert text in out
    assert run(*CONTRACT, "--design", str(ROOT / "designs/gemm_bf16_bf16_f32_64x64x64.toml"))[:2] == (0, out)


def test_a_contraction_s_program_is_written(run):
    assert run(*CONTRACT, "--out", "program.json")[0] == 0
    assert {argument.name for argument in load_program(read_json("program.json")).arguments} == set("ABC")


def test_convert_prints_the_other_form_or_names_what_is_wrong(run):
    Path("copy.mlir").write_text(loopback())
    code, out, _ = run("convert", "copy.mlir", "--dialect", "1.4")
    assert (code, out) == (0, convert(loopback(), Era.MODERN))
    assert " offset = 0 len = " in out
    Path("bad.mlir").write_text("aie.device(npu2) {\n%t = aie.tile(9, 9)\n}")
    code, out, err = run("convert", "bad.mlir", "--dialect", "march")
    assert (code, out) == (2, "")
    assert err.startswith("bdforge: bad.mlir:2:6: aie.tile: column 9")


def test_render_takes_the_form(run):
    command = ("render", str(ROOT / "designs" / "gemm_i8_i8_i32_one_core.toml"), "--shape", "64,128,64")
    march, modern = run(*command)[1], run(*command, "--dialect", "1.4")[1]
    assert modern == convert(march, Era.MODERN) != march


def test_versions_for_bug_reports_come_first(run, monkeypatch, tmp_path):
    """On a machine with nothing but this Python; nothing was asked for."""
    monkeypatch.setattr(doctor, "examine", lambda: examine({"PATH": ""}, tmp_path))
    code, out, _ = run("doctor")
    first, second = out.splitlines()[:2]
    assert (code, first) == (0, f"ok       bdforge: {bdforge.__version__}")
    assert second.startswith(f"ok       Python: {platform.python_version()} (")
