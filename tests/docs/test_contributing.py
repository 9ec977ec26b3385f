"""What contributors read: short, every file that it names is there, and hooks and CI run the same commands."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = {"CONTRIBUTING.md": 80, "AGENTS.md": 60, "SECURITY.md": 50, "docs/releasing.md": 40}
OTHERS = (
    ".github/workflows/site.yml", ".github/workflows/test.yml", ".github/PULL_REQUEST_TEMPLATE.md",
    ".pre-commit-config.yaml", ".devcontainer/devcontainer.json",
)  # fmt: skip
IN_TREE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|py|j2|toml|cff)|SConstruct|site_scons)`")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def commands() -> set[str]:
    """Those of `./go help`."""
    told = subprocess.run([ROOT / "go", "help"], text=True, capture_output=True, check=True).stdout
    return set(re.findall(r"^(?:usage:| {6}) \./go (\w+)", told, re.MULTILINE))


@pytest.mark.parametrize("name", LINES)
def test_a_page_is_short_and_names_what_there_is(name: str):
    text = text_of(name)
    assert text.count("\n") <= LINES[name]
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    named = [(ROOT / name).parent / link for link in links] + [ROOT / path for path in IN_TREE.findall(text)]
    assert named
    assert [path for path in named if not path.exists() and path.name != "bdforge.h"] == []


@pytest.mark.parametrize("name", [*LINES, *OTHERS])
def test_a_command_that_is_named_exists(commands: set[str], name: str):
    assert "fmt" in commands
    assert set(re.findall(r"\./go (\w+)", text_of(name))) <= commands
    assert not re.search(r"https?://", text_of(name))


def test_ci_runs_what_everybody_runs(commands: set[str]):
    assert re.findall(r"- run: (.*)", text_of(".github/workflows/test.yml")) == [".ci/run"]
    assert set(re.findall(r"^\./go (\w+)", text_of(".ci/run"), re.MULTILINE)) == {"test", "run"} <= commands
    assert json.loads(text_of(".devcontainer/devcontainer.json"))["postCreateCommand"] == "./go check"
    assert re.findall(r"repo: (\w+)", text_of(".pre-commit-config.yaml")) == ["local"]
