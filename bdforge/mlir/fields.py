"""Properties of operations that read as plain Python values.

In an operation's class `row = integer()` defines the property `row` of the text and reads it as a number; the string
below says what it means. `key` is the property's name in the text where it is another one.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import opt_prop_def, prop_def

from bdforge.mlir.operation import AieOperation, Bool, Int32
from bdforge.mlir.words import CodedWord

WordT = TypeVar("WordT", bound=CodedWord)


class Field(property):
    """A property that a class defines for xDSL under `<name><suffix>`, and reads under its own name by `read(op, key)`.

    `define(key)` makes xDSL's definition.
    """

    def __init__(self, define: Callable[[str], Any], read: Callable[[Any, str], Any], key: str = "", suffix="_attr"):
        super().__init__()
        self._define, self._read, self._key, self._suffix = define, read, key, suffix

    def __set_name__(self, owner: type, name: str) -> None:
        key, read = self._key or name, self._read
        setattr(owner, f"{name}{self._suffix}", self._define(key))
        super().__init__(lambda op: read(op, key))


def _property(kind: Any, optional: bool) -> Callable[[str], Any]:
    define = opt_prop_def if optional else prop_def
    return lambda key: define(kind, prop_name=key)


def integer(kind: Any = Int32, key: str = "", default: int | None = None) -> int:
    """A number; the text may leave out one that has a default."""
    optional = default is not None
    return cast(int, Field(_property(kind, optional), lambda op, name: op.number(name, default), key))


def optional_integer(kind: Any = Int32, key: str = "") -> int | None:
    """A number that may be missing."""
    return cast(int, Field(_property(kind, True), AieOperation.number, key))


def flag(key: str = "", default: bool = False, required: bool = False) -> bool:
    """A truth, which the text may leave out unless it is `required`."""
    return cast(bool, Field(_property(Bool, not required), lambda op, name: op.flag(name, default), key))


def text(kind: Any = StringAttr, key: str = "") -> str:
    """A string or a flat symbol."""
    return cast(str, Field(_property(kind, False), lambda op, name: op.text(name) or "", key))


def optional_text(kind: Any = StringAttr, key: str = "") -> str | None:
    """A string or a flat symbol that may be missing."""
    return cast(str, Field(_property(kind, True), AieOperation.text, key))


def word(words: type[WordT], key: str = "") -> WordT:
    """A word of an enumeration, which the generic form gives by its code."""
    return cast(WordT, Field(_property(Int32, False), lambda op, name: words.from_code(op.number(name)), key))
