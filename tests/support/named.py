"""Fields of objects by name, for comparisons."""

from collections.abc import Iterable
from typing import Any


def fields_of(items: Iterable[Any], names: str) -> list[dict[str, Any]]:
    """Attributes of objects by name: pytest shows the entry that differs, not a place in a tuple."""
    return [{name: getattr(item, name) for name in names.split()} for item in items]


def rows(names: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The same of values that are expected, a tuple for each object."""
    return [dict(zip(names.split(), row, strict=True)) for row in values]
