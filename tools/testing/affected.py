"""Which test files belong to files of the tree: by the imports that lead to them, by name, or by the folder."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tools.testing.source_tree import ROOT, modules, targets

IMPORTS = re.compile(r"^[ \t]*((?:from +[.\w]+ +import +(?:\([^)]*\)|.+))|import +.+)$", re.MULTILINE)
"""Statements alone are read: whole files take ten times as long."""
FAR = 9  # imports, and more than anything is looked for


def mirrored(file: Path, root: Path = ROOT) -> Path | None:
    """The folder of tests called as the file's innermost package that has one: `bdforge/array/mlir/dense.py` has
    `tests/mlir`."""
    folders = (root / "tests" / part for part in reversed(file.relative_to(root).parts[:-1]))
    return next((folder for folder in folders if folder.is_dir() and folder.name != "support"), None)


def affected_tests(changed: Iterable[Path], root: Path = ROOT) -> list[Path]:
    """Test files of these files, the nearest first: those themselves, by how many imports they are away, the rest of
    their folders."""
    files = [file for file in changed if file.is_relative_to(root)]
    folders = {folder for file in files if (folder := mirrored(file, root)) and not _is_test(file)}
    away = dict.fromkeys((test for folder in folders for test in folder.rglob("test_*.py")), FAR)
    away |= {test: 0 if test in files else distance for test, distance in _distances(files, root).items()}
    return sorted(away, key=lambda test: (away[test], test))


def _distances(files: list[Path], root: Path) -> dict[Path, int]:
    """Of each test file how far it is from the nearest of `files`; the nearest tests of each file only."""
    found: dict[Path, int] = {}
    for file in files:
        reached = {file: 1} if _is_test(file) else _importers(file, root) if file.suffix == ".py" else {}
        for test in [path for path in reached if _is_test(path) and path.is_file()] or _by_name(file, root):
            found[test] = min(reached.get(test, 1), found.get(test, FAR))
    return found


def _is_test(file: Path) -> bool:
    return file.name.startswith("test_") and file.suffix == ".py"


def _importers(file: Path, root: Path) -> dict[Path, int]:
    """Test files that import a file, or what imports it, as near as the nearest of them."""
    graph, ring, seen = importers(root), {file}, {file}
    for distance in range(1, FAR):
        ring = {user for one in ring for user in graph.get(one, ())} - seen
        seen |= ring
        if tests := {test for test in ring if _is_test(test)}:
            return dict.fromkeys(tests, distance)
    return {}


def _by_name(file: Path, root: Path) -> list[Path]:
    """Tests whose text has the file's name in quotes or behind a slash."""
    name = re.compile(rf"[\"'/]{re.escape(file.name)}\b")
    return [test for test in (root / "tests").rglob("test_*.py") if name.search(test.read_text(encoding="utf-8"))]


@cache
def importers(root: Path = ROOT) -> dict[Path, set[Path]]:
    """Of each Python file those that import it. Who imports a name of a package imports the module that has it."""
    product, tests = modules(root), modules(root / "tests", (".",))
    everywhere, found = tests | product, dict[Path, set[Path]]()
    beside = {file.parent: {path.stem: path for path in file.parent.glob("*.py")} for file in tests.values()}
    for name, file in [*product.items(), *tests.items()]:
        known = {**everywhere, **beside.get(file.parent, {})}
        for node in _statements(file):
            for imported in targets(node, name, file, known):
                names = {alias.name for alias in node.names}
                for source in _sources(known[imported], imported, names, known):
                    found.setdefault(source, set()).add(file)
    return found


def _sources(file: Path, module: str, names: set[str], known: dict[str, Path]) -> set[Path]:
    """The modules that a package takes these names from; the file itself where it is none, or has one of them."""
    if file.name != "__init__.py":
        return {file}
    found = {
        known[imported]
        for node in _statements(file)
        if {alias.asname or alias.name for alias in node.names} & names
        for imported in targets(node, module, file, known)
    }
    return found or {file}


@cache
def _statements(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """A file's imports; what only looks like one, in a text, is none of the tree's modules."""
    found = []
    for text in IMPORTS.findall(file.read_text(encoding="utf-8")):
        try:
            found += [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        except SyntaxError:
            continue
    return found
