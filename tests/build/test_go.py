"""The command `go`: what it says when something is missing, and when it installs. Python and pip are stand-ins."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scratch_tree import program

from support.processes import ends

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("bash", "env", "dirname", "cat", "sha256sum", "rm", "mkdir", "touch", "tail", "flock", "cp", "sh")

# Makes "environments" that hold a copy of itself; writes down every call; pip fails while the file `broken` exists.
PYTHON = """
here="LOG"
echo "$*" >>"$here/calls"
case "$*" in
  -V) echo Python 3.13.1 ;;
  "-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/bdforge"
              echo "VIRTUAL_ENV='$3'" >"$3/bin/activate" ;;
  *"pip install"*) if test -e "$here/broken"; then echo "no wheel fits"; exit 1; fi ;;
  "run "*) echo "a table"; exit 1 ;;
esac
"""


class Go:
    """`go` in a folder of its own, with a PATH of its own."""

    def __init__(self, folder: Path):
        self.folder, self.log, self.bin = folder / "my bdforge", folder / "log", folder / "bin"
        for made in (self.folder, self.log, self.bin):
            made.mkdir()
        for name in ("go", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder)
        for name in NEEDED:
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)
        program(self.bin / "g++", "true")
        program(self.bin / "getconf", "echo 3")
        program(self.bin / "python3", PYTHON.replace("LOG", str(self.log)))

    def __call__(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "go", *arguments], cwd=cwd or self.folder, env={"PATH": str(self.bin)},
            text=True, capture_output=True, timeout=20, check=False,
        )  # fmt: skip

    def calls(self, word: str) -> list[str]:
        """Calls of Python so far that contain `word`."""
        return [line for line in (self.log / "calls").read_text().splitlines() if word in line]


@pytest.fixture
def go(tmp_path: Path) -> Go:
    return Go(tmp_path)


def refusal(result) -> str:
    """The only line of a refusal."""
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_help_needs_nothing(go):
    (go.bin / "g++").unlink()
    result = go("help")
    assert result.returncode == 0
    assert "./go run" in result.stdout
    assert not (go.folder / ".venv").exists()


@pytest.mark.parametrize(("command", "name", "script", "told"), [
    ("run", "g++", None, "sudo apt-get install g++"),
    ("test", "python3", None, "sudo apt-get install python3 python3-venv"),
    ("run", "python3", 'case "$*" in *version_info*) exit 1;; esac', "needs Python 3.11 or newer"),
    ("run", "python3", 'case "$*" in *ensurepip*) exit 1;; esac', "sudo apt-get install python3-venv"),
], ids=["no compiler", "no Python", "an old Python", "a Python without venv"])  # fmt: skip
def test_what_is_missing_is_named_with_its_package(go, command: str, name: str, script: str | None, told: str):
    if script is None:
        (go.bin / name).unlink()
    else:
        program(go.bin / name, script)
    assert told in refusal(go(command))


def test_the_second_call_installs_nothing(go, tmp_path):
    first = go("run", "--some option")
    assert first.returncode == 1, first.stderr  # what `bdforge run` ends with
    assert first.stdout == "a table\n"
    assert len(go.calls("pip install")) == 2
    assert "--require-hashes -r" in go.calls("pip install")[0]
    second = go("run", cwd=tmp_path)
    assert second.stderr == ""
    assert len(go.calls("pip install")) == 2
    assert go.calls("run build/strix_halo/gemm_i8_i2_bitnet") == [
        "run build/strix_halo/gemm_i8_i2_bitnet --some option"
    ]
    assert go.calls(f"run {go.folder}/build/strix_halo/gemm_i8_i2_bitnet")


def test_a_model_writes_behind_the_table_unless_options_are_given(go):
    program(go.bin / "python3", PYTHON.replace("LOG", str(go.log)).replace("exit 1 ;;\nesac", ";;\nesac"))
    ends(go("run", "--seed", "1"))
    assert go.calls("generate ") == []
    ends(go("run", cwd=go.folder))
    (call,) = go.calls("generate ")
    model = call.split()[1]
    assert (ROOT / model).is_file()
    assert "--design build/strix_halo/gemm_i8_i2_bf16 --split array" in call


def test_a_changed_lock_file_updates_in_place(go):
    go("run")
    (go.folder / ".venv" / "kept").touch()
    with (go.folder / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    go("run")
    assert len(go.calls("pip install")) == 4
    assert (go.folder / ".venv" / "kept").exists()


def test_an_installation_that_failed_shows_why_and_is_redone(go):
    (go.log / "broken").touch()
    failed = go("run")
    assert failed.returncode == 2
    assert "no wheel fits\ngo: installing requirements.lock failed" in failed.stderr
    (go.log / "broken").unlink()
    (go.folder / ".venv" / "half of it").touch()
    ends(go("run"), 1)
    assert not (go.folder / ".venv" / "half of it").exists()


def test_an_update_that_failed_is_redone_in_full(go):
    go("run")
    (go.log / "broken").touch()
    (go.folder / "pyproject.toml").write_text("")
    ends(go("run"), 2)
    (go.log / "broken").unlink()
    go("run")
    assert len(go.calls("--force-reinstall")) == 1


def test_a_moved_tree_gets_an_environment_of_its_own(go):
    go("run")
    moved = go.folder.with_name("elsewhere")
    shutil.copytree(go.folder, moved)
    go.folder = moved
    go("run")
    assert len(go.calls("-m venv")) == 2


STAGES = {
    "ruff check": "ruff check",
    "ruff format": "ruff format",
    "pyrefly": "pyrefly",
    "pytest": "pytest",
}


@pytest.mark.parametrize("stage", STAGES)
def test_tests_stop_at_the_first_stage_that_fails(go, stage):
    fails = f'case "$*" in *"-m {STAGES[stage]}"*) echo a fault; exit 3;; esac\ncase'
    program(go.bin / "python3", PYTHON.replace("LOG", str(go.log)).replace("case", fails, 1))
    result = go("test")
    assert result.returncode == 3
    last = list(STAGES).index(stage)
    expected = [f"== {name}" for name in list(STAGES)[: last + 1]]
    assert result.stdout.splitlines() == [*expected, "a fault"]
    assert f"go test: {stage} failed (exit code 3)" in result.stderr
    assert len(go.calls("-m pytest")) == (stage == "pytest")


def test_a_check_lints_and_types_all_then_tests_what_differs(go):
    result = go("check")
    assert (result.returncode, result.stdout.splitlines()) == (
        0, ["== ruff check", "== ruff format", "== pyrefly", "== pytest"],
    ), result.stderr  # fmt: skip
    assert go.calls("check.py") == ["tools/testing/check.py"]
    assert go.calls("SCons") == []


def test_tests_pass_arguments_on(go):
    result = go("test", "-k", "locks")
    assert result.returncode == 0, result.stderr
    assert go.calls("-m pytest") == ["-m pytest -n 2 --dist worksteal -m not slow -k locks"]


def test_an_unknown_command_is_named(go):
    result = go("runn")
    assert result.returncode == 2
    assert "unknown command 'runn'" in result.stderr
    assert not os.path.exists(go.folder / ".venv")
