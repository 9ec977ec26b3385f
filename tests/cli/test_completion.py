"""What shells offer behind a Tab: commands, options, and names that an option or argument takes."""

import sys

import pytest


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bdforge ver", ["verify"]),
        ("bdforge verify --pe", ["--permissive"]),
        ("bdforge demo --device str", ["strix_halo", "strix"]),
        ("bdforge verify --device kr", ["krackan"]),
        ("bdforge emulate --permissive bd-", ["bd-rewrite", "bd-half", "bd-locks"]),
        ("bdforge reproduce taka-table", ["taka-table1", "taka-table2", "taka-table3"]),
        ("bdforge reproduce taka-table1 wang-b", ["wang-bounds"]),
        ("bdforge convert --dialect m", ["march"]),
    ],
)
def test_names_are_completed(run, monkeypatch, line: str, offered: list[str]):
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # a program of its own, not pytest's
    monkeypatch.setenv("_BDFORGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    code, out, _ = run()
    assert (code, out.split()) == (0, offered)
