"""Where an XRT is looked for, and what of it has to be there."""

import shutil
from pathlib import Path

import pytest

from bdforge.runtime import npu
from bdforge.runtime.npu import find_development


def test_an_xrt_is_found_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert find_development(str(tmp_path)) is None
    header = tmp_path / "include/xrt/experimental/xrt_ext.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert find_development(str(tmp_path)) is None, "headers without a library"
    library = tmp_path / "lib/x86_64-linux-gnu/libxrt_coreutil.so"
    library.parent.mkdir(parents=True)
    library.touch()
    found = find_development("auto", {"XILINX_XRT": str(tmp_path)})
    assert found == find_development(str(tmp_path))
    assert found is not None
    assert (found.include, found.library) == (tmp_path / "include", library.parent)
    assert find_development("none", {"XILINX_XRT": str(tmp_path)}) is None
    shutil.copytree(tmp_path / "include", tmp_path / "none/include")
    shutil.copytree(tmp_path / "lib", tmp_path / "none/lib")
    monkeypatch.chdir(tmp_path)
    assert find_development("./none") is not None
    assert find_development("none") is None, "a folder of this name is no wish"


def test_an_xrt_is_looked_for_in_its_usual_places_unless_told_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is told is believed, though nothing is there."""
    asked: list[str] = []
    monkeypatch.setattr(npu, "_below", lambda prefix: asked.append(str(prefix)))
    usual = ["/opt/xilinx/xrt", "/usr", "/usr/local"]
    for wanted, environ, places in (
        ("auto", {}, usual), ("auto", {"XILINX_XRT": ""}, usual), ("auto", {"XILINX_XRT": "/mine"}, ["/mine"]),
        ("/its", {"XILINX_XRT": "/mine"}, ["/its"]), ("none", {"XILINX_XRT": "/mine"}, []),
    ):  # fmt: skip
        asked.clear()
        assert find_development(wanted, environ) is None
        assert asked == places, f"{wanted}, {environ}"


def test_a_library_is_taken_from_lib_before_the_folders_in_it(tmp_path: Path):
    (tmp_path / "include/xrt/experimental").mkdir(parents=True)
    (tmp_path / "include/xrt/experimental/xrt_ext.h").touch()
    for folder in ("lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib"):
        (tmp_path / folder).mkdir(exist_ok=True, parents=True)
        (tmp_path / folder / "libxrt_coreutil.so").touch()
        found = find_development(str(tmp_path))
        assert found is not None
        assert found.library == tmp_path / folder
