"""Runs of a built design that are checked against its reference: tasks, by the content of its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.array.emulator.timed import TimelineSpan, TimingReport
from bdforge.array.emulator.timed.time_tables import write_timeline
from bdforge.common.tasks import TaskError, sources_of
from bdforge.design.sequences import SequenceOptions
from bdforge.design.sequences.buffers import staying
from bdforge.models.weights import TernaryMatrix, check_shape, read
from bdforge.operators import Expected, Problem, SpecError, input_data, plan_of
from bdforge.perf.composed_run import EmulatedStep, emulated_steps, step_spans
from bdforge.perf.timed import timing_options
from bdforge.perf.tune.time_model import Basis
from bdforge.runtime import BuiltDesign, Closeness, ElementMismatch, first_mismatch, run


@dataclass(frozen=True, slots=True)
class RunTask:
    """A task: a problem run on a built design, with kernels' cycles by `basis` if it is timed, and checked.

    `content` is a hash of the design's folder and of the weights in a file, which are read where it is run; `waiting`
    says how its sequences wait, None as built.
    """

    folder: Path = field(repr=False)
    waiting: SequenceOptions | None
    problem: Problem
    weights: Path | None = field(repr=False)
    tensors: tuple[str, ...]
    seed: int
    data: str
    poison: bool
    basis: Basis | None
    content: str


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """What is told of a run; `wrong` is whether an element is, which the verdict names."""

    verdict: str
    wrong: bool
    padding: str
    seconds: float
    warnings: tuple[str, ...]
    timing: TimingReport | None
    steps: tuple[EmulatedStep, ...] = ()


def tasks_of(
    design: BuiltDesign, problems: Sequence[Problem], weights: Path | None, tensors: Sequence[str],
    options: Mapping[str, Any],
) -> list[RunTask]:  # fmt: skip
    """Those of problems, whose files other processes find."""
    folder, file = design.folder.absolute(), weights and weights.absolute()
    content = _content(folder, None if file is None else read(file, tensors))
    return [
        RunTask(folder, design.options, each, file, tuple(tensors), **options, content=content) for each in problems
    ]


def _content(folder: Path, stored: TernaryMatrix | None) -> str:
    found = sha256(sources_of([folder]).encode())
    found.update(b"" if stored is None else stored.weights.tobytes())
    return found.hexdigest()


def checked_run(task: RunTask, timeline: Path | None = None) -> CheckedRun:
    """Run and check it, its timeline to a file; TaskError where its files are others than when it was given."""
    design, problem = BuiltDesign.load(task.folder).waiting(task.waiting), task.problem
    stored = None if task.weights is None else read(task.weights, task.tensors)
    if _content(task.folder, stored) != task.content:
        raise TaskError(f"{task.folder} or its weights hold something else here than where the run was asked for")
    plan = plan_of(design.manifest, design.folder)
    inputs = input_data(task.data, plan.random(problem, task.seed))
    if stored is not None:
        inputs |= _stored(design, problem, stored)
    spans: list[TimelineSpan] | None = None if timeline is None else []
    options = None if task.basis is None else timing_options(plan, problem, task.basis, spans)
    found = run(design, inputs, options, poison=task.poison)
    steps = emulated_steps(plan, problem, found.sequence, found.timing) if found.timing else ()
    if timeline is not None and spans is not None and found.timing is not None:
        write_timeline(timeline, [*spans, *step_spans(steps)], found.timing.array_hz)
    made = found.outputs | found.between
    right = plan.expected(inputs, made)
    wrong = (first_mismatch(made[name], want.values, want.bound, name) for name, want in right.items())
    verdict = _verdict(next((one for one in wrong if one), None), _closeness(made, right))
    return CheckedRun(*verdict, plan.padding(found.sequence), found.seconds, found.warnings, found.timing, steps)


def _verdict(wrong: ElementMismatch | None, closeness: str) -> tuple[str, bool]:
    """What is said, and whether an element is wrong; `closeness` is "" where nothing tells how close it had to be."""
    if wrong is not None:
        return f"WRONG: {wrong}", True
    return closeness or "not checked: it has no reference", False


def _stored(design: BuiltDesign, problem: Problem, stored: TernaryMatrix) -> dict[str, np.ndarray]:
    """A file's weights as the operand that stays."""
    operands = [operand for operand in staying(design.program) if len(operand.axes) == 2]
    if not operands:
        raise SpecError(f"{design.name} has no matrix that stays from run to run; run it without --weights")
    depth, columns = (design.program.values[axis.size] for axis in operands[0].axes)
    check_shape(stored, problem.sizes[str(depth)], problem.sizes[str(columns)])
    return {operands[0].name: stored.weights}


def _closeness(made: Mapping[str, np.ndarray], right: Mapping[str, Expected]) -> str:
    near = [(name, want.values, want.bound) for name, want in right.items() if want.bound is not None]
    if not near:
        return "exact" if right else ""
    worst = max((Closeness.of(made[name], *want) for name, *want in near), key=lambda one: one.bound)
    return f"within its bound ({worst.bound:.2f} of it, mean error {worst.mean:.2g})"
