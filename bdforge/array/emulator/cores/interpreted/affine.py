"""The affine dialect: loops, accesses and conditions by affine maps."""

from collections.abc import Callable, Sequence

from xdsl.dialects import affine
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from bdforge.array.emulator.cores.interpreted.control_flow import carrying_loop
from bdforge.array.emulator.cores.interpreted.emit import emits, unsupported
from bdforge.array.emulator.cores.interpreted.memref_ops import emit_load, emit_store
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError

_OPERATORS = {AffineBinaryOpKind.Add: "+", AffineBinaryOpKind.Mul: "*"}


def expressions(t: Translation, op: Operation, map_: AffineMap, operands: Sequence[SSAValue]) -> list[str]:
    """The results of a map applied to operands: dimensions first, then symbols."""
    values = t.values(operands)
    return [_expression(t, op, result, values[: map_.num_dims], values[map_.num_dims :]) for result in map_.results]


def _expression(t: Translation, op: Operation, expr: AffineExpr, dims: list[str], symbols: list[str]) -> str:
    match expr:
        case AffineConstantExpr():
            return f"({expr.value})"
        case AffineDimExpr():
            return dims[expr.position]
        case AffineSymExpr():
            return symbols[expr.position]
        case AffineBinaryOpExpr():
            left = _expression(t, op, expr.lhs, dims, symbols)
            right = _expression(t, op, expr.rhs, dims, symbols)
            if expr.kind in _OPERATORS:
                return f"({left} {_OPERATORS[expr.kind]} {right})"
            return _division(t, op, expr, left, right)
        case _:
            raise unsupported(op, f"the expression {expr} is not supported")


def _division(t: Translation, op: Operation, expr: AffineBinaryOpExpr, left: str, right: str) -> str:
    if not (isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value > 0):
        right = f"{t.helper(_positive)}({right}, {t.where(op)})"
    if expr.kind is AffineBinaryOpKind.FloorDiv:
        return f"({left} // {right})"
    if expr.kind is AffineBinaryOpKind.Mod:
        return f"({left} % {right})"
    return f"(-(-{left} // {right}))"


def _positive(divisor: int, where: Callable[[], str]) -> int:
    if divisor < 1:
        raise CoreError(f"an affine division by {divisor}; the divisor must be positive{where()}")
    return divisor


def _bound(t: Translation, op: Operation, map_: AffineMap, operands: Sequence[SSAValue], choose: str) -> str:
    found = expressions(t, op, map_, operands)
    return found[0] if len(found) == 1 else f"{choose}({', '.join(found)})"


@emits("affine.for")
def for_loop(t: Translation, op: affine.ForOp) -> None:
    low = _bound(t, op, op.lowerBoundMap.data, op.lowerBoundOperands, "max")
    high = _bound(t, op, op.upperBoundMap.data, op.upperBoundOperands, "min")
    step = op.step.value.data
    if step < 1:
        raise unsupported(op, f"the step is {step}; it must be positive")
    carrying_loop(t, op, op.inits, [low, high, str(step)])


@emits("affine.if")
def condition(t: Translation, op: affine.IfOp) -> None:
    set_ = op.condition.data
    values = t.values(op.args)
    dims, symbols = values[: set_.num_dims], values[set_.num_dims :]
    sides = [
        f"{_expression(t, op, c.lhs, dims, symbols)} {c.kind.value} {_expression(t, op, c.rhs, dims, symbols)}"
        for c in set_.constraints
    ]
    t.choice(" and ".join(sides) or "True", op.then_region, op.else_region)


@emits("affine.apply")
def apply(t: Translation, op: affine.ApplyOp) -> None:
    t.wrapped(op.result, expressions(t, op, op.map.data, op.mapOperands)[0])


def _indices(t: Translation, op: affine.LoadOp | affine.StoreOp) -> list[str]:
    return [t.simple(index) for index in expressions(t, op, op.map.data, op.indices)]


@emits("affine.load")
def load(t: Translation, op: affine.LoadOp) -> None:
    emit_load(t, op, op.memref, _indices(t, op))


@emits("affine.store")
def store(t: Translation, op: affine.StoreOp) -> None:
    emit_store(t, op, op.value, op.memref, _indices(t, op))
