"""The fast executor's library: what it and Python hand each other, and how it is compiled once for this machine.

`engine/engine.cpp` has the same structures. A library is kept by the content of its sources and flags.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from bdforge.compilers import native_flags, processor
from bdforge.messages import Fault

PLACES, OPTIONS = 8, 4


class Row(ctypes.Structure):
    """A step of an instruction: function, offset of the buffer, cycles from issue, phase, places, options."""

    _fields_ = (
        ("function", ctypes.c_int32), ("offset", ctypes.c_int32), ("delay", ctypes.c_int32), ("phase", ctypes.c_int32),
        ("a", ctypes.c_int32 * PLACES), ("o", ctypes.c_int32 * OPTIONS),
    )  # fmt: skip


class State(ctypes.Structure):
    """A core's counters, and what it asks for or why it stopped."""

    _fields_ = (
        ("cycle", ctypes.c_int64), ("bundles", ctypes.c_int64), ("conflicts", ctypes.c_int64),
        ("pc", ctypes.c_int32), ("fault", ctypes.c_int32), ("stopped", ctypes.c_int32), ("request", ctypes.c_int32),
        ("bytes", ctypes.c_int32), ("values", ctypes.c_uint32 * 5), ("pending_stores", ctypes.c_int32),
    )  # fmt: skip


class Mark(ctypes.Structure):
    """Where another part of the program begins to run."""

    _fields_ = (("cycle", ctypes.c_int64), ("conflicts", ctypes.c_int64), ("part", ctypes.c_int64))


DONE, TRANSLATE, ASK, FAULT, BUDGET = range(5)
"""Why the library stopped."""

LAND, FORWARD, REQUEST, READ, OPERATE, STORE = range(6)
"""Phases of a cycle."""


SOURCES = Path(__file__).parent / "engine"
_FLAGS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing")
_COMPILER = "g++"
_SHOWN = 400
_COMPILING = Lock()


class EngineError(Fault, RuntimeError):
    """The fast executor cannot be compiled."""


@cache
def library() -> ctypes.CDLL | None:
    """The library, compiled when it is not there yet; None without a C++ compiler. EngineError if that fails."""
    found = shutil.which(_COMPILER)
    if found is None:
        return None
    compiler = Path(found)
    flags = (*_FLAGS, *native_flags(compiler))
    path = folder() / _identity(compiler, flags) / "engine.so"
    with _COMPILING:
        if not path.exists():
            _compile([str(compiler), *flags, str(SOURCES / "engine.cpp")], path)
    return _declared(ctypes.CDLL(str(path)))


def folder() -> Path:
    """`bdforge/engine` in XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bdforge" / "engine"


def _identity(compiler: Path, flags: Sequence[str]) -> str:
    facts = [processor(), str(compiler.resolve()), str(compiler.stat().st_mtime_ns), *flags]
    facts += [path.read_text(encoding="utf-8") for path in sorted(SOURCES.iterdir()) if path.suffix in (".hpp", ".cpp")]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:20]


def _compile(command: Sequence[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = path.with_name(f"engine-{os.getpid()}.so")
    done = subprocess.run([*command, "-o", str(mine)], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise EngineError(f"{' '.join(command)}: {done.stderr.strip()[:_SHOWN] or 'no message'}")
    mine.replace(path)


def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """Argument and result types of the library's functions."""
    pointer, integer, number, boolean = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_bool
    signatures = {
        "engine_functions": (ctypes.c_char_p, []),
        "engine_product": (boolean, [integer, integer, pointer, pointer, boolean, boolean, pointer]),
        "engine_program": (pointer, []),
        "engine_drop_program": (None, [pointer]),
        "engine_add": (None, [pointer, integer, integer, integer, integer, ctypes.POINTER(Row), integer]),
        "engine_constant": (integer, [pointer, ctypes.c_uint64]),
        "engine_forget": (None, [pointer]),
        "engine_core": (pointer, [pointer, pointer, pointer, integer, integer, integer]),
        "engine_drop_core": (None, [pointer]),
        "engine_registers": (pointer, [pointer]),
        "engine_unknown": (pointer, [pointer]),
        "engine_counts": (ctypes.POINTER(number), [pointer]),
        "engine_macs": (ctypes.POINTER(number), [pointer]),
        "engine_uses": (ctypes.POINTER(number), [pointer]),
        "engine_watch": (None, [pointer, pointer, integer]),
        "engine_marks": (integer, [pointer, ctypes.POINTER(ctypes.POINTER(Mark))]),
        "engine_request_data": (pointer, [pointer]),
        "engine_message": (ctypes.c_char_p, [pointer]),
        "engine_state": (None, [pointer, ctypes.POINTER(State)]),
        "engine_run": (integer, [pointer, number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found
