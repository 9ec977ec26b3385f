"""Problems with memory of their own where a device's runs find it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread, current_thread
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from bdforge.common.messages import listed
from bdforge.design.sequences import OperandError, PlannedSequence
from bdforge.design.sequences.buffers import arguments, empty, fetched, inputs_of, outputs_of, staying
from bdforge.design.sequences.operands import place
from bdforge.design.sequences.sequence_program import Operand
from bdforge.runtime.live_memory import KeptArrays, LiveMemory
from bdforge.runtime.operand_table import operand_table
from bdforge.runtime.packed_operands import PackedOperands, check_packed
from bdforge.runtime.run_queue import ListedRun, Pending, RunQueue, UseError


@dataclass(eq=False)
class _Use:
    """Whose a problem's memory is, and whether a run uses it now."""

    owner: Thread
    running: Lock = field(default_factory=Lock)


class Prepared:
    """A problem's operands where the array reads and writes them: write inputs into `arrays`, call, read outputs there.

    `arrays` are by operand name, and stay the same; inputs are zero, or as if not given, until written. Operands that
    stay from call to call are none of them: they are packed, and given to each call. Outputs last until the next call.

    A buffer of which an array was taken is synchronised with each run, since its user may write and read it at any
    time; `current` gives one for a moment.

    So one thread writes, calls and reads: the one that made it, until it ends or another one takes it. A context
    manager: the memory is given back at the end of a `with`.
    """

    def __init__(
        self, design: str, sequence: PlannedSequence, runs: RunQueue, timeout_seconds: float,
        kept: "Prepared | None" = None, shared: Mapping[int, LiveMemory] = MappingProxyType({}),
    ):  # fmt: skip
        """A problem of `design`. `shared` is memory by argument that it has in common with `kept`, of any sizes.

        OperandError where that is too small.
        """
        self._design, self._sequence, self._runs, self._timeout_seconds = design, sequence, runs, timeout_seconds
        self._use, self._closed = _Use(current_thread()) if kept is None else kept._use, False
        self._check_room(shared)
        program, backend = sequence.program, runs.backend
        packed = {operand.argument for operand in staying(program)}
        numbers = [i for i in range(len(program.arguments)) if i not in packed and i not in shared]
        self._memory = dict(shared) | {i: LiveMemory(backend, i, empty(sequence, i)) for i in numbers}
        same = kept is not None and sequence is kept._sequence
        seen = numbers if same else self._memory
        own = [operand for operand in program.operands if operand.argument in seen]
        self._arrays = fetched(sequence, self._buffers, own)
        for operand in own:
            if operand.missing is not None and operand.argument in numbers:
                self._memory[operand.argument].current(written=True)
                self._arrays[operand.name][...] = operand.missing
        self._copied = [  # narrow types, say, of which numpy has no arrays
            o for o in own if not np.may_share_memory(self._arrays[o.name], self._memory[o.argument].buffer)
        ]
        if same:
            self._copied += [operand for operand in kept._copied if operand.argument in shared]
            self._arrays = {name: self._arrays.get(name, array) for name, array in kept._arrays.items()}
        else:
            self._fetch([operand for operand in self._copied if operand.argument in shared])

    def _check_room(self, shared: Mapping[int, LiveMemory]) -> None:
        for index, memory in shared.items():
            if memory.buffer.nbytes < (needed := self._sequence.argument_bytes[index]):
                raise OperandError(
                    f"{self._sequence.program.arguments[index].name} of {self._sequence.shape} takes {needed} bytes, "
                    f"and has {memory.buffer.nbytes} in the memory of the problem prepared before; prepare the largest "
                    "one first"
                )

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Inputs to write and outputs to read, by operand name."""
        places = {operand.name: operand.argument for operand in self._sequence.program.operands}
        return KeptArrays(self._arrays, {name: self._memory[places[name]] for name in self._arrays})

    def current(self, name: str, *, written: bool = False) -> np.ndarray:
        """An array for this moment, as the last run left it: what is read or written there later, nobody synchronises.

        `written`: the host writes it before the next run. OperandError for what is none of `arrays`, UseError when the
        problem was closed.
        """
        self._check_open()
        self._memory[self._operand(name).argument].current(written=written)
        return self._arrays[name]

    def _operand(self, name: str) -> Operand:
        """One of `arrays`."""
        if name not in self._arrays:
            raise OperandError(
                f"{self._name} has no memory of its own for operand {name}; it has some for "
                f"{listed(self._arrays, ', ')}"
            )
        return next(operand for operand in self._sequence.program.operands if operand.name == name)

    def __repr__(self) -> str:
        shown = (f"{name} {array.dtype}{list(array.shape)}" for name, array in self._arrays.items())
        return f"<Prepared {self._name}: {', '.join(shown) or 'closed'}>"

    def _repr_html_(self) -> str:
        return operand_table(f"{self._name}, prepared", self._sequence.program, self._arrays.items())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the memory, behind what was submitted; no run is made any more."""
        with self._use.running:
            self._closed = True
            self._memory, self._arrays = {}, {}

    def beside(self, *operands: str) -> "Prepared":
        """Another problem of these sizes in the same memory, but for the buffers of some operands, which are its own.

        So runs of a batch leave what they make in places of their own, such as each layer's keys and values. Both
        belong to one thread, and are in one run. OperandError for what is none of `arrays`.
        """
        with held([self]):
            anew = {self._operand(name).argument for name in operands}
            shared = {i: memory for i, memory in self._memory.items() if i not in anew}
            return Prepared(self._design, self._sequence, self._runs, self._timeout_seconds, self, shared)

    def resized(self, sequence: PlannedSequence) -> "Prepared":
        """A problem of other sizes in this one's memory, which has arrays of its own there: `Loaded.resized`."""
        with held([self]):
            return Prepared(self._design, sequence, self._runs, self._timeout_seconds, self, self._memory)

    def lending(
        self, design: str, sequence: PlannedSequence, runs: RunQueue, operands: Mapping[str, str]
    ) -> "Prepared":  # fmt: skip
        """A problem of another design whose operands stand where this one has some: `Loaded.beside`."""
        with held([self]):
            self.check_batched(runs)
            program = sequence.program
            shared = {
                o.argument: self._memory[self._operand(operands[o.name]).argument]
                for o in program.operands
                if o.name in operands
            }
            made = Prepared(design, sequence, runs, self._timeout_seconds, self, shared)
            for name in operands:
                made._operand(name)
            for operand in program.operands:
                if operand.argument in shared:
                    made._check_place(operand, self, operands.get(operand.name))
            return made

    def _check_place(self, operand: Operand, other: "Prepared", name: str | None) -> None:
        """OperandError unless an operand's elements are just those of another problem's array."""
        what = f"operand {operand.name} of {self._name}"
        if name is None:
            raise OperandError(
                f"{what} lies in one buffer with others that are to stand where {other._name} has them; say where this "
                "one is there, too"
            )
        others = other._operand(name)
        own, found = self._elements(operand), other._elements(others)
        if self._memory[operand.argument] is not other._memory[others.argument] or own != found or "copy" in own:
            raise OperandError(
                f"{what} does not lie where {other._name} has {name}: it is {own}, that one {found}; give them buffers "
                "with the same tensors in the same order"
            )
        if operand.direction != "in" and self._end(operand) > other._end(others):
            raise OperandError(
                f"{what} is written with rows behind it, where {other._name} has something else; give it a buffer of "
                "its own"
            )

    def _elements(self, operand: Operand) -> str:
        """Type, shape, and where in its buffer an operand's elements are."""
        if operand in self._copied:
            return "a copy of what numpy cannot show"
        array = self._arrays[operand.name]
        flat = array.reshape(-1) if array.flags.c_contiguous else array.squeeze()
        first = flat.ctypes.data - self._memory[operand.argument].buffer.ctypes.data
        apart = "" if flat.ndim == 1 else f", {' and '.join(map(str, flat.strides))} bytes apart"
        return f"{operand.type}{list(flat.shape)} from byte {first} on{apart}"

    def _end(self, operand: Operand) -> int:
        """The bit of its buffer behind what runs move of an operand."""
        values = self._sequence.values
        last = sum((values[dim.count] - 1) * values[dim.stride] for dim in operand.dims)
        return (values[operand.offset] + last + 1) * operand.bits

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
        return f"{self._sequence.shape} of {self._design}"

    def _given(self, packed: Mapping[str, PackedOperands]) -> dict[int, np.ndarray]:
        """Buffers by argument, inputs written into those that numpy has no arrays of."""
        check_packed(list(packed.values()), self._sequence)
        given = self._buffers | {index: buffer for one in packed.values() for index, buffer in one.buffers.items()}
        program = self._sequence.program
        if lost := [operand.name for operand in inputs_of(program) if operand.argument not in given]:
            raise OperandError(f"operand {lost[0]} of {self._sequence.shape} is not given; pack it")
        for operand in self._copied:
            if operand.direction == "in":
                buffer = self._memory[operand.argument].current(written=True).reshape(-1).view(np.uint8)
                place(operand, self._sequence.values, self._arrays[operand.name], buffer)
        return given

    def _run(self, given: Mapping[int, np.ndarray]) -> Any:
        with synchronised([self]):
            self._runs.run(self._sequence, arguments(self._sequence, given), self._timeout_seconds)
        arrays = self.arrays
        found = {operand.name: arrays[operand.name] for operand in outputs_of(self._sequence.program)}
        return next(iter(found.values())) if len(found) == 1 else found

    def check_batched(self, queue: RunQueue) -> None:
        """OperandError for a problem that no list of `queue` runs as calls would, one by one."""
        if self._runs is not queue:
            raise OperandError(
                f"it is {self._name}, which is not loaded on the array of {queue.name}; load designs of one image on "
                "one array: bdforge.load(folder, beside=[...])"
            )
        written = {operand.argument for operand in outputs_of(self._sequence.program)}
        if again := [o.name for o in self._copied if o.direction == "in" and o.argument in written]:
            raise OperandError(
                f"{self._name} writes the buffer in which {again[0]} is placed anew before each run; call it instead"
            )

    def as_listed(self, packed: Mapping[str, PackedOperands]) -> ListedRun:
        """A run of a list, while it is held; faults of what is packed as of a call."""
        return self._sequence, arguments(self._sequence, self._given(packed))

    @property
    def _buffers(self) -> dict[int, np.ndarray]:
        return {index: memory.buffer for index, memory in self._memory.items()}

    def _fetch(self, operands: Sequence[Operand]) -> None:
        """Read operands that are copies in `arrays`."""
        buffers = {operand.argument: self._memory[operand.argument].current() for operand in operands}
        for name, array in fetched(self._sequence, buffers, operands).items():
            self._arrays[name][...] = array

    def fetch_copied(self) -> None:
        """Read, behind a run, outputs that are copies in `arrays`."""
        self._fetch([operand for operand in self._copied if operand.direction == "out"])

    @property
    def memory(self) -> tuple[list[LiveMemory], list[LiveMemory]]:
        """What runs read or write, and of that what they write."""
        written = {operand.argument for operand in self._sequence.program.operands if operand.direction != "in"}
        return [*self._memory.values()], [memory for i, memory in self._memory.items() if i in written]


@contextmanager
def synchronised(problems: Sequence[Prepared]) -> Iterator[None]:
    """While a run or a list uses problems: what the host wrote goes there before, what it looks at comes back."""
    written = dict.fromkeys(one for problem in problems for one in problem.memory[1])
    for memory in dict.fromkeys(one for problem in problems for one in problem.memory[0]):
        memory.send()
    for memory in written:
        memory.begin()
    yield
    for memory in written:
        memory.made()
    for problem in dict.fromkeys(problems):
        problem.fetch_copied()


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
