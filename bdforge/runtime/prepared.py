"""What runs on a device use: packed operands that stay from call to call, and problems with memory of their own."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import escape
from threading import Lock, Thread, current_thread
from typing import Any, Self

import numpy as np

from bdforge.common.messages import listed
from bdforge.design.sequences import OperandError, PlannedSequence, Program
from bdforge.design.sequences.buffers import (
    arguments,
    empty,
    fetched,
    inputs_of,
    layout_of,
    operands_in,
    outputs_of,
    staying,
)
from bdforge.design.sequences.operands import place
from bdforge.runtime.run_queue import ListedRun, Pending, RunQueue, UseError


def operand_table(title: str, program: Program, arrays: Iterable[tuple[str, np.ndarray]] | None = None) -> str:
    """HTML with a line for each operand: of `arrays` by name, else all, with the parameters that are their sizes."""
    given = None if arrays is None else dict(arrays)
    lines = []
    for operand in program.operands:
        if given is not None and operand.name not in given:
            continue
        values = (program.values[axis.size] for axis in operand.axes)
        names = [value if isinstance(value, (str, int)) else "…" for value in values]
        shape = names if given is None else given[operand.name].shape
        order = "" if len(names) < 2 else f"{operand.order} by {operand.order}"
        way = (
            "output" if operand.direction == "out" else "input" if operand.missing is None else "input, may be missing"
        )
        lines.append((operand.name, way, operand.type, " x ".join(map(str, shape)), order))
    head = _line("th", ("operand", "", "type", "shape", "order"))
    return f"<table><caption>{escape(title)}</caption>{head}{''.join(_line('td', line) for line in lines)}</table>"


def _line(cell: str, words: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(word)}</{cell}>' for word in words)}</tr>"


@dataclass(frozen=True, slots=True, eq=False)
class PackedOperands:
    """Operands as one design's array reads them, buffers by argument; pack once, use for every call.

    `design` made it; any takes it that reads its arguments by the same `layouts`. `names` are the operands' names,
    `sizes` those that they tell.
    """

    design: str
    names: tuple[str, ...]
    sizes: Mapping[str, int]
    buffers: Mapping[int, np.ndarray]
    layouts: Mapping[int, tuple]

    @property
    def data(self) -> np.ndarray:
        """The first operand's buffer; a file of it is what `Loaded.packed` takes."""
        return next(iter(self.buffers.values()))

    def __repr__(self) -> str:
        size = sum(buffer.nbytes for buffer in self.buffers.values())
        return f"<Packed {', '.join(self.names)}, {'x'.join(map(str, self.sizes.values()))}, {size} bytes>"


@dataclass(eq=False)
class _Use:
    """Whose a problem's memory is, and whether a run uses it now."""

    owner: Thread
    running: Lock = field(default_factory=Lock)


class Prepared:
    """A problem's operands where the array reads and writes them: write inputs into `arrays`, call, read outputs there.

    `arrays` are by operand name, and stay the same; inputs are zero, or as if not given, until written. Operands that
    stay from call to call are none of them: they are packed, and given to each call. Outputs last until the next call.

    So one thread writes, calls and reads: the one that made it, until it ends or another one takes it. A context
    manager: the memory is given back at the end of a `with`.
    """

    def __init__(
        self, sequence: PlannedSequence, runs: RunQueue, timeout_seconds: float, kept: "Prepared | None" = None,
        anew: Collection[int] = (),
    ):  # fmt: skip
        """`kept`: a problem whose memory it shares, but for the arguments in `anew`; it may be of other sizes.

        OperandError where that memory is too small.
        """
        self._sequence, self._runs, self._timeout_seconds = sequence, runs, timeout_seconds
        self._use, self._closed = _Use(current_thread()) if kept is None else kept._use, False
        program, backend = sequence.program, runs.backend
        packed = {operand.argument for operand in staying(program)}
        shared = {} if kept is None else {i: buffer for i, buffer in kept._buffers.items() if i not in anew}
        for index, buffer in shared.items():
            if buffer.nbytes < (needed := sequence.argument_bytes[index]):
                raise OperandError(
                    f"{program.arguments[index].name} of {sequence.shape} takes {needed} bytes, and has "
                    f"{buffer.nbytes} in the memory of the problem prepared before; prepare the largest one first"
                )
        numbers = [i for i in range(len(program.arguments)) if i not in packed and i not in shared]
        self._buffers = shared | {i: backend.resident(i, empty(sequence, i), live=True) for i in numbers}
        same = kept is not None and sequence is kept._sequence
        seen = numbers if same else self._buffers
        own = [operand for operand in program.operands if operand.argument in seen]
        self.arrays = fetched(sequence, self._buffers, own)
        for operand in own:
            if operand.missing is not None and operand.argument in numbers:
                self.arrays[operand.name][...] = operand.missing
        self._copied = [  # narrow types, say, of which numpy has no arrays
            o for o in own if not np.may_share_memory(self.arrays[o.name], self._buffers[o.argument])
        ]
        if same:
            self._copied += [operand for operand in kept._copied if operand.argument in shared]
            self.arrays = {name: self.arrays.get(name, array) for name, array in kept.arrays.items()}

    def __repr__(self) -> str:
        shown = (f"{name} {array.dtype}{list(array.shape)}" for name, array in self.arrays.items())
        return f"<Prepared {self._name}: {', '.join(shown) or 'closed'}>"

    def _repr_html_(self) -> str:
        return operand_table(f"{self._name}, prepared", self._sequence.program, self.arrays.items())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the memory, behind what was submitted; no run is made any more."""
        with self._use.running:
            self._closed = True
            self._buffers, self.arrays = {}, {}

    def beside(self, *operands: str) -> "Prepared":
        """Another problem of these sizes in the same memory, but for the buffers of some operands, which are its own.

        So runs of a batch leave what they make in places of their own, such as each layer's keys and values. Both
        belong to one thread, and are in one run. OperandError for what is none of `arrays`.
        """
        with held([self]):
            if odd := [name for name in operands if name not in self.arrays]:
                raise OperandError(
                    f"{self._name} has no memory of its own for operand {odd[0]}; it has some for "
                    f"{listed(self.arrays, ', ')}"
                )
            anew = {o.argument for o in self._sequence.program.operands if o.name in operands}
            return Prepared(self._sequence, self._runs, self._timeout_seconds, self, anew)

    def resized(self, sequence: PlannedSequence) -> "Prepared":
        """A problem of other sizes in this one's memory, which has arrays of its own there: `Loaded.resized`."""
        with held([self]):
            return Prepared(sequence, self._runs, self._timeout_seconds, self)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Its sizes by parameter."""
        return self._sequence.parameters

    def take(self) -> Self:
        """From now on it belongs to the thread that asks; UseError while a run uses it."""
        self._begin(taking=True)
        self._use.running.release()
        return self

    def __call__(self, **packed: PackedOperands) -> Any:
        """Run; the output, or several by name. OperandError for packed operands that are missing or do not fit,
        UseError in a thread that it does not belong to, while a run is under way, and when it was closed."""
        self._begin()
        try:
            return self._run(self._given(packed))
        finally:
            self._use.running.release()

    def submit(self, **packed: PackedOperands) -> Pending:
        """Run behind what was submitted before; its `wait()` gives the output, until which the arrays are the run's.

        Faults of what is given as of a call.
        """
        self._begin()
        try:
            given = self._given(packed)
            return self._runs.submit(self._sequence.shape, lambda: self._submitted(given))
        except BaseException:
            self._use.running.release()
            raise

    def _submitted(self, given: Mapping[int, np.ndarray]) -> Any:
        try:
            return self._run(given)
        finally:
            self._use.running.release()

    def _begin(self, *, taking: bool = False) -> None:
        """Hold it for a run."""
        what = f"the prepared problem {self._name}"
        if not self._use.running.acquire(blocking=False):
            raise UseError(f"{what} is in a run of {self._use.owner.name}; wait for its end")
        mine = taking or self._use.owner is current_thread() or not self._use.owner.is_alive()
        if mine and not self._closed:
            self._use.owner = current_thread()
            return
        self._use.running.release()
        self._check_open()
        raise UseError(
            f"{what} belongs to {self._use.owner.name}, which reads and writes its arrays; prepare one for each "
            "thread, or hand it over with take()"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise UseError(f"the prepared problem {self._name} was closed; prepare it again")

    @property
    def _name(self) -> str:
        return f"{self._sequence.shape} of {self._runs.name}"

    def _given(self, packed: Mapping[str, PackedOperands]) -> dict[int, np.ndarray]:
        """Buffers by argument, inputs written into those that numpy has no arrays of."""
        check_packed(list(packed.values()), self._sequence)
        given = self._buffers | {index: buffer for one in packed.values() for index, buffer in one.buffers.items()}
        program = self._sequence.program
        if lost := [operand.name for operand in inputs_of(program) if operand.argument not in given]:
            raise OperandError(f"operand {lost[0]} of {self._sequence.shape} is not given; pack it")
        for operand in self._copied:
            if operand.direction == "in":
                buffer = given[operand.argument].reshape(-1).view(np.uint8)
                place(operand, self._sequence.values, self.arrays[operand.name], buffer)
        return given

    def _run(self, given: Mapping[int, np.ndarray]) -> Any:
        self._runs.run(self._sequence, arguments(self._sequence, given), self._timeout_seconds)
        self.fetch_copied()
        found = {operand.name: self.arrays[operand.name] for operand in outputs_of(self._sequence.program)}
        return next(iter(found.values())) if len(found) == 1 else found

    def check_batched(self, queue: RunQueue) -> None:
        """OperandError for a problem that no list of `queue` runs as calls would, one by one."""
        if self._runs is not queue:
            raise OperandError(f"it is {self._name}, not of the design {queue.name} that was loaded for this batch")
        written = {operand.argument for operand in outputs_of(self._sequence.program)}
        if again := [o.name for o in self._copied if o.direction == "in" and o.argument in written]:
            raise OperandError(
                f"{self._name} writes the buffer in which {again[0]} is placed anew before each run; call it instead"
            )

    def as_listed(self, packed: Mapping[str, PackedOperands]) -> ListedRun:
        """A run of a list, while it is held; faults of what is packed as of a call."""
        return self._sequence, arguments(self._sequence, self._given(packed))

    def fetch_copied(self) -> None:
        """Read, behind a run, outputs that are copies in `arrays`."""
        copied = [operand for operand in self._copied if operand.direction == "out"]
        for name, array in fetched(self._sequence, self._buffers, copied).items():
            self.arrays[name][...] = array


@contextmanager
def held(problems: Iterable[Prepared]) -> Iterator[None]:
    """Hold problems for a run of all of them; UseError where this thread may not have one, or one was closed."""
    with ExitStack() as stack:
        begun: list[_Use] = []
        for problem in problems:
            if problem._use in begun:
                problem._check_open()
                continue
            problem._begin()
            begun.append(problem._use)
            stack.callback(problem._use.running.release)
        yield


def check_packed(packed: Sequence[PackedOperands], planned: PlannedSequence, plain: Collection[str] = ()) -> None:
    """OperandError unless each argument comes from one place, laid out as the array will read it.

    `plain` are the names of operands that come as arrays.
    """
    holders: dict[int, PackedOperands] = {}
    for one in packed:
        for index, layout in one.layouts.items():
            if layout != (needed := layout_of(planned, index)):
                sizes = ", ".join(f"{name} = {size}" for name, size in one.sizes.items())
                raise OperandError(
                    f"packed {one.names[0]} of {sizes} ({layout[0]} bytes, by {one.design}) is not laid out as a "
                    f"problem of {planned.shape} reads it ({needed[0]} bytes); pack it by the design and for the sizes "
                    "that take it"
                )
            beside = [operand.name for operand in operands_in(planned.program, index) if operand.name in plain]
            if other := [holders[index].names[0]] if index in holders else beside:
                raise OperandError(f"{other[0]} stands in one buffer with packed {one.names[0]}; pack them together")
            holders[index] = one
