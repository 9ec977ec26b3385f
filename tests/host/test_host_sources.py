"""Each source and header of the C++ library compiles by itself, as users build it; tests build sources joined. Public
headers are C++17, the library is C++20."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from library_builds import ROOT, run

HOST = ROOT / "host"
SOURCES = ("src", "cli", "npu")  # of those that need headers of others only what a stub has
HEADERS = ("include/bdforge", "src")
STUB = Path(__file__).parent / "stub"
FLAGS = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HOST / 'include'}", f"-I{HOST / 'src'}", f"-I{STUB}"]


def test_public_headers_are_cpp17(tmp_path: Path):
    headers = sorted((HOST / "include/bdforge").iterdir())
    (tmp_path / "all.cpp").write_text("".join(f"#include <bdforge/{path.name}>\n" for path in headers))
    assert run("g++", "-std=c++17", *FLAGS, tmp_path / "all.cpp").stderr == ""


@pytest.mark.slow  # as a build of a release does, which takes each source by itself
def test_every_source_and_header_compiles_by_itself():
    sources = [path for part in SOURCES for path in sorted((HOST / part).glob("*.cpp"))]
    headers = [path for part in HEADERS for path in sorted((HOST / part).glob("*.hpp"))]
    assert min(len(sources), len(headers)) > 20
    with ThreadPoolExecutor(2) as compilers:
        words = ["g++", "-std=c++20", *FLAGS, "-x", "c++", "/dev/null", "-include"]
        done = compilers.map(lambda path: run(*words, path), [*headers, *sources])
    assert [one.stderr for one in done if one.stderr] == []
