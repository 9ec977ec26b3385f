"""Programs of this machine that are asked, and flags that compile for its own processor and make sums that are right.

g++ 12.2 (Debian 12) narrows `((byte >> s) & 3) - 1` to an unsigned byte, in which -1 becomes 255, and hands that to
VPDPBUSD of AVX-VNNI and AVX512-VNNI. Any compiler may have such a fault where `-march=native` turns on what few
machines have, so the sums themselves are compiled and run; a list of bad versions would be out of date.

`compiled` makes this package's own C++ when it is first needed, once for this machine, kept by its content.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

from bdforge.common.files import FileError, alone, write_whole

QUERY_SECONDS = 30  # a cold start from a network disk stays below

NATIVE = "-march=native"
CANDIDATES = ((NATIVE,), (NATIVE, "-mno-avxvnni", "-mno-avx512vnni"), (NATIVE, "-fno-tree-vectorize"))
"""In order of preference; what comes behind all of them is no flag at all."""

PROBE = """
#include <cstdint>
#include <cstdio>

enum { most = 300 };
static std::uint8_t packed[most];
static std::int8_t factors[most];

// One loop for vectors, one that no compiler turns into vectors; the sums must agree, whatever is left behind the
// last whole vector: a loop's end has vectors of its own.
#define WEIGHTS(name, weight) \\
    __attribute__((noinline)) static int name(const std::uint8_t* u, const std::int8_t* a, int count) { \\
        int sum = 0; \\
        for (int i = 0; i < count; ++i) sum += (weight) * a[i]; \\
        return sum; \\
    } \\
    static int name##_by_one(int count) { \\
        int sum = 0; \\
        for (volatile int at = 0; at < count; at = at + 1) { \\
            const int i = at; \\
            const volatile std::uint8_t* u = packed; \\
            sum += (weight) * factors[i]; \\
        } \\
        return sum; \\
    }
WEIGHTS(field0, (u[i] & 3) - 1)
WEIGHTS(field1, ((u[i] >> 2) & 3) - 1)
WEIGHTS(field2, ((u[i] >> 4) & 3) - 1)
WEIGHTS(field3, (u[i] >> 6) - 1)
WEIGHTS(low_nibble, (u[i] & 15) - 8)
WEIGHTS(high_nibble, (u[i] >> 4) - 8)
WEIGHTS(byte, u[i] - 128)
WEIGHTS(plain, static_cast<std::int8_t>(u[i]))
#define SAME(name) (name(packed, factors, count) == name##_by_one(count))

int main() {
    std::uint32_t state = 1;
    for (int i = 0; i < most; ++i) {
        state = state * 1664525 + 1013904223;
        packed[i] = static_cast<std::uint8_t>(state >> 24);
        factors[i] = static_cast<std::int8_t>(state >> 16);
    }
    bool right = true;
    for (volatile int length = 0; length <= most; length = length + 1) {
        const int count = length;
        right = right && SAME(field0) && SAME(field1) && SAME(field2) && SAME(field3) && SAME(low_nibble) &&
                SAME(high_nibble) && SAME(byte) && SAME(plain);
    }
    std::puts(right ? "right" : "wrong");
}
"""
"""Sums of unpacked weights times bytes: every field of ternary and 4-bit codes, and 8-bit ones."""


@cache
def native_flags(cxx: str | Path, optimise: str = "-O3") -> tuple[str, ...]:
    """The first of CANDIDATES with which `cxx` sums right on this machine; () when none does or it does not compile.

    Those that do are kept, by compiler and processor: every build asks, and to find out takes a second.
    """
    if (found := shutil.which(cxx)) is None:
        return ()
    kept = folder() / "sums" / _key(Path(found), optimise, PROBE, *chain(*CANDIDATES))
    with suppress(OSError, ValueError):
        return CANDIDATES[int(kept.read_text(encoding="utf-8"))]
    for number, flags in enumerate(CANDIDATES):
        if sums_right(cxx, optimise, *flags):
            with suppress(OSError, FileError):
                kept.parent.mkdir(parents=True, exist_ok=True)
                write_whole(kept, str(number))
            return flags
    return ()


def sums_right(cxx: str | Path, *flags: str) -> bool:
    """Whether PROBE, compiled with these flags, says that its sums are right; not where it cannot be built."""
    with tempfile.TemporaryDirectory(prefix="bdforge-sum-") as folder:
        source, program = Path(folder, "sum.cpp"), Path(folder, "sum")
        source.write_text(PROBE, encoding="utf-8")
        code, _ = query([cxx, *flags, source, "-o", program])
        return code == 0 and query([program]) == (0, "right\n")


def query(command: Sequence[str | Path]) -> tuple[int, str]:
    """Exit code and output of a question to a tool; code 127 when it does not start or answer in time."""
    try:
        answer = subprocess.run(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=QUERY_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return answer.returncode, answer.stdout


def processors() -> int:
    """How many processors this process may use; all where the system does not say (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """What `-march=native` depends on: the architecture, and on Linux the processor's name and features."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.machine()
    kept = ("model name", "flags", "Features", "CPU part")
    lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith(kept)]
    return "\n".join(dict.fromkeys([platform.machine(), *lines]))


COMPILER = "g++"
_FLAGS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-ffp-contract=off")
_SHOWN = 400


def compiled(source: Path, flags: Sequence[str], error: type[Exception], *, native: bool = False) -> Path | None:
    """The shared library of a source and of what lies beside it, which is compiled when it is not there yet.

    `native`: for this processor alone. None without a C++ compiler; `error` with the compiler's words if it fails.
    """
    command = compile_command(flags, native=native)
    if not command:
        return None
    compiler, *words = command
    path = folder() / source.stem / identity(Path(compiler), words, source.parent) / f"{source.stem}.so"
    if path.exists():
        return path
    with alone(path.parent, error):
        if not path.exists():  # else another process, or thread, was first
            _compile([*command, str(source)], path, error)
    return path


def compile_command(flags: Sequence[str], *, native: bool = False) -> list[str]:
    """The compiler and its flags for a shared library of this package's own C++; nothing without a compiler."""
    found = shutil.which(COMPILER)
    if found is None:
        return []
    return [found, *_FLAGS, *flags, *(native_flags(Path(found)) if native else ())]


def folder() -> Path:
    """`bdforge` in XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bdforge"


def identity(compiler: Path, flags: Sequence[str], sources: Path) -> str:
    """What a library is kept by: the processor, the compiler, flags, and the content of all sources in a folder."""
    files = (path for path in sorted(sources.iterdir()) if path.suffix in (".hpp", ".cpp"))
    return _key(compiler, *flags, *(path.read_text(encoding="utf-8") for path in files))


def _key(compiler: Path, *facts: str) -> str:
    known = [processor(), str(compiler.resolve()), str(compiler.stat().st_mtime_ns), *facts]
    return hashlib.sha256("\0".join(known).encode()).hexdigest()[:20]


def _compile(command: Sequence[str], path: Path, error: type[Exception]) -> None:
    path.parent.mkdir(exist_ok=True)  # who waited for another that failed finds it gone
    mine = path.with_name(f"{path.stem}-{os.getpid()}.so")
    done = subprocess.run([*command, "-o", str(mine)], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise error(f"{' '.join(command)}: {done.stderr.strip()[:_SHOWN] or 'no message'}")
    mine.replace(path)  # whole at once: others look without a lock whether it is there
