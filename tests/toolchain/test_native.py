"""Flags for this machine's processor, taken only where sums come out right, and libraries that are compiled here."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from bdforge.common.compilers import CANDIDATES, compiled, identity, native_flags, processor, sums_right
from bdforge.common.files import alone

TERNARY_SUM = """
#include <cstdint>
extern "C" int sum(const std::uint8_t* u, const std::int8_t* a, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) total += (((u[i] >> 2) & 3) - 1) * a[i];
    return total;
}
"""


@pytest.mark.parametrize("optimise", ["-O2", "-O3"])
def test_a_ternary_sum_is_right_with_the_flags_that_are_taken(tmp_path: Path, optimise: str):
    (tmp_path / "sum.cpp").write_text(TERNARY_SUM)
    words = ["g++", optimise, *native_flags("g++", optimise), "-shared", "-fPIC", "sum.cpp", "-o", "sum.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    rng = np.random.default_rng(1)
    u, a = rng.integers(0, 256, 999, np.uint8), rng.integers(-128, 128, 999, np.int8)
    summed = ctypes.CDLL(str(tmp_path / "sum.so")).sum
    at = [ctypes.c_void_p(array.ctypes.data) for array in (u, a)]
    products = ((u.astype(int) >> 2 & 3) - 1) * a
    wrong = [n for n in range(1000) if summed(*at, n) != products[:n].sum()]
    assert not wrong, f"sums of these lengths are wrong: {wrong[:10]}"


def compiler(folder: Path, script: str) -> Path:
    """A compiler that writes what `script` echoes, for every source."""
    path = folder / "c++"
    path.write_text(
        f'#!/bin/sh\nfor out; do :; done\n{script}\nprintf "#!/bin/sh\\necho $says\\n" > "$out"\nchmod +x "$out"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("script", "flags"), [
    ("says=right", CANDIDATES[0]), ('case "$*" in *-mno-avxvnni*) says=right;; *) says=wrong;; esac', CANDIDATES[1]),
    ('case "$*" in *-mno-avxvnni*) exit 1;; *no-tree*) says=right;; *) says=wrong;; esac', CANDIDATES[2]),
], ids=["no faults", "instructions that go wrong", "flags that are not known"])  # fmt: skip
def test_the_first_flags_whose_sums_are_right_are_taken(tmp_path: Path, script: str, flags: tuple[str, ...]):
    assert native_flags(compiler(tmp_path, script)) == flags


def test_which_flags_are_right_is_known_until_the_compiler_changes(tmp_path: Path, monkeypatch):
    """That none is, is asked every time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def flags(script: str, age: int) -> tuple[str, ...]:
        path = compiler(tmp_path, script)
        os.utime(path, ns=(age, age))
        return native_flags.__wrapped__(path)

    assert [flags("says=wrong", 1), flags("exit 1", 1), flags("says=right", 1)] == [(), (), CANDIDATES[0]]
    assert [flags("exit 1", 1), flags("exit 1", 2)] == [CANDIDATES[0], ()]
    second = 'case "$*" in *-mno-avxvnni*) says=right;; *) says=wrong;; esac'
    assert [flags(second, 3), flags("exit 1", 3)] == [CANDIDATES[1]] * 2
    (tmp_path / "cache").rename(tmp_path / "other")
    (tmp_path / "cache").touch()  # no folder can be made here
    assert flags("says=right", 1) == CANDIDATES[0]


@pytest.mark.parametrize("script", ["says=wrong", "exit 1"])
def test_no_flag_is_taken_where_none_helps(tmp_path: Path, script: str):
    assert native_flags(compiler(tmp_path, script)) == ()
    assert native_flags(tmp_path / "no such compiler") == ()


def test_the_probe_is_right_where_no_vectors_are_used():
    assert sums_right("g++", "-O0")


@pytest.mark.skipif(not shutil.which("lscpu"), reason="lscpu is not installed")
def test_the_processor_is_described():
    assert subprocess.run(["uname", "-m"], text=True, capture_output=True, check=True).stdout.strip() in processor()


def test_a_library_is_kept_by_its_sources_flags_and_compiler(tmp_path: Path):
    compiler = tmp_path / "g++"
    for name in ("g++", "engine.cpp", "core.hpp", "notes.md"):
        (tmp_path / name).write_text("1")
    first = identity(compiler, ["-O3"], tmp_path)
    assert identity(compiler, ["-O3"], tmp_path) == first
    (tmp_path / "notes.md").write_text("2")
    assert identity(compiler, ["-O3"], tmp_path) == first
    known = {first, identity(compiler, ["-O2"], tmp_path)}
    for name in ("engine.cpp", "core.hpp"):
        (tmp_path / name).write_text("2")
        known.add(identity(compiler, ["-O3"], tmp_path))
    assert len(known) == 4, "an edit of a source, or other flags, would find the library of before"


def test_a_library_is_compiled_once_and_a_fault_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In a folder of the cache by its name; nothing is left of one that does not compile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "seven.cpp").write_text('extern "C" int seven() { return 7; }')
    path = compiled(tmp_path / "seven.cpp", (), ValueError)
    assert path is not None
    assert ctypes.CDLL(str(path)).seven() == 7
    assert path.parents[2] == tmp_path / "cache" / "bdforge"
    written = path.stat().st_mtime_ns
    assert compiled(tmp_path / "seven.cpp", (), ValueError) == path
    assert path.stat().st_mtime_ns == written
    (tmp_path / "seven.cpp").write_text("seven")
    with pytest.raises(ValueError, match="error"):
        compiled(tmp_path / "seven.cpp", (), ValueError)
    assert [*path.parents[1].iterdir()] == [path.parent]
    monkeypatch.setenv("PATH", "")
    assert compiled(tmp_path / "seven.cpp", (), ValueError) is None


def test_a_library_that_another_process_compiles_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    source, calls, found = tmp_path / "seven.cpp", tmp_path / "calls", []
    source.touch()
    compiler(tmp_path, f"echo >> {calls}").rename(tmp_path / "g++")
    path = compiled(source, (), ValueError)
    assert path is not None
    path.unlink()
    waiting = Thread(target=lambda: found.append(compiled(source, (), ValueError)))
    with alone(path.parent, ValueError):
        waiting.start()
        waiting.join(0.3)  # it would have called the compiler by then
        path.touch()
    waiting.join()
    assert found == [path]
    assert calls.read_text() == "\n"
