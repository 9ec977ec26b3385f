"""Numbers of assembly: constants, symbols, and sums, products, quotients, shifts and masks of them."""

import ast
import operator
import re
from collections.abc import Callable, Mapping

from bdforge.core.isa.errors import EncodeError

_SYMBOL = re.compile(r"(?<![\w.$])[A-Za-z_.$][\w.$]*")
_TOKENS = re.compile(
    r"(?:\s|0[xX][0-9a-fA-F_]+(?!\w)|0[bB][01_]+(?!\w)|0[oO][0-7_]+(?!\w)|\d[\d_]*(?!\w)|<<|>>|[-+*/%&|^~()])*"
)
_MOST_TEXT, _MOST_SHIFT = 200, 64
_LOWEST, _HIGHEST = -(1 << 64), 1 << 64
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip


def evaluate(text: str, symbols: Mapping[str, int]) -> int:
    """The value of an expression, quotients rounded down; EncodeError for an unknown symbol or what is no number.

    None has more than 64 bits and a sign.
    """
    if len(text) > _MOST_TEXT:
        raise EncodeError(f"an expression of {len(text)} characters; at most {_MOST_TEXT} are read")
    numbers = _SYMBOL.sub(lambda match: str(_value(match[0], symbols)), text).strip()
    try:
        if not _TOKENS.fullmatch(numbers):  # of which Python would make something else, or warn
            raise ValueError(numbers)
        value = _number(ast.parse(numbers, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        raise EncodeError(f"{text.strip()!r} is no number") from None
    if not _LOWEST <= value <= _HIGHEST:
        raise EncodeError(f"{text.strip()!r} has more than 64 bits")
    return value


def is_symbol(text: str) -> bool:
    """Whether a text is the name of a symbol."""
    return _SYMBOL.fullmatch(text) is not None


def names(text: str) -> list[str]:
    """Symbols in an expression."""
    return _SYMBOL.findall(text)


def unknown(text: str, symbols: Mapping[str, int]) -> list[str]:
    """Names in an expression that are not among `symbols`."""
    return [name for name in names(text) if name not in symbols]


def _value(name: str, symbols: Mapping[str, int]) -> int:
    if name not in symbols:
        raise EncodeError(f"symbol {name!r} is not defined")
    return symbols[name]


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_number(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _number(left), _number(right)
            if isinstance(op, ast.LShift) and second > _MOST_SHIFT:
                raise ValueError(second)
            return _BINARY[type(op)](first, second)
    raise ValueError(ast.dump(node)[:40])
