"""Repeated things said once: lists of plain data folded into `for` loops, and back.

Plain data are dictionaries, lists, texts, numbers and truth values. In a list, things that differ only by numbers which
grow by the same from one to the next become one with `for`: ranges by variable, the first one outermost. Numbers are
then expressions of the variables, and texts hold such expressions in braces. Several things that repeat together stand
in `do`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bdforge.design.document.tables import Implied

NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d*)(?!\d)")


_OF_FORMULA = re.compile(r"(?<!\w)(?:0|[1-9]\d*)(?!\w)")


class Formula(str):
    """An expression: its numbers may follow variables as they are, where a text has braces for that."""

    __slots__ = ()


class Verbatim(str):
    """A text that stands as it is: braces are braces, numbers follow nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Affine:
    """base + the sum of step * variable; variables are told by the height of their loop, the innermost one 0.

    `implied`: without steps it is left out.
    """

    base: int
    steps: tuple[tuple[int, int], ...] = ()
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A text in pieces, of which the numbers are affine."""

    pieces: tuple[str | Affine, ...]
    formula: bool = False


@dataclass(frozen=True, slots=True)
class Repetition:
    """`body` for each value of the variable of this height, from 0 to below `count`."""

    height: int
    count: int
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Repeating:
    """A list in which things that repeat may be said once: up to `longest` together, at least `least` times."""

    items: list[Any]
    least: int = 2
    longest: int = 8
    """Longer blocks are no easier to read than what they stand for."""

    def __len__(self) -> int:
        return len(self.items)


def written(value: Any, names: Sequence[str] = "ijklmn") -> Any:
    """Plain data with `for` where lists are Repeating, with variables of these names, outermost first.

    Numbers that are Implied are left out.
    """
    return _written(_abstract(value), names, {})


def _folded(given: Repeating) -> list[Any]:
    things, block = [_abstract(item) for item in given.items], 1
    while block <= given.longest:
        shorter = list(_pass(things, block, given.least))
        block = block + 1 if len(shorter) == len(things) else 1
        things = shorter
    return things


def _pass(things: list[Any], block: int, least: int) -> Iterator[Any]:
    """`things` with loops instead of runs of so many that repeat."""
    at = 0
    while at < len(things):
        first, count, steps = tuple(things[at : at + block]), 1, None
        while at + (count + 1) * block <= len(things):
            here, following = (tuple(things[at + n * block : at + (n + 1) * block]) for n in (count - 1, count))
            found = _steps(here, following)
            if found is None or (steps is not None and found != steps):
                break
            steps, count = found, count + 1
        if steps is None or count < least:
            yield things[at]
            at += 1
            continue
        height = 1 + max(map(_height, first))
        yield Repetition(height, count, _stepped(first, iter(steps), height))
        at += count * block


def _abstract(value: Any) -> Any:
    """Plain data with numbers as affine ones."""
    match value:
        case bool() | float() | None | Verbatim():
            return value
        case int():
            return Affine(value, implied=isinstance(value, Implied))
        case str():
            pieces: list[str | Affine] = []
            end = 0
            formula = isinstance(value, Formula)
            for found in (_OF_FORMULA if formula else NUMBER).finditer(value):
                pieces += [value[end : found.start()], Affine(int(found[0]))]
                end = found.end()
            return Text((*pieces, value[end:]), formula)
        case dict():
            return {key: _abstract(inner) for key, inner in value.items()}
        case list():
            return [_abstract(inner) for inner in value]
        case Repeating():
            return _folded(value)
    raise TypeError(f"{type(value).__name__} is no plain data")


def _children(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            yield from value.values()
        case list() | tuple():
            yield from value
        case Text():
            yield from value.pieces
        case Repetition():
            yield from value.body


def _height(value: Any) -> int:
    return value.height if isinstance(value, Repetition) else max(map(_height, _children(value)), default=-1)


def _steps(first: Any, second: Any) -> tuple[int, ...] | None:
    """By how much each number of `first` grows to that of `second`; None where they differ by more than numbers."""
    if isinstance(first, Affine):
        return (second.base - first.base,) if isinstance(second, Affine) and first.steps == second.steps else None
    if type(first) is not type(second) or _shape(first) != _shape(second):
        return None
    found: list[int] = []
    for one, other in zip(_children(first), _children(second), strict=True):
        steps = _steps(one, other)
        if steps is None:
            return None
        found += steps
    return tuple(found)


def _shape(value: Any) -> Any:
    match value:
        case dict():
            return list(value)
        case list() | tuple():
            return len(value)
        case Text():
            return len(value.pieces), value.formula
        case Repetition():
            return value.height, value.count, len(value.body)
        case _:
            return value


def _stepped(value: Any, steps: Iterator[int], height: int) -> Any:
    """`value` with each number growing by its step with the variable of `height`."""
    match value:
        case Affine():
            step = next(steps)
            return Affine(value.base, ((height, step), *value.steps)) if step else value
        case dict():
            return {key: _stepped(inner, steps, height) for key, inner in value.items()}
        case list():
            return [_stepped(inner, steps, height) for inner in value]
        case tuple():
            return tuple(_stepped(inner, steps, height) for inner in value)
        case Text():
            return Text(tuple(_stepped(piece, steps, height) for piece in value.pieces), value.formula)
        case Repetition():
            return Repetition(value.height, value.count, _stepped(value.body, steps, height))
        case _:
            return value


def _written(value: Any, names: Sequence[str], variables: dict[int, tuple[str, int]]) -> Any:
    """Plain data with expressions; `variables` are name and first value by height."""
    match value:
        case Affine():
            return expression(value, variables) if value.steps else value.base
        case Text(pieces, formula):
            return "".join((_term if formula else _piece)(piece, variables) for piece in pieces)
        case dict():
            return {key: _written(inner, names, variables) for key, inner in value.items() if not _left_out(inner)}
        case list():
            return [_written(inner, names, variables) for inner in value]
        case Repetition():
            return _loop(value, names, variables)
        case _:
            return value


def _left_out(value: Any) -> bool:
    return isinstance(value, Affine) and value.implied and not value.steps


def _loop(loop: Repetition, names: Sequence[str], variables: dict[int, tuple[str, int]]) -> dict[str, Any]:
    """A table with `for`; loops of nothing but a loop share one."""
    first, name = _first(loop), names[len(variables)]
    inside = variables | {loop.height: (name, first)}
    ranges = {name: f"{first}..{first + loop.count}"}
    body = [_written(thing, names, inside) for thing in loop.body]
    if len(body) == 1 and isinstance(body[0], dict):
        (table,) = body
        return {**table, "for": ranges | table["for"]} if "for" in table else {"for": ranges, **table}
    return {"for": ranges, "do": body}


def _first(loop: Repetition) -> int:
    """Where the range of a loop's variable begins: where most expressions become the variable alone, else at 0."""
    follow = [number for number in _numbers(loop.body) if loop.height in dict(number.steps)]
    alone = Counter(number.base for number in follow if number.steps == ((loop.height, 1),))
    (base, times), *_ = alone.most_common(1) or [(0, 0)]
    return base if base > 0 and times > sum(not number.base for number in follow) else 0


def _numbers(value: Any) -> Iterator[Affine]:
    if isinstance(value, Affine):
        yield value
    else:
        for child in _children(value):
            yield from _numbers(child)


def expression(number: Affine, variables: dict[int, tuple[str, int]]) -> str:
    """An affine number as text, such as "128 * i + 64"."""
    base, terms = number.base, []
    for height, step in number.steps:
        name, first = variables[height]
        base -= step * first
        terms.append((step < 0, name if abs(step) == 1 else f"{abs(step)} * {name}"))
    if base:
        terms.append((base < 0, str(abs(base))))
    terms.sort(key=lambda term: term[0])  # what is taken away comes last
    (negative, text), *more = terms
    return ("-" if negative else "") + text + "".join(f" {'-' if minus else '+'} {term}" for minus, term in more)


def _piece(piece: str | Affine, variables: dict[int, tuple[str, int]]) -> str:
    if isinstance(piece, str):
        return piece.replace("{", "{{").replace("}", "}}")
    return f"{{{expression(piece, variables)}}}" if piece.steps else str(piece.base)


def _term(piece: str | Affine, variables: dict[int, tuple[str, int]]) -> str:
    """A number of a formula, in brackets where it is a sum or product."""
    if isinstance(piece, str) or not piece.steps:
        return piece if isinstance(piece, str) else str(piece.base)
    text = expression(piece, variables)
    return text if text.isidentifier() else f"({text})"
