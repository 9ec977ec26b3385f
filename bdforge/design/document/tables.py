"""Tables of a document: their keys said once, from which they are read, refused with a place, and described.

A `Table` names its keys with what their values are; reading one gives its values, with every reason why it cannot be
read. Numbers may be expressions, texts hold expressions in braces, `for` in an item of a list repeats it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from math import prod
from typing import Any, Literal

from bdforge.common.messages import clip, listed
from bdforge.design.document.document_values import MOST_TURNS, Kind, Scope, Wrong, described, number, schema_of
from bdforge.design.sequences.expressions import Expr

_RANGE = re.compile(r"(.+?)\.\.(.+)")
_MISSING: Any = object()
COMMENT = "#"
"""The key of what stands behind a table's line for its readers."""


def turns(item: Any, scope: Scope) -> list[dict[str, int]]:
    """The values of an item's `for`, turn by turn; its first variable is the outermost one."""
    ranges = item.get("for", {}) if isinstance(item, dict) else {}
    if not isinstance(ranges, dict) or len(ranges) > 6:
        raise Wrong(f'for: should be ranges by variable such as {{ c = "0..8" }}, got {clip(repr(ranges))}')
    spans = {name: _span(name, ends, scope) for name, ends in ranges.items()}
    if (total := prod(max(0, span.stop - span.start) for span in spans.values())) > MOST_TURNS:
        raise Wrong(f"for: {total} turns; a document may have {MOST_TURNS}")
    scope.faults.turn(total)
    return [dict(zip(spans, values, strict=True)) for values in product(*spans.values())]


def _span(name: str, found: Any, scope: Scope) -> range:
    if not name.isidentifier():
        raise Wrong(f"for: {clip(repr(name))} is no name")
    if not isinstance(found, str) or (ends := _RANGE.fullmatch(found)) is None:
        raise Wrong(f"for: {clip(name)} = {clip(repr(found))} is no range; write first..end, such as 0..8")
    span = range(number(ends[1], scope), number(ends[2], scope))
    if span.stop < span.start:
        raise Wrong(f"for: {clip(name)} = {clip(repr(found))} is empty; write first..end, the smaller number first")
    return span


def each(items: Any, scope: Scope) -> Iterator[tuple[Any, Scope]]:
    """Items of a list as often as `for` says, those that repeat together in `do`; faults of a `for` are told."""
    if not isinstance(items, list):
        raise Wrong(f"should be a list, got {clip(repr(items))}")
    for place, item in enumerate(items):
        here = scope.at(place)
        try:
            values = turns(item, here)
        except Wrong as wrong:
            here.tell(wrong)
            continue
        for turn in values:
            if isinstance(item, dict) and "do" in item:
                inner = here.naming(turn)
                for key in item.keys() - {"for", "do"}:
                    inner.at(key).tell(f"{clip(key)}: unexpected key beside do; say it in each of those")
                yield from each(item["do"], inner.at("do"))
            else:
                yield item, here.naming(turn)


def many(kind: Kind, least: int = 0) -> Kind:
    """A list of values, each as often as its `for` says. What is wrong with any is told."""

    @described(lambda: {"type": "array", "minItems": least, "items": _with_together(schema_of(kind))})
    def read(found: Any, scope: Scope) -> list[Any]:
        before = scope.faults.times
        made = [told(kind, item, inner) for item, inner in each(found, scope)]
        if scope.faults.times > before:
            raise Wrong
        if len(made) < least:
            raise Wrong(f"should have at least {least} item{'s' * (least > 1)}")
        return made

    return read


def made(table: "Table", make: Callable[[dict[str, Any], Scope], Any]) -> Kind:
    """What is made of a table's values."""
    return described(table.schema)(lambda found, scope: make(table(found, scope), scope))


def choice(kinds: Mapping[str, Kind]) -> Kind:
    """Tables that are told apart by the first of their keys that is no `for`."""
    schemas = described(lambda: {"anyOf": [schema_of(kind) for kind in kinds.values()]})
    return schemas(lambda found, scope: kinds[first_key(found, kinds)](found, scope))


def later(kind: Kind) -> Kind:
    """What is read when what it names is known: a function that reads it, with what it is a part of."""
    same = described(lambda: schema_of(kind))
    return same(lambda found, scope: lambda inside: kind(found, replace(scope, inside=inside)))


def told(kind: Kind, found: Any, scope: Scope) -> Any:
    """What is read; None where it cannot be, which is told then."""
    try:
        return kind(found, scope)
    except Wrong as wrong:
        scope.tell(wrong)
        return None


class Implied(int):
    """A number that is meant where its key is left out of the table that it stands in."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table: what its value is, and what is meant where it is left out."""

    kind: Kind
    default: Any = _MISSING


@dataclass(frozen=True)
class Table:
    """The keys of a table; one without default must be there. Reading gives values by key."""

    doc: str
    keys: Mapping[str, Key]
    where: Literal["item", "table"] = "item"
    """Items of lists may have `for`."""

    def __call__(self, found: Any, scope: Scope) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise Wrong(f"should be a table, got {clip(repr(found))}")
        wrong = False
        repeats = {"for"} if self.where == "item" else set()
        for key in found.keys() - self.keys.keys() - repeats:
            near = get_close_matches(key, self.keys.keys() - found.keys(), 1)
            way = f"did you mean {near[0]}?" if near else "remove it or check its spelling"
            scope.at(key).tell(f"{clip(key)}: unexpected key; {way}")
            wrong = True
        values = {key: self._value(key, found, scope) for key in self.keys}
        if missing := [key for key, one in values.items() if one is _MISSING and key not in found]:
            raise Wrong("; ".join(f"{key}: missing; add it" for key in missing))
        if wrong or any(one is _MISSING for one in values.values()):
            raise Wrong
        return values

    def _value(self, key: str, found: dict[str, Any], scope: Scope) -> Any:
        if key not in found:
            return self.keys[key].default
        try:
            return self.keys[key].kind(found[key], scope.at(key))
        except Wrong as wrong:
            scope.at(key).tell(f"{key}: {wrong}" if str(wrong) else "")
            return _MISSING

    def filled(self, **values: Any) -> dict[str, Any]:
        """The table that says `values`, in the order of its keys, a comment behind them; without what may be left out.

        Keys that are words of Python's end with `_`. Numbers that are meant anyhow become Implied: things fold by them,
        and `repeats.written` leaves them out then.
        """
        given = {key.rstrip("_"): one for key, one in values.items()}
        assert given.keys() <= {*self.keys, COMMENT}, f"nobody reads {given.keys() - self.keys.keys()}"
        said = [key for key in (*self.keys, COMMENT) if key in given and self._says(key, given[key])]
        return {key: Implied(given[key]) if self.implies(key, given[key]) else given[key] for key in said}

    def implies(self, key: str, value: Any) -> bool:
        """Whether a number is meant where its key is left out."""
        default = self.keys[key].default if key in self.keys else None
        constant = default.constant if isinstance(default, Expr) else default
        return type(constant) is int and type(value) is int and value == constant

    def _says(self, key: str, value: Any) -> bool:
        must = key in self.keys and self.keys[key].default is _MISSING
        return must or bool(value) or (isinstance(value, int | float) and value is not False)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such tables."""
        properties = {key: schema_of(one.kind) for key, one in self.keys.items()}
        if self.where == "item":
            properties["for"] = {"type": "object", "additionalProperties": {"type": "string"}}
        return {
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "required": [key for key, one in self.keys.items() if one.default is _MISSING],
            "additionalProperties": False,
        }


def _with_together(items: dict[str, Any]) -> dict[str, Any]:
    """Items, or several of them that repeat together."""
    ranges = {"type": "object", "additionalProperties": {"type": "string"}}
    do = {"for": ranges, "do": {"type": "array"}}
    return {"anyOf": [items, {"type": "object", "properties": do, "required": ["do"], "additionalProperties": False}]}


def first_key(found: Any, known: Mapping[str, Any]) -> str:
    """What an item is: a table is told by the first of its keys that is no `for`."""
    key = next((key for key in found if key != "for"), None) if isinstance(found, dict) else None
    if key not in known:
        raise Wrong(f"{clip(repr(found))} begins with none of {listed(map(repr, known))}")
    return str(key)
