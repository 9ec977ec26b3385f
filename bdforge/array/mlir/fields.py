"""Properties of operations that read as plain Python values.

In an operation's class `row = integer()` defines the property `row` of the text and reads it as a number; the string
below says what it means. `key` is the property's name in the text where it is another one.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, UnrankedMemRefType
from xdsl.ir import Data, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def

from bdforge.array.mlir.operation import AieOperation, Bool, Int32
from bdforge.devices.coded_words import CodedWord, PortBundle

DataT = TypeVar("DataT")
OperationT = TypeVar("OperationT", bound=Operation)
WordT = TypeVar("WordT", bound=CodedWord)


class PropertyField(property):
    """A property that reads what a class defines for xDSL: `define(name)` gives the definitions, `read(op)` the value.

    Reading raises ValueError where the text gives what the field cannot be; `unreadable` finds such fields.
    """

    def __init__(self, define: Callable[[str], dict[str, Any]], read: Callable[[Any, str], Any]):
        super().__init__()
        self._define, self._read = define, read

    def __set_name__(self, owner: type, name: str) -> None:
        for attribute, definition in self._define(name).items():
            if attribute not in vars(owner):  # a class may say more of its operand, and where it stands
                setattr(owner, attribute, definition)
        read = self._read
        super().__init__(lambda op: read(op, name))


def unreadable(op: Operation) -> str | None:
    """What is wrong with the first field of an operation that cannot be read, or None."""
    for name in _fields(type(op)):
        try:
            getattr(op, name)
        except ValueError as error:
            return str(error)
    return None


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(
        name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, PropertyField)
    )


def _field(kind: Any, read: Callable[[Any, str], Any], key: str, optional: bool) -> Any:
    define = opt_prop_def if optional else prop_def
    return PropertyField(
        lambda name: {f"{name}_attr": define(kind, prop_name=key or name)}, lambda op, name: read(op, key or name)
    )


def integer(kind: Any = Int32, key: str = "", default: int | None = None) -> int:
    """A number; the text may leave out one that has a default."""
    return _field(kind, lambda op, name: op.number(name, default), key, default is not None)


def optional_integer(kind: Any = Int32, key: str = "") -> int | None:
    """A number that may be missing."""
    return _field(kind, AieOperation.number, key, True)


def flag(key: str = "", default: bool = False, required: bool = False) -> bool:
    """A truth, which the text may leave out unless it is `required`."""
    return _field(Bool, lambda op, name: op.flag(name, default), key, not required)


def text(kind: Any = StringAttr, key: str = "") -> str:
    """A string or a flat symbol."""
    return _field(kind, lambda op, name: op.text(name) or "", key, False)


def optional_text(kind: Any = StringAttr, key: str = "") -> str | None:
    """A string or a flat symbol that may be missing."""
    return _field(kind, AieOperation.text, key, True)


def word(words: type[WordT], key: str = "") -> WordT:
    """A word of an enumeration, which the generic form gives by its code."""
    return _field(Int32, lambda op, name: _word(op, name, words), key, False)


def optional_word(words: type[WordT]) -> WordT | None:
    """Such a word that may be missing."""
    return _field(Int32, lambda op, name: _word(op, name, words) if name in op.properties else None, "", True)


def _word(op: AieOperation, name: str, words: type[WordT]) -> WordT:
    try:
        return words.from_code(op.number(name))
    except ValueError as error:
        raise ValueError(f"'{name}': {error}") from None


def optional_data(kind: type[Data[DataT]], key: str = "") -> DataT | None:
    """What an attribute that may be missing holds."""
    return _field(kind, lambda op, name: op.held(name), key, True)


def data_list(kind: type[Data[tuple[DataT, ...]]], key: str) -> list[DataT]:
    """The list that an attribute holds; empty where it is missing."""
    return _field(kind, lambda op, name: list(op.held(name) or ()), key, True)


PortName = tuple[PortBundle, int]
"""Bundle and channel of a port of a switch."""


def port(prefix: str) -> PortName:
    """A port, of properties `<prefix>bundle` and `<prefix>channel`."""
    return cast(PortName, PropertyField(lambda _: port_definitions(prefix), lambda op, _: read_port(op, prefix)))


def port_definitions(prefix: str) -> dict[str, Any]:
    """xDSL's definitions of a port's properties."""
    return {f"{prefix}{key}_attr": prop_def(Int32, prop_name=f"{prefix}{key}") for key in ("bundle", "channel")}


def read_port(op: AieOperation, prefix: str) -> PortName:
    """The port that these properties tell; ValueError for a code that stands for none."""
    return _word(op, f"{prefix}bundle", PortBundle), op.number(f"{prefix}channel")


def behind(kind: type[OperationT], problem: str) -> OperationT:
    """The operation that defines the operand `<name>_value`; `problem` is what to say of another one."""

    def read(op: AieOperation, name: str) -> OperationT:
        return defined_by(getattr(op, f"{name}_value"), kind, problem)

    return cast(Any, PropertyField(lambda name: {f"{name}_value": operand_def(IndexType)}, read))


def defined_by(value: SSAValue, kind: type[OperationT], problem: str) -> OperationT:
    """The operation that defines a value; ValueError with `problem` where it is no `kind`."""
    if not isinstance(value.owner, kind):
        raise ValueError(problem)
    return value.owner


def memref(operand: str) -> MemRefType | UnrankedMemRefType:
    """The type of an operand whose elements are moved."""

    def read(op: AieOperation, _: str) -> MemRefType | UnrankedMemRefType:
        found = getattr(op, operand).type
        if not isinstance(found, MemRefType | UnrankedMemRefType):
            raise ValueError(f"moves a memref, not {found}")
        return found

    return cast(Any, PropertyField(lambda _: {}, read))
