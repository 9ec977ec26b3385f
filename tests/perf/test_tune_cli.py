"""`bdforge tune`: its design file, its messages, and the tuned design of this project."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem, load_spec, plan_gemm
from bdforge.perf import GemmCase, PerfError, estimate
from bdforge.perf.bounds.case import case_of
from bdforge.perf.tune.shapes import shapes
from bdforge.perf.tune.time_model import Basis, kernel_of

TUNED = Path(__file__).parents[2] / "designs" / "gemm_i8_i2_tuned.toml"
HALO = device_named("strix_halo")
SQUARE, WIDE = GemmProblem(1024, 2560, 2560), GemmProblem(1024, 2560, 13824)


@pytest.mark.slow
def test_tune_writes_a_design_with_reasons_that_can_be_planned(run, tmp_path):
    out = tmp_path / "tuned.toml"
    code, printed, told = run("tune", "--shapes", "100x40x300,64x32x64*3", "--finalists", "1", "--out", str(out))
    assert (code, printed) == (0, f"wrote {out}\n")
    assert "parts taken over" not in told
    spec = load_spec(out)
    plan_gemm(spec, HALO)
    assert [(p.M, p.K, p.N) for p in spec.problems] == [(100, 40, 300), (64, 32, 64)]
    text = out.read_text()
    assert "Nothing here was measured" in text
    assert "the next best" in text
    assert "as emulation corrects it" in text
    assert re.findall(r"N = (\d+)(.*)", text) == [("300", ""), ("64", " # 3 times")]
    code, _, again = run("tune", "--shapes", "100x40x300,64x32x64*3", "--finalists", "1")
    assert code == 0
    assert "parts taken over" in again


def test_shapes_come_from_models_lists_and_files(tmp_path):
    """BitNet's layers for 256 tokens unless told, a step of GPT-2's training with its own sizes."""
    assert {problem.M for problem, _ in shapes("bitnet-2b")} == {256}
    assert [count for _, count in shapes("bitnet-2b", 512)] == [2, 2, 1, 1]
    assert shapes("bitnet-2b", 512)[2][0] == GemmProblem(512, 2560, 13824)
    trained = shapes("gpt2")
    assert len({(p.M, p.K, p.N) for p, _ in trained}) == len(trained) == 12  # forward, to inputs, to weights (llm.c)
    assert sorted(count for _, count in trained) == [1] * 3 + [12] * 6 + [24] * 3
    assert trained[0][0] == GemmProblem(256, 768, 2304, "qkv")
    assert {(GemmProblem(256, 768, 50304), 1), (GemmProblem(50304, 256, 768), 1)} < set(trained)
    assert [p.name for p, count in trained if count == 24] == [
        "attproj, dX attproj", "fc, dX fcproj", "fcproj, dX fc",
    ]  # fmt: skip
    assert shapes("1x2x3,4x5x6*7") == ((GemmProblem(1, 2, 3), 1), (GemmProblem(4, 5, 6), 7))
    file = tmp_path / "list.txt"
    file.write_text('# mine\n8x16x32*2 up "and" down\n\n1x2x3\n')
    read = shapes(str(file))
    assert read == ((GemmProblem(8, 16, 32), 2), (GemmProblem(1, 2, 3), 1))
    assert read[0][0].name == 'up "and" down'
    for text, message in (("1x1x1\n8x16\n", "list.txt:2: '8x16' is not"), ("# none\n\n", "list.txt: holds no shape")):
        file.write_text(text)
        with pytest.raises(PerfError, match=message):
            shapes(str(file))
    for name, tokens, message in (("bitnet-2b", 0, "M = 0 is not within"), ("gpt2", 4, "'gpt2' says its own M")):
        with pytest.raises(PerfError, match=message):
            shapes(name, tokens)


def tops(problem: GemmProblem, basis: Basis, **changes) -> float:
    """Modelled TOPS of the tuned design, dispatch included."""
    case = replace(case_of(load_spec(TUNED), HALO, problem), **changes)
    return estimate(case, kernel=kernel_of(case, basis)).tops


def stock(problem: GemmProblem, m: int, c_buffers: int) -> float:
    """Modelled TOPS of mlir-aie's stock tiling with column-major int8 B."""
    case = GemmCase(
        device="strix_halo", a="int8", b="int8", c="int32", m=m, k=64, n=64, k_mt=64, rows=4, columns=8,
        M=problem.M, K=problem.K, N=problem.N, b_layout="column", c_buffers=c_buffers,
    )  # fmt: skip
    return estimate(case, kernel=kernel_of(case, "ideal")).tops


@pytest.mark.parametrize("basis", ["compiled", "ideal"])
def test_the_tuned_bitnet_design_models_30_tops_and_twice_the_stock_tilings_on_the_wide_layer(basis):
    assert tops(WIDE, basis) >= 30
    assert tops(WIDE, basis) >= 2 * stock(WIDE, 64, c_buffers=2)
    assert tops(WIDE, basis) >= 2 * stock(WIDE, 128, c_buffers=1)


@pytest.mark.parametrize("basis", ["compiled", "ideal"])
def test_what_keeps_the_tuned_design_from_25_tops_on_the_square_layer_is_dram_and_dispatch(basis):
    assert tops(SQUARE, basis) >= 2 * stock(SQUARE, 64, c_buffers=2)
    assert 22 <= tops(SQUARE, basis) < 25.5, "docs/operators/gemm_speed.md tells why not; tell it again"
    assert tops(SQUARE, basis, c="int8", accumulator="int32") >= 25  # a quarter of C's bytes


@pytest.mark.slow
def test_any_dimension_of_a_search_can_be_fixed(run, tmp_path):
    common = ("tune", "--shapes", "64x64x64", "--finalists", "0", "--types", "int8,int8,int32")
    out = tmp_path / "fixed.toml"
    code, _, _ = run(*common, "--symmetric", "--fix", "k=16,32", "--fix", "c_buffers=2", "--out", str(out))
    assert code == 0
    spec = load_spec(out)
    assert (spec.buffers.rho, spec.buffers.c_buffers) == (1, 2)
    assert spec.tile.k in (16, 32)
    code, _, told = run(*common, "--fix", "m=32", "--fix", "n=48", "--out", str(tmp_path / "other.toml"))
    assert code == 0
    tile = load_spec(tmp_path / "other.toml").tile
    assert (tile.m, tile.n) == (32, 48)
    assert "1/1" not in told  # no terminal, no bar


def test_fixed_values_that_leave_nothing_are_named(run):
    code, _, told = run("tune", "--shapes", "64x64x64", "--finalists", "0", "--fix", "m=7", "--fix", "rho=1,2")
    assert code == 2
    assert "no choice of m, k, n and buffers, m of 7, rho of 1 or 2 fits" in told
