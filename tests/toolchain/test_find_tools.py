"""Where tools are looked for, against folders made for each test."""

from pathlib import Path

import pytest

from bdforge.runtime.toolchain import (
    Tool,
    find,
    find_aie_api,
    find_aiebu,
    find_aiecc,
    find_cxx,
    find_peano,
    find_xrt,
    missing_report,
)  # fmt: skip


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch) -> Path:
    """An empty site-packages."""
    folder = tmp_path / "site-packages"
    monkeypatch.setattr(find, "site_packages", lambda: folder)
    return folder


def test_a_variable_that_points_nowhere_is_not_passed_over(tmp_path, wheels):
    script(wheels / "llvm-aie" / "bin" / "clang++", "echo clang version 19")
    tool = find_peano({"PEANO_INSTALL_DIR": str(tmp_path / "typo")})
    assert tool.path is None
    assert tool.searched == (f"PEANO_INSTALL_DIR={tmp_path / 'typo'} (holds no bin/clang++)",)


def test_another_clang_on_path_is_not_peano(tmp_path, wheels):
    clang = script(tmp_path / "clang++", 'case "$1" in --print-targets) echo "x86-64 - 64-bit";; esac')
    tool = find_peano({"PATH": str(tmp_path)})
    assert tool.path is None
    assert tool.searched[-1] == f"PATH ({clang}: not Peano, it knows no aie2 target)"
    script(clang, 'case "$1" in --print-targets) echo "aie2p - AI Engine";; *) echo clang 20;; esac')
    assert find_peano({"PATH": str(tmp_path)}).path == clang


def test_a_clang_that_cannot_say_its_targets_is_not_peano(tmp_path, wheels):
    clang = script(tmp_path / "clang++", "echo; echo no such option; exit 3")
    tool = find_peano({"PATH": str(tmp_path)})
    assert tool.path is None
    assert tool.searched[-1] == f"PATH ({clang}: --print-targets ends with exit code 3: no such option)"


def test_files_programs_and_places_are_tried_in_order(tmp_path, wheels):
    """The wheel comes before PATH, the first name before the second; what is not set is told."""
    script(tmp_path / "bin" / "aiecc.py", "echo 3")
    environ = {"PATH": str(tmp_path / "bin")}
    assert find_aiecc(environ).path == tmp_path / "bin" / "aiecc.py"
    script(tmp_path / "bin" / "aiecc", "echo 2")
    assert find_aiecc(environ).path == tmp_path / "bin" / "aiecc"
    second = script(wheels / "mlir_aie" / "bin" / "aiecc.py", "echo 1")
    assert find_aiecc(environ).path == second
    first = script(wheels / "mlir_aie" / "bin" / "aiecc", "echo 0")
    found = find_aiecc(environ)
    assert (found.path, found.version) == (first, "0")
    assert found.searched == ("MLIR_AIE_INSTALL_DIR (not set)", f"mlir_aie wheel ({wheels / 'mlir_aie'})")


def test_a_tool_without_an_answer_is_found_with_an_unknown_version(tmp_path, wheels):
    script(tmp_path / "bin" / "xclbinutil", "echo segmentation fault; exit 139")
    tool = find_xrt({"XILINX_XRT": str(tmp_path)})
    assert tool
    assert tool.version == "unknown"
    script(tmp_path / "bin" / "xclbinutil", "echo; echo '  2.25 '; echo more")
    assert find_xrt({"XILINX_XRT": str(tmp_path)}).version == "2.25"
    script(tmp_path / "bin" / "xclbinutil", "exit 0")
    assert find_xrt({"XILINX_XRT": str(tmp_path)}).version == "unknown"


def test_the_aie_api_of_an_aiecc_from_path_is_found_beside_it(tmp_path, wheels):
    script(tmp_path / "bin" / "aiecc", "echo aiecc 1.4")
    header = tmp_path / "include" / "aie_api" / "aie.hpp"
    environ = {"PATH": str(tmp_path / "bin")}
    assert find_aiecc(environ).version == "aiecc 1.4"
    assert not find_aie_api(environ)
    header.parent.mkdir(parents=True)
    header.touch()
    assert find_aie_api(environ).path == header


def test_the_report_names_place_and_remedy_of_missing_tools_only(tmp_path, wheels):
    script(tmp_path / "c++", "echo c++ 12")
    environ = {"PATH": str(tmp_path)}
    report = missing_report([find_cxx("c++", environ), find_aiecc(environ), find_peano(environ)])
    assert f"  aiecc: looked in MLIR_AIE_INSTALL_DIR (not set); mlir_aie wheel ({wheels / 'mlir_aie'}); PATH" in report
    assert "pip install llvm-aie" in report
    assert "c++ 12" not in report
    assert missing_report([find_cxx("c++", environ)]) == ""


def test_aiebu_is_xrts_or_lies_beside_aiecc(tmp_path, wheels):
    script(tmp_path / "mlir-aie" / "bin" / "aiecc", "echo aiecc 1.4")
    environ = {"PATH": "", "MLIR_AIE_INSTALL_DIR": str(tmp_path / "mlir-aie"), "XILINX_XRT": str(tmp_path / "xrt")}
    tool = find_aiebu(environ)
    assert not tool
    assert "XILINX_XRT=" in tool.missing
    assert "beside aiecc" in tool.missing
    assert "apt install libxrt-utils-npu" in tool.missing
    beside = script(tmp_path / "mlir-aie" / "bin" / "aiebu-asm", "echo aiebu 1")
    assert find_aiebu(environ).path == beside
    own = script(tmp_path / "xrt" / "bin" / "aiebu-asm", "echo aiebu 2")
    assert (find_aiebu(environ).path, find_aiebu(environ).version) == (own, "aiebu 2")


@pytest.mark.parametrize(
    ("look", "file", "variable", "wheel"),
    [
        (find_peano, "bin/clang++", "PEANO_INSTALL_DIR", "llvm-aie"),
        (find.find_object_linker, "bin/ld.lld", "PEANO_INSTALL_DIR", "llvm-aie"),
        (find_aiecc, "bin/aiecc", "MLIR_AIE_INSTALL_DIR", "mlir_aie"),
        (find_aie_api, "include/aie_api/aie.hpp", "MLIR_AIE_INSTALL_DIR", "mlir_aie"),
        (find_xrt, "unwrapped/xclbinutil", "XILINX_XRT", None),
        (find_aiebu, "unwrapped/aiebu-asm", "XILINX_XRT", None),
    ],
)  # fmt: skip
def test_a_tool_is_looked_for_by_its_variable_then_in_its_wheel(tmp_path, wheels, look, file, variable, wheel):
    environ = {"PATH": str(tmp_path / "empty")}
    assert not look(environ)
    assert look(environ).searched[0] == f"{variable} (not set)"
    if wheel is not None:
        in_wheel = script(wheels / wheel / file, "echo 1")
        assert look(environ).path == in_wheel
    own = script(tmp_path / "own" / file, "echo 2")
    found = look(environ | {variable: str(tmp_path / "own")})
    assert (found.path, found.searched) == (own, (f"{variable}={tmp_path / 'own'}",))


@pytest.mark.parametrize(
    ("name", "version"),
    [("llvm-aie", "21.1"), ("llvm_aie", "21.1"), ("llvm-aie-cu12", "21.1"), ("llvm", ""), ("my-llvm-aie", "")],
)
def test_a_wheel_is_known_by_how_its_name_begins(tmp_path, name: str, version: str):
    program = script(tmp_path / "llvm-aie" / "bin" / "clang++", "echo")
    info = tmp_path / "x.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 21.1\n")
    assert find.wheel_version(Tool("", program, "", (), ""), "llvm_aie") == version
    assert find.wheel_version(Tool("", None, "", (), ""), "llvm_aie") == ""
