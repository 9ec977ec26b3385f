"""The table of what each operation of a core program means: one emitter of Python source per operation name."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from bdforge.array.emulator.cores.interpreted.number_formats import range_of, width
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import location

if TYPE_CHECKING:
    from bdforge.array.emulator.cores.interpreted.translation import Translation

Emitter = Callable[..., None]
"""Gets the translation of a program and one operation of it."""
EMITTERS: dict[str, Emitter] = {}
Where = Callable[[], str]


def emits(*names: str) -> Callable[[Callable], Callable]:
    """Register an emitter for operations of these names."""

    def register(function: Callable) -> Callable:
        EMITTERS.update(dict.fromkeys(names, function))
        return function

    return register


def unsupported(op: Operation, why: str) -> CoreError:
    """What to raise for an operation that has no meaning here."""
    return CoreError(f"{location(op)}: {op.name}: {why}")


def is_vector(value: SSAValue) -> bool:
    return isinstance(value.type, VectorType)


def unsigned(expression: str, type_: Attribute) -> str:
    return f"({expression} & {(1 << width(type_)) - 1})"


def wrapped(t: "Translation", value: SSAValue, expression: str) -> None:
    """Store an integer that may have left its type's range. Comparing first is faster than always masking."""
    low, high = range_of(value.type)
    name = t.value(value)
    t.line(f"{name} = {expression}")
    t.line(f"if not {low} <= {name} <= {high}: {name} = (({name} - {low}) & {high - low}) + {low}")


def literals(t: "Translation", values: Sequence[SSAValue]) -> list[str]:
    return [t.value(value) for value in values]


def literal(expression: str) -> int | None:
    """The number that an expression is, if it is nothing else."""
    bare = expression.strip("()")
    return int(bare) if bare.lstrip("-").isdecimal() else None


def tuple_of(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def mixed(t: "Translation", static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[str]:
    """Expressions of a list whose unknown entries are values."""
    left = iter(dynamic)
    return [t.value(next(left)) if entry == DYNAMIC_INDEX else str(entry) for entry in static]


def copy_all(t: "Translation", targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
    """Assign all at once, so that exchanged values survive."""
    if len(targets):
        t.line(f"{', '.join(literals(t, targets))} = {', '.join(literals(t, sources))}")


def require(t: "Translation", condition: str, message: str, op: Operation) -> None:
    """Stop with a CoreError unless `condition` holds; `message` is the body of an f-string."""
    t.line(f"if not ({condition}): {t.helper(_refuse)}(f{message!r}, {t.where(op)})")


def _refuse(message: str, where: Where) -> None:
    raise CoreError(f"{message}{where()}")
