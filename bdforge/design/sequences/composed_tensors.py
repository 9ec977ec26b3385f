"""Where the tensors of a composition lie: slices of at most five host buffers, which steps share."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import lcm, prod
from typing import Any, NamedTuple

from bdforge.common.messages import clip
from bdforge.design.sequences.expression_text import WrongExpressionError, parsed
from bdforge.design.sequences.expressions import Expr, ProgramError, expression, operate
from bdforge.design.sequences.sequence_program import Operand, Program, ProgramArgument
from bdforge.devices.limits import BYTE_BITS, HOST_BUFFERS

ALIGNED_BYTES = 64
"""Where slices of a buffer start: a line of a host's cache."""
WORKSPACE = "workspace"
"""The buffer of tensors that no other one names."""
ONE = expression(1)
_FEWER = ", as where there are fewer rows than its design's tiles have: take more"
Agree = Callable[[Expr | int, Expr | int, str], None]
"""Sees to it that two values are the same, else says a text."""
Line = tuple[int, Expr, Expr, Expr]
"""A loop over places: axis, count, step and stride."""


class CompositionError(ProgramError):
    """Steps that cannot run one after the other; the message says which, and why."""


class ChangeNumbers(NamedTuple):
    """A change of the array's configuration by the numbers of its parts: what may come before all that ran has ended,
    and the rest; None: nothing."""

    ahead: int | None = None
    then: int | None = None


UNCHANGED = ChangeNumbers()


class EarlyStart(NamedTuple):
    """What of a step may start while steps before it still run, which leave alone what takes part in it: shim channels
    that send, by column and number, and cores, by column and row, which may have their parameters.

    Each with the steps between: 0 while the step just before runs.
    """

    channels: Mapping[tuple[int, int], int]
    cores: Mapping[tuple[int, int], int]


NOTHING_EARLY = EarlyStart({}, {})


class View(NamedTuple):
    """A tensor that is part of another one, `of`, from row `first` on: a number, or text as of sizes, in its own rows.

    It is made by a step as part of what the host gives, or read by one of what a step before made.
    """

    of: str
    first: int | str


@dataclass(frozen=True, slots=True)
class ComposedStep:
    """One program of a composition.

    `sizes` are those of its parameters: numbers, or text with parameters of the composition, such as "2560 * tokens";
    `tensors` tell what its operands are. `change` is what the array's configuration takes before it, `early` what may
    start before that.
    """

    name: str
    program: Program
    sizes: Mapping[str, int | str]
    tensors: Mapping[str, str]
    change: ChangeNumbers = UNCHANGED
    early: EarlyStart = NOTHING_EARLY


@dataclass(slots=True)
class Substitution:
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


@dataclass(slots=True)
class Slice:
    """A part of a buffer, as long as the longest of its users' `needs` (bytes); `start` is known when all are.

    It starts at a multiple of `aligned` bytes, so at a whole number of each user's elements; or `within` another one,
    at a byte of that.
    """

    buffer: int
    needs: list[Expr]
    start: Expr = ONE
    aligned: int = ALIGNED_BYTES
    within: "tuple[Slice, Expr] | None" = None

    def hold(self, operand: Operand) -> None:
        """Start where an element of an operand does: block floats take 72 bytes."""
        self.aligned = lcm(self.aligned, max(1, operand.bits // BYTE_BITS))


@dataclass(slots=True)
class Tensor:
    """What steps share: `inside` a slice from a byte on, in `lines` over places of `sizes` positions along its axes.

    `made` by a step of the composition, and `read` by another; the step `over` took its place.
    """

    operand: Operand
    values: Substitution
    step: str
    slice: Slice
    inside: Expr
    made: bool
    read: bool = False
    over: str = ""

    @property
    def sizes(self) -> list[Expr]:
        return [self.values(axis.size) for axis in self.operand.axes]

    @property
    def lines(self) -> list[Line]:
        return [(d.axis, self.values(d.count), self.values(d.step), self.values(d.stride)) for d in self.operand.dims]


class TensorPlaces:
    """Binds operands of steps to tensors; afterwards `lay_out` tells where slices start.

    `buffers` are tensors by the name of their buffer, in order; by name `in_place` those that take another's place, and
    `views` those that are part of another.
    """

    def __init__(
        self, parameters: Mapping[str, Expr], buffers: Mapping[str, Sequence[str]], in_place: Mapping[str, str],
        views: Mapping[str, View], agree: Agree,
    ) -> None:  # fmt: skip
        self.buffers = [*buffers, *([WORKSPACE] if WORKSPACE not in buffers else [])]
        if len(self.buffers) > HOST_BUFFERS:
            raise CompositionError(
                f"{len(self.buffers)} buffers ({', '.join(self.buffers)}) are wanted, the workspace counted; NPUs "
                f"translate the addresses of {HOST_BUFFERS}: put several into one"
            )
        self._parameters, self._in_place, self._views, self._agree = parameters, in_place, views, agree
        named = [*(tensor for tensors in buffers.values() for tensor in tensors), *in_place, *views]
        if twice := sorted({tensor for tensor in named if named.count(tensor) > 1}):
            raise CompositionError(f"{', '.join(twice)}: a tensor lies in one place, these have several")
        self._homes = {tensor: place for place, tensors in enumerate(buffers.values()) for tensor in tensors}
        self._slices: list[Slice] = []
        self.tensors: dict[str, Tensor] = {}

    def bind(self, step: ComposedStep) -> tuple[Substitution, list[tuple[Slice, Expr]]]:
        """A step's values, and slice and byte in it of each of its arguments; CompositionError for what is wrong."""
        values = Substitution(step.program, self._sizes(step))
        operands = {operand.name: operand for operand in step.program.operands}
        if unknown := sorted(step.tensors.keys() - operands.keys()):
            raise CompositionError(
                f"step {step.name}: has no operand {', '.join(unknown)}; there is {', '.join(operands)}"
            )
        if unbound := [o.name for o in operands.values() if o.name not in step.tensors and o.missing is None]:
            raise CompositionError(f"step {step.name}: says no tensor for {', '.join(unbound)}")
        return values, [self._argument(step, values, *numbered) for numbered in enumerate(step.program.arguments)]

    def given(self, step: ComposedStep) -> set[int]:
        """Arguments of a step that was bound of which the host gives all, and no step writes any."""
        written = {view.of for view in self._views.values()}
        names = [step.tensors.get(operand.name, f"{step.name}.{operand.name}") for operand in step.program.operands]
        made = {name for name, tensor in self.tensors.items() if tensor.made or name in written}
        others = {one.argument for one, name in zip(step.program.operands, names, strict=True) if name in made}
        return set(range(len(step.program.arguments))) - others

    def lay_out(self) -> list[Expr]:
        """Give slices their starts, one behind the other; bytes of each buffer.

        CompositionError for buffers that name no tensor.
        """
        wanted = (
            (self._homes, "a buffer names"),
            (self._in_place, "is to lie in place"),
            (self._views, "is to be part of another"),
        )
        for names, what in wanted:
            if unknown := sorted(names.keys() - self.tensors.keys()):
                raise CompositionError(f"no step has {', '.join(unknown)}, which {what}")
        for name, view in self._views.items():
            if self.tensors[name].operand.direction == "out":
                self._view(name, view)
        ends = [expression(0) for _ in self.buffers]
        inner = [(one, *one.within) for one in self._slices if one.within]
        for one, outer, inside in inner:
            outer.needs += [inside + need for need in one.needs]
        for one in self._slices:
            if one.within:
                continue
            one.start = operate("ceildiv", ends[one.buffer], one.aligned) * one.aligned
            most = reduce(lambda a, b: a if a == b else operate("max", a, b), one.needs)
            ends[one.buffer] = one.start + most
        for one, outer, inside in inner:
            one.start = outer.start + inside
        return [operate("ceildiv", end, ALIGNED_BYTES) * ALIGNED_BYTES for end in ends]

    def _sizes(self, step: ComposedStep) -> dict[str, Expr]:
        program, found = step.program, {}
        if wrong := step.sizes.keys() ^ set(program.sizes):
            raise CompositionError(
                f"step {step.name}: its sizes are {', '.join(program.sizes)}; check {', '.join(sorted(wrong))}"
            )
        for name, size in step.sizes.items():
            found[name] = self._size(f"step {step.name}: {name}", size)
        return dict.fromkeys(program.parameters, expression(0)) | found

    def _size(self, what: str, size: int | str) -> Expr:
        try:
            return parsed(size, self._parameters) if isinstance(size, str) else expression(size)
        except WrongExpressionError as error:
            raise CompositionError(f"{what} = {clip(repr(size))}: {error}") from None

    def _argument(
        self, step: ComposedStep, values: Substitution, index: int, argument: ProgramArgument
    ) -> tuple[Slice, Expr]:
        """That of a tensor that is there, or a new slice."""
        held = [
            (operand, step.tensors.get(operand.name, f"{step.name}.{operand.name}"))
            for operand in step.program.operands
            if operand.argument == index
        ]
        size = operate("ceildiv", values(argument.elements) * argument.bits, BYTE_BITS)
        there = [name for _, name in held if name in self.tensors or name in self._in_place]
        there += [name for operand, name in held if name in self._views and operand.direction != "out"]
        if not there:
            return self._slice(step, values, size, held)
        if len(held) > 1:
            return self._around(step, values, size, held)
        ((operand, name),) = held
        if name in self.tensors:
            found = self._taken(step, values, name, operand)
        elif name in self._views:
            found = self._part(step, values, name, operand)
        else:
            found = self._over(step, values, operand, name)
        found.slice.needs.append(found.inside + size)
        found.slice.hold(operand)
        return found.slice, found.inside

    def _taken(self, step: ComposedStep, values: Substitution, name: str, operand: Operand) -> Tensor:
        """A tensor that a step reads."""
        tensor = self.tensors[name]
        if operand.direction == "out":
            raise CompositionError(
                f"step {step.name}: makes {name}, which step {tensor.step} has already; give it a name of its own"
            )
        if tensor.over:
            raise CompositionError(f"step {step.name}: reads {name}, whose place step {tensor.over} took before")
        self._check_same(f"step {step.name}: {operand.name} is {name} of step {tensor.step}", tensor, values, operand)
        tensor.read = True
        return tensor

    def _part(self, step: ComposedStep, values: Substitution, name: str, operand: Operand) -> Tensor:
        """A part of a tensor, which a step reads."""
        what, whole = f"step {step.name}: {operand.name} is part of", self.tensors.get(self._views[name].of)
        if whole is None or not whole.made or whole.over:
            raise CompositionError(f"{what} {self._views[name].of}, which no step before makes")
        whole.read = True
        made = self.tensors[name] = Tensor(operand, values, step.name, whole.slice, whole.inside, True, True)
        made.inside += self._first_byte(f"{what} {self._views[name].of}", name, made, whole)
        return made

    def _first_byte(self, what: str, name: str, own: Tensor, whole: Tensor) -> Expr:
        """Where a view begins in what it is part of."""
        if (own.operand.type, own.operand.bits) != (whole.operand.type, whole.operand.bits):
            raise CompositionError(f"{what}, of type {whole.operand.type}; it is of {own.operand.type}")
        if own.operand.bits < BYTE_BITS:
            raise CompositionError(f"{what}, of {own.operand.bits} bits each: parts begin at whole bytes")
        for tensor in (own, whole):
            self._check_plain(what, tensor)
        rows, *row = own.sizes
        first, elements = self._size(f"views: {name}: first", self._views[name].first), prod(row, start=ONE)
        self._agree(own.lines[0][1], rows, f"{what}: step {own.step} moves rows behind it{_FEWER}")
        self._agree(operate("max", first, 0), first, f"{what}, from one before the first on")
        end = (first + rows) * elements
        self._agree(operate("min", end, prod(whole.sizes, start=ONE)), end, f"{what}, more than that has")
        return first * elements * (own.operand.bits // BYTE_BITS)

    def _over(self, step: ComposedStep, values: Substitution, operand: Operand, name: str) -> Tensor:
        """A tensor that takes another's place, which nobody reads any more."""
        tensor = self._given_up(step, values, operand, name)
        made = self.tensors[name] = Tensor(operand, values, step.name, tensor.slice, tensor.inside, True)
        return made

    def _around(
        self, step: ComposedStep, values: Substitution, size: Expr, held: Sequence[tuple[Operand, str]]
    ) -> tuple[Slice, Expr]:
        """A new slice of several tensors, in which inputs of the host lie whose places some of them take."""
        names = " and ".join(name for _, name in held)
        text = f"step {step.name}: {names} lie together in one buffer of this design, so"
        if there := [name for _, name in held if name in self.tensors]:
            raise CompositionError(f"{text} {there[0]} cannot lie where another step has it")
        taken = {n: self._given_up(step, values, operand, n) for operand, n in held if n in self._in_place}
        for name, old in taken.items():
            if old.made or sum(one.slice is old.slice for one in self.tensors.values()) > 1:
                raise CompositionError(f"{text} {name} takes the place of none but an input with a slice of its own")
        made, start = self._slice(step, values, size, held, {old.slice.buffer for old in taken.values()})
        for name, old in taken.items():
            old.slice.within = made, self.tensors[name].inside
        return made, start

    def _view(self, name: str, view: View) -> None:
        """Put a tensor where the part of another is that it is."""
        what = f"{name} is to be part of {view.of}"
        own, whole = self.tensors[name], self.tensors.get(view.of)
        if whole is None or whole.made:
            raise CompositionError(f"{what}, which no step takes from the host")
        if not own.made or sum(one.slice is own.slice for one in self.tensors.values()) > 1:
            raise CompositionError(f"{what}, but no step makes it as a result with a slice of its own (apart = true)")
        own.slice.buffer = whole.slice.buffer
        own.slice.within = whole.slice, whole.inside + self._first_byte(what, name, own, whole) - own.inside

    def _given_up(self, step: ComposedStep, values: Substitution, operand: Operand, name: str) -> Tensor:
        """The tensor whose place another takes."""
        old = self._in_place[name]
        what = f"step {step.name}: {operand.name} is {name}, which is to lie in place of {old}"
        if (tensor := self.tensors.get(old)) is None or operand.direction != "out":
            raise CompositionError(f"{what}, but {'no step before has that' if tensor is None else 'it is an input'}")
        if part := next((part for part, view in self._views.items() if view.of == old), None):
            raise CompositionError(f"{what}, of which {part} is part")
        if old in step.tensors.values():
            raise CompositionError(f"{what}, which the step reads: a tile may be read again after it was written")
        self._check_same(what, tensor, values, operand)
        tensor.over = step.name
        return tensor

    def _slice(
        self, step: ComposedStep, values: Substitution, size: Expr, held: Sequence[tuple[Operand, str]],
        buffers: Collection[int] = (),
    ) -> tuple[Slice, Expr]:  # fmt: skip
        """A new slice, in `buffers` besides those that name its tensors: in one."""
        workspace = self.buffers.index(WORKSPACE)
        named = [name for _, name in held if name in self._homes or not buffers]
        homes = {*buffers, *(self._homes.get(name, workspace) for name in named)}
        if len(homes) > 1:
            wanted = ", ".join(f"{name} in {self.buffers[self._homes.get(name, workspace)]}" for _, name in held)
            raise CompositionError(f"step {step.name}: {wanted}: its design has them in one buffer")
        made = Slice(homes.pop() if homes else workspace, [size])
        self._slices.append(made)
        for operand, name in held:
            made.hold(operand)
            inside = operate("floordiv", values(operand.offset) * operand.bits, BYTE_BITS)
            self.tensors[name] = Tensor(operand, values, step.name, made, inside, operand.direction == "out")
        return made, expression(0)

    def _check_same(self, what: str, tensor: Tensor, values: Substitution, operand: Operand) -> None:
        """CompositionError unless the operand finds the tensor's elements in the order in which they lie."""
        mine = Tensor(operand, values, "", tensor.slice, tensor.inside, operand.direction == "out")
        if (operand.type, operand.bits) != (tensor.operand.type, tensor.operand.bits):
            raise CompositionError(f"{what}, of type {tensor.operand.type}; it takes {operand.type}")
        self._agree(prod(mine.sizes, start=ONE), prod(tensor.sizes, start=ONE), f"{what}: their sizes differ")
        self._agree(values(operand.offset), 0, f"{what}: it starts elsewhere in its buffer")
        if (mine.lines, mine.sizes, operand.order) != (tensor.lines, tensor.sizes, tensor.operand.order):
            self._check_plain(what, tensor)
            self._check_plain(what, mine)

    def _check_plain(self, what: str, tensor: Tensor) -> None:
        """Row by row without gaps, whatever the sizes; what stands behind the last row is nobody's concern if results
        are of the array, or rows that nothing else depends on."""
        operand, sizes = tensor.operand, tensor.sizes
        if operand.blocked or operand.order != "row" or [line[0] for line in tensor.lines] != [*range(len(sizes))]:
            raise CompositionError(f"{what}, but {operand.name} does not lie row by row without gaps: convert it")
        for (axis, count, step, stride), size in zip(tensor.lines, sizes, strict=True):
            pairs = [(step, ONE), (stride, prod(sizes[axis + 1 :], start=ONE))]
            if axis or not (tensor.made or operand.parallel):
                pairs.append((count, size))
            for got, right in pairs:
                self._agree(got, right, f"{what}: {operand.name} does not lie row by row without gaps{_FEWER}")


def check_outputs(outputs: Iterable[str], tensors: Mapping[str, Tensor]) -> None:
    """CompositionError for outputs that no step makes, and for those of which another tensor takes the place."""
    if gone := [name for name in outputs if name in tensors and tensors[name].over]:
        over = tensors[gone[0]].over
        raise CompositionError(f"the output {gone[0]} is lost: step {over} makes another tensor in its place")
    made = [name for name, tensor in tensors.items() if tensor.made]
    if unknown := sorted(set(outputs) - set(made)):
        raise CompositionError(f"no step makes the output {', '.join(unknown)}; there is {', '.join(made)}")
