"""Fetching XRT's packages: what stands in the way is said in one line. Fakes stand for apt here."""

import json
import shutil
from pathlib import Path

import pytest

from bdforge.runtime import npu
from bdforge.runtime.npu import find_development
from support.xrt_packages import FetchError, fetch_packages


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def fault(cache: Path) -> str:
    with pytest.raises(FetchError) as caught:
        fetch_packages(cache)
    assert "\n" not in str(caught.value)
    assert not (cache / "root").exists()
    assert not list(cache.glob("part-*"))
    return str(caught.value)


def test_without_apt_there_is_a_reason(path: Path, tmp_path: Path):
    assert "this is no Debian or Ubuntu" in fault(tmp_path / "cache")


def test_without_a_debian_mirror_there_is_a_reason(path: Path, tmp_path: Path):
    program(path, "dpkg-deb", "exit 0")
    program(path, "apt-get", "echo http://mirror.example/ubuntu/ http://mirror.example/debian-security/")
    assert "no Debian mirror among this machine's apt sources" in fault(tmp_path / "cache")


def apt_get(folder: Path, command: str, script: str) -> None:
    """An apt-get that knows a Debian mirror, does `script` for `command`, and nothing for others."""
    program(
        folder,
        "apt-get",
        f'case "$*" in *indextargets*) echo http://mirror.example/debian/;; *{command}*) {script};; esac',
    )


def test_without_a_network_apts_reason_is_shown(path: Path, tmp_path: Path):
    program(path, "dpkg-deb", "exit 0")
    apt_get(path, "update", 'echo "W: x" >&2; echo "E: no route" >&2; exit 100')
    assert fault(tmp_path / "cache") == "apt-get update: E: no route"


def test_an_archive_that_cannot_be_unpacked_is_named(path: Path, tmp_path: Path):
    program(path, "dpkg-deb", "echo broken >&2; exit 2")
    program(path, "apt-cache", "exit 0")
    apt_get(path, "download", ": > libxrt2_1%3a2_amd64.deb")
    assert fault(tmp_path / "cache") == "libxrt2_1%3a2_amd64.deb cannot be unpacked: broken"


def test_packages_in_the_cache_are_not_fetched_again(path: Path, tmp_path: Path):
    root = tmp_path / "cache" / "root"
    root.mkdir(parents=True)
    (root / "versions.json").write_text(json.dumps({"libxrt2": "1:2.25"}))
    packages = fetch_packages(tmp_path / "cache")
    assert packages.versions == {"libxrt2": "1:2.25"}
    assert packages.command("xclbinutil", "--info")[-2:] == [str(root / "usr/bin/xclbinutil"), "--info"]


def test_a_cache_that_cannot_be_made_is_a_reason(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(FetchError, match="Not a directory"):
        fetch_packages(tmp_path / "file" / "cache")


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
