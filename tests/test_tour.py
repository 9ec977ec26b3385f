"""The tour runs as written, in a tree of its own: its shell lines, its Python, what they print. The README is short.

`bdforge` and `scons` run in forks of a process that has imported them, but for some lines.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from support.differences import same
from support.page_shell import forked_programs, run_line
from tools.testing.source_tree import ROOT

PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKED = ("SConstruct", "site_scons", "examples", "templates", "kernels", "host", "bdforge", "bd_patterns", "tests")
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
    forked_programs(folder / "forks")
    return folder


def run_lines(tree: Path, block: str) -> None:
    for line in filter(None, block.splitlines()):
        programs = "" if line.startswith(WHOLE) else str(tree / "forks")
        run_line(tree, f". .venv/bin/activate\n{line}", PROGRAMS=programs, XDG_CACHE_HOME=str(tree / "cache"))


TOUR, ANY, CPP = "Five minutes", "Any explicit design", "From C++"


@pytest.mark.slow  # `./go run` builds and runs the same; each verb is run by tests/docs/test_commands.py
def test_the_tour_runs_as_written(tree: Path):
    (lines,) = blocks(TOUR, "sh")
    run_lines(tree, lines)
    for program in blocks(TOUR, "python"):
        run_line(tree, f". .venv/bin/activate\npython - <<'END'\n{program}END", PROGRAMS="")
    text = (tree / "mine.mlir").read_text()
    assert "gemm_256x2560x2560" in text


def test_the_examples_run_as_written(tree: Path):
    (examples,) = blocks(ANY, "sh")
    run_lines(tree, examples)
    a, added, chained = (np.load(tree / name) for name in ("a.npy", "added/b.npy", "chained/b.npy"))
    same(added, a + 1)
    same(chained, np.maximum(3 * a, 0))


def test_every_example_is_named_and_there():
    named = set(re.findall(r"\]\((\w[\w./]+)", (ROOT / "examples" / "README.md").read_text(encoding="utf-8")))
    assert all((ROOT / "examples" / name).exists() for name in named)
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name.split("/")[0] for name in named if "/" in name} == folders


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
def test_the_cpp_consumer_runs_as_written(tree: Path):
    run_lines(tree, "scons device=strix_halo host")
    (lines,) = blocks(CPP, "sh")
    run_lines(tree, lines)
