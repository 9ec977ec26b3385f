"""Assembly source as lines - labels, directives with arguments, bundles of instructions - and the numbers in them."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bdforge.core.isa.errors import AssemblyError, EncodeError

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*:")
_ASSIGN = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*=(?!=)\s*(.+)")
_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Line:
    """A source line that says something: `labels` before it, then a directive, or the instructions of one bundle."""

    file: str
    number: int
    text: str
    labels: tuple[str, ...]
    directive: str = ""
    arguments: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()

    def error(self, reason: str) -> AssemblyError:
        """A fault of this line."""
        return AssemblyError(f"{self.file}:{self.number}: {reason}\n  {self.text.strip()[:200]}")


def lines(source: str, file: str) -> Iterator[Line]:
    """Lines with labels, directives or instructions; comments are `// ...` and `/* ... */`."""
    text = _without_comments(source)
    for number, (raw, shown) in enumerate(zip(text.split("\n"), source.split("\n"), strict=True), 1):
        labels = []
        rest = raw
        while match := _LABEL.match(rest):
            labels.append(match[1])
            rest = rest[match.end() :]
        rest = rest.strip()
        if rest or labels:
            yield _line(file, number, shown, tuple(labels), rest)


def _without_comments(source: str) -> str:
    """The source with comments blanked out; strings keep what looks like one, line breaks stay."""
    kept, position = [], 0
    for match in re.finditer(f"{_QUOTED.pattern}|{_COMMENT.pattern}".replace("//.*", "//[^\n]*"), source, re.DOTALL):
        kept.append(source[position : match.start()])
        kept.append(match[0] if match[0][0] == '"' else "\n" * match[0].count("\n") or " ")
        position = match.end()
    return "".join([*kept, source[position:]])


def _line(file: str, number: int, shown: str, labels: tuple[str, ...], rest: str) -> Line:
    line = Line(file, number, shown, labels)
    assignment = _ASSIGN.fullmatch(rest)
    if assignment:
        return Line(file, number, shown, labels, ".set", (assignment[1], assignment[2].strip()))
    if rest.startswith("."):
        name, _, tail = rest.partition(" ") if "\t" not in rest.split(" ")[0] else rest.partition("\t")
        return Line(file, number, shown, labels, name.strip().lower(), _arguments(tail, line))
    instructions = tuple(part.strip() for part in rest.split(";"))
    if rest and not all(instructions[:-1]):
        raise line.error("an instruction is missing between two ';'")
    return Line(file, number, shown, labels, instructions=tuple(part for part in instructions if part))


def _arguments(text: str, line: Line) -> tuple[str, ...]:
    """Arguments between commas; quoted ones keep their quotes."""
    if _QUOTED.sub("", text).count('"'):
        raise line.error("a quotation mark is never closed")
    arguments = re.findall(rf"(?:{_QUOTED.pattern}|[^,\"])+", text)
    return tuple(argument.strip() for argument in arguments if argument.strip())


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
