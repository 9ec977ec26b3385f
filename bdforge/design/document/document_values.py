"""Values of a document: expressions, texts with expressions in braces, and what is told of those that are wrong."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bdforge.common.messages import InputError, clip, clip_path, listed
from bdforge.design.document.toml_places import Path, Place, places_of
from bdforge.design.sequences.expression_text import WrongExpressionError, parsed
from bdforge.design.sequences.expressions import Expr, Operand, expression

MOST_TURNS = 1 << 16
"""Of all loops of a document, so that no few lines ask for more memory than there is."""
_LONGEST_TEXT = 1000
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


class DocumentError(InputError):
    """A descriptor document that says no design; the message lists every reason with its place."""


class Wrong(Exception):
    """What is wrong with what is being read; "" where its parts were told already."""


@dataclass(slots=True)
class Faults:
    """What is wrong first, by where it stands, and how many turns the document's loops took."""

    reasons: dict[Path, str] = field(default_factory=dict)
    turns: int = 0
    times: int = 0
    """How often something was told, the same again included."""

    def add(self, path: Path, reason: object) -> None:
        self.times += 1
        if str(reason):
            self.reasons.setdefault(path, str(reason))

    def turn(self, count: int) -> None:
        self.turns += count
        if self.turns > MOST_TURNS:
            raise Wrong(f"for: {self.turns} turns of all loops; a document may have {MOST_TURNS}")


def refuse(faults: Faults, content: str, where: str) -> None:
    """DocumentError for all that is wrong, with its lines and columns in a text that messages call `where`."""
    if not faults.reasons:
        return
    source = Source(content, where)
    lines = sorted((source.place(path), reason) for path, reason in faults.reasons.items())
    raise DocumentError(listed((f"{source.told(place)}: {reason}" for place, reason in lines), "\n"))


@dataclass
class Source:
    """The text of a document, which messages call `where`."""

    content: str
    where: str

    @cached_property
    def _places(self) -> Mapping[Path, Place]:
        return places_of(self.content)

    def place(self, path: Path) -> Place:
        """Line and column of a path, or of what it stands in."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, (1, 1))

    def told(self, place: Place) -> str:
        """A place as messages begin with it."""
        return f"{clip_path(self.where)}:{place[0]}:{place[1]}"

    def of(self, paths: Mapping[Any, Path]) -> Callable[[tuple], str]:
        """Where a subject stands: it, what is around it, or what of a tile has a name; "" where nothing has a path."""

        def found(subject: tuple) -> str:
            parts = [*(subject[:length] for length in range(len(subject), 1, -1)), subject[1:], subject[:1]]
            return next((self.told(self.place(paths[part])) for part in parts if part in paths), "")

        return found


@dataclass(frozen=True, slots=True)
class Scope:
    """Where something is read: the names that its expressions may use, its path, and what it is a part of.

    `patterns` are texts of the document's patterns by name.
    """

    names: Mapping[str, Operand] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    path: Path = ()
    inside: Any = None
    patterns: Mapping[str, Any] = field(default_factory=dict)

    def at(self, *parts: str | int) -> "Scope":
        """Inside."""
        return replace(self, path=(*self.path, *parts))

    def naming(self, more: Mapping[str, Operand]) -> "Scope":
        """With more names."""
        return replace(self, names={**self.names, **more}) if more else self

    def tell(self, reason: object) -> None:
        """What is wrong here."""
        self.faults.add(self.path, reason)


Kind = Callable[[Any, Scope], Any]
"""What a value is: reads it, or says by Wrong why it cannot be."""


def described(schema: dict[str, Any] | Callable[[], dict[str, Any]]) -> Callable[[Kind], Kind]:
    """Gives a kind the JSON Schema of its values, or what makes it when all kinds are there."""

    def add(kind: Kind) -> Kind:
        kind.schema = schema  # type: ignore[attr-defined]
        return kind

    return add


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a kind's values."""
    return kind.schema if isinstance(kind.schema, dict) else kind.schema()


STRING = {"type": "string"}
_TEXT = {"type": "string", "maxLength": _LONGEST_TEXT}
_EXPRESSION = {"type": ["integer", "string"]}


@described(_EXPRESSION)
def value(found: Any, scope: Scope) -> Expr:
    """An integer, or an expression of names."""
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise Wrong(f'should be an integer, or an expression of them such as "128 * i", got {clip(repr(found))}')
    try:
        return expression(found) if isinstance(found, int) else parsed(found, scope.names)
    except WrongExpressionError as error:
        raise Wrong(error) from None


@described(_EXPRESSION)
def number(found: Any, scope: Scope) -> int:
    """An integer that is known where the document is read."""
    known = value(found, scope).constant
    if known is None:
        raise Wrong(f"{clip(repr(found))} follows from a size; it must be known beforehand")
    return known


@described(_TEXT)
def text(found: Any, scope: Scope) -> str:
    """A text with the values of the expressions in its braces; doubled ones are braces."""
    plain(found, scope)
    return _BRACES.sub(lambda braces: braces[0][0] if braces[1] is None else str(number(braces[1], scope)), found)


@described(_TEXT)
def plain(found: Any, scope: Scope) -> str:
    """A text as it is."""
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
        raise Wrong(f"should be a text of at most {_LONGEST_TEXT} characters, got {clip(repr(found))}")
    return found


@described(_TEXT)
def pieces(found: Any, scope: Scope) -> tuple[str, list[Expr]]:
    """A text with {} for each expression in its braces, and these: what is told when a program runs."""
    values: list[Expr] = []

    def piece(braces: re.Match[str]) -> str:
        if braces[1] is None:
            return braces[0][0]
        values.append(value(braces[1], scope))
        return "{}"

    return _BRACES.sub(piece, plain(found, scope)), values


@described({"type": "boolean"})
def flag(found: Any, scope: Scope) -> bool:
    """true or false."""
    if not isinstance(found, bool):
        raise Wrong(f"should be true or false, got {clip(repr(found))}")
    return found


@described({"type": "number"})
def plain_number(found: Any, scope: Scope) -> float:
    """A number as it is."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Wrong(f"should be a number, got {clip(repr(found))}")
    return found


def one_of(*texts: str) -> Kind:
    """One of some texts."""

    @described({"enum": list(texts)})
    def read(found: Any, scope: Scope) -> str:
        if found not in texts:
            raise Wrong(f"should be {' or '.join(map(repr, texts))}, got {clip(repr(found))}")
        return found

    return read


def _several(kind: Kind, count: int) -> Kind:
    @described({"type": "array", "items": _EXPRESSION, "minItems": count, "maxItems": count})
    def read(found: Any, scope: Scope) -> tuple[Any, ...]:
        if not isinstance(found, list) or len(found) != count:
            raise Wrong(f"should be a list of {count} numbers, got {clip(repr(found))}")
        return tuple(kind(one, scope) for one in found)

    return read


def numbers(count: int) -> Kind:
    """So many integers that are known where the document is read."""
    return _several(number, count)


pair = _several(value, 2)
"""Two integers or expressions of names."""
