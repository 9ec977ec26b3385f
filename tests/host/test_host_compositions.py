"""Compositions in bdforge-run: the library makes Python's words, the changes of the array's configuration included."""

from pathlib import Path

import pytest
from library_builds import run

from bdforge.runtime import BuiltDesign
from bdforge.runtime.composition import CompositionForm, compose
from support.coded_folders import LAYER, SMALL, coded


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    for name in SMALL:
        coded(folder, name)
    form = CompositionForm.model_validate(LAYER)
    compose(form, "layer", lambda design: BuiltDesign.load(folder / design)).write(folder / "layer")
    return folder / "layer"


def test_a_composition_is_run_and_verified_by_the_library(build: Path, layer: Path):
    options = ["-d", "emulated", "--verify", "-i", "2", "--warmup", "0", "-s", "tokens=21"]
    done = run(build / "bin" / "bdforge-run", "-x", layer / "layer.xclbin", *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout


def test_changes_that_are_missing_are_told(build: Path, layer: Path, tmp_path: Path):
    for file in layer.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes() if file.suffix != ".bin" else b"1234")
    done = run(build / "bin" / "bdforge-run", "-x", tmp_path / "layer.xclbin", "-d", "emulated", "-s", "tokens=21")
    assert done.returncode != 0
    assert "files.configurations.sha256 is not that of" in done.stderr
