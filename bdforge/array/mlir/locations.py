"""Where operations stood in the text they were parsed from."""

from typing import TypeVar
from weakref import WeakKeyDictionary

from xdsl.ir import Operation, SSAValue

from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.common.messages import Location

ErrorT = TypeVar("ErrorT", bound=MlirError)
_NOWHERE = Location("<built>", 1, 1)
_PLACE, _SPAN = "_bdforge_place", "_bdforge_span"
_NAMES: WeakKeyDictionary[SSAValue, str] = WeakKeyDictionary()


def place(op: Operation, source: SourceText, offset: int, span: tuple[int, int] | None = None) -> None:
    """Remember where an operation's name stands, and where all of it begins and ends."""
    setattr(op, _PLACE, (source, offset))
    setattr(op, _SPAN, span)


def span_of(op: Operation) -> tuple[int, int] | None:
    """Where a parsed operation begins, its results included, and ends; None for one that stands nowhere."""
    return getattr(op, _SPAN, None)


def source_of(op: Operation) -> tuple[SourceText, int] | None:
    """Text and offset of a parsed operation; of the nearest one around it for an operation the parser added."""
    current: Operation | None = op
    while current is not None:
        if (found := getattr(current, _PLACE, None)) is not None:
            return found
        current = current.parent_op()
    return None


def location(op: Operation) -> Location:
    """Where an operation's name stands in the text it was parsed from."""
    found = source_of(op)
    if found is None:
        return _NOWHERE
    source, offset = found
    return source.location(offset)


def error_at(op: Operation, message: str) -> MlirError:
    """An error about an operation."""
    return fault_at(MlirError, op, message)


def fault_at(kind: type[ErrorT], op: Operation, message: str) -> ErrorT:
    """An error of a kind about an operation, at its place in the text where it has one."""
    found = source_of(op)
    return kind(message, _NOWHERE) if found is None else kind.at(*found, message)


def take_places(copy: Operation, original: Operation) -> None:
    """Give the operations of a clone the places of those that they were made from."""
    for op, known in zip(copy.walk(), original.walk(), strict=True):
        take_place(op, known)


def take_place(op: Operation, other: Operation) -> None:
    """Give an operation the place of another one."""
    if (found := source_of(other)) is not None:
        place(op, *found)


def keep_name(value: SSAValue, name: str) -> None:
    """Remember a value's whole name; xDSL's hint loses a number at its end."""
    _NAMES[value] = name


def text_name(value: SSAValue) -> str:
    """How the text that a value was read from calls it, with its number among several results."""
    return _NAMES[value]


def value_name(value: SSAValue) -> str | None:
    """A value's name; None for one that has only a number."""
    hint = value.name_hint
    return None if hint is None else _NAMES.get(value, hint).partition("#")[0]
