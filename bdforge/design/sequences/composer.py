"""Several sequence programs as one, which run one after the other on slices of at most five host buffers.

A tensor is what operands of steps share: the first step that names it makes it or takes it from the host, later ones
read it where it lies. Between two steps everything that ran has ended, and the array may take another configuration.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bdforge.design.sequences.builder import Builder
from bdforge.design.sequences.composed_tensors import (
    UNCHANGED,
    ChangeNumbers,
    ComposedStep,
    CompositionError,
    Slice,
    Substitution,
    Tensor,
    TensorPlaces,
    View,
    check_outputs,
)
from bdforge.design.sequences.early_tasks import EarlyTasks
from bdforge.design.sequences.expressions import Expr, ExpressionError, evaluate, expression, operate
from bdforge.design.sequences.sequence_program import Program, ProgramBd
from bdforge.devices.limits import BYTE_BITS, TASK_QUEUE_ENTRIES

_PROBES = (1, 64, 1000, 1 << 12, 80640)
"""Sizes at which steps of one parameter are tried: what differs at all of them is a fault of the composition, not of a
size. The last one is a multiple of most tiles: of 256, 9, 5 and 7."""
Runs = Callable[[Any], Expr]
"""Where a statement runs."""
Bases = Sequence[tuple[Slice, Expr]]
"""Slice and byte in it of each argument of a step."""


class Composer:
    """Puts steps together; `program` is what they make.

    `buffers` are tensors by the name of the host buffer that they lie in, in order; those that none names lie in the
    workspace. `outputs` are tensors that the host gets; `in_place` are tensors that take the place of another, `views`
    those that are part of another.
    """

    def __init__(
        self, parameters: Sequence[str], buffers: Mapping[str, Sequence[str]], outputs: Iterable[str],
        in_place: Mapping[str, str] | None = None, views: Mapping[str, View] | None = None,
    ) -> None:  # fmt: skip
        self._parameters = {name: Expr("parameter", (name,)) for name in parameters}
        self._places = TensorPlaces(self._parameters, buffers, in_place or {}, views or {}, self._agree)
        self._outputs = set(outputs)
        self._builder = Builder(parameters)

    def program(self, steps: Sequence[ComposedStep], last: ChangeNumbers = UNCHANGED) -> Program:
        """The program of all steps; `last` is the change of the configuration that ends a run.

        CompositionError for steps that do not fit together.
        """
        build, places = self._builder, self._places
        names = [step.name for step in steps]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise CompositionError(f"several steps are called {', '.join(twice)}; give each a name of its own")
        bound = [places.bind(step) for step in steps]
        check_outputs(self._outputs, places.tensors)
        for name, size in zip(places.buffers, places.lay_out(), strict=True):
            build.argument(name, "i8", BYTE_BITS, size)
        for name, tensor in places.tensors.items():
            if not (tensor.made and tensor.over):  # of what another has taken the place nothing is left
                self._operand(name, tensor)
        early = [EarlyTasks(step, values, places.given(step)) for step, (values, _) in zip(steps, bound, strict=True)]
        for number, (step, (values, bases)) in enumerate(zip(steps, bound, strict=True)):
            self._requirements(step, values)
            in_flight = min(step.program.in_flight, step.program.in_flight_max)
            with build.configure(step.change.then, in_flight, step.change.ahead):
                self._early(early[number], step, bases, 0)
                for between, after in enumerate(range(number + 1, len(steps)), 1):
                    with build.sooner():
                        self._early(early[after], steps[after], bound[after][1], between)
            self._statements(step.program.do, step, values, bases, early[number].late)
        if last != UNCHANGED:
            with build.configure(last.then, TASK_QUEUE_ENTRIES, last.ahead):
                pass
        return build.program

    def _agree(self, one: Expr | int, other: Expr | int, text: str) -> None:
        """CompositionError where two values always differ; a requirement of runs where sizes decide."""
        if one == other:
            return
        same = expression(one).equals(other)
        if same.constant == 0 or (len(self._parameters) == 1 and not any(self._holds(same, size) for size in _PROBES)):
            raise CompositionError(text)
        if same.constant is None:
            told = ", ".join(f"{name} = {{}}" for name in self._parameters)
            self._builder.require(same, f"{text} ({told})", *self._parameters.values())

    def _holds(self, condition: Expr, size: int) -> bool:
        """Whether a condition holds where all parameters are `size`."""
        try:
            return bool(evaluate(condition, dict.fromkeys(self._parameters, size)))
        except ExpressionError:
            return False

    def _operand(self, name: str, tensor: Tensor) -> None:
        operand, values = tensor.operand, tensor.values
        direction = "in" if not tensor.made else "out" if name in self._outputs or not tensor.read else "between"
        start = tensor.slice.start + tensor.inside
        axes = [
            (values(a.size), values(a.walked), None if a.tile is None else values(a.tile), a.once) for a in operand.axes
        ]
        self._builder.operand(
            name, tensor.slice.buffer, direction, operand.type, operand.bits, axes, tensor.lines, staged=1,
            offset=operate("floordiv", start * BYTE_BITS, operand.bits) + self._within(tensor), order=operand.order,
            values=operand.values, bias=operand.bias, blocked=operand.blocked, missing=operand.missing,
            parallel=operand.parallel,
        )  # fmt: skip

    @staticmethod
    def _within(tensor: Tensor) -> Expr:
        """Elements of a tensor's offset that its first byte does not tell, of those narrower than a byte."""
        operand = tensor.operand
        if operand.bits >= BYTE_BITS:
            return expression(0)
        return tensor.values(operand.offset) % (BYTE_BITS // operand.bits)

    # what steps do

    def _requirements(self, step: ComposedStep, values: Substitution) -> None:
        for requirement in step.program.requires:
            condition = values(requirement.when)
            note = requirement.otherwise
            if condition.constant == 0:
                known = [values(place).constant for place in note.values]
                said = dict(zip(note.values, ("its size" if one is None else one for one in known), strict=True))
                raise CompositionError(f"step {step.name}: {note.said(said.__getitem__)}")
            if condition.constant is None:
                self._builder.require(condition, f"step {step.name}: {note.text}", *map(values, note.values))

    def _early(self, early: EarlyTasks, step: ComposedStep, bases: Bases, between: int) -> None:
        """What of a step's first round starts with so many steps between it and what runs."""
        if (some := early.when(between)).constant != 0:
            with self._builder.when(some):
                self._statements(early.round, step, early.values, bases, early.early(between))

    def _statements(
        self, block: Iterable[Any], step: ComposedStep, values: Substitution, bases: Bases, runs: Runs
    ) -> None:
        """Those of a step's statements that run here, each where a condition holds."""
        for statement in block:
            condition = runs(statement)
            if condition.constant:
                self._statement(statement, step, values, bases, runs)
            elif condition.constant is None:
                with self._builder.when(condition):
                    self._statement(statement, step, values, bases, runs)

    def _statement(self, statement: Any, step: ComposedStep, values: Substitution, bases: Bases, runs: Runs) -> None:
        build = self._builder
        match statement.kind:
            case "for":
                with build.loop(values(statement.count)) as counter:
                    values.loops[statement.loop] = counter
                    self._statements(statement.do, step, values, bases, runs)
            case "if":
                self._choice(statement, step, values, bases, runs)
            case "step":
                awaits = [(t.direction, t.channel, values(t.column), values(t.columns)) for t in statement.awaits]
                note = statement.note
                told = () if note is None else tuple(map(values, note.values))
                with build.step(awaits, "" if note is None else f"{step.name}: {note.text}", told):
                    self._statements(statement.do, step, values, bases, runs)
            case "task":
                bds = [self._bd(bd, step.program, values, bases) for bd in statement.bds]
                column, times = values(statement.column), values(statement.runs)
                build.task(statement.direction, statement.channel, column, *bds, runs=times, token=statement.token)
            case "write":
                build.write_on(values(statement.address), *map(values, statement.values))
            case "configure":
                raise CompositionError(f"step {step.name}: is a composition itself; name its steps instead")

    def _choice(self, statement: Any, step: ComposedStep, values: Substitution, bases: Bases, runs: Runs) -> None:
        build, condition = self._builder, values(statement.when)
        if condition.constant is not None:
            self._statements(statement.do if condition.constant else statement.otherwise, step, values, bases, runs)
            return
        with build.when(condition):
            self._statements(statement.do, step, values, bases, runs)
        if statement.otherwise:
            with build.otherwise():
                self._statements(statement.otherwise, step, values, bases, runs)

    def _bd(self, bd: ProgramBd, program: Program, values: Substitution, bases: Bases) -> ProgramBd | None:
        """A BD on the slice of its argument, counted in the argument's own elements."""
        one, inside = bases[bd.argument]
        bits = bd.bits or program.arguments[bd.argument].bits
        offset = values(bd.offset) + operate("floordiv", (one.start + inside) * BYTE_BITS, bits)
        return self._builder.bd(
            one.buffer, offset, [*map(values, bd.sizes)], [*map(values, bd.strides)],
            None if bd.runs is None else (values(bd.runs[0]), values(bd.runs[1])),
            1 if bd.when is None else values(bd.when), bits,
        )  # fmt: skip
