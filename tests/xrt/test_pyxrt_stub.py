"""The Python runner uses pyxrt as pyxrt's own stub describes it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.xrt_packages import FetchError, fetch_packages, python_stub

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "bdforge" / "runtime" / "xrt.py"
IMPORTED = "self.pyxrt = _pyxrt()"  # of type Any, as pyxrt is seldom there; below it gets the stub's types


@pytest.fixture(scope="module")
def stub() -> Path:
    try:
        return python_stub(fetch_packages())
    except FetchError as error:
        pytest.skip(f"pyxrt's stub: {error}")


def faults(folder: Path, stub: Path, source: str) -> list[str]:
    """What pyrefly finds in `source` when pyxrt has the stub's types."""
    (folder / "stubs").mkdir(exist_ok=True)
    shutil.copy(stub, folder / "stubs")
    (folder / "runner.py").write_text(source)
    paths = [str(folder / "stubs"), str(ROOT)]
    (folder / "pyrefly.toml").write_text(f'project-includes = ["runner.py"]\nsearch-path = {paths}\n')
    done = subprocess.run(
        [sys.executable, "-m", "pyrefly", "check", "--output-format=json", "--python-interpreter-path", sys.executable],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return [found["description"] for found in json.loads(done.stdout)["errors"]]


@pytest.mark.slow
def test_the_runner_calls_only_what_pyxrt_has(stub: Path, tmp_path: Path):
    source = RUNNER.read_text()
    assert source.count(IMPORTED) == 1, "the test replaces this line"
    typed = source.replace(IMPORTED, "self.pyxrt = pyxrt").replace("import numpy", "import pyxrt\nimport numpy", 1)
    assert faults(tmp_path, stub, typed) == []
    assert "group_id(" in typed, "the next line has to break something"
    assert "groupid" in faults(tmp_path, stub, typed.replace("group_id(", "groupid("))[0]
