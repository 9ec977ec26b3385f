"""The example of an operator from outside, installed with a kernel beside it, passes its own tests there."""

import os
import shutil
import subprocess
import sys

import pytest
from scratch_tree import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [["-k", "refused"], []], ids=["one", "all"])
def test_an_operator_s_package_passes_its_tests_outside_of_the_checkout(tmp_path, chosen):
    package, place = tmp_path / "package", tmp_path / "installed"
    shutil.copytree(ROOT / "examples" / "operator", package)
    (package / "bdforge_rowscale" / "own.cc").touch()
    pip = ["pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(place)]
    paths = os.pathsep.join([str(place), str(ROOT)])
    for command in ([*pip, str(package)], ["pytest", "-q", "-p", "no:cacheprovider", *chosen]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=package, env=os.environ | {"PYTHONPATH": paths}, text=True,
            capture_output=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "bdforge_rowscale" / "own.cc").is_file()
