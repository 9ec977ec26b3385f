"""Programs that run long: what they run through most is compiled, beside the run, and kept for later ones.

The library has a program's states (`engine/pipeline.hpp`): which steps are due in a cycle. Chains of states whose
bundles lie one behind the other are C++ (`engine/states_text.hpp`) with the same steps, their places, sizes and options
as constants, and run from then on where their first state comes; all other states run as before, on the same registers
and buffers. So nothing that can be seen depends on when it is there, or whether. It is kept in `bdforge/states` of
XDG_CACHE_HOME or ~/.cache, by compiler, processor, flags, the library's sources and the program; where compiling fails,
nothing changes.
"""

import atexit
import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Protocol

from bdforge.common.compilers import compile_command, folder, identity
from bdforge.core.exact import engine_build as build
from bdforge.core.isa import Isa

BUNDLES = 1 << 24
"""That a program runs before its states are compiled, two seconds: so tests and short runs wait for no compiler."""
MOST_STATES = 256
"""Compiled of a program, those that it ran most: each takes up to a tenth of a second."""
_FLAGS = (*build.FLAGS, "-O2")
_LOOK = 1 << 20  # bundles between two looks for what is being compiled
_NEVER = 1 << 62
_RUNNING: dict[subprocess.Popen, Path] = {}  # compilers, and where they write


class CompilableProgram(Protocol):
    """A program as the library has it."""

    isa: Isa
    code: bytes
    library: ctypes.CDLL
    handle: int
    careful: bool


class CompiledStates:
    """Those of a program as it is translated; `attached` once it has them. Who calls holds the program's lock."""

    def __init__(self, program: CompilableProgram) -> None:
        self._program, self._left = program, BUNDLES
        self._thread: Thread | None = None
        self.attached = False
        known = f"{program.isa.generation} {program.careful}".encode()
        name = hashlib.sha256(known + program.code).hexdigest()[:20]
        self._path = folder() / "states" / _library() / f"{name}.so"
        self._attach()

    def ran(self, bundles: int) -> None:
        """So many more: perhaps it is time to compile, or to take what was compiled."""
        self._left -= bundles
        if self._left > 0:
            return
        self._left = _LOOK
        if self._thread is None:
            self.start()
        elif not self._thread.is_alive():
            self._attach()

    def start(self) -> None:
        """Begin to compile what ran most until now."""
        text = self._program.library.engine_states(self._program.handle, MOST_STATES).decode()
        self._thread = Thread(target=_compile, args=(text, self._path), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until what is being compiled is there."""
        if self._thread is not None:
            self._thread.join()
            self._attach()

    def _attach(self) -> None:
        """Take what is there; afterwards, or where compiling has failed, nothing is looked for any more."""
        if self._thread is not None:
            self._left = _NEVER
        with suppress(OSError, ValueError):  # ValueError: no library of states
            found = ctypes.CDLL(str(self._path))
            states = ctypes.c_char.in_dll(found, "compiled_states")
            self._program.library.engine_attach(self._program.handle, ctypes.addressof(states))
            self._left, self.attached = _NEVER, True


@cache
def _library() -> str:
    """What states are kept by, of all programs."""
    compiler, *words = compile_command(_FLAGS, native=True)
    return identity(Path(compiler), words, build.SOURCES)


def _compile(text: str, path: Path) -> None:
    """Make the library, whole at once; nothing if that fails."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=path.parent) as making:
            source, made = Path(making, "states.cpp"), Path(making, "states.so")
            source.write_text(text, encoding="utf-8")
            process = subprocess.Popen(
                [*compile_command(_FLAGS, native=True), f"-I{build.SOURCES}", str(source), "-o", str(made)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            _RUNNING[process] = Path(making)
            if process.wait() == 0:
                made.replace(path)
            del _RUNNING[process]


@atexit.register
def _end() -> None:
    """Let no compiler go on behind the process."""
    for process, making in list(_RUNNING.items()):
        process.kill()
        process.wait()
        shutil.rmtree(making, ignore_errors=True)
