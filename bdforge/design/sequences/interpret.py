"""Running a sequence program: what the controller is told, event by event, for given parameters."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from bd_patterns import Pattern, PatternError
from bdforge.design.sequences.expressions import LARGEST, LEAST, ExpressionError
from bdforge.design.sequences.sequence_program import ALWAYS, Configure, Program, ProgramError, Tokens
from bdforge.devices import TileLimits
from bdforge.devices.limits import SHIM

BUDGET = 1 << 24
"""Statements and values that a run may take, a loop's values at each of its turns."""
_NO_STEP = "no step follows what starts before a change; nothing says when its BDs are free"
BESIDE = -1
"""Index of a `Start` outside of steps, of a write or of what belongs to the next step; below it of what belongs to the
steps behind the next changes."""
STEPS_MAX = 1 << 14
"""Steps of one run: its stream would have tens of MiB, and making it takes minutes."""


@dataclass(frozen=True, slots=True)
class NumberedBd:
    """A BD with its number: `pattern` counts elements of argument `argument`; a fourth dimension is the task's runs.

    `bits` are an element's where they are not the argument's.
    """

    argument: int
    pattern: Pattern
    bd_id: int
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class StartedTask:
    """A chain on a shim's channel, run `runs` times."""

    direction: str
    channel: int
    column: int
    runs: int
    token: bool
    bds: tuple[NumberedBd, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A write of the registers from `address` on."""

    address: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """One token of a channel from each of `columns` shims from `column` on."""

    direction: str
    channel: int
    column: int
    columns: int


@dataclass(frozen=True, slots=True)
class Start:
    """What a step starts with, in order. What stands outside of steps comes as steps of their own, of index `BESIDE` or
    below."""

    index: int
    items: tuple[StartedTask | Stored, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """All steps before have ended, and the array takes a configuration, None: it stays as it is. What is written
    `ahead` comes before that end.
    """

    configuration: int | None
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Await:
    """The end of a step: its tokens are here, its BDs are free."""

    index: int
    waits: tuple[Wait, ...]


Event = Start | Await | Reconfigure


def values_of(program: Program, parameters: Mapping[str, int]) -> list[int]:
    """Every value that depends on no loop, by its place; ProgramError as `interpret`."""
    return _Run(program, parameters, BUDGET).values


def require(program: Program, parameters: Mapping[str, int]) -> None:
    """ProgramError with every requirement that does not hold."""
    _Run(program, parameters, BUDGET).require()


def interpret(
    program: Program,
    parameters: Mapping[str, int],
    limits: TileLimits,
    in_flight: int | None = None,
    budget: int = BUDGET,
) -> Iterator[Event]:
    """The events of a run on shims of `limits`; at most `in_flight` steps at a time, as the program says by default,
    and no more than its queues hold.

    ProgramError says which requirement does not hold, which value cannot be computed, which step needs more BDs than a
    shim has, or that the budget is spent.
    """
    run = _Run(program, parameters, budget)
    run.require()
    most = min(in_flight or program.in_flight, program.in_flight_max)
    yield from _Schedule(limits.bds, most).events(run.statements(program.do))


Needs = Mapping[int, int]
"""BDs by the column of their shim."""


@dataclass(slots=True)
class _Planned:
    """A step whose BDs have no numbers yet: each task with its patterns."""

    items: list[Any]
    waits: tuple[Wait, ...]
    note: str

    def needs(self) -> Needs:
        """BDs that it takes."""
        found: dict[int, int] = {}
        for item in self.items:
            if not isinstance(item, Stored):
                found[item[2]] = found.get(item[2], 0) + len(item[5])
        return found


class _Change(NamedTuple):
    """A change of the configuration, with what starts before the steps before it have ended, by the changes before the
    step that it belongs to."""

    statement: Configure
    early: list[_Planned]


class _Run:
    """The values of a run, computed where their loop turns."""

    def __init__(self, program: Program, parameters: Mapping[str, int], budget: int):
        if given := set(program.parameters) ^ set(parameters):
            raise ProgramError(
                f"the program has the parameters {', '.join(program.parameters)}; check {', '.join(sorted(given))}"
            )
        self.program, self.parameters, self.budget = program, parameters, budget
        self.values = [self.known(value) for value in program.values]
        self.compute(ALWAYS, 0)

    def known(self, value: Any) -> int:
        """A constant's or a parameter's value; others are computed."""
        return self.parameters[value] if isinstance(value, str) else value if isinstance(value, int) else 0

    def compute(self, loop: int, counter: int) -> None:
        """Every value whose home is `loop`, whose counter stands at `counter`."""
        self.spend(self.program.costs.get(loop, 1))
        values = self.values
        for place in self.program.counters.get(loop, ()):
            values[place] = counter
        for place, meaning, operands in self.program.turns.get(loop, ()):
            try:
                values[place] = value = meaning(*[values[operand] for operand in operands])
            except ExpressionError as error:
                raise ProgramError(f"value {place} of the sequence program: {error}") from None
            if not LEAST <= value <= LARGEST:
                self.refuse(place)

    def refuse(self, place: int) -> None:
        """ProgramError for a value of more than 64 bits."""
        operation, *operands = self.program.values[place]  # type: ignore[misc]
        given = ", ".join(str(self.values[operand]) for operand in operands)  # type: ignore[index]
        raise ProgramError(f"value {place} of the sequence program: {operation} of {given} needs more than 64 bits")

    def note_text(self, note: Any) -> str:
        return "" if note is None else note.said(self.values.__getitem__)

    def require(self) -> None:
        """ProgramError with every requirement that does not hold."""
        broken = [r.otherwise for r in self.program.requires if not self.values[r.when]]
        if broken:
            raise ProgramError("\n".join(map(self.note_text, broken)))

    def spend(self, cost: int = 1) -> None:
        self.budget -= cost
        if self.budget < 0:
            raise ProgramError(
                f"the sequence program takes more than its budget of {BUDGET} statements and values; split the problem"
            )

    def statements(self, block: Sequence[Any]) -> Iterator[Any]:
        """What a block does: planned steps, and for the body of a step its tasks and writes."""
        for statement in block:
            self.spend()
            match statement.kind:
                case "for":
                    for counter in range(self.values[statement.count]):
                        self.compute(statement.loop, counter)
                        yield from self.statements(statement.do)
                case "if":
                    yield from self.statements(statement.do if self.values[statement.when] else statement.otherwise)
                case "write":
                    written = tuple(self.values[place] for place in statement.values)
                    yield Stored(self.values[statement.address], written)
                case "configure":
                    early = [_Planned(list(self.statements(block)), (), "") for block in statement.blocks]
                    yield _Change(statement, early)
                case "task":
                    yield self.task(statement)
                case "step":
                    waits = tuple(map(self.wait, statement.awaits))
                    yield _Planned(list(self.statements(statement.do)), waits, self.note_text(statement.note))

    def wait(self, tokens: Tokens) -> Wait:
        column, columns = self.values[tokens.column], self.values[tokens.columns]
        if column < 0 or columns < 1:
            raise ProgramError(f"a wait is for {columns} columns from {column} on; it needs at least one, from 0 on")
        return Wait(tokens.direction, tokens.channel, column, columns)

    def task(self, task: Any) -> Any:
        bds = [(bd.argument, self.pattern(bd), bd.bits) for bd in task.bds if bd.when is None or self.values[bd.when]]
        if not bds:
            raise ProgramError("a task has no BD that is wanted")
        column, runs = self.values[task.column], self.values[task.runs]
        if column < 0 or runs < 1:
            raise ProgramError(f"a task of column {column} runs {runs} times; it needs a column from 0 on and a run")
        return task.direction, task.channel, column, runs, task.token, bds

    def pattern(self, bd: Any) -> Pattern:
        values = self.values
        sizes, strides = ([values[p] for p in places] for places in (bd.sizes, bd.strides))
        if bd.runs is not None and values[bd.runs[0]] != 1:
            inner = SHIM.dims - len(sizes)  # dimensions that are missing: runs come behind all that a BD has
            sizes = [values[bd.runs[0]], *[1] * inner, *sizes]
            strides = [values[bd.runs[1]], *[0] * inner, *strides]
        try:
            return Pattern(tuple(sizes), tuple(strides), values[bd.offset])
        except PatternError as error:
            raise ProgramError(f"a BD of the sequence program: {error}") from None


class _Schedule:
    """When steps start and end, as many at a time as their BDs allow, and no more than `most`."""

    def __init__(self, bds: int, most: int) -> None:
        self._rings: defaultdict[int, _Ring] = defaultdict(lambda: _Ring(bds))
        self._running: deque[tuple[Await, Needs]] = deque()
        self._index, self._most, self._in_flight = 0, most, most
        self._early: list[Needs] = []  # of what has started, by the changes before the step that it belongs to

    def events(self, planned: Iterator[Any]) -> Iterator[Event]:
        """Of all that a program does."""
        for one in planned:
            match one:
                case Stored():
                    yield Start(BESIDE, (one,))
                case _Change():
                    yield from self._change(one)
                case _:
                    yield from self._start(one)
        if any(self._early):
            raise ProgramError(_NO_STEP)
        yield from self._ends()

    def _start(self, step: _Planned) -> Iterator[Event]:
        if self._index == STEPS_MAX:
            raise ProgramError(f"takes more than {STEPS_MAX} steps of a sequence; split it")
        needs = step.needs()
        self._check_order(needs, 0)
        while self._running and (len(self._running) == self._in_flight or not self._fits(needs)):
            yield self._end_oldest()
        yield self._begun(self._index, step)
        early, self._early[:1] = self._early[:1], [{}]
        self._running.append((Await(self._index, step.waits), _joined(needs, *early)))
        self._index += 1

    def _change(self, change: _Change) -> Iterator[Event]:
        last = next((await_ for await_, used in reversed(self._running) if used), None)
        if last is not None and not last.waits:
            raise ProgramError(f"step {last.index} awaits no token; nothing says that it has ended by then")
        if any(self._early[:1]):
            raise ProgramError(_NO_STEP)
        if change.statement.ahead is not None:
            yield Reconfigure(change.statement.ahead, ahead=True)
        needs = [one.needs() for one in change.early]
        self._early = self._early[1:]
        fits = self._fits(_joined(*needs))
        if fits and any(needs[1:]) and len(self._running) == self._in_flight:  # queues hold so many
            yield self._end_oldest()
        if fits:
            yield from self._ahead(change.early, needs)
        yield from self._ends()
        yield Reconfigure(change.statement.configuration)
        if not fits:
            yield from self._ahead(change.early, needs)
        self._in_flight = min(self._most, change.statement.in_flight)

    def _ahead(self, early: list[_Planned], needs: list[Needs]) -> Iterator[Start]:
        for changes, (planned, taken) in enumerate(zip(early, needs, strict=True)):
            self._check_order(taken, changes)
            if planned.items:
                yield self._begun(BESIDE - changes, planned)
        self._early = [_joined(*both) for both in zip_longest(self._early, needs, fillvalue={})]

    def _check_order(self, needs: Needs, changes: int) -> None:
        """Rings free BDs in the order in which they were taken: ProgramError where a later step has some already."""
        later = {column for one in self._early[changes + 1 :] for column in one}
        if behind := sorted(later & needs.keys()):
            raise ProgramError(f"BDs of shim {behind[0]} are taken behind those of a later step, which start early")

    def _fits(self, needs: Needs) -> bool:
        """Whether shims have as many BDs free."""
        return all(self._rings[column].has(count) for column, count in needs.items())

    def _begun(self, index: int, planned: _Planned) -> Start:
        return Start(index, tuple(_numbered(item, self._rings) for item in planned.items), planned.note)

    def _end_oldest(self) -> Await:
        oldest, used = self._running[0]
        if used and not oldest.waits:
            raise ProgramError(f"step {oldest.index} awaits no token; nothing says when its BDs are free")
        return self._end()

    def _ends(self) -> Iterator[Await]:
        while self._running:
            yield self._end()

    def _end(self) -> Await:
        ended, used = self._running.popleft()
        for column, count in used.items():
            self._rings[column].used -= count
        return ended


def _joined(*needs: Needs) -> Needs:
    return {column: sum(one.get(column, 0) for one in needs) for column in {*chain(*needs)}}


def _numbered(item: Any, rings: dict[int, "_Ring"]) -> StartedTask | Stored:
    if isinstance(item, Stored):
        return item
    direction, channel, column, runs, token, bds = item
    ids = rings[column].take(len(bds))
    chain = tuple(NumberedBd(argument, pattern, i, bits) for (argument, pattern, bits), i in zip(bds, ids, strict=True))
    return StartedTask(direction, channel, column, runs, token, chain)


@dataclass(slots=True)
class _Ring:
    """The BDs of one shim, taken and freed in order."""

    size: int
    head: int = 0
    used: int = 0

    def has(self, count: int) -> bool:
        return self.used + count <= self.size

    def take(self, count: int) -> tuple[int, ...]:
        if not self.has(count):
            raise ProgramError(f"a step needs more than the {self.size} BDs of a shim; start less at a time")
        taken = tuple((self.head + i) % self.size for i in range(count))
        self.head, self.used = (self.head + count) % self.size, self.used + count
        return taken
