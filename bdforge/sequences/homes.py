"""Where the values of a sequence program are computed: at each turn of the innermost loop whose counter they need."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bdforge.sequences.expressions import ProgramError

ALWAYS = -1
"""Home of values that depend on no loop."""

Loops = Mapping[int, tuple[int, ...]]
"""The loops around each loop, by its number."""


def value_homes(values: Sequence[Any], loops: Loops) -> list[int]:
    """For each value the innermost loop whose counter it depends on, or ALWAYS."""
    depths = {loop: len(outer) for loop, outer in loops.items()} | {ALWAYS: -1}
    homes: list[int] = []
    for value in values:
        homes.append(_home(value, homes, depths))
    return homes


def _home(value: Any, homes: Sequence[int], depths: Mapping[int, int]) -> int:
    if not isinstance(value, list) or len(value) < 2:
        return ALWAYS
    if value[0] == "index":
        return int(value[1])
    known = (homes[p] for p in value[1:] if isinstance(p, int) and 0 <= p < len(homes))
    return max(known, key=lambda loop: depths.get(loop, -1), default=ALWAYS)


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
