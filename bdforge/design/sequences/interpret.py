"""Running a sequence program: what the controller is told, event by event, for given parameters."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bd_patterns import Pattern, PatternError
from bdforge.design.sequences.expressions import LARGEST, LEAST, ExpressionError
from bdforge.design.sequences.sequence_program import ALWAYS, Configure, Program, ProgramError, Tokens
from bdforge.devices import TileLimits
from bdforge.devices.limits import SHIM

BUDGET = 1 << 24
"""Statements and values that a run may take, a loop's values at each of its turns."""
_NO_STEP = "no step follows what starts before a change; nothing says when its BDs are free"
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
    """What a step starts with, in order. Writes outside of steps come as steps of their own, of index -1."""

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
    yield from _scheduled(run.statements(program.do), limits.bds, most)


@dataclass(slots=True)
class _Planned:
    """A step whose BDs have no numbers yet: each task with its patterns."""

    items: list[Any]
    waits: tuple[Wait, ...]
    note: str

    def needs(self) -> dict[int, int]:
        """BDs that it takes, by column."""
        found: dict[int, int] = {}
        for item in self.items:
            if not isinstance(item, Stored):
                found[item[2]] = found.get(item[2], 0) + len(item[5])
        return found


class _Change(NamedTuple):
    """A change of the configuration, with what starts before the steps before it have ended."""

    statement: Configure
    early: _Planned


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
                    yield _Change(statement, _Planned(list(self.statements(statement.do or ())), (), ""))
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


def _scheduled(planned: Iterator[Any], bds: int, most: int) -> Iterator[Event]:
    """When steps start and end: their BDs are taken from each shim in a ring, in order."""
    rings: defaultdict[int, _Ring] = defaultdict(lambda: _Ring(bds))
    running: deque[tuple[Await, dict[int, int]]] = deque()
    index, in_flight = 0, most
    early: dict[int, int] = {}
    for step in planned:
        if isinstance(step, Stored):
            yield Start(-1, (step,))
            continue
        if isinstance(step, _Change):
            if (last := next((one for one in reversed(running) if one[1]), None)) is not None and not last[0].waits:
                raise ProgramError(f"step {last[0].index} awaits no token; nothing says that it has ended by then")
            if early:
                raise ProgramError(_NO_STEP)
            change, early = step.statement, step.early.needs()
            if change.ahead is not None:
                yield Reconfigure(change.ahead, ahead=True)
            fits = _fits(early, rings)
            if fits:
                yield from _begun(step.early, rings)
            yield from (_ended(running.popleft(), rings) for _ in range(len(running)))
            yield Reconfigure(change.configuration)
            if not fits:
                yield from _begun(step.early, rings)
            in_flight = min(most, change.in_flight)
            continue
        if index == STEPS_MAX:
            raise ProgramError(f"takes more than {STEPS_MAX} steps of a sequence; split it")
        needs = step.needs()
        while running and (len(running) == in_flight or not _fits(needs, rings)):
            oldest, used = running[0]
            if used and not oldest.waits:
                raise ProgramError(f"step {oldest.index} awaits no token; nothing says when its BDs are free")
            yield _ended(running.popleft(), rings)
        yield Start(index, tuple(_numbered(item, rings) for item in step.items), step.note)
        running.append((Await(index, step.waits), {c: needs.get(c, 0) + early.get(c, 0) for c in {*needs, *early}}))
        index, early = index + 1, {}
    if early:
        raise ProgramError(_NO_STEP)
    yield from (_ended(step, rings) for step in running)


def _fits(needs: Mapping[int, int], rings: dict[int, "_Ring"]) -> bool:
    """Whether shims have as many BDs free."""
    return all(rings[column].has(count) for column, count in needs.items())


def _begun(early: _Planned, rings: dict[int, "_Ring"]) -> Iterator[Start]:
    if early.items:
        yield Start(-1, tuple(_numbered(item, rings) for item in early.items))


def _ended(step: tuple[Await, dict[int, int]], rings: dict[int, "_Ring"]) -> Await:
    for column, count in step[1].items():
        rings[column].used -= count
    return step[0]


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
