"""Tutorials: each is followed from top to bottom in an empty folder, and takes ten minutes to read."""

import re
import sys
from pathlib import Path

import pytest

from support.built_designs import ROOT
from support.page_shell import follow, forked_programs

FOLDER = ROOT / "docs" / "tutorials"
TUTORIALS = sorted(path.stem for path in FOLDER.glob("*.md"))
WORDS_A_MINUTE = 230
"""What adults read silently of non-fiction: 238, by Brysbaert's review of 190 studies (2019)."""
LONG = ("bitnet_in_a_minute", "one_core", "own_operator", "write_a_design")
PIP = """#!/bin/bash -eu
[[ ${*: -1} = . ]] || exit 0
%(python)s -m pip install -q --no-deps --no-build-isolation --no-index --target %(place)s .
for module in */__init__.py; do
    rm -r "%(place)s/${module%%/*}"
    ln -s "$PWD/${module%%/*}" %(place)s
done
"""
"""`pip`: what is installed already stays; an editable package goes to a folder of its own."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def minutes(text: str) -> float:
    return len(text.split()) / WORDS_A_MINUTE


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return forked_programs(tmp_path_factory.mktemp("forks") / "bin")


@pytest.fixture
def path(tmp_path: Path, programs: Path) -> str:
    """PATH with `pip` as above, forks, and this Python."""
    own, place = tmp_path / "bin", tmp_path / "installed"
    own.mkdir()
    (own / "pip").write_text(PIP % {"python": sys.executable, "place": place})
    (own / "pip").chmod(0o755)
    return f"{own}:{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in TUTORIALS])
def test_a_tutorial_is_followed_as_written(tmp_path: Path, path: str, programs: Path, name: str):
    folder = tmp_path / "empty"
    folder.mkdir()
    environ = {
        "PATH": path,
        "PYTHONPATH": f"{tmp_path / 'installed'}:{ROOT}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    if name == "own_operator":  # forks would not find what it installs
        environ["PATH"] = path.replace(f"{programs}:", "")
    follow(text_of(f"docs/tutorials/{name}.md"), folder, **environ)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_says_for_whom_it_is_and_takes_ten_minutes(name: str):
    text = text_of(f"docs/tutorials/{name}.md")
    assert re.match(r"# [^\n]+\n\nFor whoever ", text)
    assert minutes(text) <= 10
    assert "\nNext: " in text


def test_the_way_from_the_readme_to_a_design_of_ones_own_is_short():
    """A newcomer reads the README, then the tutorial to which it leads; code and outputs count as words."""
    way = ("README.md", "docs/tutorials/write_a_design.md")
    assert f"]({way[1]})" in text_of(way[0])
    taken = [minutes(text_of(name)) for name in way]
    print(*(f"{name}: {one:.1f} minutes" for name, one in zip(way, taken, strict=True)), sep="\n")
    assert sum(taken) <= 15
