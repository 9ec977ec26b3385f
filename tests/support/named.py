"""Comparisons whose failure names what differs: a field of an object, or an element and its place."""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

_MOST = 6


def fields_of(items: Iterable[Any], names: str) -> list[dict[str, Any]]:
    """Attributes of objects by name: pytest shows the entry that differs, not a place in a tuple."""
    return [{name: getattr(item, name) for name in names.split()} for item in items]


def rows(names: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The same of values that are expected, a tuple for each object."""
    return [dict(zip(names.split(), row, strict=True)) for row in values]


def check_elements(what: str, found: Iterable[Any], expected: Iterable[Any]) -> None:
    """Elements one by one; the message has the first places that differ, both values, and how many there are."""
    pairs = enumerate(zip_longest(found, expected, fillvalue="nothing"))
    wrong = [f"[{place}] is {got}, expected {want}" for place, (got, want) in pairs if got != want]
    more = f" and {len(wrong) - _MOST} more" if len(wrong) > _MOST else ""
    assert not wrong, f"{what}: {'; '.join(wrong[:_MOST])}{more}"
