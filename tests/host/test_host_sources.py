"""Each source and header of the C++ library compiles by itself, as users build it; tests build sources joined. Public
headers are C++17, the library is C++20."""

import re
from functools import cache
from itertools import permutations
from pathlib import Path

import networkx
import pytest
from library_builds import ROOT, run

HOST = ROOT / "host"
SOURCES = ("src", "cli", "npu")  # of those that need headers of others only what a stub has
HEADERS = ("include/bdforge", "src")
STUB = Path(__file__).parent / "stub"


@cache
def included(file: Path) -> frozenset[Path | str]:
    """What a file includes, and what that includes: files of ours, names of others."""
    found: frozenset[Path | str] = frozenset()
    for name in re.findall(r'^\s*#\s*include [<"]([^>"]+)[>"]', file.read_text(), re.MULTILINE):
        places = (file.parent / name, HOST / "include" / name, HOST / "src" / name)
        own = next((place for place in places if place.is_file()), None)
        found |= {name} if own is None else {own, *included(own)}
    return found


def hides_nothing(before: Path, file: Path) -> bool:
    """Whether a file includes all that one before it brought along. Builds join sources of a folder only."""
    if before.suffix == ".cpp":
        return file.parent == before.parent and file.suffix == ".cpp" and included(before) <= included(file)
    return {before, *included(before)} <= included(file)


def chains(files: list[Path]) -> list[list[Path]]:
    """The fewest lists of all files in which nothing before a file hides what it forgot to include: a minimum path
    cover, which is a maximum matching of files with the next ones."""
    pairs = networkx.DiGraph()
    for (i, before), (j, file) in permutations(enumerate(files), 2):
        if hides_nothing(before, file) and (i < j or not hides_nothing(file, before)):
            pairs.add_edge((before, "before"), (file, "after"))
    starts = [node for node in pairs if node[1] == "before"]
    matched = networkx.bipartite.maximum_matching(pairs.to_undirected(), starts)
    following = {file: matched[file, "before"][0] for file in files if (file, "before") in matched}
    found = [[file] for file in files if file not in following.values()]
    for chain in found:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    return found


FLAGS = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HOST / 'include'}", f"-I{HOST / 'src'}", f"-I{STUB}"]


def test_public_headers_are_cpp17(tmp_path: Path):
    headers = sorted((HOST / "include/bdforge").iterdir())
    (tmp_path / "all.cpp").write_text("".join(f"#include <bdforge/{path.name}>\n" for path in headers))
    assert run("g++", "-std=c++17", *FLAGS, tmp_path / "all.cpp").stderr == ""


@pytest.mark.slow  # as a build of a release does, which takes each source by itself
def test_every_source_and_header_compiles_by_itself(tmp_path: Path):
    sources = [path for part in SOURCES for path in sorted((HOST / part).glob("*.cpp"))]
    headers = [path for part in HEADERS for path in sorted((HOST / part).glob("*.hpp"))]
    assert min(len(sources), len(headers)) > 20
    covered = chains([*headers, *sources])
    assert sorted(path for chain in covered for path in chain) == sorted([*headers, *sources])
    told, joined = [], tmp_path / "joined.cpp"
    for chain in covered:
        joined.write_text("".join(f'#include "{path}"\n' for path in chain))
        told.append(run("g++", "-std=c++20", *FLAGS, joined).stderr)
    assert [text for text in told if text] == []
