"""`bdforge.load`: a built design as a function of numpy arrays, on the emulated array or the NPU.

A backend is chosen by `device=` or the variable BDFORGE_DEVICE; the emulated array is the default.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from bdforge.array.emulator.resident_design import Resident
from bdforge.common.arrays import host_array
from bdforge.common.messages import clip
from bdforge.design.sequences import OperandError, PlannedSequence, SequenceOptions
from bdforge.design.sequences.buffers import (
    arguments,
    check_buffer,
    fetched,
    few_rows,
    inputs_of,
    layout_of,
    pack,
    placed,
    sizes_of,
    staying,
)
from bdforge.design.sequences.sequence_program import Operand
from bdforge.runtime.batch import BatchedRun, run_batch
from bdforge.runtime.built_design import BuildError, BuiltDesign
from bdforge.runtime.operand_table import operand_table
from bdforge.runtime.packed_operands import PackedOperands, check_packed
from bdforge.runtime.prepared import Prepared
from bdforge.runtime.run_queue import Backend, ListedRun, Pending, RunQueue, numbered

VARIABLE = "BDFORGE_DEVICE"
EMULATED, NPU = "emulated", "xrt"
"""Devices, as C++ and the commands call them too."""
TIMEOUT_SECONDS = 10.0  # for queued work before it: the driver stops what runs sooner (devices.timing)


class Emulated:
    """The emulated array, configured once by the design's MLIR and driven by the words that the NPU would get."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._loaded: Resident | None = None
        self._lock = Lock()

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        """Run until the sequence has ended; faults are EmulationErrors. There is no clock, hence no time-out."""
        del timeout_seconds
        return self._resident().run(planned.words(), buffers)

    def run_list(self, runs: Sequence[ListedRun], timeout_seconds: float) -> tuple[str, ...]:
        """One after the other."""
        warnings: dict[str, None] = {}
        for number, (planned, buffers) in enumerate(runs, 1):
            with numbered(number, len(runs)):
                warnings |= dict.fromkeys(self.run(planned, buffers, timeout_seconds))
        return tuple(warnings)

    def resident(self, argument: int, buffer: np.ndarray) -> np.ndarray:
        """The buffer itself."""
        del argument
        return buffer

    def send(self, buffer: np.ndarray) -> None:
        """The array finds it where it is."""

    def receive(self, buffer: np.ndarray) -> None:
        """It is there already."""

    def ready(self) -> None:
        """Load the array now instead of with the first run."""
        self._resident()

    def close(self) -> None:
        """Forget the array."""
        with self._lock:
            self._loaded = None

    def _resident(self) -> Resident:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._design.resident()
            return self._loaded


def chosen(device: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """What `device` or BDFORGE_DEVICE names: a device, or any other word."""
    return device or environ.get(VARIABLE) or EMULATED


def backend_for(design: BuiltDesign, device: str | None, environ: Mapping[str, str] = os.environ) -> Backend:
    """The backend called `device`, or by BDFORGE_DEVICE; BuildError for an unknown name."""
    name = chosen(device, environ)
    if name == EMULATED:
        return Emulated(design)
    if name == NPU:
        from bdforge.runtime.xrt import Xrt

        return Xrt(design)
    raise BuildError(f"device {clip(name)!r} is unknown; choose {EMULATED} or {NPU} (device= or {VARIABLE})")


class Loaded:
    """A design as a function: inputs by position or by operand name, in its types and memory orders; its output.

    Several outputs come as a dict by name. Any sizes run on one loaded array, and any thread may call. A context
    manager: the array is given back at the end of a `with`, after which runs raise UseError.
    """

    def __init__(self, design: BuiltDesign, on: "Backend | Loaded", timeout_seconds: float = TIMEOUT_SECONDS):
        """`on` a backend of its own, or that of a design that shares it."""
        self.design, self.timeout_seconds = design, timeout_seconds
        self._runs = on._runs if isinstance(on, Loaded) else RunQueue(design.name, on)
        self.device = type(self._runs.backend).__name__.lower()
        """What runs it: "emulated" or "xrt"."""

    def shares(self, design: BuiltDesign) -> bool:
        """Whether a design may run on this array: it loads the same image, from which the emulated array boots, too."""
        ours, theirs = (one.manifest.files.get("xclbin") for one in (self.design, design))
        if ours is None or theirs is None or ours.sha256 != theirs.sha256:
            return False
        return self.device != EMULATED or self.design.booted == design.booted

    def on_array_of(self, other: "Loaded") -> bool:
        """Whether both run on one array, so that a list holds problems of both."""
        return self._runs is other._runs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the array, behind what was submitted."""
        self._runs.close()

    def __repr__(self) -> str:
        inputs = ", ".join(operand.name for operand in inputs_of(self.design.program))
        return f"<Loaded {self.design.summary} on device {self.device}, takes {inputs}>"

    def _repr_html_(self) -> str:
        return operand_table(f"{self.design.summary}, on device {self.device}", self.design.program)

    def ready(self) -> None:
        """Load the array now where it would be loaded with the first call."""
        self._runs.backend.ready()

    def pack(self, *arrays: np.ndarray, **named: np.ndarray) -> PackedOperands:
        """Inputs that stay from call to call as this design reads them, packed or staged, such as weights.

        These are the operands in which the first of a shape's sizes takes no part; in order, or by name. OperandError
        for values that their types lack.
        """
        design = self.design
        given = _bound(arrays, named, staying(design.program), design.name)
        sizes, buffers = pack(design.program, design.array, given)
        return self._packed(tuple(given), self._one_row(sizes), sizes, buffers)

    def packed(self, data: np.ndarray, **sizes: int) -> PackedOperands:
        """What `pack` made of the first operand that stays, read from a file of its `data`; sizes by parameter.

        OperandError for bytes that this design packs of no array of these sizes.
        """
        operand = next(iter(staying(self.design.program)), None)
        if operand is None:
            raise OperandError(f"design {self.design.name} has no operand that stays, and takes none packed")
        data = host_array(data, f"packed {operand.name}", OperandError)
        sequence, name = self._one_row(sizes), operand.name
        where = f"packed {name} of {', '.join(f'{key} = {size}' for key, size in sizes.items())}"
        if data.nbytes != (needed := sequence.argument_bytes[operand.argument]):
            raise OperandError(
                f"{where} takes {needed} bytes, got {data.nbytes}; the file is truncated, or packed for other tile "
                "sizes: pack it again"
            )
        try:
            check_buffer(sequence, operand.argument, data := np.ascontiguousarray(data))
        except OperandError as error:
            raise OperandError(f"{where}: {error}; {self.design.name} did not pack it so: pack it again") from None
        return self._packed((name,), sequence, sizes, {operand.argument: data})

    def _one_row(self, sizes: Mapping[str, int]) -> PlannedSequence:
        """A problem of these sizes and few rows, on which what stays does not depend."""
        return few_rows(self.design.program, sizes, self.design.sequence)

    def _packed(
        self, names: tuple[str, ...], sequence: PlannedSequence, sizes: Mapping[str, int],
        buffers: Mapping[int, np.ndarray],
    ) -> PackedOperands:  # fmt: skip
        kept = {i: self._runs.backend.resident(i, buffer) for i, buffer in buffers.items()}
        return PackedOperands(self.design.name, names, sizes, kept, {i: layout_of(sequence, i) for i in kept})

    def unpack(self, packed: PackedOperands) -> dict[str, np.ndarray]:
        """The arrays of which `packed` was made, by operand name."""
        sequence = self._one_row(packed.sizes)
        check_packed([packed], sequence)
        operands = [operand for operand in staying(self.design.program) if operand.name in packed.names]
        return fetched(sequence, packed.buffers, operands)

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray]) -> None:
        """Run any sequence that is for the loaded array on host buffers, of which some are written in place."""
        given = [host_array(array, f"buffer {i}", OperandError, in_place=True) for i, array in enumerate(buffers)]
        self._runs.run(planned, given, self.timeout_seconds)

    def prepared(self, **sizes: int) -> Prepared:
        """A problem of these sizes with memory of its own, for many runs without copies; ProgramError for bad sizes."""
        return Prepared(self.design.name, self.design.sequence(sizes), self._runs, self.timeout_seconds)

    def beside(self, problem: Prepared, operands: Mapping[str, str], /, **sizes: int) -> Prepared:
        """A problem whose `operands` stand where one of another design on this array has those that they name, such as
        `head.beside(state, {"x": "y"}, tokens=1)`: in one list with it, it reads what that left without a copy.

        What lies with one in a buffer is named, too. Both problems belong to one thread, and one is in a run at a time
        outside of lists. OperandError for operands that are not there, or lie otherwise there; other faults as of
        `prepared`.
        """
        return problem.lending(self.design.name, self.design.sequence(sizes), self._runs, operands)

    def resized(self, problem: Prepared, **sizes: int) -> Prepared:
        """A problem of other sizes (those left out stay) in the memory of one that was prepared, which is large enough.

        Arrays begin where the other's do if what lies before them has one size, as a cache at the start of a buffer
        that grows row by row. OperandError where memory is too small, other faults as of `prepared` and of a call.
        """
        return problem.resized(self.design.sequence({**problem.sizes, **sizes}))

    def run_batch(self, runs: Sequence[BatchedRun]) -> int:
        """Run prepared problems in order as one list, each with what is packed for it; how many dispatches that took.

        Problems are of any designs on this array (`bdforge.load(folder, beside=[...])`). They may stand in a list
        several times, and have memory in common (`Prepared.beside`, `Loaded.beside`): each run finds what the ones
        before it left. So nothing is copied between them, and an NPU gets `RUNLIST_COMMANDS_MAX` at a time.
        Faults as of a prepared problem's call, with the number of the run: those behind it have not run then.
        """
        return run_batch(self._runs, runs, self.timeout_seconds)

    def __call__(self, *arrays: np.ndarray | PackedOperands, **named: np.ndarray | PackedOperands) -> Any:
        """Run; OperandError says what was expected and what was given."""
        return self._finished(*self._call(arrays, named))

    def submit(self, *arrays: np.ndarray | PackedOperands, **named: np.ndarray | PackedOperands) -> Pending:
        """Run behind what was submitted before; `wait()` gives what a call gives, until which arrays must not change.

        OperandError as of a call.
        """
        planned, run = self._call(arrays, named)
        return self._runs.submit(planned.shape, lambda: self._finished(planned, run))

    def _call(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[PlannedSequence, list[np.ndarray]]:
        """The sequence and the buffers of a call."""
        inputs = inputs_of(self.design.program)
        given = _bound(arrays, named, inputs, self.design.name)
        packed = [value for value in given.values() if isinstance(value, PackedOperands)]
        plain = {name: value for name, value in given.items() if not isinstance(value, PackedOperands)}
        sizes = sizes_of(self.design.program, plain, {k: v for one in packed for k, v in one.sizes.items()})
        planned = self.design.sequence(sizes)
        buffers = {index: buffer for one in packed for index, buffer in one.buffers.items()}
        check_packed(packed, planned, plain)
        buffers |= placed(planned, plain, [operand for operand in inputs if operand.argument not in buffers])
        return planned, arguments(planned, buffers)

    def _finished(self, planned: PlannedSequence, run: Sequence[np.ndarray]) -> Any:
        self.run(planned, run)
        outputs = {name: np.ascontiguousarray(array) for name, array in fetched(planned, run).items()}
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs


def _bound(arrays: Sequence, named: Mapping, operands: Sequence[Operand], design: str) -> dict:
    """Arguments by operand name; OperandError for one that the design does not take, or that is no array of numbers."""
    names = {operand.name.lower(): operand.name for operand in operands}
    takes = ", ".join(names.values()) or "none"
    given = dict(zip(names.values(), arrays, strict=False))
    for name, value in named.items():
        if name.lower() not in names or names[name.lower()] in given or len(arrays) > len(names):
            raise OperandError(f"design {design} takes no operand {name} here; it takes {takes}")
        if value is not None:
            given[names[name.lower()]] = value
    if len(arrays) > len(names):
        raise OperandError(f"{len(arrays)} arrays were given; design {design} takes {takes} here")
    return {
        n: v if isinstance(v, PackedOperands) else host_array(v, f"operand {n}", OperandError) for n, v in given.items()
    }


def load(
    folder: Path | str, device: str | None = None, sequence: SequenceOptions | None = None,
    beside: Iterable[Loaded] = (),
) -> Loaded:  # fmt: skip
    """The design built in `folder`, ready to be called.

    `device` is "emulated" (the default) or "xrt"; without it the variable BDFORGE_DEVICE decides. `sequence` says how
    runs wait, where not as the design says. Where one of those `beside` it loaded the same image on that device, as a
    composition does that runs where another one is loaded, both take turns on that one's array. BuildError says what
    the folder lacks, NpuError what the NPU lacks.
    """
    if not isinstance(folder, str | os.PathLike):
        raise BuildError(f"a built design is a folder, got {type(folder).__name__}")
    design = BuiltDesign.load(folder).waiting(sequence)
    wanted = chosen(device, os.environ)
    found = next((one for one in beside if one.device == wanted and one.shares(design)), None)
    return Loaded(design, backend_for(design, device) if found is None else found)
