"""The loops of a sequence program."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bdforge.sequences.expressions import ProgramError

ALWAYS = -1
"""The loop of values that depend on none."""

Loops = Mapping[int, tuple[int, ...]]
"""The loops around each loop, by its number."""


def loops_of(statements: Sequence[Any], outer: tuple[int, ...] = ()) -> Loops:
    """The loops of a program; ProgramError for a number that stands twice."""
    found: dict[int, tuple[int, ...]] = {}
    for statement in statements:
        loop = statement.kind == "for"
        inner = {statement.loop: outer} if loop else {}
        for block in _blocks(statement):
            _join(inner, loops_of(block, (*outer, statement.loop) if loop else outer))
        _join(found, inner)
    return found


def _join(found: dict[int, tuple[int, ...]], more: Loops) -> None:
    if twice := found.keys() & more.keys():
        raise ProgramError(f"sequence program: loop {min(twice)} stands twice; give each loop a number of its own")
    found |= more


def _blocks(statement: Any) -> Iterator[Sequence[Any]]:
    if statement.kind in ("for", "if", "step"):
        yield statement.do
    if statement.kind == "if":
        yield statement.otherwise
