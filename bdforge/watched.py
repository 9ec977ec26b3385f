"""Foreign code, such as users' kernels, in a process that is watched.

Compiled code can end its process without a word: by exit(), by a signal, in a constructor. `part` goes on in a child;
the parent waits for it, and says which code was running when the child ended. It only does so for a whole command,
whose output and exit code are all that is left of it (`as_command`): programs that call bdforge stay one process.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from traceback import extract_tb

from bdforge.messages import Fault, told

_NOTE_BYTES = 512
_INSIDE, _OUTSIDE = b"\1", b"\0"
_CALLERS = (str(Path(__file__).parent), "<frozen")
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class ProcessEnded(Fault):
    """Foreign code that ended the process; the message names it and says how."""


class _Watch:
    """What this process knows of its own role."""

    command = False  # all that will be left is output and an exit code
    child = False
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
    if _Watch.note is not None:
        _Watch.note[:] = _INSIDE + note


def end() -> None:
    """Foreign code came back."""
    if _Watch.note is not None:
        _Watch.note[:1] = _OUTSIDE


@contextmanager
def running(what: str) -> Iterator[None]:
    """Foreign code that runs once."""
    begin(note_of(what))
    try:
        yield
    finally:
        end()


def described(error: BaseException) -> str:
    """What foreign code raised, and its line: the last one in its own file, not in a library that it called."""
    if isinstance(error, Fault):
        return str(error)
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_CALLERS)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    if isinstance(error, SystemExit):
        return f"it called exit({'' if error.code is None else repr(error.code)}){place}; kernels return"
    return f"{type(error).__name__}{f': {error}' if str(error) else ''}{place}"


@dataclass(frozen=True)
class Part:
    """A child of this process that runs foreign code, and the note in which it says which code that is."""

    pid: int
    note: mmap

    def ending(self, code: int) -> str:
        """What is to be said when it ended with `code`, or by a signal of that negative number; "" for nothing."""
        state, last = self.note[:1], self.note[1:].rstrip(b"\0").decode(errors="replace")
        how = f"exit({code})" if code >= 0 else f"{signal.Signals(-code).name}: {signal.strsignal(-code)}"
        if state == _INSIDE:
            return f"{told(last)}: it ended the process ({how}); kernels return"
        if code >= 0:
            return ""
        after = f", after {told(last)}, which may have written beyond its arguments" if last else ""
        return f"the process ended ({how}){after}"


def parted() -> Part | None:
    """A child that goes on from here, and ends with this process at the latest; None in the child itself."""
    note = mmap(-1, _NOTE_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if child := os.fork():
        return Part(child, note)
    _Watch.note = note
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
    code = _wait(child.pid)
    if ending := child.ending(code):
        raise ProcessEnded(ending)
    sys.exit(code)


def _wait(child: int) -> int:
    """The child's exit code, or the negative number of a signal; Ctrl-C is the child's affair, which gets it too."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        signal.signal(signal.SIGINT, before)
