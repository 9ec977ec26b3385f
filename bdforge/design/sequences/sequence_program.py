"""The form of a sequence program, as manifests hold it.

`values` is a list of integers: each entry is a constant, the name of a parameter, or `[operation, ...]` on entries
before it; `["index", loop]` is a loop's counter. Statements name values by their place in the list and run in order:

- `for`: `do`, `count` times; the counter of loop number `loop` runs from 0.
- `if`: `do` where value `when` is not 0, else `otherwise`.
- `write`: the registers from full address `address` on become `values`, in one operation of the stream.
- `task`: configure a chain of BDs on a shim's channel and start it, `runs` times.
- `configure`: once every step before it has ended, the array becomes what number `configuration` says: operations that
  come with the design, none where it stays as it is. From then on at most `in_flight` steps run. What number `ahead`
  says comes before those steps have ended, and the tasks and writes of `do` behind it, where the BDs of these are free,
  else behind the change; they belong to the first step behind it, which a program has.
- `step`: the tasks and writes of `do` as a unit. Before it starts, the oldest steps under way end, as many as it takes
  for at most `in_flight` to run and for its BDs to be free. A step ends when the tokens of `awaits` have come; then all
  its BDs are free: the program promises that its other tasks have ended by then.

A BD moves `sizes` elements of an argument from element `offset` on, `strides` apart, outermost first, of `bits` bits
where its argument's are others; `runs` (count, stride) moves it on from run to run where count is above 1. `when`: only
where that value is not 0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from bdforge.design.sequences.expressions import DIVISOR_MAX, OPERATIONS, Expr, Operation, ProgramError
from bdforge.devices.limits import TASK_QUEUE_ENTRIES

__all__ = ["Program", "ProgramError"]

MOST_VALUES = 1 << 16  # of a program, so that a file cannot ask for more
MOST_WRITTEN = 1 << 10  # registers of a write, likewise
MOST_AXES, MOST_LOOPS = 8, 48  # of an operand, likewise
ALWAYS = -1
"""The loop of values that depend on none."""
Loops = Mapping[int, tuple[int, ...]]
"""The loops around each loop, by its number."""
Place = Annotated[int, Field(ge=0, lt=MOST_VALUES)]
Number = Annotated[int, Field(ge=0, le=0x7FFFFFFF)]
Direction = Literal["S2MM", "MM2S"]
Value = int | str | list[str | int]


class ProgramPart(BaseModel):
    """A part of a program: some of its members are places of values, others are parts."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    CALLED: ClassVar[str] = ""
    """By messages, where it has no name of its own."""

    def values_by_part(self) -> Iterator[tuple["ProgramPart", int]]:
        """(part, place) of each value that it names, or a part of it; statements inside it are no part of it."""
        members = _members_of_places(type(self))
        for name, member in self:
            several = member if isinstance(member, list) else [member]
            if name in members:
                yield from ((self, place) for place in several if place is not None)
            else:
                parts = (one for one in several if isinstance(one, ProgramPart) and not isinstance(one, _Statement))
                yield from (found for part in parts for found in part.values_by_part())

    @property
    def places(self) -> list[int]:
        """Places of the values that it and its parts name."""
        return [place for _, place in self.values_by_part()]


class _Statement(ProgramPart):
    @property
    def blocks(self) -> list[list["Statement"]]:
        """The statements inside it."""
        return [member for name, member in self if name in ("do", "otherwise") and member is not None]


@cache
def _members_of_places(part: type[ProgramPart]) -> frozenset[str]:
    def of_place(hint: Any) -> bool:
        return hint == Place or any(map(of_place, get_args(hint)))

    return frozenset(name for name, hint in get_type_hints(part, include_extras=True).items() if of_place(hint))


class ProgramArgument(ProgramPart):
    """A host buffer: `elements` of MLIR type `type`, `bits` wide each."""

    name: str
    type: str
    bits: Annotated[int, Field(ge=1, le=64)]
    elements: Place
    note: str = ""


class ProgramBd(ProgramPart):
    """One BD of a chain."""

    CALLED = "a BD"
    argument: Annotated[int, Field(ge=0)]
    offset: Place
    sizes: Annotated[list[Place], Field(min_length=1, max_length=4)]
    strides: Annotated[list[Place], Field(min_length=1, max_length=4)]
    runs: Annotated[list[Place], Field(min_length=2, max_length=2)] | None = None
    when: Place | None = None
    bits: Annotated[int, Field(ge=1, le=64)] | None = None


class ProgramTask(_Statement):
    """One task of one shim channel."""

    CALLED = "a task"
    kind: Literal["task"]
    direction: Direction
    channel: Annotated[int, Field(ge=0)]
    column: Place
    runs: Place
    token: bool = False
    bds: Annotated[list[ProgramBd], Field(min_length=1)]


class ProgramWrite(_Statement):
    """A write of one register, or of several that follow each other."""

    CALLED = "a write"
    kind: Literal["write"]
    address: Place
    values: Annotated[list[Place], Field(min_length=1, max_length=MOST_WRITTEN)]


class Configure(_Statement):
    """A change of the array's configuration, or, without one, a wait for all that ran before.

    What it does starts before that wait and belongs to the step behind it, what it does `sooner` to those behind the
    next changes, a block for each.
    """

    CALLED = "a configuration"
    kind: Literal["configure"]
    configuration: Number | None = None
    ahead: Number | None = None
    in_flight: Annotated[Number, Field(ge=1)]
    do: list["Statement"] | None = None
    sooner: list[list["Statement"]] | None = None

    @property
    def blocks(self) -> list[list["Statement"]]:
        """By the changes that come before the step that they belong to."""
        return [self.do or [], *(self.sooner or [])]


class Tokens(ProgramPart):
    """One token from a channel of each of `columns` shims, from `column` on."""

    CALLED = "a wait"
    direction: Direction
    channel: Annotated[int, Field(ge=0)]
    column: Place
    columns: Place


class Note(ProgramPart):
    """What a reader of the MLIR is told: text with {} for each of `values`."""

    CALLED = "a note"
    text: str
    values: list[Place] = Field(default_factory=list)

    def said(self, value: Callable[[int], object]) -> str:
        """The text with what `value` gives for each place; no format(), since the text may come from a file."""
        first, *rest = self.text.split("{}")
        return first + "".join(f"{value(place)}{text}" for place, text in zip(self.values, rest, strict=True))


class Step(_Statement):
    """Tasks and writes that are under way together."""

    kind: Literal["step"]
    do: list["Statement"]
    awaits: list[Tokens] = Field(default_factory=list)
    note: Note | None = None


class For(_Statement):
    """A loop."""

    CALLED = "a loop's count"
    kind: Literal["for"]
    loop: Number
    count: Place
    do: list["Statement"]


class If(_Statement):
    """A choice."""

    CALLED = "a choice"
    kind: Literal["if"]
    when: Place
    do: list["Statement"]
    otherwise: list["Statement"] = Field(default_factory=list)


Statement = Annotated[For | If | Step | ProgramTask | ProgramWrite | Configure, Field(discriminator="kind")]


class Requirement(ProgramPart):
    """What must hold (value not 0) before anything runs, and what is said where it does not."""

    when: Place
    otherwise: Note


class PlacedAxis(ProgramPart):
    """Which positions of the user's an operand's places along an axis hold.

    Without `tile` place i holds position i. With it places come in tiles of so many; tile j starts at position
    j * tile, but ends at `walked` at the latest: it moves back. Positions from `size` on hold 0. `once`: so does what
    the tile before the last one held already.
    """

    size: Place
    walked: Place
    tile: Place | None = None
    once: bool = False


class PlacedDim(ProgramPart):
    """One loop over places: `count` times `step` places on along axis `axis`, and `stride` elements in the buffer."""

    axis: Annotated[int, Field(ge=0, lt=MOST_AXES)]
    count: Place
    step: Place
    stride: Place


class Operand(ProgramPart):
    """An array of the user's in an argument's buffer; "between" is one that the array makes and reads again.

    Its element at places (p, q) stands at `offset` plus the strides of `dims` (outermost first), in elements of `bits`
    bits, the lowest bits first. `values` are the smallest and the largest that it may hold, any of its type without.
    Integers narrower than a byte are stored plus `bias`. `blocked`: places are tiles of 8 x 8 values, block floats
    along the last axis ("across") or the first one ("down"). Where `staged` is 0 the buffer is the user's own memory,
    `leading` positions from line to line, which run along the last axis or the first one. `missing`: what stands for
    an operand that is not given. `parallel`: what stands at a position of its first axis changes results of that
    position only, so behind the last one anything may stand.
    """

    name: str
    argument: Annotated[int, Field(ge=0)]
    direction: Literal["in", "out", "between"]
    type: str
    bits: Annotated[int, Field(ge=1, le=1024)]
    values: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    bias: int = 0
    blocked: Literal["across", "down"] | None = None
    missing: float | None = None
    order: Literal["row", "column"] = "row"
    parallel: bool = False
    leading: str | None = None
    staged: Place
    axes: Annotated[list[PlacedAxis], Field(min_length=1, max_length=MOST_AXES)]
    offset: Place
    dims: Annotated[list[PlacedDim], Field(min_length=1, max_length=MOST_LOOPS)]


class Program(ProgramPart):
    """A sequence program."""

    parameters: list[str]
    values: Annotated[list[Value], Field(max_length=MOST_VALUES)]
    arguments: list[ProgramArgument]
    operands: list[Operand] = Field(default_factory=list)
    requires: list[Requirement] = Field(default_factory=list)
    do: list[Statement]
    in_flight: Annotated[Number, Field(ge=1)]
    in_flight_max: Annotated[Number, Field(ge=1)] = TASK_QUEUE_ENTRIES
    """Steps that the queues which the program writes itself have room for, whatever a host asks for."""
    configurations: Number = 0
    """How many configurations, besides the one that is loaded, come with the design."""
    names: dict[int, str] = Field(default_factory=dict, exclude=True, repr=False)
    """What people call values, by place; no part of what manifests hold."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.model_dump() == other.model_dump()  # whatever values are called

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Parameters that are sizes of operands along an axis; others are distances of lines."""
        axes = [self.values[axis.size] for operand in self.operands for axis in operand.axes]
        return tuple(name for name in self.parameters if name in axes)

    @cached_property
    def expressions(self) -> list[Expr]:
        """Every value as an expression."""
        found: list[Expr] = []
        for value in self.values:
            match value:
                case int():
                    found.append(Expr("constant", (value,)))
                case str():
                    found.append(Expr("parameter", (value,)))
                case ["index", loop]:
                    found.append(Expr("index", (loop,)))
                case [operation, *operands]:
                    found.append(Expr(str(operation), tuple(found[int(place)] for place in operands)))
        return found

    @cached_property
    def needs(self) -> list[frozenset[int | str]]:
        """What each value depends on: loops, of whose counters, and parameters."""
        found: list[frozenset[int | str]] = []
        for value in self.values:
            operation, *operands = value if isinstance(value, list) else ("",)
            own = (value,) if isinstance(value, str) else operands if operation == "index" else ()
            found.append(frozenset(own).union(*(found[int(p)] for p in operands if operation != "index")))
        return found

    @cached_property
    def turns(self) -> dict[int, list[tuple[int, Operation, tuple[int, ...]]]]:
        """(place, meaning, operands' places) of what is computed at each turn of a loop, or once (ALWAYS), in order.

        A value is computed at each turn of the innermost loop whose counter it needs.
        """
        found: dict[int, list[tuple[int, Operation, tuple[int, ...]]]] = {}
        loops = loops_of(self.do)
        for place, (value, needs) in enumerate(zip(self.values, self.needs, strict=True)):
            if isinstance(value, list) and value[0] != "index":
                home = max(loops.keys() & needs, key=lambda loop: len(loops[loop]), default=ALWAYS)
                meaning, operands = OPERATIONS[str(value[0])][1], tuple(map(int, value[1:]))
                found.setdefault(home, []).append((place, meaning, operands))
        return found

    @cached_property
    def costs(self) -> dict[int, int]:
        """What a turn of each loop costs, or the start (ALWAYS): itself and the values that are computed then."""
        counters = {loop: len(places) for loop, places in self.counters.items()}
        divisor = OPERATIONS["divisor"][1]
        found = {loop: 1 + counters.get(loop, 0) for loop in (*self.turns, *counters)}
        for loop, turns in self.turns.items():
            found[loop] += sum(DIVISOR_MAX if meaning is divisor else 1 for _, meaning, _ in turns)
        return found

    @cached_property
    def counters(self) -> dict[int, list[int]]:
        """Places of each loop's counter."""
        found: dict[int, list[int]] = {}
        for place, value in enumerate(self.values):
            if isinstance(value, list) and value[0] == "index":
                found.setdefault(int(value[1]), []).append(place)
        return found


def loops_of(statements: Sequence[Any], outer: tuple[int, ...] = ()) -> Loops:
    """The loops of a program; ProgramError for a number that stands twice."""
    found: dict[int, tuple[int, ...]] = {}
    for statement in statements:
        loop = statement.kind == "for"
        inner = {statement.loop: outer} if loop else {}
        for block in statement.blocks:
            _join(inner, loops_of(block, (*outer, statement.loop) if loop else outer))
        _join(found, inner)
    return found


def _join(found: dict[int, tuple[int, ...]], more: Loops) -> None:
    if twice := found.keys() & more.keys():
        raise ProgramError(f"sequence program: loop {min(twice)} stands twice; give each loop a number of its own")
    found |= more
