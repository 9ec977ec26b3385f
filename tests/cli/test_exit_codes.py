"""How a command ends by what was raised: 0, 1 for a run that fails, 2 for what was given, 3 for bdforge's own."""

import gc
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from bd_patterns import PatternError
from bdforge.cli import SEARCHES, importing
from bdforge.cli.ending import ended
from bdforge.common.messages import Fault, InputError, RunFault
from bdforge.common.watched import ProcessEnded


class GivenRunFault(RunFault, ValueError):
    """A run's fault of what was given to it."""


def noted(error: Exception) -> Exception:
    error.add_note("(--permissive some)")
    return error


ENDINGS: dict[str, tuple[BaseException | None, int, str]] = {
    "nothing": (None, 0, ""),
    "exit": (SystemExit(7), 7, ""),
    "exit without a code": (SystemExit(), 0, ""),
    "a run": (RunFault("it deadlocks"), 1, "bdforge: it deadlocks"),
    "what was given to a run": (GivenRunFault("no such array"), 2, "bdforge: no such array"),
    "a kernel's end": (ProcessEnded("kernel k ended the process"), 1, "bdforge: kernel k ended the process"),
    "input": (InputError("no such file"), 2, "bdforge: no such file"),
    "another fault": (Fault("odd"), 2, "bdforge: odd"),
    "a pattern": (PatternError("too long"), 2, "bdforge: too long"),
    "a check": (noted(RunFault("lost token")), 1, "bdforge: lost token (--permissive some)"),
    "memory": (MemoryError(), 1, "bdforge: memory is used up; give less at a time, or end other programs"),
    "a file": (FileNotFoundError(2, "No such file", "a.npy"), 2, "bdforge: a.npy: No such file"),
    "its own": (KeyError("x"), 3, "bdforge: a fault of bdforge itself, KeyError: 'x' (test_exit_codes.py:"),
    "its own without words": (AssertionError(), 3, "bdforge: a fault of bdforge itself, AssertionError (test_exit_"),
}


def raising(error: BaseException | None) -> Callable[[], object]:
    def command() -> None:
        if error is not None:
            raise error
        return

    return command


@pytest.mark.parametrize("name", ENDINGS)
def test_a_command_ends_with_the_code_of_its_fault_and_one_sentence(capfd, name: str):
    error, code, text = ENDINGS[name]
    with pytest.raises(SystemExit) as end:
        ended(raising(error))
    out, err = capfd.readouterr()
    assert ((end.value.code or 0), out) == (code, "")
    assert err.startswith(text)
    assert err.count("\n") == bool(text)


def test_a_fault_of_its_own_is_raised_where_its_traceback_is_wanted(monkeypatch):
    monkeypatch.setenv("BDFORGE_TRACEBACK", "1")
    with pytest.raises(KeyError, match="x"):
        ended(raising(KeyError("x")))
    monkeypatch.setenv("BDFORGE_TRACEBACK", "")
    with pytest.raises(SystemExit):
        ended(raising(KeyError("x")))


def test_imports_end_at_once_by_an_interrupt_and_search_no_memory():
    """Afterwards both are as before, whatever happens; what was there is never searched again."""
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler, inside in ((signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)):
            signal.signal(signal.SIGINT, handler)
            with suppress(KeyError), importing():
                assert (signal.getsignal(signal.SIGINT), gc.isenabled()) == (inside, False)
                raise KeyError
            assert (signal.getsignal(signal.SIGINT), gc.isenabled(), gc.get_threshold()) == (handler, True, SEARCHES)
    finally:
        signal.signal(signal.SIGINT, before)
        gc.unfreeze()
