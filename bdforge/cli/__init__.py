"""The command line."""

import signal


def main() -> None:
    """Entry point: faults of the input end with one message and exit code 2, faults of a run with 1.

    Imports take most of a second. Until they are done, Ctrl-C ends the process at once, as it ends other programs.
    """
    of_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if of_python:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bdforge.cli.commands import app
    from bdforge.cli.ending import ended

    if of_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ended(app)
