"""Time of a composition: its steps, as each is modelled alone, the changes between them, and one dispatch for all; and
of several as one list."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.controller_time import operation_ns
from bdforge.design.sequences import PlannedSequence
from bdforge.design.sequences.instruction_words import operations
from bdforge.design.sequences.interpret import BESIDE, Await, Event, Reconfigure, Start, StartedTask
from bdforge.devices.timing import Timing, submissions, timing_of
from bdforge.devices.txn_format.operations import BlockWrite, Operation
from bdforge.operators import ComposedPlan, Plan, Problem
from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.early_time import held_bytes, sent_bytes, shortened_us
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.tune.time_model import kernel_on


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step, microseconds without a dispatch, what binds it, and those of the change before it; all modelled."""

    name: str
    design: str
    problem: Problem
    us: float
    bound: str
    change_us: float


def change_us(operations: Sequence[Operation], timing: Timing) -> float:
    """What the controller takes for a change of the configuration, modelled."""
    words = (len(op.words) if isinstance(op, BlockWrite) else 1 for op in operations)
    return sum(operation_ns(timing, type(op).__name__, n) for op, n in zip(operations, words, strict=True)) / 1e3


def list_us(commands: int, timing: Timing) -> float:
    """What handing over a list of commands takes: the first of each submission as long as a command alone, modelled."""
    first = submissions(commands)
    return (first * timing.dispatch_ns + (commands - first) * timing.runlist_dispatch_ns) / 1e3


def run_us(plan: ComposedPlan, problem: Problem, sequence: PlannedSequence) -> float:
    """A run of a problem in a list, without what handing that over takes, modelled."""
    return sum(step.us + step.change_us for step in step_times(plan, problem, sequence, timing_of(plan.device)))


def step_times(plan: ComposedPlan, problem: Problem, sequence: PlannedSequence, timing: Timing) -> Iterator[StepTime]:
    """The steps of a problem, in order, then what ends a run where that is a change.

    Products take the cycles of their assembled kernels. What is written ahead takes time where it takes longer than
    what the step before still has to do by then: its last rounds' share of it. Tasks that start then save what of their
    bytes comes meanwhile; those that started behind a step before that what comes since its last word, while its token
    was awaited.
    """
    steps = plan.steps(problem.sizes)
    hidden, taken = 0.0, list[float]()
    for place, part in enumerate(_parts(sequence.events)):
        cost = part.then_us(sequence, timing) + max(0.0, part.ahead_us(sequence, timing) - hidden)
        if place == len(steps):
            if cost:
                yield StepTime("back to the first", "", problem, 0.0, "", cost)
            return
        name, one, own, _ = steps[place]
        us, bound = _alone(one, own, timing)
        if part.early_tasks:
            early, late = (sent_bytes(tasks, sequence.program) for tasks in (part.early_tasks, part.tasks))
            since = sum(taken[-part.between :]) + timing.controller_sync_ns / 1e3 if part.between else hidden
            us = shortened_us(us, since, early, late, held_bytes(one.design), timing)
        yield StepTime(name, one.spec.name, own, us, bound, cost)
        hidden = us * part.last_share
        taken.append(us + cost)


@dataclass(slots=True)
class _Part:
    """The events of a step: changes before it, what starts before those end, by the changes before the step that it
    belongs to, and what started for it earlier; its rounds, how many of them run once the last one has started, and
    their tasks."""

    ahead: int | None = None
    then: int | None = None
    rounds: int = 0
    last: int = 0
    early: list[Start] = field(default_factory=list)
    sooner: list[Start] = field(default_factory=list)
    tasks: list[StartedTask] = field(default_factory=list)

    @property
    def early_tasks(self) -> list[StartedTask]:
        own = [start for start in self.early if start.index == BESIDE]
        return [item for start in (*self.sooner, *own) for item in start.items if isinstance(item, StartedTask)]

    @property
    def between(self) -> int:
        """Most steps between this one and what ran when anything of it started."""
        return max((BESIDE - start.index for start in self.sooner), default=0)

    @property
    def last_share(self) -> float:
        return self.last / max(1, self.rounds)

    def then_us(self, sequence: PlannedSequence, timing: Timing) -> float:
        return 0.0 if self.then is None else change_us(sequence.configurations[self.then], timing)

    def ahead_us(self, sequence: PlannedSequence, timing: Timing) -> float:
        bits = [argument.bits for argument in sequence.program.arguments] if self.early else []
        early = list(operations(self.early, bits, sequence.device.generation, sequence.wide)) if self.early else []
        return change_us([*(() if self.ahead is None else sequence.configurations[self.ahead]), *early], timing)


def _parts(events: Iterable[Event]) -> Iterator[_Part]:
    """What each step of a composition does, and what ends a run; each begins with a `Reconfigure`."""
    part, ahead, running = _Part(), None, 0
    early: list[Start] = []
    sooner: defaultdict[int, list[Start]] = defaultdict(list)  # by the number of the change before what it belongs to
    changes = 0
    for event in events:
        match event:
            case Start(index=index) if index <= BESIDE:
                early.append(event)
                if index < BESIDE:
                    sooner[changes + BESIDE - index].append(event)
            case Start():
                part.rounds, running = part.rounds + 1, running + 1
                part.last, early = running, []
                part.tasks += [item for item in event.items if isinstance(item, StartedTask)]
            case Await():
                running -= 1
            case Reconfigure(configuration=number, ahead=True):
                ahead = number
            case Reconfigure(configuration=number):
                if part.rounds:
                    yield part
                part = _Part(ahead, number, early=early, sooner=sooner.pop(changes, []))
                ahead, early, changes = None, [], changes + 1
    yield part


def _alone(plan: Plan, problem: Problem, timing: Timing) -> tuple[float, str]:
    """Microseconds of a step without its dispatch, and what binds it then."""
    if isinstance(plan, GemmPlan):
        case = case_of(plan.spec, plan.device, GemmProblem.of(problem.sizes))
        found = estimate(case, timing=timing, kernel=kernel_on(plan, case, "assembled"))
        us, times = found.time_us, found.parallel
    else:
        known = cost_estimate(plan, problem, timing)
        us, times = known.time_us, known.parallel
    return float(us) - timing.dispatch_ns / 1e3, max(times, key=lambda name: float(times[name]))
