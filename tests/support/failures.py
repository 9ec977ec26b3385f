"""What pytest does not say of a failing test: what nobody refused, in which case of a table, and with which values."""

import ast
from collections.abc import Callable, Iterable, Iterator
from inspect import getdoc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from support.differences import difference, has_parts
from support.failing_source import (
    blocks_after,
    counterexamples,
    is_short,
    names_in,
    short,
    shortened,
    statements,
    values_of,
)

TESTS = Path(__file__).resolve().parents[1]
_MOST = 10  # values
_TURNS = 3  # of a loop in an expression
_TAIL = 600  # characters of a command's output
_UNREFUSED = "DID NOT RAISE"


def compared(op: str, left: Any, right: Any) -> list[str] | None:
    """How two containers that should be equal differ."""
    if op != "==" or not has_parts(left) or not has_parts(right):
        return None
    return [f"{short(left)} == {short(right)}", *difference(left, right).splitlines()]


def explain(function: Callable[..., Any], params: dict[str, Any], caught: pytest.ExceptionInfo[BaseException]) -> None:
    """Notes at the exception of a failing test: its docstring, its parameters, and the values its line names."""
    error = caught.value
    if document := getdoc(function):
        error.add_note(f"the test: {document.splitlines()[0]}")
    for note in _values("with", params.items(), set()):
        error.add_note(note)
    told = set(params)
    entries = [e for e in caught.traceback if Path(e.path).is_relative_to(TESTS) and not e.ishidden(caught)]
    for entry in entries:
        frame, around = entry.frame.raw, statements(Path(entry.path), entry.lineno + 1)
        loops = [node.target for node in around if isinstance(node, ast.For)]
        for note in _values("in the loop", values_of(names_in(loops), frame), told):
            error.add_note(note)
        if entry is entries[-1] and around:
            asked: list[ast.stmt] = around[-1:]
            if isinstance(error, pytest.fail.Exception) and str(error).startswith(_UNREFUSED):
                asked = blocks_after(around)
                error.msg = _unrefused(str(error), asked, caught)
            for note in _line(asked, frame, told):
                error.add_note(note)


def _unrefused(message: str, asked: list[ast.stmt], caught: pytest.ExceptionInfo[BaseException]) -> str:
    """The kind of error, the sentence that was expected, the source that should have raised it, and what follows."""
    context = (e.frame.raw.f_locals.get("self") for e in caught.traceback)
    match = next((c.match for c in context if isinstance(c, pytest.RaisesExc)), None)
    sentence = f" that says {getattr(match, 'pattern', match)!r}" if match else ""
    block, *then = asked
    refused = f": nothing refused `{shortened(*block.body)}`" if isinstance(block, ast.With) else ""
    return f"{message}{sentence}{refused}{f', then `{shortened(*then)}`' if then else ''}"


def _line(asked: list[ast.stmt], frame: FrameType, told: set[str]) -> Iterator[str]:
    """The values that a line names, and what its commands printed."""
    parts = [node.test if isinstance(node, ast.Assert) else node for node in asked]
    values = dict(values_of(names_in(parts), frame))
    for node in asked:
        if isinstance(node, ast.Assert) and (turns := counterexamples(node.test, frame)):
            yield f"not so for {len(turns)}: {', '.join(map(short, turns[:_TURNS]))}"
    commands = {name: output for name, value in values.items() if (output := list(_output(value)))}
    yield from _values("where", ((n, v) for n, v in values.items() if is_short(v)), told | commands.keys())
    for output in commands.values():
        yield from output


def _values(word: str, pairs: Iterable[tuple[str, Any]], told: set[str]) -> Iterator[str]:
    """Values by name, but for those that were told or do not say what they are."""
    found = {name: short(value) for name, value in pairs if name not in told}
    told.update(found)
    if texts := [f"{name} = {text}" for name, text in found.items() if " at 0x" not in text]:
        yield f"{word} {', '.join(texts[:_MOST])}"


def _output(done: Any) -> Iterator[str]:
    """How a command ended, and the end of what it printed."""
    code = getattr(done, "returncode", getattr(done, "exit_code", None))
    if not isinstance(code, int):
        return
    yield f"exit code {code} of {short(getattr(done, 'args', 'the command'))}"
    for name in ("exception", "stderr", "stdout", "output"):
        text = _captured(done, name)
        if text.strip():
            yield f"{name}: {text.strip()[-_TAIL:]}"


def _captured(done: Any, name: str) -> str:
    try:
        value = getattr(done, name, None) or ""
    except ValueError:  # some runners do not capture it apart
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
