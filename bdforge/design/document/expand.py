"""What `for` and expressions of a document stand for, and how what is wrong with them is told."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, TypeVar

from pydantic import BaseModel

from bdforge.common.messages import clip
from bdforge.design.document.grammar import Repeated
from bdforge.design.document.tables import DocumentError, Scope, Wrong
from bdforge.design.document.tables import number as known
from bdforge.design.document.toml_places import Path

MOST_TURNS = 1 << 16
"""Of all loops of a document, so that no few lines ask for more memory than there is."""
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_RANGE = re.compile(r"(.+?)\.\.(.+)")
Numbers = Mapping[str, int]
"""Numbers that expressions may name."""
Made = TypeVar("Made")


def number(value: int | str, names: Numbers) -> int:
    """An integer, or the value of an expression of them; Wrong says what is wrong with it."""
    return known(value, Scope(names))


def maybe(value: int | str | None, names: Numbers) -> int | None:
    """A number that may be missing."""
    return None if value is None else number(value, names)


def text(found: str, names: Numbers) -> str:
    """A text with the values of the expressions in its braces; doubled ones are braces."""
    return _BRACES.sub(lambda braces: braces[0][0] if braces[1] is None else str(number(braces[1], names)), found)


def named(value: Any, names: Numbers) -> Any:
    """A number; "%name" is an integer that a core knows by name."""
    if isinstance(value, str):
        return value[1:] if value.startswith("%") else number(value, names)
    return value


def texts(found: Any, names: Numbers) -> Iterator[str]:
    """Names, those that repeat as often as they do."""
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, str):
            yield text(one, names)
        else:
            yield from (text(one.name, {**names, **turn}) for turn in _turns(one.ranges, names))


def _turns(ranges: Mapping[str, str], names: Numbers) -> Iterator[dict[str, int]]:
    """The values of a loop's variables, turn by turn; the first variable is the outermost one."""
    spans = {name: _span(name, text, names) for name, text in ranges.items()}
    if (total := prod(max(0, span.stop - span.start) for span in spans.values())) > MOST_TURNS:
        raise Wrong(f"for: {total} turns; a document may have {MOST_TURNS}")
    return (dict(zip(spans, values, strict=True)) for values in product(*spans.values()))


def _span(name: str, found: str, names: Numbers) -> range:
    if not name.isidentifier():
        raise Wrong(f"for: {clip(repr(name))} is no name")
    if (ends := _RANGE.fullmatch(found)) is None:
        raise Wrong(f"for: {clip(name)} = {clip(repr(found))} is no range; write first..end, such as 0..8")
    return range(number(ends[1], names), number(ends[2], names))


@dataclass(slots=True)
class Expansion:
    """Goes through a document's tables, each as often as its `for` says, and collects what is wrong with them."""

    paths: dict[int, Path]
    """Where each table stands, by its identity."""
    reasons: dict[Path, str] = field(default_factory=dict)
    """What is wrong first, by table."""
    turns: int = 0

    @classmethod
    def of(cls, document: BaseModel) -> "Expansion":
        """That of a document, whose tables must live as long."""
        return cls(dict(_paths(document, ())))

    def each(self, items: Iterable[Any], names: Numbers) -> Iterator[tuple[Any, Numbers]]:
        """Each item as often as its `for` says, with the numbers that it may name."""
        for item in items:
            for turn in self.made(item, lambda item=item: list(_turns(item.ranges, names))) or ():
                inner = {**names, **turn}
                self.turns += 1
                if self.turns > MOST_TURNS:
                    raise DocumentError(
                        f"its loops have more turns than {MOST_TURNS}, the most that a document may have"
                    )
                if hasattr(item, "do"):
                    yield from self.each(item.do, inner)
                else:
                    yield item, inner

    def all(self, items: Iterable[Repeated], names: Numbers, make: Callable[[Any, Numbers], Made]) -> list[Made]:
        """What is made of each item; those with which something is wrong are left out."""
        found = (self.made(item, lambda i=item, n=inner: make(i, n)) for item, inner in self.each(items, names))
        return [made for made in found if made is not None]

    def made(self, table: BaseModel, make: Callable[[], Made]) -> Made | None:
        """What is made of a table; None where something is wrong with it."""
        try:
            return make()
        except Wrong as wrong:
            self.reasons.setdefault(self.paths[id(table)], str(wrong))
            return None


def _paths(found: Any, path: Path) -> Iterator[tuple[int, Path]]:
    if isinstance(found, BaseModel):
        yield id(found), path
        for name, info in type(found).model_fields.items():
            yield from _paths(getattr(found, name), (*path, info.alias or name))
    elif isinstance(found, list):
        for at, item in enumerate(found):
            yield from _paths(item, (*path, at))
    elif isinstance(found, dict):
        for key, item in found.items():
            yield from _paths(item, (*path, key))
