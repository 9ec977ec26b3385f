"""Single faults of the kind a maintainer makes, in the tree of a Python file."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_MESSAGES = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)  # nothing in them decides


@dataclass(frozen=True)
class Mutant:
    """One fault: a change of the node with this number, in the order of `ast.walk`."""

    node: int
    statement: int  # first line of the statement around it
    line: int
    column: int
    words: str
    change: Callable[[Any], ast.AST]

    def __str__(self) -> str:
        return f"{self.line}:{self.column + 1}: {self.words}"

    def planted(self, tree: ast.Module) -> ast.Module:
        """A copy of the tree with the fault."""
        tree = copy.deepcopy(tree)
        old = list(ast.walk(tree))[self.node]
        new = ast.copy_location(self.change(old), old)
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is old:
                    setattr(parent, name, new)
                elif isinstance(value, list):
                    value[:] = [new if item is old else item for item in value]
        return ast.fix_missing_locations(tree)


def mutants_of(tree: ast.Module) -> list[Mutant]:
    """Every fault that this module knows, in the order of lines; messages, annotations and imports stay as they are."""
    left_out = {id(node) for part in _silent(tree) for node in ast.walk(part)}
    statements = {
        id(node): part.lineno for part in ast.walk(tree) if isinstance(part, ast.stmt) for node in ast.walk(part)
    }
    found = [
        Mutant(number, statements[id(node)], node.lineno, node.col_offset, words, change)
        for number, node in enumerate(ast.walk(tree))
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in left_out
        for words, change in _faults(node)
    ]
    return sorted(found, key=lambda mutant: (mutant.line, mutant.column))


def _silent(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, _MESSAGES):
            yield node
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from node.decorator_list
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield node


def _faults(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], ast.AST]]]:
    match node:
        case ast.Compare(ops=ops):
            for place, operator in enumerate(ops):
                yield _swap(operator, lambda n, new, at=place: n.ops.__setitem__(at, new))
        case ast.BoolOp(op=operator) | ast.AugAssign(op=operator) | ast.BinOp(op=operator) if type(operator) in _SWAPS:
            yield _swap(operator, lambda n, new: setattr(n, "op", new))
        case ast.UnaryOp(op=ast.Not() | ast.USub() as operator):
            yield f"{type(operator).__name__} gone", lambda n: n.operand
        case ast.Constant(value=bool() as value):
            yield f"{value} to {not value}", lambda n: ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield f"{value} to {value + 1}", lambda n: ast.Constant(value + 1)
        case ast.Name(id=name) if name in _NAMES:
            yield f"{name} to {_NAMES[name]}", lambda n: ast.Name(_NAMES[name], n.ctx)
        case ast.Call(func=ast.Name(id="abs"), args=[_]):
            yield "abs gone", lambda n: n.args[0]
        case ast.If() | ast.IfExp():
            yield "condition to False", lambda n: _with_test(n, ast.Constant(False))
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom() as value):
            yield f"{ast.unparse(value)[:50]} gone", lambda n: ast.Pass()
        case ast.Continue() | ast.Break():
            yield f"{type(node).__name__.lower()} gone", lambda n: ast.Pass()


def _swap(operator: ast.AST, put: Callable) -> tuple[str, Callable[[Any], ast.AST]]:
    other = _SWAPS[type(operator)]

    def change(node: ast.AST) -> ast.AST:
        put(node, other())
        return node

    return f"{type(operator).__name__} to {other.__name__}", change


def _with_test(node: ast.If | ast.IfExp, test: ast.expr) -> ast.AST:
    node.test = test
    return node
