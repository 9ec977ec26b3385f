"""Where `einsum` runs when nothing is named: a design that is there, or one that is built once, and what is said."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bdforge
from bdforge.common.messages import warn_once
from bdforge.devices import device_named
from bdforge.models.tensors import default
from bdforge.models.tensors.default import FLOATS, INTEGERS, default_design
from bdforge.operators import load_spec, plan
from bdforge.runtime import BuildError
from support.built_designs import ROOT, build, spec_content
from support.differences import same
from support.threads import together


@pytest.fixture
def builds(monkeypatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """What SCons was asked for; nothing but a manifest is made, in a cache and a folder of the test's own."""
    made: list[tuple[str, ...]] = []

    def scons(*words: str, quiet: bool = False) -> tuple[int, str]:
        assert quiet
        made.append(words)
        given = dict(word.split("=") for word in words if "=" in word)
        folder = Path(given["build"], given["device"], given["design"])
        folder.mkdir(parents=True)
        (folder / "manifest.json").touch()
        return 0, ""

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BDFORGE_EINSUM", raising=False)
    monkeypatch.setattr(default, "scons", scons)
    warn_once.cache_clear()
    return made


class Tensor:
    """Of a library whose types have names."""

    def __init__(self, dtype: str):
        self.dtype = dtype


@pytest.mark.parametrize(
    ("operand", "design"),
    [
        (np.ones(3, np.int8), INTEGERS), (np.uint8(3), INTEGERS), (Tensor("torch.int8"), INTEGERS), (3, FLOATS),
        (np.ones(3, np.float32), FLOATS), (np.ones(3, ml_dtypes.bfloat16), FLOATS), (Tensor("torch.bfloat16"), FLOATS),
        (None, FLOATS),
    ],
    ids=["int8", "a number of uint8", "a tensor of int8", "a number", "float32", "bf16", "a tensor of bf16", "nothing"],
)  # fmt: skip
def test_a_default_design_is_built_once_by_the_types_of_operands(builds, caplog, operand: Any, design: tuple[str, str]):
    product, name = design
    folder = default_design(operand)
    assert folder.parts[-2:] == design
    assert builds == [(f"device={product}", f"design={name}", f"build={folder.parents[1]}", "host")]
    assert default_design(operand) == folder
    assert default_design(operand) == folder
    assert len(builds) == 1
    said = [record.getMessage() for record in caplog.records]
    assert [name in line and "on= or BDFORGE_EINSUM" in line for line in said] == [True, True]  # built, and then taken


def test_a_design_that_this_folder_has_built_is_taken(builds):
    here = Path("build", *INTEGERS)
    here.mkdir(parents=True)
    (here / "manifest.json").touch()
    assert default_design(np.ones(3, np.int8)) == here
    assert builds == []


def test_threads_wait_for_one_build(builds):
    folders = together(default_design, [np.ones(1, np.int8)] * 4)
    assert len({*folders}) == len(builds) == 1


def test_a_build_that_fails_says_why(builds, monkeypatch, tmp_path: Path):
    monkeypatch.setattr(default, "scons", lambda *words, quiet: (2, "g++: not found\n" * 1000))
    with pytest.raises(
        BuildError, match=r"(?s)einsum: gemm_i8.* cannot be built \(g\+\+: not found.*on= or BDFORGE_EINSUM"
    ):
        default_design(np.int8(1))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="cannot be written"):
        default_design(np.int8(1))


@pytest.mark.parametrize("design", [INTEGERS, FLOATS], ids=str)
def test_default_designs_are_gemms_of_their_products(design: tuple[str, str]):
    spec = load_spec(ROOT / "designs" / f"{design[1]}.toml")
    found: Any = plan(spec, device_named(design[0])).spec
    assert (found.kind, found.a, found.b) == ("gemm", *(["int8"] * 2 if design is INTEGERS else ["bf16"] * 2))


def test_einsum_runs_where_nothing_is_named(builds, monkeypatch):
    """A small design stands for the one that would be built."""
    product, name = INTEGERS
    content = spec_content(8, 16, 8, types=("int8", "int8", "int32"), layouts="row row row")

    def scons(*words: str, quiet: bool = False) -> tuple[int, str]:
        build(Path(words[2].removeprefix("build="), product, name), content, name, product)
        return 0, ""

    monkeypatch.setattr(default, "scons", scons)
    x = np.arange(12, dtype=np.int8).reshape(3, 4)
    for _ in range(2):
        same(bdforge.einsum("ij,kj", x, x), x.astype(np.int32) @ x.T)
    with pytest.raises(BuildError, match=r"on an NPU .* give its folder as on="):
        bdforge.einsum("ij,kj", x, x, device="xrt")
