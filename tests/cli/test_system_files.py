"""The man page, and completion that shells load by themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bdforge.cli.system_files import MAN_PAGE, man_page, shown_commands, system_files, write_system_files


@pytest.fixture(scope="module")
def share(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "share"
    write_system_files(folder)
    return folder


def test_the_man_page_tells_each_command_with_its_options():
    text = man_page().replace("\\-", "-")
    for name, command in shown_commands().items():
        for each in getattr(command, "commands", {"": command}).values():
            assert f".SS bdforge {name} " in text
            told = [option for one in each.params if not one.hidden for option in getattr(one, "opts", ())]
            assert [option for option in told if option not in text] == []
    assert "check-run" not in text


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
def test_man_renders_it_without_a_warning(share: Path):
    done = subprocess.run(
        ["man", "--warnings", "-l", str(share / MAN_PAGE)], text=True, capture_output=True, check=True,
        env=os.environ | {"MANWIDTH": "80", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.stderr == ""
    words = " ".join(done.stdout.split())
    assert "bdforge verify [OPTIONS] {design} Check a design without running it" in words
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash_completes_by_the_file(share: Path):
    script = 'COMP_WORDS=(bdforge ver) COMP_CWORD=1; . "$1"; _bdforge_completion bdforge; echo ${COMPREPLY[@]}'
    place = share / "bash-completion" / "completions" / "bdforge"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(place)], text=True, capture_output=True, check=True,
        env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert done.stdout == "verify\n", done.stderr


@pytest.mark.parametrize(("name", "words"), [("zsh", "#compdef bdforge"), ("fish", "complete --command bdforge")])
def test_other_shells_have_theirs(name: str, words: str):
    (text,) = [text for path, text in system_files().items() if path.startswith(name)]
    assert words in text
