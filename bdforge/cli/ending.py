"""How commands end: one sentence about whatever went wrong, and an exit code."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from bd_patterns import PatternError
from bdforge.common.messages import Fault, RunFault, bounded, clip, clip_path
from bdforge.common.watched import ProcessEnded, as_command

FAILED, BAD_INPUT, INTERNAL, INTERRUPTED = 1, 2, 3, 130
"""A run that fails, or results that differ; what was given cannot be used; a fault of bdforge's own; Ctrl-C."""
_TRACE = "BDFORGE_TRACEBACK"


def ended(command: Callable[[], object]) -> NoReturn:
    """Run `command` and leave the process with its exit code; what it printed has then been written."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")  # characters that the output's encoding lacks
    sys.exit(as_command(lambda: _flushed(_code(command))))


def _flushed(code: int | str | None) -> int | str | None:
    try:
        sys.stdout.flush()
    except OSError as error:
        return _output_lost(error)
    return code


def _code(command: Callable[[], object]) -> int | str | None:
    try:
        command()
    except SystemExit as end:
        return end.code
    except RunFault as error:
        return _say(error, BAD_INPUT if isinstance(error, ValueError) else FAILED)
    except ProcessEnded as error:
        return _say(error, FAILED)
    except (Fault, PatternError) as error:
        return _say(error, BAD_INPUT)
    except MemoryError:
        return _say("memory is used up; give less at a time, or end other programs", FAILED)
    except OSError as error:
        if error.filename is None:
            return _output_lost(error)
        return _say(f"{clip_path(error.filename)}: {error.strerror}", BAD_INPUT)
    except KeyboardInterrupt:  # before the command line is read, which takes a tenth of a second
        return INTERRUPTED
    except Exception as error:
        return _internal(error)
    return 0


def refuse(why: str, exit_code: int) -> None:
    """Print a `Refusal` where the command line asks for JSON: itself, since one that cannot be read has no options."""
    words = sys.argv[1:]
    if "--json" in words[: words.index("--") if "--" in words else None]:
        from bdforge.cli.json_object import Refusal  # pydantic, which other command lines may do without

        Refusal(refused=why, exit_code=exit_code).print()


def _say(error: object, code: int) -> int:
    notes: list[str] = getattr(error, "__notes__", [])  # the name of the check that --permissive switches off
    why = " ".join([str(error), *notes])
    print(bounded(f"bdforge: {why}"), file=sys.stderr)
    refuse(bounded(why), code)
    return code


def _output_lost(error: OSError) -> int:
    """Nothing more can be printed: the interpreter, which would try again at its end, gets another place for it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return _say(f"the output cannot be written: {error.strerror or error}", FAILED)


def _internal(error: Exception) -> int:
    if os.environ.get(_TRACE):
        raise error
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(
        f"a fault of bdforge itself, {clip(what)} ({place}); please report it with what you gave and what {_TRACE}=1 "
        "prints",
        INTERNAL,
    )
