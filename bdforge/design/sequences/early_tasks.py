"""What of a composition's step starts before those before it have ended: tasks that move what the host gave, and
parameters of cores, both of its first round, where nothing else takes part in them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from bdforge.design.sequences.composed_tensors import ComposedStep, Substitution
from bdforge.design.sequences.expressions import Expr, any_of, expression
from bdforge.devices.registers import split_address


class EarlyTasks:
    """The first round of a step, and which of its tasks and writes start early.

    `given` are the arguments of which the array writes nothing. `values` are those of the first round.
    """

    def __init__(self, step: ComposedStep, values: Substitution, given: Collection[int]) -> None:
        self.loops, self.round = _first_round(step.program.do)
        self._step, self._given = step, given
        self.values = Substitution(step.program, values.parameters, {one.loop: expression(0) for one in self.loops})
        self._counters = values.loops
        self._late: set[object] = set()  # channels and cores of which something before stays where it is
        self._chosen = dict(self._choose(self.round))

    def when(self, between: int) -> Expr:
        """Whether anything of the first round starts so many steps early: something is there for it, and a round."""
        if between not in self._chosen.values():
            return expression(0)
        none = any_of(*(self.values(one.count) < 1 for one in self.loops), 0)
        return expression(1) if none.constant == 0 else ~none

    def early(self, between: int) -> Callable[[Any], Expr]:
        """Whether a statement of the first round, or one inside it, starts so many steps early."""
        return lambda one: expression(int(any(self._chosen.get(id(inner)) == between for inner in _walk([one]))))

    def late(self, statement: Any) -> Expr:
        """Where a statement of the step runs in its own place: what starts early does so from the second round on."""
        if id(statement) not in self._chosen:
            return expression(1)
        return any_of(*(~self._counters[one.loop].equals(0) for one in self.loops), 0)

    def _choose(self, block: Sequence[Any]) -> Iterator[tuple[int, int]]:
        """Statements that start early, and the steps between."""
        for statement in block:
            if statement.kind == "if":
                yield from self._choose([*statement.do, *statement.otherwise])
                continue
            for one in _walk([statement]):
                key = self._key(one)
                between = self._between(one, key) if one is statement else None
                if between is not None:
                    yield id(one), between
                elif key is not None:
                    self._late.add(key)

    def _key(self, statement: Any) -> object:
        """What a task or a write belongs to: all of a kind where its place depends on more than the design."""
        if statement.kind == "task":
            return statement.direction, statement.channel, self._known(statement.column)
        if statement.kind == "write":
            address = self._known(statement.address)
            return "write" if address is None else split_address(address)[:2]
        return None

    def _known(self, place: int) -> int | None:
        """A value that the design says, None for one that sizes or counters of loops within the round decide."""
        inner = {need for need in self._step.program.needs[place] if isinstance(need, int)} - self._counters.keys()
        return None if inner else self.values(place).constant

    def _between(self, statement: Any, key: Any) -> int | None:
        """Steps between a statement that starts early and what runs then, None for one that does not."""
        early = self._step.early
        if statement.kind == "write" and self._late.isdisjoint({key, "write"}):
            return early.cores.get(key)
        if statement.kind != "task" or any(bd.argument not in self._given for bd in statement.bds):
            return None
        direction, channel, column = key
        if direction != "MM2S" or not self._late.isdisjoint({key, (direction, channel, None)}):
            return None
        return early.channels.get((column, channel))


def _first_round(block: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
    """The loops around the first step of a program, and what that starts; nothing where something comes before it."""
    first = block[0] if block else None
    if first is None or first.kind not in ("for", "step"):
        return [], ()
    if first.kind == "step":
        return [], first.do
    loops, found = _first_round(first.do)
    return [first, *loops], found


def _walk(block: Sequence[Any]) -> Iterator[Any]:
    """All statements of a block, those within others too."""
    for statement in block:
        yield statement
        for inner in statement.blocks:
            yield from _walk(inner)
