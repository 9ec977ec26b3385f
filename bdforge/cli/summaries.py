"""The first paragraph of each command's help, read from the sources: to import the commands takes a second."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Told = dict[str, tuple[str, bool]]


def summaries(home: str) -> Told:
    """Help of the commands of a module of this package by name, and whether they are hidden.

    A command is a function under `@app.command(...)`, or a group of commands: `typer.Typer(name=..., help=...)`.
    """
    source = Path(__file__).with_name(f"{home}.py").read_text(encoding="utf-8")
    return dict(found for node in ast.parse(source).body for found in _commands(node))


def _commands(node: ast.stmt) -> Iterator[tuple[str, tuple[str, bool]]]:
    if isinstance(node, ast.FunctionDef):
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "app.command":
                words = _words(call)
                help_ = words.get("help") or ast.get_docstring(node) or ""
                yield words.get("name", node.name), (help_.split("\n\n")[0], words.get("hidden", False))
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        words = _words(node.value)
        if ast.unparse(node.value.func) == "typer.Typer" and "name" in words:
            yield words["name"], (words["help"], False)


def _words(call: ast.Call) -> dict[str, Any]:
    """The keywords of a call that are constants."""
    return {str(word.arg): word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}
