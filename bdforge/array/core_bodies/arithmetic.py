"""Integer operations of MLIR as instructions. Values of fewer than 32 bits are kept sign-extended, an i1 as 0 or 1."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from bdforge.array.core_bodies.value_locations import refused
from bdforge.array.mlir.elementwise_ops import CmpiOp

if TYPE_CHECKING:
    from bdforge.array.core_bodies.compiled_body import CompiledBody


_DIRECT = {"addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor"}
_WRAPS = ("addi", "subi", "muli", "shli")
# Instruction and whether its operands change places, by the predicate's number.
_COMPARISONS = (
    ("eq", False), ("ne", False), ("lt", False), ("ge", True), ("lt", True),
    ("ge", False), ("ltu", False), ("geu", True), ("ltu", True), ("geu", False),
)  # fmt: skip
_CHOICES = {"maxsi": "lt", "minsi": "ge", "maxui": "ltu", "minui": "geu"}


def bits_of(kind: Attribute) -> int:
    """Bits of an integer or index, as a core computes it."""
    return kind.width.data if isinstance(kind, IntegerType) else 32


def arithmetic(e: "CompiledBody", op: Operation) -> bool:
    """Emit an operation of the arith dialect; False if it is none that is known."""
    emit = _EMITTED.get(name := op.name.removeprefix("arith."))
    if emit is not None:
        e.result(op.results[0], lambda d: emit(e, op, name, d))
    return emit is not None


def _choose(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    condition, then, otherwise = (e.read(value) for value in op.operands)
    e.decide(condition)
    e.pick(d, then, otherwise)


def _direct(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    a, b = (e.read(v) for v in op.operands[:2])
    e.emit(f"{_DIRECT[name]} {d}, {a}, {b}")
    if name in _WRAPS:
        _narrow(e, op.results[0], d)


def _narrow(e: "CompiledBody", value: SSAValue, d: str) -> None:
    """Bring a result of 32 bits into the form of its type."""
    bits = bits_of(value.type)
    if bits == 1:
        e.emit(f"and {d}, {d}, {e.number(1)}")
    elif bits < 32:
        e.emit(f"extend.s{bits} {d}, {d}")


def _compare(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    assert isinstance(op, CmpiOp)
    text, swapped = _COMPARISONS[op.predicate.value.data]
    if bits_of(op.lhs.type) == 1 and op.predicate.value.data in range(2, 6):
        swapped = not swapped  # a signed i1 is 0 or -1
    a, b = e.read(op.lhs), e.read(op.rhs)
    e.emit(f"{text} {d}, {b}, {a}" if swapped else f"{text} {d}, {a}, {b}")


def _extreme(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    if bits_of(op.results[0].type) == 1:
        raise refused(op, f"{op.name} of i1 has no machine code here; use arith.andi or arith.ori")
    a, b = (e.read(v) for v in op.operands[:2])
    condition = e.temporary()
    e.emit(f"{_CHOICES[name]} {condition}, {a}, {b}")
    e.decide(condition)
    e.pick(d, b, a)


def _shift(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    value, count = (e.read(v) for v in op.operands[:2])
    bits = bits_of(op.results[0].type)
    if bits == 1:
        raise refused(op, f"{op.name} of i1 has no machine code here")
    if name == "shrui" and bits < 32:
        e.emit(f"extend.u{bits} {d}, {value}")
        value = d
    if name != "shli":
        negative = e.temporary()
        e.emit(f"sub {negative}, {e.number(0)}, {count}")
        count = negative
    e.emit(f"{'ashl' if name == 'shrsi' else 'lshl'} {d}, {value}, {count}")
    if name != "shrsi":
        _narrow(e, op.results[0], d)


def _cast(e: "CompiledBody", op: Operation, name: str, d: str) -> None:
    source = op.operands[0]
    before, after = bits_of(source.type), bits_of(op.results[0].type)
    register = e.read(source)
    signed = name in ("index_cast", "extsi") and before < after
    if before == 1 and signed:
        e.emit(f"sub {d}, {e.number(0)}, {register}")
    elif name == "extui" and before in (8, 16):
        e.emit(f"extend.u{before} {d}, {register}")
    else:
        e.emit(f"mov {d}, {register}")
        if after < before:
            _narrow(e, op.results[0], d)


_EMITTED: Mapping[str, Callable[..., None]] = {
    **dict.fromkeys(_DIRECT, _direct), **dict.fromkeys(_CHOICES, _extreme), "cmpi": _compare, "select": _choose,
    **dict.fromkeys(("shli", "shrsi", "shrui"), _shift),
    **dict.fromkeys(("index_cast", "extsi", "extui", "trunci"), _cast),
}  # fmt: skip
"""What writes an operation's instructions, by its name."""
