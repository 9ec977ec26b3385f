"""No function is longer than a screen."""

import ast
from collections.abc import Iterator

from tools.testing.source_tree import ROOT, modules

LIMIT = 60
HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""Nodes in which functions may stand."""
FOLDERS = ("bdforge", "bd_patterns", "benchmarks", "examples", "site_scons", "tests", "tools")

LONGER: dict[str, str] = {}
"""Functions above the limit today, each with the reason."""


def lengths(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, line and number of lines of every function in a source."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1
        nodes += [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, HOLDERS)]  # no expression does


def test_functions_fit_a_screen():
    long = {}
    for file in modules(folders=FOLDERS).values():
        path = file.relative_to(ROOT)
        for name, line, count in lengths(file.read_text(encoding="utf-8")):
            if count > LIMIT:
                long[f"{path} {name}"] = f"{path}:{line}: {name} has {count} lines; the most is {LIMIT}"
    assert not (told := [text for key, text in long.items() if key not in LONGER]), "\n".join(told)
    assert not LONGER.keys() - long.keys(), "remove from LONGER what is short now"


def test_lengths_count_from_the_head_to_the_last_line():
    text = "class A:\n    @property\n    def f(\n        self,\n    ):\n        return 1\n\ndef g(): pass\n"
    assert list(lengths(text)) == [("g", 8, 1), ("f", 3, 4)]
