"""Who runs next. Meaning only: there is no clock, any order that the array allows is a legal one."""

import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

from bdforge.array.emulator.errors import ArgumentError, BudgetExceeded
from bdforge.common.messages import clip

if TYPE_CHECKING:
    from bdforge.array.emulator.stream import Stream

STEP_BUDGET = 1 << 28
"""Steps of all cores and channels together, and bundles, loop iterations and calls of each core, where nobody says."""
MOST_STEPS = 10**18
"""That a run may be given: what C++ counts in 64 bits."""
HISTORY = 4


class WaitReason(Protocol):
    """Why an agent is blocked; `sentence` goes into diagnoses, `providers` are those who could end the wait."""

    @property
    def sentence(self) -> Callable[[], str]: ...

    @property
    def providers(self) -> Callable[[], Iterable["Agent"]]: ...


@dataclass(slots=True)
class PlainWait:
    """A wait that only diagnoses ask about; without providers there is nothing to do: the root of other waits."""

    sentence: Callable[[], str]
    providers: Callable[[], Iterable["Agent"]] = tuple


class Observer(Protocol):
    """Is told every event, in order: who acts (None: the controller), a verb, and what it is about.

    Verbs are those of `bdforge.array.emulator.trace`, and `begin` and `end` (of what, in words), `value` (a lock and
    its new value), `join` (a party is there) and `wait` (it cannot go on, for a `WaitReason`). Observers see; they can
    change nothing.
    """

    def event(self, party: "Agent | None", verb: str, *about: Any) -> None: ...


class Agent:
    """A core or a DMA channel: a generator that yields whenever it cannot go on.

    Before it yields, it has set `waiting` and registered itself where it will be woken. It tells what it does where it
    is `observed`; `work` counts operations of its program that were not told yet.
    """

    kind = "agent"
    place: tuple[int, int] = (0, 0)
    direction = ""

    def __init__(self, name: str, scheduler: "Scheduler | None" = None):
        self.name = name
        self.scheduler = scheduler
        self.waiting: WaitReason | None = None
        self.scheduled = False
        self.pressed = False  # woken because nobody else can move: small progress is better than none
        self.steps: Generator[None, None, None] | None = None
        self.history: deque[str] = deque(maxlen=HISTORY)
        self.observed = scheduler is not None and bool(scheduler.observers)
        self.work = 0
        self.notify("join")

    def run(self) -> Generator[None, None, None]:
        raise NotImplementedError

    def notify(self, verb: str, *about: Any) -> None:
        if self.observed and self.scheduler is not None:
            for observer in self.scheduler.observers:
                observer.event(self, verb, *about)

    def note(self, verb: str, what: str) -> None:
        """Remember an event for diagnoses and tell observers."""
        self.history.append(f"{verb} {what}")
        self.notify(verb, what)


RunSome = Callable[[Sequence[Any]], Sequence[Agent]]
"""Runs some agents of those given, the first one among them, and tells which."""


class Scheduler:
    """Runs agents in turn until all are blocked.

    Those that compute for long do so when nobody else is ready: then most of them are there, to run at once.

    Patient ones (a source whose sinks have only their small buffers free) get their turn when nobody else can
    move, which keeps transfers large and changes no value.
    """

    shares = True
    """Whether agents may go on at the same time, by `compute`."""

    def __init__(self, budget: int = STEP_BUDGET, observers: Sequence[Observer] = ()):
        self._ready: deque[Agent] = deque()
        self._patient: deque[Stream] = deque()
        self._computing: list[Agent] = []
        self._left = self.budget = budget
        self.observers = tuple(observers)
        self.running: Agent | None = None  # known where somebody observes
        self.last: Agent | None = None

    @property
    def steps(self) -> int:
        """Steps that agents have taken."""
        return self.budget - self._left

    def notify(self, verb: str, *about: Any) -> None:
        """Tell observers what whoever runs does: an agent that was let run, else the controller."""
        for observer in self.observers:
            observer.event(self.running, verb, *about)

    def wake(self, agent: Agent) -> None:
        if agent.scheduled:
            return
        agent.scheduled = True
        self._ready.append(agent)

    def compute(self, agent: Agent, run_some: RunSome) -> None:
        """Let an agent go on when nobody is ready: `run_some` then runs some of those who wait for it, at once."""
        agent.scheduled = True
        self._computing.append(agent)
        self._run_some = run_some

    def refill(self) -> None:
        """The whole budget again, for another run on the same array."""
        self._left = self.budget

    def clear(self) -> None:
        self._ready.clear()
        self._computing.clear()
        self._patient.clear()

    def wake_when_idle(self, patient: "Stream") -> None:
        """Let the owner run when nobody else can, if it is still blocked then."""
        if not patient.listed:
            patient.listed = True
            self._patient.append(patient)

    def run(self) -> None:
        """Run until nobody can move; BudgetExceeded after too many steps."""
        while self.step():
            pass

    def between_operations(self) -> None:
        """Progress of the array between two operations of the controller: all that is possible."""
        self.run()

    def portion(self, count: int) -> int:
        """How many of `count` words to move at once: all."""
        return count

    def step(self) -> bool:
        """Let one party make progress; False when nobody can."""
        if self._ready:
            agent = self._next_ready()
            agent.scheduled = False
            self._step(agent)
            return True
        if self._computing:
            ran = self._run_some(self._computing)
            self._computing = [agent for agent in self._computing if agent not in ran]
            self._ready.extend(ran)
            return True
        if not self._patient:
            return False
        self._press(self._patient.popleft())
        return True

    def _next_ready(self) -> Agent:
        return self._ready.popleft()

    def _press(self, patient: "Stream") -> None:
        patient.listed = False
        if patient.blocked:
            patient.blocked = False
            patient.owner.pressed = True
            self._step(patient.owner)

    def _step(self, agent: Agent) -> None:
        self._left -= 1
        if self._left < 0:
            raise BudgetExceeded(f"no end after {self.budget} steps; {agent.name} ran last")
        if agent.steps is None:
            agent.steps = agent.run()  # made at its first turn: a reset channel begins anew
        agent.waiting = None
        self.last = agent
        if not self.observers:
            next(agent.steps, None)
            return
        self.running = agent
        next(agent.steps, None)
        self.running = None
        if agent.waiting is not None:
            agent.notify("wait", agent.waiting)


class RandomScheduler(Scheduler):
    """An adversary: shuffles every legal choice by a seed.

    Who runs next, how many words move at once, whether small buffers are filled early, and how far the array
    gets between two operations of the controller (perhaps not at all).
    """

    shares = False

    def __init__(self, seed: int, budget: int = STEP_BUDGET, observers: Sequence[Observer] = ()):
        super().__init__(budget, observers)
        self._random = random.Random(seed)

    def between_operations(self) -> None:
        for _ in range(self._random.choice((0, 0, 1, 3, 10, 100))):
            if not self.step():
                return

    def portion(self, count: int) -> int:
        return self._random.choice((1, count // 2 or 1, count, count))

    def step(self) -> bool:
        if self._patient and (not self._ready or self._random.random() < 0.1):
            self._patient.rotate(self._random.randrange(len(self._patient)))
            self._press(self._patient.popleft())
            return True
        return super().step()

    def _next_ready(self) -> Agent:
        self._ready.rotate(self._random.randrange(len(self._ready)))
        return self._ready.popleft()


SCHEDULES = {"in-order": lambda _, *options: Scheduler(*options), "random": RandomScheduler}


def whole(name: str, given: Any, least: int) -> int:
    """A number from `least` on; ArgumentError for anything else."""
    number = None if isinstance(given, bool) or not hasattr(given, "__index__") else index(given)
    if number is None or not least <= number <= MOST_STEPS:
        shown = clip(repr(given)) if number is None or abs(number) < MOST_STEPS**2 else "more"  # repr refuses long ones
        raise ArgumentError(f"{name} must be a whole number from {least} to {MOST_STEPS:.0e}, got {shown}")
    return number


def scheduler_named(schedule: str, seed: int, budget: int, observers: Sequence[Observer] = ()) -> Scheduler:
    """The scheduler called "in-order" or "random"; ArgumentError for another name or budget."""
    if (make := SCHEDULES.get(schedule)) is None:
        raise ArgumentError(f"no schedule is called {schedule!r}; there is {', '.join(SCHEDULES)}")
    return make(seed, whole("budget", budget, 1), observers)
