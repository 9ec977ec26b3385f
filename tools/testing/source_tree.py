"""The product's Python sources as text and trees: what imports what, and from which line."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("bdforge", "bd_patterns")


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement between modules of the product."""

    file: str
    line: int
    text: str
    importer: str
    imported: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@cache
def modules(root: Path = ROOT, folders: tuple[str, ...] = PRODUCT) -> dict[str, Path]:
    """Sources by module name."""
    files = (file for folder in folders for file in sorted((root / folder).rglob("*.py")))
    return {module_name(file.relative_to(root)): file for file in files}


def module_name(file: Path) -> str:
    """`a/b.py` is a.b, `a/__init__.py` is a."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(root: Path = ROOT) -> tuple[Import, ...]:
    """Every import of one of the product's modules by another, also those in functions."""
    known = modules(root)
    return tuple(found for name, file in known.items() for found in _imports(name, file, root, known))


def _imports(name: str, file: Path, root: Path, known: dict[str, Path]) -> Iterator[Import]:
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        for imported in targets(node, name, file, known):
            if imported != name:
                line = lines[node.lineno - 1].strip()  # type: ignore[attr-defined]
                yield Import(str(file.relative_to(root)), node.lineno, line, name, imported)  # type: ignore[attr-defined]


def targets(node: ast.AST, name: str, file: Path, known: dict[str, Path]) -> list[str]:
    """Modules that a statement imports: a submodule by name, else where the name comes from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in known]
    if not isinstance(node, ast.ImportFrom):
        return []
    home = node.module or ""
    if node.level:
        package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        home = ".".join([*package[: len(package) - node.level + 1], *([home] if home else [])])
    names = [f"{home}.{alias.name}" if f"{home}.{alias.name}" in known else home for alias in node.names]
    return [found for found in dict.fromkeys(names) if found in known]
