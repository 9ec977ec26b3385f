"""Operators by kind: those in packages of this folder, and those of installed packages.

A package from outside names its `Operator` in the entry points of its distribution:

    [project.entry-points."bdforge.operators"]
    rmsnorm = "bdforge_rmsnorm:OPERATOR"
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules

import bdforge.operators
from bdforge.common.messages import listed
from bdforge.common.watched import foreign
from bdforge.operators.operator_api import Operator
from bdforge.operators.specs import SpecError

GROUP = "bdforge.operators"


class _Registry(Mapping[str, Operator]):
    """What is imported when its kind is met first, so that a broken package spoils no other kind."""

    def __getitem__(self, kind: str) -> Operator:
        """The operator of a kind; KeyError where there is none, SpecError for a package that cannot be used."""
        if kind in own_kinds():
            return import_module(f"{bdforge.operators.__name__}.{kind}").OPERATOR
        found = [entry for entry in entry_points(group=GROUP) if entry.name == kind]
        if not found:
            raise KeyError(kind)
        if len({entry.value for entry in found}) > 1:
            raise SpecError(f"operator {kind}: {listed(map(_package, found))} have one each; uninstall all but one")
        return _loaded(found[0])

    def __iter__(self) -> Iterator[str]:
        yield from (own := own_kinds())  # first: entry points are read of every installed package
        yield from sorted({entry.name for entry in entry_points(group=GROUP)} - {*own})

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def own_kinds() -> tuple[str, ...]:
    """Kinds of operators that are bdforge's own, not an installed package's."""
    # Not by entry points: those of an editable checkout are as old as its installation.
    return tuple(found.name for found in iter_modules(bdforge.operators.__path__) if found.ispkg)


def _loaded(entry: EntryPoint) -> Operator:
    with foreign(f"operator {entry.name}: {_package(entry)} cannot be imported, mend or uninstall it", SpecError):
        operator = entry.load()
    if not isinstance(operator, Operator) or operator.kind != entry.name:
        raise SpecError(
            f"operator {entry.name}: {entry.value} of {_package(entry)} is no Operator of this kind; "
            "mend or uninstall it"
        )
    return operator


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name}" if entry.dist else "a package"


OPERATORS: Mapping[str, Operator] = _Registry()
