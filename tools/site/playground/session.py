"""What the playground's page asks of Python: a design checked, or run. Answers are JSON.

A *task* is what the page says of an example or a puzzle (`tasks.py` makes them): the functions that its cores call and
its reference are texts of Python modules, as a link may hold them.
"""

import gc
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.array.emulator.against_reference import random_arrays, wrong_element
from bdforge.array.show.page import CheckedDesign, RunRecord
from bdforge.common.messages import Fault, InputError
from bdforge.common.watched import names_of

_SHOWN = 8  # first elements of a host buffer
Functions = Mapping[str, Callable[..., Any]]


class ModuleTextError(InputError):
    """Kernels or references that cannot be used."""


def prepare() -> None:
    """Once, before the first design: what is imported stays, so that no memory is searched for it."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def check(text: str, file: str) -> str:
    """The page of a design, its messages with their lines, and a summary where nothing is wrong."""
    start, found = time.perf_counter(), _checked(text, file)
    said = "" if found.faults else f"{file}: {found.summary} ({time.perf_counter() - start:.1f} s)"
    return json.dumps({"html": found.page().html, "messages": found.messages, "said": said, "state": _state(found)})


def run(text: str, file: str, task: str, arrays: bytes | None, budget: int) -> str:
    """As `check`, after a run of at most so many steps; `task` is JSON.

    `arrays` is an .npz with the host buffers in order, the last of them as it must be; else they are random.
    """
    found = _checked(text, file)
    if found.faults:
        return check(text, file)
    start, record = time.perf_counter(), RunRecord()
    try:
        state, said = _ran(found, json.loads(task), arrays, budget, record)
        fault = ""
    except Fault as error:
        state, said = "failed", []
        fault = " ".join([str(error), *getattr(error, "__notes__", ())])
    said = [f"{file}: {'failed' if fault else 'ended'} (emulated, {time.perf_counter() - start:.1f} s)", *said]
    page = found.page(record, fault).html
    return json.dumps({
        "html": page, "messages": found.messages, "said": "\n".join(said), "state": state, "fault": fault,
    })  # fmt: skip


@lru_cache(maxsize=2)
def _checked(text: str, file: str) -> CheckedDesign:
    return CheckedDesign.of(text, file)


def _state(found: CheckedDesign) -> str:
    return "wrong" if found.faults else "checked"


def _ran(
    found: CheckedDesign, task: Mapping[str, Any], given: bytes | None, budget: int, record: RunRecord
) -> tuple[str, Sequence[str]]:
    """How it ended: right, different or, without a reference, ended; and what is to be said of its arrays."""
    kernels = _functions(task.get("kernels", ""), "kernels.py")
    arrays = random_arrays(found.text, found.file) if given is None else list(np.load(BytesIO(given)).values())
    if given is not None:
        expected, arrays[-1] = arrays[-1], np.zeros_like(arrays[-1])
        reference: Callable[..., Any] | None = lambda *_: expected  # noqa: E731
    else:
        reference = _functions(task.get("references", ""), "references.py").get(task.get("reference", ""))
    options = {"budget": budget, "observers": [record]}
    if reference is None:
        warnings = emulate(found.text, arrays, kernels, file=found.file, poison=True, **options).warnings
        return "ended", [*warnings, *_shown(arrays)]
    wrong = wrong_element(found.text, found.file, arrays, reference, kernels, **options)
    if wrong is not None:
        return "different", [wrong, *_shown(arrays)]
    return "right", [f"all {arrays[-1].size:,} elements equal the reference's", *_shown(arrays)]


def _functions(text: str, file: str) -> Functions:
    """The functions of a module's text; ModuleTextError with its line for one that cannot be used."""
    names = names_of(text, file, ModuleTextError)
    return {name: value for name, value in names.items() if callable(value) and not name.startswith("_")}


def _shown(arrays: Sequence[np.ndarray]) -> list[str]:
    return [
        f"host buffer {number}, {array.size:,} x {array.dtype}: {' '.join(map(str, array.ravel()[:_SHOWN]))} …"
        for number, array in enumerate(arrays)
    ]
