"""Expressions as people write them, both ways: Python's operators and a few functions of integers and names.

`+ - * // %`, comparisons, `not`, `and`, `or`, `a if condition else b` (both are computed), `min` and `max` of several,
`ceildiv`, and `divisor(n, most)`. `/` is for numbers that are known where the text is read, and leaves nothing over.
"""

import ast
from collections.abc import Callable, Mapping
from functools import reduce

from bdforge.common.messages import clip, listed
from bdforge.design.sequences.expressions import (
    LARGEST,
    LEAST,
    Expr,
    ExpressionError,
    Operand,
    all_of,
    any_of,
    expression,
    operate,
    select,
)

LONGEST = 400
"""Characters of an expression."""
Namer = Callable[[Expr], str | None]
"""What an expression is called; None where its text stands."""

_INFIX: Mapping[type, tuple[str, str]] = {
    ast.Add: ("+", "add"),
    ast.Sub: ("-", "sub"),
    ast.Mult: ("*", "mul"),
    ast.FloorDiv: ("//", "floordiv"),
    ast.Mod: ("%", "mod"),
    ast.Lt: ("<", "lt"),
    ast.LtE: ("<=", "le"),
    ast.Eq: ("==", "eq"),
}
_FUNCTIONS = ("min", "max", "ceildiv", "divisor")
_SEVERAL = ("min", "max")
"""Functions that take more than two."""


class WrongExpressionError(ValueError):
    """A text that is no expression, or whose value nothing can hold."""


def parsed(text: str, names: Mapping[str, Operand]) -> Expr:
    """The expression that a text says of `names`; WrongExpressionError tells what is wrong with it."""
    if len(text) > LONGEST:
        raise WrongExpressionError(f"{clip(text)}: an expression has at most {LONGEST} characters")
    try:
        found = _Reading(names).of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, WrongExpressionError):
            raise
        if isinstance(error, ExpressionError):
            raise WrongExpressionError(f"{clip(repr(text))}: {error}") from None
        raise WrongExpressionError(f"{clip(repr(text))} is no integer expression") from None
    if found.constant is not None and not LEAST <= found.constant <= LARGEST:
        raise WrongExpressionError(f"{clip(repr(text))} needs more than 64 bits")
    return found


class _Reading:
    def __init__(self, names: Mapping[str, Operand]):
        self.names = names

    def of(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return expression(value)
            case ast.Name(id=name):
                return self.named(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return operate("sub", 0, self.of(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.of(operand)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.exact(node, self.of(left), self.of(right))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _INFIX:
                return operate(_INFIX[type(operator)][1], self.of(left), self.of(right))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self.compared(node, operator, self.of(left), self.of(right))
            case ast.BoolOp(op=ast.And(), values=values):
                return all_of(*map(self.of, values))
            case ast.BoolOp(values=values):
                return any_of(*map(self.of, values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return select(self.of(test), self.of(body), self.of(orelse))
            case ast.Call(func=ast.Name(id=function), args=[first, second, *rest], keywords=[]):
                if function in _FUNCTIONS and (not rest or function in _SEVERAL):
                    others = (self.of(other) for other in (second, *rest))
                    return reduce(lambda a, b: operate(function, a, b), others, self.of(first))
        raise WrongExpressionError(f"{clip(ast.unparse(node))} is no integer expression")

    def named(self, name: str) -> Expr:
        if name not in self.names:
            known = listed(self.names) or "none"
            raise WrongExpressionError(f"{clip(name)} is no number here; there is {known}")
        return expression(self.names[name])

    def exact(self, node: ast.expr, left: Expr, right: Expr) -> Expr:
        a, b = left.constant, right.constant
        if a is None or b is None:
            raise WrongExpressionError(f"{clip(ast.unparse(node))} follows from a size; use // to round down")
        if b == 0:
            raise WrongExpressionError(f"{clip(ast.unparse(node))} divides by zero")
        if a % b:
            raise WrongExpressionError(
                f"{clip(ast.unparse(node))}: {a} / {b} leaves {a % b} over; use // to round down"
            )
        return expression(a // b)

    def compared(self, node: ast.expr, operator: ast.cmpop, left: Expr, right: Expr) -> Expr:
        match operator:
            case ast.Gt():
                return right < left
            case ast.GtE():
                return right <= left
            case ast.NotEq():
                return ~left.equals(right)
        if type(operator) not in _INFIX:
            raise WrongExpressionError(f"{clip(ast.unparse(node))} is no integer expression")
        return operate(_INFIX[type(operator)][1], left, right)


_CHOICE, _OR, _AND, _NOT, _COMPARED, _SUM, _TERM, _SIGN, _ATOM = range(9)
_STRENGTH = {
    "+": _SUM,
    "-": _SUM,
    "*": _TERM,
    "//": _TERM,
    "%": _TERM,
    "<": _COMPARED,
    "<=": _COMPARED,
    "==": _COMPARED,
}
_SIGNS = {operation: sign for sign, operation in _INFIX.values()}


def text_of(found: Expr, name: Namer) -> str:
    """An expression as `parsed` reads it; parts that have a name stand as that."""
    return _text(found, name)[0]


def truth(found: Expr) -> bool:
    """Whether an expression is 0 or 1 by what it is made of."""
    match found.operation, found.operands:
        case (("lt" | "le" | "eq"), _):
            return True
        case ("mul", (a, b)):
            return truth(a) and truth(b)
        case ("sub", (a, b)):
            return a.constant == 1 and truth(b)
        case ("max", (a, b)):
            return truth(a) and truth(b)
    return False


def _text(found: Expr, name: Namer) -> tuple[str, int]:
    """The text and how strongly it holds together."""
    if (called := name(found)) is not None:
        return called, _ATOM
    match found.operation, found.operands:
        case "constant", (value,):
            return str(value), _SIGN if value < 0 else _ATOM
        case "parameter", (given,):
            return given, _ATOM
        case "select", (condition, then, otherwise):
            parts = _held(then, name, _OR), _held(condition, name, _OR), _held(otherwise, name, _CHOICE)
            return f"{parts[0]} if {parts[1]} else {parts[2]}", _CHOICE
        case "sub", (one, other) if one.constant == 1 and truth(other):
            return _negated(other, name)
        case "max", (a, b) if truth(a) and truth(b):
            return f"{_held(a, name, _OR)} or {_held(b, name, _AND)}", _OR
        case ("lt" | "le") as operation, (a, b) if a.constant is not None:
            return f"{_held(b, name, _SUM)} >{_SIGNS[operation][1:]} {a.constant}", _COMPARED
        case "mul", (a, b) if truth(a) and truth(b):
            return f"{_held(a, name, _AND)} and {_held(b, name, _NOT)}", _AND
        case operation, (a, b) if operation in _SIGNS:
            sign = _SIGNS[operation]
            strength = _STRENGTH[sign]
            left = _held(a, name, strength + (strength == _COMPARED))
            return f"{left} {sign} {_held(b, name, strength + 1)}", strength
    return f"{found.operation}({', '.join(_arguments(found, name))})", _ATOM


def _held(found: Expr, name: Namer, least: int) -> str:
    """The text, in brackets where it would fall apart."""
    text, strength = _text(found, name)
    return text if strength >= least else f"({text})"


def _negated(found: Expr, name: Namer) -> tuple[str, int]:
    if found.operation == "eq" and name(found) is None:
        a, b = (_held(operand, name, _SUM) for operand in found.operands)
        return f"{a} != {b}", _COMPARED
    return f"not {_held(found, name, _NOT)}", _NOT


def _arguments(found: Expr, name: Namer) -> list[str]:
    """Those of a function; a minimum of a minimum and another is one of three."""
    first, *rest = found.operands
    texts = [_text(operand, name)[0] for operand in rest]
    if found.operation in _SEVERAL and first.operation == found.operation and name(first) is None and not truth(first):
        return [*_arguments(first, name), *texts]
    return [_text(first, name)[0], *texts]
