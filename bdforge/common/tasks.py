"""Tasks that do not depend on each other: done in this process, in several or on a cluster, kept by content.

A task is a value that says all that its result depends on, such as a design and a problem; a call makes the result of
one. Results are JSON from the moment they are made, so they have the same bytes wherever that was, kept or not.
"""

import hashlib
import pickle
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bdforge.common import compilers
from bdforge.common.files import FileError, named, write_whole
from bdforge.common.messages import Fault, InputError, clip, warn_once
from bdforge.common.tree import PACKAGE, tree

Task = TypeVar("Task")
Result = TypeVar("Result")
Outcome = bytes | Exception
"""What became of a task: its result as JSON, or what its call raised."""
Outcomes = Generator[tuple[int, Outcome]]
"""Places of tasks and what became of them, as they end. Whoever closes it ends those that run."""
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], Outcomes]
"""Does tasks, which it begins in their order."""
Told = Callable[[int, int], object]
"""Hears how many tasks are done, and of how many."""

_FOLDERS = ("designs", "kernels", "templates")


def untold(done: int, of: int) -> None:
    """Where nobody wants to hear."""


class TaskError(InputError):
    """Tasks that cannot be done: nobody is there to do them, or one ends whatever does it."""


def one_by_one(call: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
    """In this process."""
    return ((place, made(call, task, sources())) for place, task in enumerate(tasks))


@dataclass(frozen=True)
class Workers:
    """Who does tasks, and the folder in which results are kept by content; without one nothing is."""

    run: Runner = one_by_one
    kept: Path | None = None

    def results(self, call: Callable[[Task], Result], tasks: Sequence[Task], told: Told = untold) -> list[Result]:
        """What `call` returns for each task, in their order. Equal tasks are done once, those that are kept not at all.

        `call` is a function of a module, whose annotation names the type of its results. What it raises for the first
        of the tasks that fail is raised again. TaskError as the runner's.
        """
        names = [key(call, task) for task in tasks]
        wanted = dict(zip(names, tasks, strict=True))
        found = {name: text for name in wanted if (text := self._kept(call, name)) is not None}
        left = [name for name in wanted if name not in found]
        told(len(found), len(wanted))
        with closing(_in_order(self.run(call, [wanted[name] for name in left]), left)) as ended:
            for name, text in ended:
                found[name] = text
                self._keep(name, text)
                told(len(found), len(wanted))
        return [_form(call).validate_json(found[name])[0] for name in names]

    def _kept(self, call: Callable, name: str) -> bytes | None:
        """A result that is kept and can be read."""
        with suppress(OSError, ValidationError):
            if self.kept is not None:
                text = (self.kept / name).read_bytes()
                _form(call).validate_json(text)
                return text
        return None

    def _keep(self, name: str, text: bytes) -> None:
        if self.kept is None:
            return
        try:
            with named(self.kept, "written"):
                self.kept.mkdir(parents=True, exist_ok=True)
            write_whole(self.kept / name, text)
        except FileError as error:
            warn_once(f"results are not kept, an interrupted command begins anew: {error}")


HERE = Workers()
"""This process, which keeps nothing."""


def _in_order(outcomes: Outcomes, names: Sequence[str]) -> Generator[tuple[str, bytes]]:
    """Results as they come, until one failed and all before it have ended: then the first failure."""
    ended: set[int] = set()
    failed: dict[int, Exception] = {}
    with closing(outcomes):
        for place, outcome in outcomes:
            ended.add(place)
            if isinstance(outcome, Exception):
                failed[place] = outcome
            else:
                yield names[place], outcome
            if failed and ended.issuperset(range(min(failed))):
                raise failed[min(failed)]


def made(call: Callable[[Any], Any], task: Any, of: str) -> Outcome:
    """A task's outcome; `of` are the sources (`sources`) of whoever asks, which have to be those of whoever does it."""
    try:
        if sources() != of:
            raise TaskError("whoever does the tasks has another bdforge than this; install the same, or begin again")
        return _form(call).dump_json((call(task),))
    except Exception as error:
        if not isinstance(error, Fault):
            error.add_note(traceback.format_exc())  # which does not go from process to process otherwise
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """What can be sent to another process: the error, or one of a class that it derives from, with its message."""
    for kind in type(error).__mro__:
        with suppress(Exception):  # most that take more than a message cannot be made from it
            found = error if kind is type(error) else kind(str(error)).with_traceback(error.__traceback__)
            if str(pickle.loads(pickle.dumps(found))) == str(error):
                for note in getattr(error, "__notes__", ()) if found is not error else ():
                    found.add_note(note)
                return found
    return TaskError(f"{type(error).__name__}: {error}")


def key(call: Callable, task: Any) -> str:
    """What a result is kept by: all sources, the call, and what the task says of itself (`repr`)."""
    said = "\0".join((sources(), call.__module__, call.__qualname__, repr(task)))
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def named_task(call: Callable, task: Any) -> str:
    """A task as messages name it."""
    return f"{call.__name__} of {clip(task)}"


def kept_results() -> Path:
    """`bdforge/results` in XDG_CACHE_HOME or ~/.cache, by all sources."""
    return compilers.folder() / "results" / sources()


@cache
def sources() -> str:
    """Hash of everything but tasks that decides results: code, data, templates, kernels, named designs."""
    return sources_of([PACKAGE, *(tree() / name for name in _FOLDERS), PACKAGE.parent / "bd_patterns"])


def sources_of(folders: Sequence[Path]) -> str:
    """Hash of all files of some folders but Python's own."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix != ".pyc" and path.is_file():
                digest.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@cache
def _form(call: Callable) -> TypeAdapter:
    """How results of a call are written and read: as the only element of a tuple, in which numbers may be infinite."""
    form = get_type_hints(call)["return"]
    return TypeAdapter(tuple[form], config=ConfigDict(ser_json_inf_nan="constants"))
