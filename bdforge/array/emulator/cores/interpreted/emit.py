"""The table of what each operation of a core program means: one emitter of Python source per operation name."""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from bdforge.array.emulator.cores.interpreted.number_formats import width
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import location

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


def refuse(message: str, where: Where) -> None:
    """What a program calls where a condition does not hold."""
    raise CoreError(f"{message}{where()}")


def is_vector(value: SSAValue) -> bool:
    return isinstance(value.type, VectorType)


def unsigned(expression: str, type_: Attribute) -> str:
    return f"({expression} & {(1 << width(type_)) - 1})"


def literal(expression: str) -> int | None:
    """The number that an expression is, if it is nothing else."""
    bare = expression.strip("()")
    return int(bare) if bare.lstrip("-").isdecimal() else None


def tuple_of(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
