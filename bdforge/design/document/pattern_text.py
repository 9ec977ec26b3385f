"""Access patterns as documents compose them: `shape(m, k).tiled(8, 8)`, by the methods of `bd_patterns.Pattern`."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bd_patterns import Pattern, PatternError
from bdforge.common.messages import clip, listed
from bdforge.design.document.document_values import Scope, Wrong, described, number, plain
from bdforge.design.sequences.expression_text import LONGEST

_MOST_VISITS = 1 << 20
"""Of patterns that `then` joins, which it looks at one by one."""
_METHODS: Mapping[str, tuple[int | None, Callable[..., Pattern]]] = {
    "tiled": (None, Pattern.tiled),
    "permuted": (None, lambda found, *axes: found.permuted(axes)),
    "sliced": (3, Pattern.sliced),
    "split": (2, Pattern.split),
    "repeated": (1, Pattern.repeated),
    "shifted": (1, Pattern.shifted),
    "coalesced": (0, Pattern.coalesced),
    "inverse": (0, Pattern.inverse),
}
"""How many numbers each takes, None: any."""


@described({"type": "string", "maxLength": LONGEST})
def pattern(found: Any, scope: Scope) -> Pattern:
    """The pattern that a text composes of shapes and of patterns with a name, which may use the names here."""
    text = plain(found, scope)
    if len(text) > LONGEST:
        raise Wrong(f"{clip(text)}: a pattern has at most {LONGEST} characters")
    try:
        return _Composing(scope, list(scope.patterns)).of(ast.parse(text.strip(), mode="eval").body)
    except PatternError as error:
        raise Wrong(error) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Wrong(f"{clip(repr(text))} is no pattern; write such as shape(m, k).tiled(8, 8)") from None


@dataclass(frozen=True, slots=True)
class _Composing:
    """`known` are the names of patterns that may be used, those before the one that is read; `made` what they are."""

    scope: Scope
    known: list[str]
    made: dict[str, Pattern] = field(default_factory=dict)

    def of(self, node: ast.expr) -> Pattern:
        match node:
            case ast.Name(id=name):
                return self.named(name)
            case ast.Call(func=ast.Name(id="shape"), args=sizes, keywords=[]):
                return Pattern.of_shape([self.number(size) for size in sizes])
            case ast.Call(func=ast.Attribute(value=value, attr="then"), args=[other], keywords=[]):
                return self.joined(self.of(value), self.of(other))
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=given, keywords=[]) if name in _METHODS:
                count, method = _METHODS[name]
                if count in (None, len(given)):
                    return method(self.of(value), *map(self.number, given))
                raise Wrong(f"{name} takes {count} numbers, got {len(given)}")
        there = listed(["shape", "then", *_METHODS])
        raise Wrong(f"{clip(ast.unparse(node))} is no pattern; there is {there}")

    def named(self, name: str) -> Pattern:
        if name not in self.known:
            raise Wrong(f"there is no pattern {clip(name)} before this; there is {listed(self.known) or 'none'}")
        if name not in self.made:
            text, before = plain(self.scope.patterns[name], self.scope), self.known[: self.known.index(name)]
            self.made[name] = replace(self, known=before).of(ast.parse(text.strip(), mode="eval").body)
        return self.made[name]

    def number(self, node: ast.expr) -> int:
        return number(ast.unparse(node), self.scope)

    def joined(self, read: Pattern, write: Pattern) -> Pattern:
        if max(read.count, write.count, write.span[1]) > _MOST_VISITS:
            raise Wrong(f"then joins patterns of at most {_MOST_VISITS} elements")
        return read.then(write)
