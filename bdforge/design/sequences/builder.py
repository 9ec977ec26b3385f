"""Writing a sequence program: statements in the order in which they run, with expressions of Python operators.

program = Builder(["n"], in_flight=4)
n = program.parameter("n")
program.argument("X", "i32", 32, n)
with program.loop(n // 1024) as i, program.step():
    program.task("MM2S", 0, 0, program.bd(0, 1024 * i, (1024,), (1,)))
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bdforge.design.sequences.expressions import Expr, Operand, ProgramError, expression
from bdforge.design.sequences.program_check import check_authored
from bdforge.design.sequences.sequence_program import (
    Configure,
    For,
    If,
    Note,
    PlacedAxis,
    PlacedDim,
    Program,
    ProgramArgument,
    ProgramBd,
    ProgramTask,
    ProgramWrite,
    Requirement,
    Step,
    Tokens,
)
from bdforge.design.sequences.sequence_program import Operand as Placed
from bdforge.devices.bd_registers import RegisterGroup
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES

Dims = Sequence[Operand]


class Axis(NamedTuple):
    """An axis of a user's array: `size` positions, of which the array walks `walked` (None: those), 0 beyond `size`.

    With `tile` the positions come in tiles of so many, of which the last one moves back to end with them; `once`: what
    it shares with the one before it is 0 there.
    """

    size: Operand
    walked: Operand | None = None
    tile: Operand | None = None
    once: bool = False


class Dim(NamedTuple):
    """A loop over an operand in its buffer: `count` times `step` positions along `axis`, `stride` elements apart."""

    axis: int
    count: Operand  # pyrefly: ignore[bad-override]  tuples have one
    step: Operand = 1
    stride: Operand = 1


class Builder:
    """Collects statements; `program` is what they make."""

    def __init__(
        self, parameters: Sequence[str], in_flight: int = TASK_QUEUE_ENTRIES, in_flight_max: int = TASK_QUEUE_ENTRIES,
        first_column: int = 0,
    ):  # fmt: skip
        """Columns of tasks and tokens count from `first_column` of the array on."""
        self._parameters, self._in_flight = list(parameters), min(in_flight, in_flight_max)
        self._in_flight_max, self._first_column = in_flight_max, expression(first_column)
        self._values: list[Any] = []
        self._places: dict[Expr, int] = {}
        self._names: dict[int, str] = {}
        self._arguments: list[ProgramArgument] = []
        self._operands: list[Placed] = []
        self._requires: list[Requirement] = []
        self._blocks: list[list[Any]] = [[]]
        self._configurations = 0
        self._loops: list[str] = []
        self._around: list[str] = []  # what a statement stands in: "loop", "when", "step" and its number
        self._given: dict[int, str] = {}  # the step in which each lock's core gets its parameters
        self._sooner: list[list[Any]] = []  # of the `configure` that is written

    def parameter(self, name: str) -> Expr:
        """The parameter called `name`."""
        return Expr("parameter", (name,))

    @staticmethod
    def constant(value: int) -> Expr:
        """A constant."""
        return expression(value)

    def place(self, value: Operand) -> int:
        """Where a value stands in the program's list; equal expressions share a place."""
        found = expression(value)
        if (known := self._places.get(found)) is not None:
            return known
        match found.operation:
            case "constant" | "parameter":
                entry = found.operands[0]
            case "index":
                entry = ["index", found.operands[0]]
                self._names[len(self._values)] = self._loops[found.operands[0]]
            case operation:
                entry = [operation, *(self.place(operand) for operand in found.operands)]
        self._values.append(entry)
        return self._places.setdefault(found, len(self._values) - 1)

    def named(self, name: str, value: Operand) -> Expr:
        """`value`, which people read as `name`; what is constant or a parameter stands for itself."""
        found = expression(value)
        place = self.place(found)
        if found.operation not in ("constant", "parameter"):
            self._names.setdefault(place, name)
        return found

    def _listed(self, values: Sequence[Operand]) -> list[int]:
        return [self.place(value) for value in values]

    def argument(self, name: str, type_: str, bits: int, elements: Operand, note: str = "") -> int:
        """The next host buffer; its index."""
        self._arguments.append(
            ProgramArgument(name=name, type=type_, bits=bits, elements=self.place(elements), note=note)
        )
        return len(self._arguments) - 1

    def operand(
        self,
        name: str,
        argument: int,
        direction: str,
        type_: str,
        bits: int,
        axes: Sequence[Axis | tuple[Operand, Operand, Operand | None, bool]],
        dims: Sequence[Dim | tuple[int, Operand, Operand, Operand]] = (),
        *,
        staged: Operand = 1,
        offset: Operand = 0,
        **facts: Any,
    ) -> None:
        """An array of the user's in a host buffer: `direction` "in" or "out", an element type by name and its bits.

        `dims` say where elements stand from `offset` on, outermost first; without, line by line. Where `staged` is 0
        the buffer is the user's own memory. Other `facts` are members of an operand of `sequence_program`.
        """
        if not dims:
            walked = [expression(size if walked is None else walked) for size, walked, _, _ in axes]
            dims = lines_of(walked, facts.get("order", "row"))
        self._operands.append(
            Placed(
                name=name,
                argument=argument,
                direction=direction,  # type: ignore[arg-type]
                type=type_,
                bits=bits,
                staged=self.place(staged),
                axes=[
                    PlacedAxis(
                        size=self.place(size),
                        walked=self.place(size if walked is None else walked),
                        tile=None if tile is None else self.place(tile),
                        once=once,
                    )
                    for size, walked, tile, once in axes
                ],
                offset=self.place(offset),
                dims=[
                    PlacedDim(axis=axis, count=self.place(count), step=self.place(step), stride=self.place(stride))
                    for axis, count, step, stride in dims
                ],
                **facts,
            )
        )

    def require(self, condition: Operand, text: str, *values: Operand) -> None:
        """Refuse to run where `condition` is 0, with `text` and its values; ProgramError where it is Python's bool."""
        _check_condition(condition, text)
        note = Note(text=text, values=self._listed(values))
        self._requires.append(Requirement(when=self.place(condition), otherwise=note))

    @contextmanager
    def loop(self, count: Operand, name: str = "turn") -> Iterator[Expr]:
        """What follows, `count` times; the counter, from 0, which people read as `name`."""
        number, place = len(self._loops), self.place(count)
        self._loops.append(name)
        with self._block("loop" if expression(count).constant != 1 else "once") as body:
            yield Expr("index", (number,))
        self._add(For(kind="for", loop=number, count=place, do=body))

    @contextmanager
    def when(self, condition: Operand) -> Iterator[None]:
        """What follows, only where `condition` is not 0; ProgramError where that is Python's bool."""
        _check_condition(condition, "when")
        value = expression(condition)
        with self._block("when") as body:
            yield
        if value.constant:
            self._blocks[-1] += body
        else:  # what never runs stays as well: values of its loops stand in the program's list
            self._add(If(kind="if", when=self.place(value), do=body))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """What follows, only where the condition of the `when` before is 0; that one is no constant."""
        with self._block("when") as body:
            yield
        self._add(self._blocks[-1].pop().model_copy(update={"otherwise": body}))

    @contextmanager
    def step(
        self, awaits: Sequence[tuple[str, int, Operand, Operand]] = (), note: str = "", values: Sequence[Operand] = ()
    ) -> Iterator[None]:
        """Tasks and writes under way together, until tokens of (direction, channel, first column, columns) came."""
        tokens = [
            Tokens(direction=d, channel=c, column=self._column(first), columns=self.place(columns))  # type: ignore[arg-type]
            for d, c, first, columns in awaits
        ]
        told = Note(text=note, values=self._listed(values)) if note else None
        with self._block(f"step {len(self._blocks[-1])} of {self._around}") as body:
            yield
        self._add(Step(kind="step", do=body, awaits=tokens, note=told))

    def write(self, address: Operand, *values: Operand) -> None:
        """Write a register, or as many that follow each other as there are values."""
        self._add(ProgramWrite(kind="write", address=self.place(address), values=self._listed(values)))

    def write_on(self, address: Operand, *values: Operand) -> None:
        """As `write`, by the operation just before where that ends at `address`."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, ProgramWrite) or self._after(last) != expression(address).constant:
            self.write(address, *values)
            return
        self._blocks[-1][-1] = last.model_copy(update={"values": [*last.values, *self._listed(values)]})

    def _after(self, write: ProgramWrite) -> int:
        """The address behind a write, -1 where it is no constant."""
        address = self._values[write.address]
        return address + GRANULE_BYTES * len(write.values) if isinstance(address, int) else -1

    def set_parameters(self, parameters: Operand, words: Mapping[int, Operand], go: Operand) -> None:
        """Write a core's parameters by slot, from the address of the first on, then 1 to the lock at `go`.

        ProgramError where every step does so though several are in flight: nothing says that the core took the last.
        """
        self._check_taken(go)
        for slot, value in words.items():
            self.write(parameters + GRANULE_BYTES * slot, value)
        self.write(go, 1)

    def _check_taken(self, go: Operand) -> None:
        """What stands in a `when` is left to it, such as the first turn alone."""
        lock, around = expression(go), self._around
        steps = [at for at, one in enumerate(around) if one.startswith("step")]
        if not steps or "when" in around or self._in_flight_max == 1 or lock.constant is None:
            return
        own = around[steps[0]]
        if "loop" in around[: steps[0]] or self._given.setdefault(lock.constant, own) != own:
            raise ProgramError(
                f"the parameters before lock {lock.constant:#x} are written again by a step while up to "
                f"{self._in_flight_max} are in flight: the core may not have taken those of the step before; write "
                "them in the first step alone, or let one step run at a time (in_flight_max = 1)"
            )

    def bd(
        self,
        argument: int,
        offset: Operand,
        sizes: Dims,
        strides: Dims,
        runs: tuple[Operand, Operand] | None = None,
        when: Operand = 1,
        bits: int | None = None,
    ) -> ProgramBd | None:
        """A BD of a chain; None where `when` is known to be 0. `bits` are its elements', if not the argument's."""
        condition = expression(when)
        if condition.constant == 0:
            return None
        if runs is not None and expression(runs[0]).constant == 1:
            runs = None  # one run is no dimension of a BD
        return ProgramBd(
            argument=argument,
            offset=self.place(offset),
            sizes=self._listed(sizes),
            strides=self._listed(strides),
            runs=None if runs is None else self._listed(runs),
            when=None if condition.constant else self.place(condition),
            bits=bits,
        )

    @contextmanager
    def configure(self, configuration: int | None, in_flight: int, ahead: int | None = None) -> Iterator[None]:
        """Let all that ran end, and the array become what a number says; at most `in_flight` steps run from then on.

        What number `ahead` says comes before that end, then the tasks and writes within, which belong to the first step
        behind it, those within `sooner` to the first one behind a later change.
        """
        numbers = [number for number in (configuration, ahead) if number is not None]
        self._configurations = max([self._configurations, *(number + 1 for number in numbers)])
        self._sooner = []
        with self._block("configure") as body:
            yield
        while self._sooner and not self._sooner[-1]:
            self._sooner.pop()
        self._add(
            Configure(
                kind="configure", configuration=configuration, ahead=ahead, in_flight=in_flight, do=body or None,
                sooner=self._sooner or None,
            )
        )  # fmt: skip

    @contextmanager
    def sooner(self) -> Iterator[None]:
        """What of a `configure` belongs to the first step behind the next one, behind the one after that, and so on."""
        with self._block("configure") as body:
            yield
        self._sooner.append(body)

    def task(
        self,
        direction: str,
        channel: int,
        column: Operand,
        *bds: ProgramBd | None,
        runs: Operand = 1,
        token: bool = False,
    ) -> None:  # fmt: skip
        """Start a chain on a channel; BDs that are None are left out."""
        self._add(
            ProgramTask(
                kind="task",
                direction=direction,  # type: ignore[arg-type]
                channel=channel,
                column=self._column(column),
                runs=self.place(runs),
                token=token,
                bds=[bd for bd in bds if bd is not None],
            )
        )

    @property
    def program(self) -> Program:
        """The program; ProgramError as of `program_check.meant`."""
        return check_authored(
            Program(
                parameters=self._parameters,
                values=self._values,
                arguments=self._arguments,
                operands=self._operands,
                requires=self._requires,
                do=self._blocks[0],
                in_flight=self._in_flight,
                in_flight_max=self._in_flight_max,
                names=self._names,
                configurations=self._configurations,
            )
        )

    def _column(self, column: Operand) -> int:
        return self.place(self._first_column + column)

    def _add(self, statement: Any) -> None:
        self._blocks[-1].append(statement)

    @contextmanager
    def _block(self, kind: str) -> Iterator[list[Any]]:
        self._blocks.append([])
        self._around.append(kind)
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()
            self._around.pop()


def _check_condition(condition: Operand, what: str) -> None:
    if isinstance(condition, bool):
        raise ProgramError(f"{what} is {condition} at any size; expressions are compared by .equals(), not by == or !=")


def lines_of(counts: Sequence[Expr], order: str) -> list[Dim]:
    """Loops over the places of an array that lies line by line, along its last axis or (`order` column) its first."""
    axes = range(len(counts)) if order == "row" else range(len(counts) - 1, -1, -1)
    loops: list[Dim] = []
    stride = expression(1)
    for axis in reversed(axes):
        loops.insert(0, Dim(axis, counts[axis], 1, stride))
        stride = stride * counts[axis]
    return loops


def register_words(layout: RegisterGroup, values: Mapping[str, Operand]) -> list[Expr]:
    """The words of `layout` with `values` in its fields, others 0; each must fit its field: a program cannot mask it.

    Constants below 0 are two's complement of their field's width.
    """
    words = [expression(0)] * layout.words
    for name, value in values.items():
        field, found = layout.fields[name], expression(value)
        if found.constant is not None and found.constant < 0:
            found = found + (field.mask >> field.low) + 1
        words[field.word] = words[field.word] + found * (1 << field.low)
    return words
