"""The command line."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SEARCHES = (400_000, 50, 100)
"""New objects until the youngest generation is searched for what can be freed, and such searches until the next two."""


def main() -> None:
    """Entry point: faults of the input end with one message and exit code 2, faults of a run with 1."""
    with importing():
        from bdforge.cli.commands import app
        from bdforge.cli.ending import ended
    ended(app)


@contextmanager
def importing() -> Iterator[None]:
    """Imports that take most of a second.

    Until they are done, Ctrl-C ends the process at once, as it ends other programs, and no memory is searched for what
    can be freed: nothing can, and the search takes a sixth of the time. What they leave is never searched again, and
    the rest more seldom: texts and designs are many objects that stay.
    """
    of_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if of_python:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*SEARCHES)
        gc.enable()
        if of_python:
            signal.signal(signal.SIGINT, signal.default_int_handler)
