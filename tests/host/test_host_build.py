"""The C++ library's build: compilers, installation, and programs of others that find it."""

import re
import shutil
from pathlib import Path

import pytest
from library_builds import ROOT, SANITIZED, SANITIZERS, run, sanitized_build, scons, small_design

from bdforge import __version__

SOURCE = """
#include <bdforge/bdforge.hpp>
#include <cstdio>
int main() { std::puts(bdforge::Device::open("emulated").name().c_str()); }
"""
LISTS = """
cmake_minimum_required(VERSION 3.13)
project(other CXX)
find_package(bdforge {version} CONFIG REQUIRED)
add_executable(other main.cpp)
target_compile_features(other PRIVATE cxx_std_17)
target_link_libraries(other {target})
"""


SERIES = __version__.rpartition(".")[0]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed library."""
    sanitized_build()
    folder = tmp_path_factory.mktemp("prefix")
    scons(SANITIZED, "install", "xrt=none", f"sanitize={SANITIZERS}", f"prefix={folder}")
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Somebody else's project."""
    (tmp_path / "main.cpp").write_text(SOURCE)
    return tmp_path


@pytest.mark.slow
def test_installation_holds_library_headers_program_and_package_files(prefix: Path):
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    expected = {
        "bin/bdforge-run", "lib/libbdforge.a", "lib/libbdforge.so", f"lib/libbdforge.so.{SERIES}",
        f"lib/libbdforge.so.{__version__}", "lib/pkgconfig/bdforge.pc", "include/bdforge.h",
        "include/bdforge_llmc.h", "lib/cmake/bdforge/bdforge-config.cmake",
        "lib/cmake/bdforge/bdforge-config-version.cmake", "lib/libbdforge-npu.so",
        "share/man/man1/bdforge-run.1",
    }  # fmt: skip
    headers = {f"include/bdforge/{path.name}" for path in (ROOT / "host/include/bdforge").glob("*.hpp")}
    assert expected | headers == files


def test_the_man_page_says_what_help_does(prefix: Path):
    page = (prefix / "share/man/man1/bdforge-run.1").read_text()
    assert page.startswith(f'.TH BDFORGE-RUN 1 "" "bdforge {__version__}"\n.SH NAME\n')
    told = run(prefix / "bin/bdforge-run", "--help").stdout
    assert set(told.splitlines()) <= set(page.replace("\\-", "-").replace("bdforge-run - ", "").splitlines()) | {""}
    if shutil.which("man"):
        assert run("man", "--warnings", "-l", prefix / "share/man/man1/bdforge-run.1").stderr == ""


@pytest.fixture(scope="module")
def second_build(prefix: Path) -> str:
    """What it says, and the tree of what depends on what; a header was touched before."""
    (ROOT / "host/src/json.hpp").touch()
    options = ("xrt=none", f"sanitize={SANITIZERS}", f"prefix={prefix}")
    return scons(SANITIZED, "--tree=all", "cpp", "cpp-tests", *options).stdout


@pytest.mark.slow
def test_a_second_build_does_nothing_and_a_touched_header_changes_nothing(second_build: str):
    assert "+-cpp-tests\n" in second_build
    assert "[" not in second_build


@pytest.mark.slow
def test_objects_are_made_again_when_a_header_changes_that_they_include(second_build: str):
    _, _, probe = second_build.partition("+-tests/host/probe.cpp\n")
    included = probe.split("/lib/libbdforge.a")[0]
    for header in ("host/include/bdforge/job.hpp", "host/src/json.hpp", "host/src/state.hpp"):
        assert f"+-{header}\n" in included


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
@pytest.mark.parametrize("options", [[], ["--static"], ["--define-variable=runpath={lib}"]])
def test_pkg_config_gives_what_a_program_needs(prefix: Path, other: Path, options: list[str]):
    moved = shutil.copytree(prefix / "lib", other / "moved")
    found = run(
        "pkg-config", *(option.format(lib=moved) for option in options), "--cflags", "--libs", "bdforge",
        environ={"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    words = ["g++", "-std=c++17", "-fsanitize=address,undefined", "main.cpp", "-o", "other", *found.stdout.split()]
    built = run(*words, cwd=other)
    assert built.returncode == 0, built.stderr
    assert run(other / "other").stdout == "emulated\n"
    place = moved if "runpath" in "".join(options) else prefix / "lib"
    assert f"libbdforge.so.{SERIES} => {place}/libbdforge.so.{SERIES}" in run("ldd", other / "other").stdout


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
@pytest.mark.parametrize(("target", "shared"), [("bdforge::bdforge", False), ("bdforge::shared", True)])
def test_cmake_finds_the_package(prefix: Path, other: Path, target: str, shared: bool):
    (other / "CMakeLists.txt").write_text(LISTS.format(version=__version__, target=target))
    flags = "-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined"
    configured = run("cmake", "-S", other, "-B", other / "b", f"-DCMAKE_PREFIX_PATH={prefix}", flags)
    assert configured.returncode == 0, configured.stderr
    built = run("cmake", "--build", other / "b")
    assert built.returncode == 0, built.stdout
    assert run(other / "b" / "other").stdout == "emulated\n"
    assert (f"libbdforge.so.{SERIES} =>" in run("ldd", other / "b" / "other").stdout) == shared


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("pkg-config")), reason="no cmake or no pkg-config")
def test_a_package_s_layout_serves_cmake_and_pkg_config(prefix: Path, other: Path):
    """As Debian lays libraries out, staged in a folder of its own."""
    place, libdir = other / "stage" / "usr", "lib/x86_64-linux-gnu"
    options = ("xrt=none", f"sanitize={SANITIZERS}", "prefix=/usr", f"libdir={libdir}", f"destdir={other / 'stage'}")
    scons(SANITIZED, "install", *options)
    assert {path.name for path in (place / "lib").iterdir()} == {"x86_64-linux-gnu"}
    (other / "CMakeLists.txt").write_text(LISTS.format(version=__version__, target="bdforge::shared"))
    flags = "-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined"
    where = f"-Dbdforge_DIR={place / libdir / 'cmake' / 'bdforge'}"
    assert (done := run("cmake", "-S", other, "-B", other / "b", where, flags)).returncode == 0, done.stderr
    assert (done := run("cmake", "--build", other / "b")).returncode == 0, done.stdout
    assert run(other / "b" / "other").stdout == "emulated\n"
    environ = {"PKG_CONFIG_PATH": str(place / libdir / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(other / "stage")}
    found = run("pkg-config", "--variable=libdir", "bdforge", environ=environ).stdout.strip()
    assert found.removeprefix(str(other / "stage")) == f"/usr/{libdir}"


@pytest.mark.slow
@pytest.mark.parametrize("libdir", ["/usr/lib", "../lib", "."])
def test_a_folder_of_libraries_is_below_the_prefix(libdir: str):
    done = scons(SANITIZED, "install", "-n", f"libdir={libdir}", check=False)
    assert (done.returncode, "is no folder below prefix" in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake_takes_versions_of_the_series_up_to_its_own(prefix: Path, tmp_path: Path):
    major, minor, patch = map(int, re.findall(r"\d+", __version__))
    good = [__version__, SERIES, str(major), ""]
    later = [f"{SERIES}.{patch + 1}", f"{major}.{minor + 1}", f"{major}.{minor}9", f"{major + 1}"]
    earlier = [f"{major}.{minor - 1}"] if minor else []
    script = "".join(
        f"unset(bdforge_FOUND)\nfind_package(bdforge {asked} CONFIG QUIET NO_DEFAULT_PATH PATHS {prefix})\n"
        f'message("{asked} ${{bdforge_CONSIDERED_VERSIONS}} ${{bdforge_FOUND}}")\nunset(bdforge_DIR CACHE)\n'
        for asked in [*good, *later, *earlier]
    )
    (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.13)\nproject(other CXX)\n{script}")
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "b")
    found = [line.split(" ") for line in done.stderr.splitlines() if __version__ in line.split(" ")[1:2]]
    assert [(asked, took == "1") for asked, _, took in found] == [
        *((asked, True) for asked in good), *((asked, False) for asked in [*later, *earlier])
    ], done.stdout + done.stderr  # fmt: skip


def test_header_docs_and_changes_say_the_packages_version():
    """The build takes it from the header: names of files, packages and the shared library."""
    said = {
        "host/include/bdforge.h": (r'BDFORGE_VERSION "(.*)"', __version__),
        "docs/host.md": (r"find_package\(bdforge (\S+)|libbdforge\.so\.([\d.]+\d)", SERIES),
        "docs/strix_halo.md": (r"ok +bdforge: (.*)", __version__),
    }
    for file, (pattern, version) in said.items():
        found = re.findall(pattern, (ROOT / file).read_text())
        assert {"".join(groups) for groups in found} == {version}, file
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


@pytest.mark.slow
def test_projects_take_the_library_that_another_one_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of it one object here; its sources are compiled again where one changes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = []
    for name in ("first", "second"):
        shutil.copytree(ROOT / "examples" / "project", tmp_path / name)
        made.append(scons(Path("build"), "build/host/objects/json.cpp.o", "xrt=none", cwd=tmp_path / name).stdout)
    assert ["[CXX]" in told for told in made] == [True, False], made
    first, second = (tmp_path / name / "build/host/objects/json.cpp.o" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert list((tmp_path / "cache/bdforge/host" / __version__).iterdir())


@pytest.mark.slow
def test_an_xrt_that_is_not_there_is_refused(tmp_path: Path):
    done = scons(tmp_path / "build", "cpp", f"xrt={tmp_path}", check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"scons: xrt={tmp_path} holds no XRT with NPU support; name the prefix above its include/xrt, or none.\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not installed")
def test_clang_builds_everything_without_a_warning(tmp_path: Path):
    scons(tmp_path / "build", "cpp", "cpp-tests", "xrt=none", "sanitize=address,undefined", "cxx=clang++")
    design = small_design(tmp_path / "small")
    done = run(tmp_path / "build/host/tests/c_program", design, "emulated")
    assert (done.returncode, done.stderr) == (0, "")
