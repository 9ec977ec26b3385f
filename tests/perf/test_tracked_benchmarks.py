"""`./go bench`: a line for each run, a page of all lines."""

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from support.built_designs import ROOT

MACHINE = {"processor": "<a & b>", "processors": 2, "system": "Linux"}


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with two figures that take no time."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tracked

    monkeypatch.setattr(tracked, "FIGURES", {"one": lambda: None, "two": lambda: None})
    return tracked


def line(commit: str, processor: str, **seconds: float) -> dict:
    figures = {name: {"min_s": low, "median_s": 2 * low, "runs": 3} for name, low in seconds.items()}
    return {"commit": commit, "date": "2026-01-01", "machine": MACHINE | {"processor": processor}, "figures": figures}


def test_a_figure_is_run_once_more_and_told_by_least_and_median(tracked, monkeypatch):
    clock = iter([0, 3, 10, 11, 20, 28])
    calls: list[None] = []
    monkeypatch.setattr(tracked, "cpu_seconds", lambda: next(clock))
    assert tracked.measured(lambda: calls.append(None), 3) == {"min_s": 1, "median_s": 3, "runs": 3}
    assert len(calls) == 4


def test_runs_are_appended_and_drawn(tracked, monkeypatch, tmp_path: Path, capsys):
    file, page = tmp_path / "runs.jsonl", tmp_path / "runs.html"
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["bench", str(file), "--runs", "1", "--page", str(page)])
        tracked.main()
    first, second = map(json.loads, file.read_text().splitlines())
    assert first.keys() == {"commit", "changed", "date", "machine", "versions", "figures"}
    assert {"python", "numpy", "bdforge", "g++"} == second["versions"].keys()
    assert {name: found["runs"] for name, found in second["figures"].items()} == {"one": 1, "two": 1}
    assert page.read_text().count("<circle") == 4
    assert capsys.readouterr().out.count("(measured)") == 4


def test_a_page_has_a_line_for_each_machine_and_escapes_names(tracked):
    lines = [line("a" * 40, "x", one=1.0), line("b" * 40, "<y>", one=2.0), line("c" * 40, "x", one=4.0, two=1.0)]
    text = tracked.tracked_page.page(lines)
    assert re.findall(r"<h2>(.*)</h2>", text) == ["one", "two"]
    first, second = text.split("<h2>")[1:]
    assert (first.count("<polyline"), second.count("<polyline")) == (2, 1)
    assert "<y>" not in text
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', first)]
    assert heights == sorted(heights, reverse=True)  # 0 is at the bottom


@pytest.mark.parametrize("text", ["no json", '{"commit": "a"}', "[]"])
def test_a_line_that_is_none_is_named(tracked, monkeypatch, tmp_path: Path, capsys, text: str):
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps(line("a", "x", one=1.0)) + f"\n{text}\n")
    monkeypatch.setattr("sys.argv", ["bench", str(file), "--runs", "0", "--page", str(tmp_path / "page.html")])
    with pytest.raises(SystemExit) as end:
        tracked.main()
    assert end.value.code == 2
    assert "runs.jsonl:2: no line of a run" in capsys.readouterr().err


@pytest.mark.slow
def test_every_figure_can_be_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tracked

    assert len(tracked.FIGURES) == 6
    for figure in tracked.FIGURES.values():
        figure()
