"""Which package may import which, and that no imports go in circles."""

from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import pytest

from support.source_tree import Import, imports, module_name, modules

ALLOWED: dict[str, set[str]] = {
    "devices": set(),
    "weights": set(),
    "xrt": set(),
    "formats": {"devices"},
    "bd_patterns": {"devices"},
    "sequences": {"bd_patterns", "txn", "formats", "devices"},
    "design": {"sequences", "bd_patterns", "devices"},
    "operators": {"design", "sequences", "images", "formats", "bd_patterns", "devices"},
    "isa": {"devices"},
    "mlir": {"devices"},
    "routing": {"mlir", "devices"},
    "txn": {"mlir", "devices"},
    "lower": {"mlir", "routing", "txn", "devices"},
    "images": {"sequences", "lower", "txn", "isa", "devices"},
    "codegen": {"mlir", "isa", "devices"},
    "emulator": {"mlir", "routing", "lower", "txn", "images", "isa", "devices"},
    "perf": {"design", "operators", "emulator", "codegen", "mlir", "isa", "bd_patterns", "devices"},
    "runtime": {"emulator", "images", "sequences", "xrt", "devices"},
    "tensors": {"runtime", "operators", "sequences", "devices"},
    "models": {"runtime", "operators", "weights", "perf"},
    "torch": {"models", "weights"},
    "toolchain": {"design", "sequences", "mlir", "lower", "codegen", "txn", "images", "isa", "xrt", "devices"},
    "show": {"mlir", "routing", "lower", "images", "txn", "devices"},
}
"""What each package may import besides itself; `cli` and the front door `bdforge` may import all."""

ABOVE_ALL = ("cli", "bdforge")
COMMON = {
    "arrays", "binary", "compilers", "files", "messages", "native", "pictures", "screen", "tree", "watched",
}  # fmt: skip
"""Modules that know nothing of arrays, for all to use; they import nothing but each other."""
PRINTING = {"screen"}
"""Those of them that print, which these packages must not do:"""
SILENT = {"runtime"}

MOST_FILES = 2  # of a circle


def room(module: str) -> str:
    """The package that a module belongs to, as the table names it."""
    top, _, rest = module.partition(".")
    if top != "bdforge" or not rest:
        return top
    return {"kernel": "emulator"}.get(name := rest.partition(".")[0], name)


def may_import(importer: str) -> set[str]:
    """What the table allows a package."""
    return ALLOWED.get(importer, set()) | (COMMON - PRINTING if importer in SILENT else COMMON)


def beyond(found: Iterable[Import]) -> dict[tuple[str, str], list[Import]]:
    """Imports that the table does not have, by packages."""
    offenders: dict[tuple[str, str], list[Import]] = {}
    for statement in found:
        importer, imported = room(statement.importer), room(statement.imported)
        if importer != imported and importer not in ABOVE_ALL and imported not in may_import(importer):
            offenders.setdefault((importer, imported), []).append(statement)
    return offenders


def circles(edges: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Sets of nodes that reach each other."""
    return [found for found in nx.strongly_connected_components(nx.DiGraph(edges)) if len(found) > 1]


def within(members: set[str], name=lambda module: module) -> str:
    """The import statements among `members`, a line each."""
    return "\n".join(
        str(s)
        for s in imports()
        if {name(s.importer), name(s.imported)} <= members and name(s.importer) != name(s.imported)
    )


def test_every_package_stands_in_the_table():
    rooms = {room(name) for name in modules()}
    assert rooms - set(ABOVE_ALL) - COMMON <= ALLOWED.keys(), "say in ALLOWED what a new package may import"


def test_packages_import_what_the_table_allows():
    told = [
        f"{statement}  ({importer} may import {', '.join(sorted(may_import(importer)))})"
        for (importer, _), found in beyond(imports()).items()
        for statement in found
    ]
    assert not told, "\n".join(told)


def test_every_arrow_of_the_table_is_needed():
    used = {(room(s.importer), room(s.imported)) for s in imports()}
    unneeded = sorted({(a, b) for a, imported in ALLOWED.items() for b in imported} - used)
    assert not unneeded, f"remove from ALLOWED, nobody needs them: {unneeded}"


def test_packages_do_not_import_each_other_in_circles():
    edges = {(room(s.importer), room(s.imported)) for s in imports()}
    found = circles((a, b) for a, b in edges if a != b)
    assert not found, "\n".join(within(circle, room) for circle in found)


def test_files_import_each_other_in_pairs_at_most():
    found = [c for c in circles((s.importer, s.imported) for s in imports()) if len(c) > MOST_FILES]
    assert not found, "\n\n".join(within(circle) for circle in found)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small house with one import of each kind."""
    files = {
        "bdforge/__init__.py": "",
        "bdforge/devices/__init__.py": "from bdforge.devices.types import WIDTH\n",
        "bdforge/devices/types.py": "WIDTH = 8\n",
        "bdforge/perf/__init__.py": "from . import fits\nfrom .deep.down import x\n",
        "bdforge/perf/fits.py": "def f():\n    from bdforge.runtime import run\n    return run\n",
        "bdforge/perf/deep/down.py": "from ..fits import f\nimport bdforge.devices.types\n",
        "bdforge/runtime.py": "import numpy\n",
        "bd_patterns/__init__.py": "from bdforge import devices\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_imports_are_found_wherever_and_however_they_stand(house):
    assert {(str(s), s.imported) for s in imports(house)} == {
        ("bdforge/devices/__init__.py:1: from bdforge.devices.types import WIDTH", "bdforge.devices.types"),
        ("bdforge/perf/__init__.py:1: from . import fits", "bdforge.perf.fits"),
        ("bdforge/perf/__init__.py:2: from .deep.down import x", "bdforge.perf.deep.down"),
        ("bdforge/perf/fits.py:2: from bdforge.runtime import run", "bdforge.runtime"),
        ("bdforge/perf/deep/down.py:1: from ..fits import f", "bdforge.perf.fits"),
        ("bdforge/perf/deep/down.py:2: import bdforge.devices.types", "bdforge.devices.types"),
        ("bd_patterns/__init__.py:1: from bdforge import devices", "bdforge.devices"),
    }
    assert {key: [str(s) for s in found] for key, found in beyond(imports(house)).items()} == {
        ("perf", "runtime"): ["bdforge/perf/fits.py:2: from bdforge.runtime import run"]
    }


def test_circles_are_found_by_their_members():
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "d")]) == [{"a", "b", "c"}]
    assert module_name(Path("a/b.py")) == "a.b"
