"""C++ of this package that is compiled when it is first needed, once for this machine, and kept by its content."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from bdforge.common.compilers import native_flags, processor

COMPILER = "g++"
_FLAGS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-ffp-contract=off")
_SHOWN = 400
_COMPILING = Lock()


def compiled(source: Path, flags: Sequence[str], error: type[Exception], *, native: bool = False) -> Path | None:
    """The shared library of a source and of what lies beside it, which is compiled when it is not there yet.

    `native`: for this processor alone. None without a C++ compiler; `error` with the compiler's words if it fails.
    """
    found = shutil.which(COMPILER)
    if found is None:
        return None
    compiler = Path(found)
    words = [*_FLAGS, *flags, *(native_flags(compiler) if native else ())]
    path = folder() / source.stem / identity(compiler, words, source.parent) / f"{source.stem}.so"
    with _COMPILING:
        if not path.exists():
            _compile([str(compiler), *words, str(source)], path, error)
    return path


def folder() -> Path:
    """`bdforge` in XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bdforge"


def identity(compiler: Path, flags: Sequence[str], sources: Path) -> str:
    """What a library is kept by: the processor, the compiler, flags, and the content of all sources in a folder."""
    facts = [processor(), str(compiler.resolve()), str(compiler.stat().st_mtime_ns), *flags]
    facts += [path.read_text(encoding="utf-8") for path in sorted(sources.iterdir()) if path.suffix in (".hpp", ".cpp")]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:20]


def _compile(command: Sequence[str], path: Path, error: type[Exception]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise error(f"{path.parent}: cannot be made: {fault.strerror}") from None
    mine = path.with_name(f"{path.stem}-{os.getpid()}.so")
    done = subprocess.run([*command, "-o", str(mine)], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise error(f"{' '.join(command)}: {done.stderr.strip()[:_SHOWN] or 'no message'}")
    mine.replace(path)
