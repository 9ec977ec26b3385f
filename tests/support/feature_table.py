"""The table of emulated features in docs/features.md, made from the tests: `python tests/support/feature_table.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "features.md"
FOLDERS = ("tests/emulator", "tests/mlir", "tests/routing")
HEAD = """# What the emulated array does, and the test that shows it

Made from the tests by `python tests/support/feature_table.py`; a test keeps it current. A row is a test, its name the
feature; most run on npu1 and npu2. Answers come from numpy, Python integers or hand-worked tables.
"""


def table() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for folder in FOLDERS for file in files(folder) for line in section(file))]) + "\n"


def files(folder: str) -> list[Path]:
    """Test modules of a folder, in order."""
    return sorted((ROOT / folder).rglob("test_*.py"))


def section(file: Path) -> Iterator[str]:
    """One heading and table for a test module."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    if not tests:
        return
    title = (ast.get_docstring(module) or file.stem).splitlines()[0].rstrip(".")
    yield f"## {title}\n"
    yield f"`{file.relative_to(ROOT)}`\n"
    yield "| feature | cases |"
    yield "|---|---|"
    for test in tests:
        name = test.name.removeprefix("test_").replace("_", " ")
        yield f"| {name} | {cases(test)} |"
    yield ""


def cases(test: ast.FunctionDef) -> str:
    """Names of the parameters that a test runs over."""
    names: list[str] = []
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            first = ast.literal_eval(decorator.args[0])
            names += [first] if isinstance(first, str) else list(first)
    return ", ".join(names)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)}")
