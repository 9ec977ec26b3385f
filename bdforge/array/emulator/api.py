"""`emulate`: run an explicit AIE design on host arrays."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.core_machine import Machine, empty_design, only_configuration, stream_operations
from bdforge.array.emulator.cores.core import Frame, frames_of
from bdforge.array.emulator.cores.machine_code_core import Breakpoints, profiles
from bdforge.array.emulator.diagnose import quiet
from bdforge.array.emulator.dram_order import dram_named
from bdforge.array.emulator.errors import ArgumentError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.module_choice import approximation_named, check_given, choose, host_arrays
from bdforge.array.emulator.observe import attend, counted
from bdforge.array.emulator.scheduler import STEP_BUDGET, Observer, scheduler_named, whole
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.timed import TimingOptions, TimingReport, replay
from bdforge.array.emulator.trace import Recorder, Trace
from bdforge.array.mlir import parsed
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.trace_ops import trace_warnings
from bdforge.array.txn.lower import lower
from bdforge.core.exact.profile import CoreProfile
from bdforge.core.isa.elf import CoreProgram
from bdforge.core.isa.meaning import Approximated
from bdforge.devices.capacities import KNOWN
from bdforge.devices.txn_format.operations import Operation


@dataclass(frozen=True)
class Result:
    """What is left of a run: the arrays given (updated in place), warnings, and the array's memory.

    `buffers` maps the name of every named `aie.buffer` of the device loaded last to a view of its memory; where
    several devices were loaded, `device::name` does so for each. `timing` is there where the run was timed. `cores`
    tells of those that ran machine code, in the device loaded last, where their cycles went. `approximated` are the
    functions of machine code whose results were approximated, with their bounds.
    """

    arguments: tuple[np.ndarray, ...]
    warnings: tuple[str, ...]
    buffers: Mapping[str, np.ndarray]
    timing: TimingReport | None = None
    trace: Trace | None = None
    cores: tuple[CoreProfile, ...] = ()
    approximated: tuple[Approximated, ...] = ()

    def __repr__(self) -> str:
        shapes = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.arguments)
        told = [f"{len(self.buffers)} named buffers", f"{len(self.warnings)} warnings"]
        told += [f"approximated {row.form}" for row in self.approximated]
        told += [f"{self.timing.seconds * 1e6:.1f} us (emulated)"] if self.timing else []
        return f"<Result of a run on {shapes or 'no arrays'}: {', '.join(told)}>"


def emulate(
    mlir: str,
    args: Sequence[np.ndarray] = (),
    kernels: Mapping[str, Callable] | None = None,
    sequence: str | None = None,
    *,
    instructions: np.ndarray | bytes | None = None,
    file: str = "<string>",
    schedule: str = "in-order",
    seed: int = 0,
    permissive: Collection[str] = (),
    observers: Sequence[Observer] = (),
    budget: int = STEP_BUDGET,
    capacity: int | Literal["known"] = KNOWN,
    device: str | None = None,
    poison: bool = False,
    timing: TimingOptions | None = None,
    objects: Sequence[Path | str] = (),
    breakpoints: Breakpoints | None = None,
    elfs: Mapping[tuple[int, int], Path | str | CoreProgram] | None = None,
    image: bytes | None = None,
    approximate: str = "off",
    dram: str = "fresh",
) -> Result:
    """Run a design on the emulated array.

    `mlir` is the text of a module with an `aie.device`; `file` names it in messages. `args` are the host buffers of
    the runtime sequence, in order: C-contiguous numpy arrays of the memrefs' element types and sizes, updated in place.
    `kernels` maps the names of external functions to callables, which get numpy views of their memref arguments
    and plain numbers. `sequence` names one of several runtime sequences (`name` or `device::name`); the device that
    holds it is loaded first. A design without one runs until nothing moves; `device` names one of several.

    `instructions` are the words of an instruction stream to run instead of a sequence; `args` are then its arguments by
    number, of any type. `schedule` is "in-order", or "random" for an adversary that shuffles every legal choice by
    `seed`. `dram` is "fresh", or "stale": readers see what a task writes when its token is awaited, or before.
    `permissive` names what to switch off (`strictness.NAMES`). `budget` bounds the steps of all cores and channels
    together, and of each core the bundles of machine code, or loop iterations and calls. Streams hold `capacity` words
    for a receiver that takes none: as many as are known of the array (`bdforge.devices.capacities`), or more, or 0:
    what ends with none needs no buffering. With `poison`, reading tile memory that nobody wrote is an error. With
    `timing` the result has a report and a trace, which `replay` times again. `objects` are compiled kernels whose
    `.stack_sizes` tell how much stack they take, `elfs` machine code, in files or as read, by column and row, for cores
    to run instead of the text's. `image` is a CDO, PDI or xclbin to boot from; then `mlir` may be empty, and `device`
    be the array's name. `approximate` is what becomes of approximations, by its name (`Approximation`).

    Raises MlirError for text that is no valid design, EmulationError (Deadlock, DmaError, LockError, KernelError, …)
    for what the array would not survive, ArgumentError for arrays that do not fit, and for what is of another kind.
    """
    check_given(locals())
    recorder = None if timing is None else Recorder()
    scheduler = scheduler_named(schedule, seed, budget, [*observers, *([recorder] if recorder else [])])
    text, device = (mlir, device) if mlir or image is None else (empty_design(device, instructions), None)
    strictness, module, words = Strictness.without(permissive), parsed(text, file), _words_held(capacity)
    start, entry = choose(module, sequence, device, file, runs_words=instructions is not None)
    array = Array(start.device, _host(entry, args, instructions, strictness), scheduler, strictness, poison, words)
    array.dram.hold_back(dram_named(dram, seed))
    array.by_words, array.breakpoints, array.elfs = instructions is not None, breakpoints, _elfs(elfs or {}, module)
    array.approximation, array.frames = approximation_named(approximate), _frames(objects)
    machine = Machine(module, start, {} if kernels is None else kernels, array, only_configuration(image))
    _run(machine, entry, instructions)
    return _result(args, machine, recorder, timing)


def _result(
    args: Sequence[np.ndarray], machine: Machine, recorder: Recorder | None, timing: TimingOptions | None
) -> Result:
    array = machine.array
    trace = recorder.finish(array.device, array.capacities.most) if recorder else None
    report = None if trace is None or timing is None else replay(trace, timing)
    told = *trace_warnings(machine.module), *machine.warnings, *(report.warnings if report else ())
    cores, approximated = tuple(profiles(array.cores)), tuple(array.approximated)
    return Result(tuple(args), tuple(dict.fromkeys(told)), machine.buffers(), report, trace, cores, approximated)


def _frames(objects: Sequence[Path | str]) -> dict[str, Frame]:
    """Stack frames of compiled kernels, by name."""
    return {name: frame for path in objects for name, frame in frames_of(Path(path)).items()}


def _words_held(capacity: int | str) -> int | Literal["known"]:
    return KNOWN if capacity == KNOWN else whole("capacity", capacity, 0)


def _host(
    entry: RuntimeSequenceOp | None,
    args: Sequence[np.ndarray],
    instructions: np.ndarray | bytes | None,
    strictness: Strictness,
) -> HostBuffers:
    beyond = partial(strictness.fault, "dma-bounds") if strictness.permits("dma-bounds") else None
    return HostBuffers(host_arrays(entry, args, instructions is not None, strictness), beyond)


def _run(machine: Machine, entry: RuntimeSequenceOp | None, instructions: np.ndarray | bytes | None) -> None:
    array = machine.array
    operations: Sequence[Operation] = []
    if instructions is not None:
        operations = stream_operations(array, instructions)
    elif entry is not None:
        operations = lower(entry, policy=array.strictness)
    attend(array.scheduler)
    if entry is not None or instructions is not None:
        array.spoil_word()
    machine.run(counted(operations))
    if entry is None and instructions is None and (blocked := quiet(array)):
        array.strictness.caution("blocked-cores", blocked)


def _elfs(
    elfs: Mapping[tuple[int, int], Path | str | CoreProgram], module: ModuleOp
) -> dict[tuple[int, int], Path | CoreProgram]:
    """Programs by core; ArgumentError where the text has no core that could run one."""
    if not elfs:
        return {}
    there = {(op.tile.column, op.tile.row) for op in module.walk() if isinstance(op, CoreOp)}
    for place in elfs:
        if place not in there:
            raise ArgumentError(f"an ELF is given for core {place}, but the design has no aie.core there")
    return {place: Path(elf) if isinstance(elf, str) else elf for place, elf in elfs.items()}
