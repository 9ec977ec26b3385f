"""A sequence program as `[sequence]` and `[[operand]]` of a document.

Values that are used more than once, that have a name or whose text is long stand under a name, where all that use them
follow; others stand where they are used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import Any

from bdforge.design.document.program_reading import AXIS, BD, DIM, OPERAND, STATEMENTS, WAIT
from bdforge.design.document.repeats import Formula, Repeating, Verbatim
from bdforge.design.document.tables import COMMENT, Table
from bdforge.design.sequences.builder import lines_of
from bdforge.design.sequences.expression_text import text_of
from bdforge.design.sequences.expressions import Expr
from bdforge.design.sequences.sequence_program import ALWAYS, Note, Operand, Program, loops_of
from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.devices.types import TYPES

_SHORT, _LONG = 14, 72
"""Characters of a text that is said again rather than named, and of one that is named though it is used once."""
_FACTS = ("values", "bias", "blocked", "missing", "order", "parallel", "leading")
Plain = dict[str, Any]
Homes = Mapping[int, Plain]
"""What stands at full addresses, as writes name it: a word of a buffer's, or a lock."""


def plain_program(
    program: Program,
    channels: Mapping[tuple[str, int, int], str],
    homes: Homes,
    roles: Mapping[tuple[str, int], str],
) -> tuple[Plain, list[Plain]]:
    """The tables of `sequence` and of each `operand`.

    `channels` are names by direction, number and column, `roles` what those of a direction and number are for.
    """
    return _Writing(program, channels, homes, roles).tables()


@dataclass
class _Writing:
    program: Program
    channels: Mapping[tuple[str, int, int], str]
    homes: Homes
    roles: Mapping[tuple[str, int], str]
    called: dict[Expr, str] = field(default_factory=dict)
    """Names of values that have been given one."""

    # Which values have names.

    @cached_property
    def values(self) -> list[Expr]:
        return self.program.expressions

    @cached_property
    def places(self) -> dict[Expr, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def home(self) -> list[int]:
        """The innermost loop whose counter each value needs."""
        loops = loops_of(self.program.do)
        return [max(loops.keys() & n, key=lambda at: len(loops[at]), default=ALWAYS) for n in self.program.needs]

    def operands(self, place: int) -> list[int]:
        value = self.values[place]
        leaf = value.operation in ("constant", "parameter", "index")
        return [] if leaf else [self.places[operand] for operand in value.operands]

    @cached_property
    def named(self) -> dict[int, frozenset[int]]:
        """Values that get a name, with all such ones that each needs."""
        used = self.uses()
        names: dict[Expr, str] = {}
        found: set[int] = set()
        for place in sorted(used):
            value = self.values[place]
            if value.operation in ("constant", "parameter"):
                continue
            if value.operation == "index":
                names[value] = "turn"
                continue
            text = text_of(value, names.get)
            if place in self.program.names or (used[place] > 1 and len(text) > _SHORT) or len(text) > _LONG:
                found.add(place)
                names[value] = self.program.names.get(place, "value")
        return {place: self.needed([place], found) for place in found}

    def uses(self) -> dict[int, int]:
        """How often each value is used, by statements or by other values that are."""
        found: dict[int, int] = {}
        todo = list(self.roots())
        while todo:
            place = todo.pop()
            found[place] = found.get(place, 0) + 1
            if found[place] == 1:
                todo += self.operands(place)
        return found

    def needed(self, places: Iterable[int], named: Iterable[int]) -> frozenset[int]:
        """Those with names that `places` are made of."""
        among, seen, todo = set(named), set(), list(places)
        while todo:
            if (place := todo.pop()) not in seen:
                seen.add(place)
                todo += self.operands(place)
        return frozenset(seen & among)

    def roots(self) -> Iterator[int]:
        yield from self.of_head()
        yield from chain.from_iterable(map(_inside, self.program.do))

    def of_head(self) -> Iterator[int]:
        """Values of arguments, requirements and operands."""
        for part in (*self.program.arguments, *self.program.requires):
            yield from part.places
        for operand in self.program.operands:
            yield from set(operand.places)

    # Where names are given.

    def name(self, place: int, taken: set[str]) -> str:
        """A name for a value that nothing around has."""
        wanted = self.program.names.get(place)
        tries = (f"v{number}" for number in count(1))
        if wanted is not None:
            tries = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
        found = next(name for name in tries if name not in taken)
        taken.add(found)
        self.called[self.values[place]] = found
        return found

    def assigned(self, places: Iterable[int], taken: set[str]) -> list[Verbatim]:
        """Lines that name values, those that others need first."""
        lines = []
        for place in sorted(places):
            text = text_of(self.values[place], self.called.get)
            lines.append(Verbatim(f"{self.name(place, taken)} = {text}"))
        return lines

    def text(self, place: int) -> int | Formula:
        value = self.values[place]
        return value.constant if value.constant is not None else Formula(text_of(value, self.called.get))

    def note(self, note: Note | None) -> str:
        first, *rest = _escaped(note.text).split("{{}}") if note else [""]
        values = [] if note is None else [self.text(place) for place in note.values]
        return Verbatim(first + "".join(f"{{{value}}}{text}" for value, text in zip(values, rest, strict=True)))

    # The tables.

    def tables(self) -> tuple[Plain, list[Plain]]:
        program, taken = self.program, set(self.program.parameters)
        found: Plain = {"sizes": list(program.parameters)}
        if program.in_flight != TASK_QUEUE_ENTRIES:
            found["in_flight"] = program.in_flight
        if program.in_flight_max != TASK_QUEUE_ENTRIES:
            found["in_flight_max"] = program.in_flight_max
        found["let"] = self.assigned(self.needed(self.of_head(), self.named), taken)
        found["arguments"] = [self.argument(argument) for argument in program.arguments]
        found["requires"] = [
            {"that": self.text(one.when), "otherwise": self.note(one.otherwise)} for one in program.requires
        ]
        operands = [self.operand(operand) for operand in program.operands]
        found["body"] = Repeating(self.block(program.do, ALWAYS, taken))
        return {key: value for key, value in found.items() if value}, operands

    def argument(self, argument: Any) -> Plain:
        found = {"name": argument.name, "elements": self.text(argument.elements), "type": argument.type}
        if argument.type.lstrip("iubf") != str(argument.bits):
            found["bits"] = argument.bits
        return found | ({"role": argument.note} if argument.note else {})

    def operand(self, operand: Operand) -> Plain:
        argument = self.program.arguments[operand.argument].name
        found: Plain = {"name": operand.name} | ({} if argument == operand.name else {"argument": argument})
        found |= {"direction": operand.direction, "type": operand.type}
        if operand.type not in TYPES or TYPES[operand.type].bits != operand.bits:
            found["bits"] = operand.bits
        said = operand.model_dump(exclude_defaults=True)
        found |= {key: said[key] for key in _FACTS if key in said}
        found |= self.keyed(OPERAND, staged=operand.staged, offset=operand.offset)
        found["axes"] = [
            self.keyed(AXIS, size=axis.size, walked=None if axis.walked == axis.size else axis.walked, tile=axis.tile)
            | ({"once": True} if axis.once else {})
            for axis in operand.axes
        ]
        if not self.in_lines(operand):
            found["dims"] = [
                {"axis": dim.axis} | self.keyed(DIM, count=dim.count, step=dim.step, stride=dim.stride)
                for dim in operand.dims
            ]
        return found

    def in_lines(self, operand: Operand) -> bool:
        """Whether its places are walked as a document without dims means."""
        lines = lines_of([self.values[axis.walked] for axis in operand.axes], operand.order)
        dims = [
            (d.axis, self.values[d.count], self.values[d.step].constant, self.values[d.stride]) for d in operand.dims
        ]
        return dims == lines

    def keyed(self, table: Table, **places: int | None) -> Plain:
        """Values by key, but for those that are meant where a key is left out of the table."""
        found = {key: self.text(place) for key, place in places.items() if place is not None}
        return {key: text for key, text in found.items() if not table.implies(key, text)}

    def block(self, statements: Sequence[Any], loop: int, around: set[str]) -> list[Any]:
        """Statements, and before the first that needs it what is named for several."""
        taken, lines = set(around), []
        needs = [self.named_in(_inside(statement), loop) for statement in statements]
        own = [self.named_in(statement.places, loop) for statement in statements]
        for place, statement in enumerate(statements):
            later = frozenset().union(*needs[place + 1 :])
            nested = statement.kind in ("step", "if")
            here = needs[place] if not nested else own[place] | (needs[place] & later)
            fresh = [p for p in here if self.values[p] not in self.called]
            lines += self.assigned(fresh, taken)
            lines.append(self.statement(statement, loop, taken))
        self.forget(taken - around)
        return lines

    def named_in(self, places: Iterable[int], loop: int) -> frozenset[int]:
        """Values with names that a place's statement needs, of those that follow from this loop's counter."""
        return frozenset(place for place in self.needed(places, self.named) if self.home[place] == loop)

    def forget(self, names: set[str]) -> None:
        """Names end with their block."""
        for value in [value for value, name in self.called.items() if name in names]:
            del self.called[value]

    def statement(self, statement: Any, loop: int, taken: set[str]) -> Plain:
        return getattr(self, f"plain_{statement.kind}")(statement, loop, taken)

    def plain_for(self, found: Any, loop: int, taken: set[str]) -> Plain:
        times, counters, inner = self.text(found.count), self.program.counters.get(found.loop, []), set(taken)
        wanted = next((self.program.names[p] for p in counters if p in self.program.names), "turn")
        name = next(n for n in chain([wanted], (f"{wanted}_{number}" for number in count(2))) if n not in taken)
        inner.add(name)
        self.called |= {self.values[place]: name for place in counters}
        body = Repeating(self.block(found.do, found.loop, inner))
        self.forget({name})
        return {"loop": times, "index": name, "body": body}

    def plain_if(self, found: Any, loop: int, taken: set[str]) -> Plain:
        when = self.text(found.when)
        ways = {"body": found.do, "else": found.otherwise} if found.otherwise else {"body": found.do}
        return {"if": when} | {key: Repeating(self.block(block, loop, taken)) for key, block in ways.items()}

    def plain_step(self, found: Any, loop: int, taken: set[str]) -> Plain:
        awaits = [
            {"token": f"{wait.direction} {wait.channel}", "column": self.text(wait.column)}
            | self.keyed(WAIT, columns=wait.columns)
            for wait in found.awaits
        ]
        told: Plain = {"step": self.note(found.note)} | ({"awaits": awaits} if awaits else {})
        return told | {"body": Repeating(self.block(found.do, loop, taken))}

    def plain_task(self, task: Any, loop: int, taken: set[str]) -> Plain:
        column = self.text(task.column)
        named = self.channels.get((task.direction, task.channel, column)) if isinstance(column, int) else None
        found: Plain = {"task": named} if named else {"task": f"{task.direction} {task.channel}", "column": column}
        found |= self.keyed(STATEMENTS["task"], runs=task.runs) | ({"token": True} if task.token else {})
        role = Verbatim(self.roles.get((task.direction, task.channel), ""))
        return found | {COMMENT: role, "bds": Repeating([self.bd(bd) for bd in task.bds])}

    def bd(self, bd: Any) -> Plain:
        found: Plain = {"argument": self.program.arguments[bd.argument].name} | self.keyed(BD, offset=bd.offset)
        found["dims"] = [[self.text(size), self.text(step)] for size, step in zip(bd.sizes, bd.strides, strict=True)]
        if bd.runs is not None:
            found["runs"] = [self.text(place) for place in bd.runs]
        return found | self.keyed(BD, when=bd.when)

    def plain_write(self, write: Any, loop: int, taken: set[str]) -> Plain:
        address, values = self.text(write.address), [self.text(place) for place in write.values]
        if isinstance(address, int) and len(values) == 1 and address in self.homes:
            return self.homes[address] | {"value": values[0]}
        return {"write": address, "values": values}


def _inside(statement: Any) -> Iterator[int]:
    """Values of a statement and of all that stands in it."""
    yield from statement.places
    for block in statement.blocks:
        yield from chain.from_iterable(map(_inside, block))


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
