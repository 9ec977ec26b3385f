"""What the playground's page asks of Python: a design checked, or run. Answers are JSON.

A design is MLIR or, by its file's name, a document: then it is the MLIR of that, with the sequence of a problem of
`shape` ("32x64"). Without, that is the document's first problem, or the smallest that it takes.

A *task* is what the page says of an example or a puzzle (`tasks.py` makes them): the functions that its cores call and
its reference are texts of Python modules, as a link may hold them.
"""

import gc
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np

import bdforge
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


def add_documents(archive: str) -> None:
    """Once, before the first document: what reads them is an archive of its own; templates are unpacked beside it."""
    folder = Path(archive).parent
    with ZipFile(archive) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if name.startswith("templates/")])
    sys.path.append(archive)
    bdforge.__path__.append(f"{archive}/bdforge")
    from bdforge.design.render import search_first

    search_first(folder / "templates")


def check(text: str, file: str, shape: str = "") -> str:
    """The page of a design, its messages with their lines, and a summary where nothing is wrong.

    `mlir` is the text that a document makes, to which all lines belong then; `shape` that of its sequence.
    """
    start, found = time.perf_counter(), _checked(text, file, shape)
    design = found.design
    said = "" if design.faults else f"{file}: {design.summary} ({time.perf_counter() - start:.1f} s)"
    return found.answer(said=said, state="wrong" if design.faults else "checked", html=design.page().html)


def run(text: str, file: str, task: str, arrays: bytes | None, budget: int, shape: str = "") -> str:
    """As `check`, after a run of at most so many steps; `task` is JSON.

    `arrays` is an .npz with the host buffers in order, the last of them as it must be; else they are random.
    """
    found = _checked(text, file, shape)
    if found.design.faults:
        return check(text, file, shape)
    start, record = time.perf_counter(), RunRecord()
    try:
        state, said = _ran(found.design, json.loads(task), arrays, budget, record)
        fault = ""
    except Fault as error:
        state, said = "failed", []
        fault = " ".join([str(error), *getattr(error, "__notes__", ())])
    said = [f"{file}: {'failed' if fault else 'ended'} (emulated, {time.perf_counter() - start:.1f} s)", *said]
    return found.answer(html=found.design.page(record, fault).html, said="\n".join(said), state=state, fault=fault)


class _Checked(NamedTuple):
    """A design's MLIR; whether a document made it, and of which sizes. Of one that made none, what is wrong with it."""

    design: CheckedDesign
    made: bool = False
    shape: str = ""

    def answer(self, **more: Any) -> str:
        """What the page is told."""
        mlir = self.design.text if self.made else None
        return json.dumps({"messages": self.design.messages, "mlir": mlir, "shape": self.shape, **more})


@lru_cache(maxsize=2)
def _checked(text: str, file: str, shape: str) -> _Checked:
    if not file.endswith(".toml"):
        return _Checked(CheckedDesign.of(text, file))
    try:
        from tools.site.playground.documents import rendered  # its imports are of the other archive

        mlir, chosen = rendered(text, file, shape)
    except InputError as error:
        told = _SYNTAX.sub(r"\1:\3:\4: \2", str(error))
        faults = re.split(rf"\n(?={re.escape(file)}:)", told)
        return _Checked(CheckedDesign(text, file, tuple(faults), (), "", None))
    return _Checked(CheckedDesign.of(mlir, f"{file}'s MLIR"), True, chosen)


_SYNTAX = re.compile(r"^(.*?): (is no TOML .*) \(at line (\d+), column (\d+)\)$")
"""Where `tomllib` says its place."""


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
