"""Foreign code, such as users' kernels, in a process that is watched.

Compiled code can end its process without a word: by exit(), by a signal, in a constructor. `part` goes on in a child;
the parent waits for it, and says which code was running when the child ended. It only does so for a whole command,
whose output and exit code are all that is left of it (`as_command`): programs that call bdforge stay one process.
"""

import ctypes
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from threading import Thread, Timer, get_ident
from time import monotonic, sleep
from traceback import extract_tb
from typing import Any

from bdforge.common.messages import Fault, InputError, bounded

_NOTE_BYTES = 512
_INSIDE, _OUTSIDE = b"\1", b"\0"
_CALLERS = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<frozen")
PATIENCE_SECONDS = 30.0
_LOG = logging.getLogger("bdforge")
_GRACE_SECONDS = 1.0
_INTERRUPTED = 130  # what shells expect after Ctrl-C
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class ProcessEnded(Fault):
    """Foreign code that ended the process; the message names it and says how."""


class _Watch:
    """What this process knows of its own role."""

    command = False  # all that will be left is output and an exit code
    child = False
    telling = sys.platform == "emscripten"  # whether a thread watches for code without an end: browsers start none
    note: mmap | None = None  # shared by both: whether foreign code runs, and which ran last


def as_command(run: Callable[[], int | str | None]) -> int | str | None:
    """The exit code of `run`, which may `part`; in the child this does not return."""
    before, _Watch.command = _Watch.command, True
    try:
        code = run()
    finally:
        _Watch.command = before
    if _Watch.child:
        _leave(code)
    return code


def _leave(code: int | str | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def note_of(what: str) -> bytes:
    """What `begin` takes, made once for code that runs often."""
    return what.encode(errors="replace")[: _NOTE_BYTES - 1].ljust(_NOTE_BYTES - 1, b"\0")


def begin(note: bytes) -> None:
    """Foreign code starts; a parent reads its note if it never ends."""
    _running[get_ident()] = note, monotonic()
    if not _Watch.telling:
        _Watch.telling = True
        Thread(target=_tell, daemon=True, name="bdforge: kernels without an end").start()
    if _Watch.note is not None:
        _Watch.note[:] = _INSIDE + note


def end() -> None:
    """Foreign code came back."""
    _running.pop(get_ident(), None)
    if _Watch.note is not None:
        _Watch.note[:1] = _OUTSIDE


_running: dict[int, tuple[bytes, float]] = {}  # by thread: the foreign code that runs there, and since when


def _tell() -> None:
    """Say of foreign code that has run for PATIENCE_SECONDS which it is, and go on saying; end where none runs."""
    said: dict[int, tuple[bytes, float]] = {}
    while True:
        sleep(PATIENCE_SECONDS / 6)
        now = monotonic()
        for thread, (note, since) in list(_running.items()):
            last = said.get(thread, (note, since))
            last = last if last[1] >= since else (note, since)
            if now - last[1] < PATIENCE_SECONDS:
                continue
            said[thread] = note, now
            _LOG.warning("bdforge: %s: it has run for %.0f s without an end", _words(note), now - since)
        _Watch.telling = False  # before looking: what begins from now on starts another thread
        if not _running:
            return
        _Watch.telling = True


def _words(note: bytes) -> str:
    return bounded(note.rstrip(b"\0").decode(errors="replace"))


@contextmanager
def running(what: str) -> Iterator[None]:
    """Foreign code that runs once."""
    begin(note_of(what))
    try:
        yield
    finally:
        end()


@contextmanager
def foreign(name: str, error: type[InputError], doing: str = "importing it") -> Iterator[None]:
    """Foreign code that runs once; whatever it raises becomes an `error` about `name`, with the line in its file."""
    try:
        with running(f"{name}: {doing}"):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        raise error(f"{name}: {described(fault)}") from fault


def names_of(text: str, file: str, error: type[InputError]) -> dict[str, Any]:
    """What the text of a Python module names once it has run; `error` with its line where it cannot run."""
    names: dict[str, Any] = {"__name__": Path(file).stem}
    with foreign(file, error):
        exec(compile(text, file, "exec"), names)
    return names


def described(error: BaseException) -> str:
    """What foreign code raised, and its line: the last one in its own file, not in a library that it called."""
    if isinstance(error, Fault):
        return str(error)
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_CALLERS)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    if isinstance(error, SystemExit):
        return f"it called exit({'' if error.code is None else text_of(error.code)}){place}; it has to return"
    said = text_of(error, str)
    return f"{type(error).__name__}{f': {said}' if said else ''}{place}"


def text_of(value: object, form: Callable[[object], str] = repr) -> str:
    """`repr` or `str` of something of foreign code, which may raise in there."""
    try:
        return form(value)
    except Exception:
        return f"<{type(value).__name__}>"


@dataclass(frozen=True)
class WatchedChild:
    """A child of this process that runs foreign code, and the note in which it says which code that is."""

    pid: int
    note: mmap

    def end_foreign(self) -> None:
        """Kill it where it is in foreign code, which Ctrl-C does not reach when it is compiled."""
        if self.note[:1] == _INSIDE:
            os.kill(self.pid, signal.SIGKILL)

    def ending(self, code: int) -> str:
        """What is to be said when it ended with `code`, or by a signal of that negative number; "" for nothing."""
        state, last = self.note[:1], _words(self.note[1:])
        how = f"exit({code})" if code >= 0 else f"{signal.Signals(-code).name}: {signal.strsignal(-code)}"
        if state == _INSIDE:
            return f"{last}: it ended the process ({how}); it has to return"
        if code >= 0:
            return ""
        after = f", after {last}, which may have written beyond its arguments" if last else ""
        return f"the process ended ({how}){after}"


def parted() -> WatchedChild | None:
    """A child that goes on from here, and ends with this process at the latest; None in the child itself."""
    note = mmap(-1, _NOTE_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if child := os.fork():
        return WatchedChild(child, note)
    _Watch.note, _Watch.telling = note, False  # threads stay with the parent
    _running.clear()
    if sys.platform == "linux":  # elsewhere a child outlives a parent that is killed, until its work is done
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended in between
        os._exit(1)
    return None


def part() -> None:
    """Go on in a child. The parent leaves with its exit code, or raises ProcessEnded where foreign code ended it."""
    if not _Watch.command or _Watch.note is not None:
        return
    if (child := parted()) is None:
        _Watch.child = True
        return
    code = _wait(child)
    if ending := child.ending(code):
        raise ProcessEnded(ending)
    sys.exit(code)


def _wait(child: WatchedChild) -> int:
    """The child's exit code, or the negative number of a signal.

    Ctrl-C is the child's affair, which gets it too; one that is in foreign code a second later is ended.
    """

    timers: list[Timer] = []

    def interrupted(number: int, frame: object) -> None:
        timers.append(Timer(_GRACE_SECONDS, child.end_foreign))
        timers[-1].start()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    finally:
        signal.signal(signal.SIGINT, before)
        for timer in timers:
            timer.cancel()
    if timers and code == -signal.SIGKILL:
        sys.exit(_INTERRUPTED)
    return code
