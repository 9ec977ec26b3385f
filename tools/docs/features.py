"""What the emulated array does, and the tests that show it: a line for each test module, printed when asked for."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.docs.markdown import table

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests/emulator", "tests/mlir", "tests/routing")


def page() -> str:
    """The whole table."""
    return table(("feature", "test"), lines(ROOT))


def lines(root: Path) -> Iterator[tuple[str, str]]:
    """What each test module says of itself, and where it is."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("test_*.py")):
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or file.stem
            yield " ".join(text.split("\n\n")[0].split()).rstrip("."), f"`{file.relative_to(root)}`"
