"""The tour runs as written, in a tree of its own: its shell lines, its Python, what they print. The README is short.

`bdforge` and `scons` run in forks of a process that has imported them, but for some lines.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bdforge.cli.commands import HOMES
from support.forked import BDFORGE, SCONS, Forks
from support.processes import ends
from tools.testing.source_tree import ROOT

PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKED = ("SConstruct", "site_scons", "examples", "templates", "kernels", "host", "bdforge", "bd_patterns", "tests")
SECONDS = 600  # against a hang only
WHOLE = ("bdforge doctor", "bdforge show")  # run in processes of their own


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(title: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree to build in, with an environment like the one that ./go makes."""
    folder = tmp_path_factory.mktemp("tree")
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / "designs").mkdir()
    for file in (ROOT / "designs").iterdir():
        if file.is_file():
            (folder / "designs" / file.name).write_bytes(file.read_bytes())
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "activate").write_text(f'PATH="$PROGRAMS:{Path(sys.executable).parent}:$PATH"\n')
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (folder / "forks").mkdir()
    forks = Forks(
        ["SCons.Script", "bdforge.cli.commands", *(f"bdforge.cli.{home}" for home in sorted({*HOMES.values()}))]
    )
    for name, entry in (("bdforge", BDFORGE), ("scons", SCONS)):
        forks.program(folder / "forks" / name, entry)
    return folder


def shell(tree: Path, lines: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in ("SCONSFLAGS", "COLUMNS")}
    programs = "" if lines.startswith(WHOLE) else str(tree / "forks")
    environ |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tree / "cache"), "PROGRAMS": programs}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f". .venv/bin/activate\n{lines}"], cwd=tree, env=environ, text=True,
        capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def run_lines(tree: Path, block: str) -> str:
    """Runs a block line by line; a comment may tell another exit code than 0. What the last line says on stderr."""
    done = None
    for line in filter(None, block.splitlines()):
        told = re.search(r"exit code (\d)", line)
        done = shell(tree, line)
        assert done.returncode == int(told[1] if told else 0), f"{line}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
    return done.stderr if done else ""


TOUR, ANY, CPP, OWN = "Five minutes", "Any explicit design", "From C++", "Your own project"


def test_the_tour_runs_as_written(tree: Path):
    (lines,) = blocks(TOUR, "sh")
    run_lines(tree, lines)
    for program in blocks(TOUR, "python"):
        ends(shell(tree, f"python - <<'END'\n{program}END"))
    text = (tree / "mine.mlir").read_text()
    assert "gemm_256x2560x2560" in text


def test_the_examples_run_as_written(tree: Path):
    examples, hanging = blocks(ANY, "sh")
    run_lines(tree, examples)
    check = "import numpy as np; a = np.load('a.npy'); assert (np.load('added/b.npy') == a + 1).all(); "
    check += "assert (np.load('chained/b.npy') == np.maximum(3 * a, 0)).all()"
    ends(shell(tree, f'python -c "{check}"'))
    (report,) = blocks(ANY, "text")
    assert run_lines(tree, hanging) == report
    (program,) = blocks(ANY, "python")
    ends(shell(tree, f"python - <<'END'\n{program}END"))


def test_every_example_is_named_and_there():
    named = set(re.findall(r"examples/[\w./]+", PAGE))
    assert all((ROOT / name).exists() for name in named)
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name.split("/")[1] for name in named if name.count("/") > 1} == folders


def test_the_readme_is_short_and_has_a_picture_two_commands_and_five_pages():
    assert README.count("\n") <= 80
    (image,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    pages = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", README, re.MULTILINE)
    assert len(pages) == 5
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert commands.count("\n") == 2
    assert all((ROOT / name).is_file() for name in (image, *pages))


def test_no_paragraph_is_in_the_readme_and_in_the_tour():
    assert {text for text in README.split("\n\n") if len(text) > 60} & {*PAGE.split("\n\n")} == set()


def test_every_link_of_the_tour_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE)
    assert len(links) > 30
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


@pytest.mark.slow
def test_a_project_of_ones_own_is_made_as_written(tree: Path):
    (lines,) = blocks(OWN, "sh")
    run_lines(tree, lines)
    assert (tree / "mine" / "build" / "strix_halo" / "transpose" / "transpose.mlir").is_file()


@pytest.mark.slow
def test_the_cpp_consumer_runs_as_written(tree: Path):
    run_lines(tree, "scons device=strix_halo host")
    (lines,) = blocks(CPP, "sh")
    run_lines(tree, lines)
