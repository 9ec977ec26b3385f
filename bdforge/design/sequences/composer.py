"""Several sequence programs as one, which run one after the other on slices of at most five host buffers.

A tensor is what operands of steps share: the first step that names it makes it or takes it from the host, later ones
read it where it lies. Between two steps everything that ran has ended, and the array may take another configuration.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from bdforge.common.messages import clip
from bdforge.design.sequences.builder import Builder
from bdforge.design.sequences.expression_text import WrongExpressionError, parsed
from bdforge.design.sequences.expressions import Expr, ExpressionError, ProgramError, evaluate, expression, operate
from bdforge.design.sequences.sequence_program import Operand, Program, ProgramArgument, ProgramBd
from bdforge.devices.limits import BYTE_BITS, HOST_BUFFERS, TASK_QUEUE_ENTRIES

ALIGNED_BYTES = 64
"""Where slices of a buffer start: a line of a host's cache."""
_PROBES = (1, 64, 1000, 1 << 12)
"""Sizes at which steps are tried: what differs at all of them is a fault of the composition, not of a size."""
WORKSPACE = "workspace"
"""The buffer of tensors that no other one names."""


class CompositionError(ProgramError):
    """Steps that cannot run one after the other; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class ComposedStep:
    """One program of a composition.

    `sizes` are those of its parameters: numbers, or text with parameters of the composition, such as "2560 * tokens";
    `tensors` tell what its operands are. `configuration` is what the array becomes before it; None: it stays as it is.
    """

    name: str
    program: Program
    sizes: Mapping[str, int | str]
    tensors: Mapping[str, str]
    configuration: int | None = None


@dataclass(slots=True)
class _Tensor:
    """Where a tensor lies: its buffer, the byte that it starts at, and how."""

    operand: Operand
    step: str
    buffer: int
    at: Expr
    axes: list[tuple[Expr, Expr, Expr | None, bool]]
    dims: list[tuple[int, Expr, Expr, Expr]]
    offset: Expr
    staged: Expr
    made: bool
    read: bool = False


@dataclass(slots=True)
class _Substitution:
    """Expressions of a step's program as the composition's."""

    program: Program
    parameters: Mapping[str, Expr]
    loops: dict[int, Expr] = field(default_factory=dict)
    _known: dict[int, Expr] = field(default_factory=dict)

    def __call__(self, place: int) -> Expr:
        """The value at a place of the step's list, within the loops that were entered."""
        if place not in self._known:
            self._known[place] = self._of(self.program.values[place])
        return self._known[place]

    def _of(self, value: Any) -> Expr:
        match value:
            case int():
                return expression(value)
            case str():
                return self.parameters[value]
            case ["index", loop]:
                return self.loops[loop]
            case [operation, *operands]:
                return operate(str(operation), *(self(int(place)) for place in operands))
        raise AssertionError(value)


class Composer:
    """Puts steps together; `program` is what they make.

    `buffers` are tensors by the name of the host buffer that they lie in, in order; those that none names lie in the
    workspace. `outputs` are tensors that the host gets.
    """

    def __init__(self, parameters: Sequence[str], buffers: Mapping[str, Sequence[str]], outputs: Iterable[str]) -> None:
        names = [*buffers, *([WORKSPACE] if WORKSPACE not in buffers else [])]
        if len(names) > HOST_BUFFERS:
            raise CompositionError(
                f"{len(names)} buffers ({', '.join(names)}) are wanted, the workspace counted; NPUs translate the "
                f"addresses of {HOST_BUFFERS}: put several into one"
            )
        self._parameters = {name: Expr("parameter", (name,)) for name in parameters}
        self._buffers = names
        self._homes = {tensor: place for place, tensors in enumerate(buffers.values()) for tensor in tensors}
        self._ends = [expression(0) for _ in names]
        self._outputs = set(outputs)
        self._tensors: dict[str, _Tensor] = {}
        self._builder = Builder(parameters)

    def program(self, steps: Sequence[ComposedStep], last: int | None = None) -> Program:
        """The program of all steps; `last` is the configuration that the array gets at the end, None: as it is.

        CompositionError for steps that do not fit together.
        """
        placed = [self._placed(step) for step in steps]
        self._check_homes()
        build = self._builder
        for name, end in zip(self._buffers, self._ends, strict=True):
            build.argument(name, "i8", BYTE_BITS, end)
        for name, tensor in self._tensors.items():
            self._operand(name, tensor)
        for step, (values, bases) in zip(steps, placed, strict=True):
            self._requirements(step, values)
            build.configure(step.configuration, min(step.program.in_flight, step.program.in_flight_max))
            self._statements(step.program.do, step, values, bases)
        if last is not None:
            build.configure(last, TASK_QUEUE_ENTRIES)
        return build.program

    # where tensors lie

    def _placed(self, step: ComposedStep) -> tuple[_Substitution, list[tuple[int, Expr]]]:
        """A step's values, and buffer and first byte of each of its arguments."""
        values = _Substitution(step.program, self._sizes(step))
        self._check_names(step)
        arguments = enumerate(step.program.arguments)
        return values, [self._argument(step, values, index, argument) for index, argument in arguments]

    def _sizes(self, step: ComposedStep) -> dict[str, Expr]:
        program, found = step.program, {}
        if wrong := step.sizes.keys() ^ set(program.sizes):
            raise CompositionError(
                f"step {step.name}: its sizes are {', '.join(program.sizes)}; check {', '.join(sorted(wrong))}"
            )
        for name, size in step.sizes.items():
            try:
                found[name] = parsed(size, self._parameters) if isinstance(size, str) else expression(size)
            except WrongExpressionError as error:
                raise CompositionError(f"step {step.name}: {name} = {clip(repr(size))}: {error}") from None
        return dict.fromkeys(program.parameters, expression(0)) | found

    def _check_names(self, step: ComposedStep) -> None:
        operands = {operand.name: operand for operand in step.program.operands}
        if unknown := sorted(step.tensors.keys() - operands.keys()):
            raise CompositionError(
                f"step {step.name}: has no operand {', '.join(unknown)}; there is {', '.join(operands)}"
            )
        unbound = [o.name for o in operands.values() if o.name not in step.tensors and o.missing is None]
        if unbound:
            raise CompositionError(f"step {step.name}: says no tensor for {', '.join(unbound)}")

    def _argument(
        self, step: ComposedStep, values: _Substitution, index: int, argument: ProgramArgument
    ) -> tuple[int, Expr]:
        """Buffer and first byte of an argument: that of a tensor that is there, or of a new slice."""
        operands = [operand for operand in step.program.operands if operand.argument == index]
        names = [step.tensors.get(operand.name, f"{step.name}.{operand.name}") for operand in operands]
        there = [name for name in names if name in self._tensors]
        if not there:
            return self._slice(step, values, argument, list(zip(operands, names, strict=True)))
        if len(operands) > 1:
            raise CompositionError(
                f"step {step.name}: {' and '.join(names)} lie together in one buffer of this design, so "
                f"{there[0]} cannot be what step {self._tensors[there[0]].step} has"
            )
        tensor, operand = self._tensors[there[0]], operands[0]
        if operand.direction == "out":
            raise CompositionError(
                f"step {step.name}: makes {there[0]}, which step {tensor.step} has already; give it a name of its own"
            )
        self._check_same(step, values, there[0], tensor, operand)
        tensor.read = True
        return tensor.buffer, tensor.at

    def _slice(
        self, step: ComposedStep, values: _Substitution, argument: ProgramArgument, held: Sequence[tuple[Operand, str]]
    ) -> tuple[int, Expr]:
        homes = {self._homes.get(name, self._buffers.index(WORKSPACE)) for _, name in held}
        if len(homes) > 1:
            wanted = ", ".join(f"{name} in {self._buffers[self._homes.get(name, -1)]}" for _, name in held)
            raise CompositionError(f"step {step.name}: {wanted}: its design has them in one buffer")
        buffer = homes.pop() if homes else self._buffers.index(WORKSPACE)
        start = self._ends[buffer]
        count = values(argument.elements) * argument.bits
        self._ends[buffer] = start + operate("ceildiv", count, BYTE_BITS * ALIGNED_BYTES) * ALIGNED_BYTES
        for operand, name in held:
            before, offset = operate("floordiv", start * BYTE_BITS, operand.bits), values(operand.offset)
            at = start + operate("floordiv", offset * operand.bits, BYTE_BITS)
            axes = [
                (values(a.size), values(a.walked), None if a.tile is None else values(a.tile), a.once)
                for a in operand.axes
            ]
            dims = [(d.axis, values(d.count), values(d.step), values(d.stride)) for d in operand.dims]
            self._tensors[name] = _Tensor(
                operand, step.name, buffer, at, axes, dims, before + offset, values(operand.staged),
                operand.direction == "out",
            )  # fmt: skip
        return buffer, start

    def _check_same(
        self, step: ComposedStep, values: _Substitution, name: str, tensor: _Tensor, operand: Operand
    ) -> None:
        """CompositionError unless the operand finds the tensor's elements in the order in which they lie."""
        mine = [values(axis.size) for axis in operand.axes]
        theirs = [size for size, *_ in tensor.axes]
        what = f"step {step.name}: {operand.name} is {name} of step {tensor.step}"
        if (operand.type, operand.bits) != (tensor.operand.type, tensor.operand.bits):
            raise CompositionError(f"{what}, of type {tensor.operand.type}; it takes {operand.type}")
        self._agree(prod(mine, start=expression(1)), prod(theirs, start=expression(1)), f"{what}: their sizes differ")
        own = [(d.axis, values(d.count), values(d.step), values(d.stride)) for d in operand.dims]
        if (own, mine, operand.order) == (tensor.dims, theirs, tensor.operand.order):
            return
        for elements, dims, one in ((theirs, tensor.dims, tensor.operand), (mine, own, operand)):
            self._check_plain(what, elements, dims, one)
        self._agree(values(operand.offset), 0, f"{what}: it starts elsewhere in its buffer")

    def _check_plain(self, what: str, sizes: Sequence[Expr], dims: Sequence[tuple], operand: Operand) -> None:
        """Row by row without gaps, whatever the sizes."""
        wanted = [(i, size, prod(sizes[i + 1 :], start=expression(1))) for i, size in enumerate(sizes)]
        if operand.blocked or operand.order != "row" or [axis for axis, *_ in dims] != [axis for axis, *_ in wanted]:
            raise CompositionError(f"{what}, but {operand.name} does not lie row by row without gaps: convert it")
        for (_, count, step, stride), (_, size, apart) in zip(dims, wanted, strict=True):
            for got, right in ((count, size), (step, expression(1)), (stride, apart)):
                self._agree(got, right, f"{what}: {operand.name} does not lie row by row without gaps")

    def _agree(self, one: Expr | int, other: Expr | int, text: str) -> None:
        """CompositionError where two values always differ; a requirement of runs where sizes decide."""
        if one == other:
            return
        same = expression(one).equals(other)
        if not any(self._holds(same, size) for size in _PROBES):
            raise CompositionError(text)
        if same.constant is None:
            self._builder.require(same, text)

    def _holds(self, condition: Expr, size: int) -> bool:
        """Whether a condition holds where all parameters are `size`."""
        try:
            return bool(evaluate(condition, dict.fromkeys(self._parameters, size)))
        except ExpressionError:
            return False

    def _check_homes(self) -> None:
        if unknown := sorted(self._homes.keys() - self._tensors.keys()):
            raise CompositionError(f"no step has {', '.join(unknown)}, which a buffer names")
        made = [name for name, tensor in self._tensors.items() if tensor.made]
        if unknown := sorted(self._outputs - set(made)):
            raise CompositionError(f"no step makes the output {', '.join(unknown)}; there is {', '.join(made)}")

    def _operand(self, name: str, tensor: _Tensor) -> None:
        operand = tensor.operand
        direction = "in" if not tensor.made else "out" if name in self._outputs or not tensor.read else "between"
        facts = {"values": operand.values, "bias": operand.bias, "blocked": operand.blocked, "missing": operand.missing}
        self._builder.operand(
            name, tensor.buffer, direction, operand.type, operand.bits, tensor.axes, tensor.dims,
            staged=1, offset=tensor.offset, order=operand.order, **facts,
        )  # fmt: skip

    # what steps do

    def _requirements(self, step: ComposedStep, values: _Substitution) -> None:
        for requirement in step.program.requires:
            condition = values(requirement.when)
            note = requirement.otherwise
            if condition.constant == 0:
                first, *rest = note.text.split("{}")
                said = first + "".join(
                    f"{values(place).constant}{text}" for place, text in zip(note.values, rest, strict=True)
                )
                raise CompositionError(f"step {step.name}: {said}")
            if condition.constant is None:
                self._builder.require(condition, f"step {step.name}: {note.text}", *map(values, note.values))

    def _statements(
        self, block: Iterable[Any], step: ComposedStep, values: _Substitution, bases: Sequence[tuple[int, Expr]]
    ) -> None:
        build = self._builder
        for statement in block:
            match statement.kind:
                case "for":
                    with build.loop(values(statement.count)) as counter:
                        values.loops[statement.loop] = counter
                        self._statements(statement.do, step, values, bases)
                case "if":
                    self._choice(statement, step, values, bases)
                case "step":
                    awaits = [(t.direction, t.channel, values(t.column), values(t.columns)) for t in statement.awaits]
                    note = statement.note
                    told = () if note is None else tuple(map(values, note.values))
                    with build.step(awaits, "" if note is None else f"{step.name}: {note.text}", told):
                        self._statements(statement.do, step, values, bases)
                case "task":
                    bds = [self._bd(bd, step.program, values, bases) for bd in statement.bds]
                    column, runs = values(statement.column), values(statement.runs)
                    build.task(statement.direction, statement.channel, column, *bds, runs=runs, token=statement.token)
                case "write":
                    build.write(values(statement.address), *map(values, statement.values))
                case "configure":
                    raise CompositionError(f"step {step.name}: is a composition itself; name its steps instead")

    def _choice(self, statement: Any, step: ComposedStep, values: _Substitution, bases: Sequence) -> None:
        build, condition = self._builder, values(statement.when)
        if condition.constant is not None:
            self._statements(statement.do if condition.constant else statement.otherwise, step, values, bases)
            return
        with build.when(condition):
            self._statements(statement.do, step, values, bases)
        if statement.otherwise:
            with build.otherwise():
                self._statements(statement.otherwise, step, values, bases)

    def _bd(
        self, bd: ProgramBd, program: Program, values: _Substitution, bases: Sequence[tuple[int, Expr]]
    ) -> ProgramBd | None:
        """A BD on the slice of its argument, counted in the argument's own elements."""
        buffer, start = bases[bd.argument]
        bits = bd.bits or program.arguments[bd.argument].bits
        offset = values(bd.offset) + operate("floordiv", start * BYTE_BITS, bits)
        return self._builder.bd(
            buffer, offset, [*map(values, bd.sizes)], [*map(values, bd.strides)],
            None if bd.runs is None else (values(bd.runs[0]), values(bd.runs[1])),
            1 if bd.when is None else values(bd.when), bits,
        )  # fmt: skip
