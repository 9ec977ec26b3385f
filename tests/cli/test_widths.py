"""Commands with tables at 80 and 120 columns and in a pipe: nothing is cut, nothing but a pipe's lines is longer."""

import re

import pytest

from support.built_designs import ROOT

SPEC = str(ROOT / "designs/gemm_i8_i2_bitnet.toml")
COMMANDS = {
    "a design": ("estimate", SPEC, "--shape", "1024x2560x13824"),
    "a model": ("estimate", SPEC, "--model", "gpt2"),
    "a processor": ("estimate", SPEC, "--shape", "64x256x256", "--versus", "cpu"),
    "a picture": ("show", str(ROOT / "examples/pass_through_8_columns.mlir")),
    "prose": ("checks",),
    "a chain": ("show", str(ROOT / "examples/chain/chain.mlir")),
}


def cells(text: str) -> list[str]:
    """Every character that is no blank and no line, in no order: folding moves them, cutting loses some."""
    return sorted(re.sub(r"[\s─]", "", text))


@pytest.mark.daily("a chain", "a model", "a design", "a processor", "prose")
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_every_width_shows_all_of_it(run, monkeypatch, arguments):
    monkeypatch.delenv("COLUMNS", raising=False)
    code, piped, _ = run(*arguments)
    assert code == 0
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = run(*arguments)[1]
        assert max(map(len, text.splitlines())) <= columns
        assert "…" not in text
        assert cells(text) == cells(piped)


def test_doctor_folds_between_words(run, monkeypatch):
    piped = run("doctor")[1]
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("doctor")[1].splitlines()
    assert " ".join(" ".join(lines).split()) == " ".join(piped.split())
    assert [line for line in lines if len(line) > 60 and len(line.split()) > 1] == []
    assert sum(line.startswith(("ok ", "missing ", "check ", "bad ")) for line in lines) >= 10
