"""Which room may import which, and that no imports go in circles."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

from tools.testing.source_tree import Import, imports, module_name, modules

ALLOWED: dict[str, set[str]] = {
    "common": set(),
    "devices": {"common"},
    "bd_patterns": {"devices"},
    "core": {"devices", "common"},
    "array": {"core", "devices", "common"},
    "design": {"bd_patterns", "devices", "common"},
    "operators": {"design", "bd_patterns", "devices", "common"},
    "perf": {"operators", "design", "array", "core", "bd_patterns", "devices", "common"},
    "runtime": {"design", "array", "core", "devices", "common"},
    "models": {"runtime", "operators", "perf", "design", "devices", "common"},
}
"""What each room may import besides itself; `cli` and the front door `bdforge` may import all."""

ABOVE_ALL = ("cli", "bdforge")
MOST_ROOMS = 10  # at the top of bdforge
SILENT, PRINTS = "bdforge.runtime.", "bdforge.common.screen"
"""Who loads a design from Python gets values and errors, no lines on the terminal."""


def room(module: str) -> str:
    """The room that a module belongs to, as the table names it."""
    top, _, rest = module.partition(".")
    return top if top != "bdforge" or not rest else rest.partition(".")[0]


def package(module: str) -> str:
    """The package that a module belongs to in rooms of several readers' tools: `array.mlir`, `core.isa`."""
    return ".".join(module.split(".")[1:3]) if room(module) in ("array", "core") else room(module)


def beyond(found: Iterable[Import]) -> dict[tuple[str, str], list[Import]]:
    """Imports that the table does not have, by rooms."""
    offenders: dict[tuple[str, str], list[Import]] = {}
    for statement in found:
        importer, imported = room(statement.importer), room(statement.imported)
        if importer != imported and importer not in ABOVE_ALL and imported not in ALLOWED[importer]:
            offenders.setdefault((importer, imported), []).append(statement)
    return offenders


def circle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Nodes of which each imports the next and the last the first; pairs that import each other do not count."""
    edges = {(a, b) for a, b in edges if a != b}
    order: TopologicalSorter[str] = TopologicalSorter()
    for a, b in edges:
        if a < b or (b, a) not in edges:
            order.add(a, b)
    try:
        order.prepare()
    except CycleError as error:
        return error.args[1]
    return []


def within(members: Iterable[str], name=lambda module: module) -> str:
    """The import statements among `members`, a line each."""
    members = set(members)
    return "\n".join(
        str(s)
        for s in imports()
        if {name(s.importer), name(s.imported)} <= members and name(s.importer) != name(s.imported)
    )


def test_a_picture_explains_the_rooms():
    rooms = {room(name) for name in modules() if name.startswith("bdforge.")}
    assert rooms - {"cli"} == ALLOWED.keys() - {"bd_patterns"}, "say in ALLOWED what a new room may import"
    assert len(rooms) <= MOST_ROOMS


def test_rooms_import_what_the_table_allows():
    found = beyond(imports())
    assert not found, "\n".join(map(str, chain.from_iterable(found.values())))


def test_every_arrow_of_the_table_is_needed():
    used = {(room(s.importer), room(s.imported)) for s in imports()}
    unneeded = sorted({(a, b) for a, imported in ALLOWED.items() for b in imported} - used)
    assert not unneeded, f"remove from ALLOWED, nobody needs them: {unneeded}"


def test_what_loads_designs_prints_nothing():
    loud = [str(s) for s in imports() if s.importer.startswith(SILENT) and s.imported == PRINTS]
    assert not loud, "\n".join(loud)


@pytest.mark.parametrize("name", [room, package])
def test_rooms_and_packages_do_not_import_each_other_in_circles(name):
    edges = {(name(s.importer), name(s.imported)) for s in imports()}
    found = circle(edges) or {node for a, b in edges if a != b and (b, a) in edges for node in (a, b)}
    assert not found, within(found, name)


def test_files_import_each_other_in_pairs_at_most():
    found = circle((s.importer, s.imported) for s in imports())
    assert not found, within(found)


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
    assert set(circle([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "d")])) == {"a", "b", "c"}
    assert not circle([("a", "b"), ("b", "a"), ("b", "c")])
    assert module_name(Path("a/b.py")) == "a.b"
