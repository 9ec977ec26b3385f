"""A module's name and a public class's name stand once, so that a name says of which thing one speaks."""

import ast
from collections import Counter

from tools.testing.source_tree import modules

FREE_MODULES = (
    "errors",  # the faults of the package in which it stands
)
"""Names of modules that stand many times; beside them the files of `cli`, each named after its command, and those of
operators, of which every one has a spec, a mapping, a program and a plan."""


def named_twice() -> set[str]:
    """Names of modules, or of public classes, that stand more than once."""
    places = [tuple(name.split(".")) for name, file in modules().items() if file.stem not in ("__init__", "__main__")]
    files = Counter(
        place[-1]
        for place in places
        if place[-1] not in FREE_MODULES and not (place[1] == "cli" or (place[1] == "operators" and len(place) == 4))
    )
    classes = Counter(
        node.name
        for file in modules().values()
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name for count in (files, classes) for name, times in count.items() if times > 1}


def test_names_of_modules_and_classes_stand_once():
    assert not (twice := sorted(named_twice())), f"name one of each by another word: {twice}"
