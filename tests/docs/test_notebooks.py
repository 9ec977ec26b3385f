"""Notebooks: their cells run from first to last, and they are kept without outputs."""

import json
import re
import runpy
from pathlib import Path

import pytest

from support.built_designs import ROOT

FOLDER = ROOT / "examples" / "notebooks"
PRINTED = {
    "first_design": ("dma_bd(%core_x_ping", "[ 0  3  6  9 12 15] True", "nobody releases", "[ 0 12 24 36 48 60] True"),
    "kernel_in_assembly": ("True\n18.4 bundles", "True\n6.4 bundles", "reads x0 1 cycle before"),
    "patterns_and_reorders": ("transposed      (12, 8):(1, 12)+0", "True\n[]\n- ", "\nTrue\n"),
    "where_the_time_goes": ("bound: DRAM bandwidth", "M =    64:", "C in int8"),
}
"""What each tells, in this order."""
LONG = ("patterns_and_reorders",)


def cells(name: str) -> list[dict]:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_every_notebook_is_here_and_on_the_list_of_examples():
    assert {path.stem for path in FOLDER.iterdir()} == PRINTED.keys()
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [name for name in PRINTED if f"(notebooks/{name}.ipynb)" not in listed] == []


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in PRINTED])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch, capsys):
    code = "\n".join("".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == "code")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    Path("cells.py").write_text(code, encoding="utf-8")
    runpy.run_path("cells.py", run_name="__main__")
    assert re.search(".*".join(map(re.escape, PRINTED[name])), capsys.readouterr().out, re.DOTALL)


@pytest.mark.parametrize("name", PRINTED)
def test_a_notebook_is_kept_without_outputs_and_says_for_whom_it_is(name: str):
    first, *others = cells(name)
    assert re.match(r"# [^\n]+\n\nFor whoever ", "".join(first["source"]))
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in others)
