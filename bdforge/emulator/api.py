"""`emulate`: run an explicit AIE design on host arrays."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.choose import choose, host_arrays
from bdforge.emulator.controller import execute
from bdforge.emulator.cores.isa.breakpoints import Breakpoints
from bdforge.emulator.cores.isa.machine_code import profiles
from bdforge.emulator.cores.isa.profile import CoreProfile
from bdforge.emulator.cores.mlir.values import modes
from bdforge.emulator.cores.stack import frames_of
from bdforge.emulator.diagnose import quiet
from bdforge.emulator.errors import ArgumentError
from bdforge.emulator.host import HostMemory
from bdforge.emulator.observe import Observer
from bdforge.emulator.progress import attend, counted
from bdforge.emulator.reconfigure import Reconfiguration
from bdforge.emulator.resident import parsed, stream_operations
from bdforge.emulator.scheduler import SCHEDULES, STEP_BUDGET, scheduler_named
from bdforge.emulator.silicon import spoil_word
from bdforge.emulator.strictness import Strictness
from bdforge.emulator.timed import TimingOptions, TimingReport, replay
from bdforge.emulator.trace import Recorder, Trace
from bdforge.mlir.array_ops import CoreOp
from bdforge.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.mlir.trace_ops import trace_warnings
from bdforge.txn import Operation
from bdforge.txn.lower import lower


@dataclass(frozen=True)
class Result:
    """What is left of a run: the arrays given (updated in place), warnings, and the array's memory.

    `buffers` maps the name of every named `aie.buffer` of the device loaded last to a view of its memory; where
    several devices were loaded, `device::name` does so for each. `timing` is there where the run was timed. `cores`
    tells of those that ran machine code, in the device loaded last, where their cycles went.
    """

    arguments: tuple[np.ndarray, ...]
    warnings: tuple[str, ...]
    buffers: Mapping[str, np.ndarray]
    timing: TimingReport | None = None
    trace: Trace | None = None
    cores: tuple[CoreProfile, ...] = ()

    def __repr__(self) -> str:
        shapes = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.arguments)
        told = [f"{len(self.buffers)} named buffers", f"{len(self.warnings)} warnings"]
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
    device: str | None = None,
    poison: bool = False,
    timing: TimingOptions | None = None,
    objects: Sequence[Path | str] = (),
    breakpoints: Breakpoints | None = None,
    elfs: Mapping[tuple[int, int], Path | str] | None = None,
) -> Result:
    """Run a design on the emulated array.

    `mlir` is the text of a module with an `aie.device`; `file` names it in messages. `args` are the host buffers of
    the runtime sequence, in order: C-contiguous numpy arrays of the memrefs' element types and sizes, updated in place.
    `kernels` maps the names of external functions to callables, which get numpy views of their memref arguments
    and plain numbers. `sequence` names one of several runtime sequences (`name` or `device::name`); the device that
    holds it is loaded first. A design without a runtime sequence runs until nothing moves; `device` names one of
    several.

    `instructions` are the words of an instruction stream to run on the configured array instead of a sequence;
    `args` are then its arguments by number, of any type. `schedule` is "in-order", or "random" for an adversary that
    shuffles every legal choice by `seed`. `permissive` names what to switch off (`strictness.NAMES`).
    `observers` are told every event. `budget` bounds the steps of all cores and channels. With `poison`, reading tile
    memory that nobody wrote is an error (`bdforge.emulator.poison`). With `timing` the run is timed: values are the
    same, and the result has a report and the trace, which `replay` times again with other constants or kernel costs.
    `objects` are compiled kernels whose `.stack_sizes` tell how much stack they take. `breakpoints` look at cores that
    run machine code before bundles of their choice. `elfs` are programs of machine code, by column and row, that cores
    run instead of those of the text.

    Raises MlirError for text that is no valid design, EmulationError (Deadlock, DmaError, LockError, KernelError, …)
    for what the array would not survive, ArgumentError for arrays that do not fit.
    """
    if schedule not in SCHEDULES:
        raise ArgumentError(f"no schedule is called {schedule!r}; there is {', '.join(SCHEDULES)}")
    scheduler = scheduler_named(schedule, seed, budget)
    scheduler.observers = list(observers)
    attend(scheduler)
    scheduler.recorder = None if timing is None else Recorder()
    strictness = Strictness.without(permissive)
    module = parsed(mlir, file)
    for warning in trace_warnings(module):
        strictness.warn(warning)
    start, entry = choose(module, sequence, device, file, runs_words=instructions is not None)
    beyond = partial(strictness.fault, "dma-bounds") if strictness.permits("dma-bounds") else None
    host = HostMemory(host_arrays(entry, args, instructions is not None, strictness), beyond)
    array = Array(start.device, host, scheduler, strictness, poison)
    array.by_words = instructions is not None
    array.breakpoints = breakpoints
    array.elfs = _elfs(elfs or {}, module)
    for path in objects:
        array.frames |= frames_of(Path(path))
    configurations = Reconfiguration(module, array, {} if kernels is None else kernels)
    configurations.load(start)
    if entry is not None or instructions is not None:
        spoil_word(array)
    with modes(start=not strictness.permits("start-modes")):
        execute(array, counted(_operations(array, entry, instructions)), configurations.load_pdi)
        scheduler.run()
    array.host.write_back()
    if entry is None and instructions is None and (blocked := quiet(array)):
        strictness.caution("blocked-cores", blocked)
    warnings = *strictness.warnings, *array.left_over()
    result = Result(tuple(args), warnings, configurations.buffers(), cores=tuple(profiles(array.cores)))
    if timing is None or scheduler.recorder is None:
        return result
    trace = scheduler.recorder.finish(array.device)
    report = replay(trace, timing)
    return replace(result, warnings=(*warnings, *report.warnings), timing=report, trace=trace)


def _elfs(elfs: Mapping[tuple[int, int], Path | str], module: ModuleOp) -> dict[tuple[int, int], Path]:
    """Paths of ELFs by core; ArgumentError where the text has no core that could run one."""
    there = {(op.tile.column, op.tile.row) for op in module.walk() if isinstance(op, CoreOp)}
    for place in elfs:
        if place not in there:
            raise ArgumentError(f"an ELF is given for core {place}, but the design has no aie.core there")
    return {place: Path(path) for place, path in elfs.items()}


def _operations(
    array: Array, entry: RuntimeSequenceOp | None, instructions: np.ndarray | bytes | None
) -> Sequence[Operation]:
    if instructions is None:
        return [] if entry is None else lower(entry, policy=array.strictness)
    return stream_operations(array, instructions)
