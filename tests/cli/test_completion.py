"""What shells offer behind a Tab: commands, options, and names that an option or argument takes."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bdforge ver", ["verify"]),
        ("bdforge verify --pe", ["--permissive"]),
        ("bdforge demo --device str", ["strix_halo", "strix"]),
        ("bdforge verify --device kr", ["krackan"]),
        ("bdforge device --device ph", ["phoenix"]),
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


def test_names_of_commands_are_completed_without_importing_one():
    script = (
        "import sys; from bdforge.cli.commands import app, _Group; import typer\n"
        "group = typer.main.get_group(app); context = typer.Context(group)\n"
        "print([item.value for item in group.shell_complete(context, 'e')], 'bdforge.cli.emulate' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=True)
    assert done.stdout == "['emulate', 'explain', 'estimate'] False\n"
