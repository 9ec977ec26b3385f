"""The source of a failing line: what it asks for, and the values of the names in it."""

import ast
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from inspect import getframeinfo
from itertools import pairwise
from pathlib import Path
from reprlib import Repr
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

_LINE = 150
_NOTHING = object()
_repr = Repr()
_repr.maxstring, _repr.maxother, _repr.maxlist, _repr.maxtuple, _repr.maxlong = _LINE, _LINE, 8, 8, 60


def short(value: Any) -> str:
    """A value in one line of some 150 characters."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {short(value.ravel().tolist())}"
    text = " ".join(_repr.repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= _LINE else f"{text[: _LINE - 45]} ... {text[-40:]}"


def is_short(value: Any) -> bool:
    """Whether a value says something in one line: texts always, others if nothing is left out."""
    return isinstance(value, str) or not (isinstance(value, pytest.ExceptionInfo) or "..." in short(value))


def argument_of(frame: FrameType | None) -> str:
    """The source of the first argument of the call that a frame is in."""
    where = getframeinfo(frame).positions if frame else None
    if frame is None or where is None:
        return "the value"
    place = (where.lineno, where.col_offset)
    calls = (n for n in ast.walk(_tree(Path(frame.f_code.co_filename))) if isinstance(n, ast.Call) and n.args)
    return next((shortened(n.args[0]) for n in calls if (n.lineno, n.col_offset) == place), "the value")


def shortened(*nodes: ast.AST) -> str:
    """The source of some nodes in one line."""
    return textwrap.shorten("; ".join(map(ast.unparse, nodes)), _LINE, placeholder=" ...")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(path: Path, line: int) -> list[ast.stmt]:
    """The statements of a file around a line, the innermost last."""
    return [
        node
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]


def blocks_after(around: list[ast.stmt]) -> list[ast.stmt]:
    """The innermost `with` around a line, and what stands behind it and names what it binds."""
    for outer, block in reversed(list(pairwise(around))):
        if isinstance(block, ast.With):
            bound = {n for item in block.items if item.optional_vars for n in names_in([item.optional_vars])}
            body = next((b for _, b in ast.iter_fields(outer) if isinstance(b, list) and block in b), [block])
            return [block, *(node for node in body[body.index(block) + 1 :] if bound & set(names_in([node])))]
    return around[-1:]


def counterexamples(test: ast.expr, frame: FrameType) -> list[Any]:
    """For which turns `all(... for ...)` does not hold, or `not any(... for ...)`, as far as they can be run again."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    call = test.operand if isinstance(test, ast.UnaryOp) else test
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != ("any" if negated else "all") or not call.args:
        return []
    if not isinstance(turns := call.args[0], ast.GeneratorExp):
        return []
    targets = ", ".join(ast.unparse(part.target) for part in turns.generators)
    loops = " ".join(map(ast.unparse, turns.generators))
    source = f"[({targets}) {loops} if {'' if negated else 'not'} ({ast.unparse(turns.elt)})]"
    with suppress(Exception):  # what it goes over was used up, or changed
        return eval(source, {**frame.f_globals, **frame.f_locals})
    return []


def names_in(nodes: Iterable[ast.AST]) -> list[str]:
    """Names in the order in which the source has them, each once."""
    found = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
    return list(dict.fromkeys(n.id for n in sorted(found, key=lambda n: (n.lineno, n.col_offset))))


def values_of(names: Iterable[str], frame: FrameType) -> Iterator[tuple[str, Any]]:
    """What names stand for, but for modules, functions, types and built-in names."""
    for name in names:
        value = frame.f_locals.get(name, frame.f_globals.get(name, _NOTHING))
        if value is not _NOTHING and not callable(value) and not isinstance(value, ModuleType):
            yield name, value
