"""Who runs next. Meaning only: there is no clock, any order that the array allows is a legal one."""

import random
from collections import deque
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Protocol

from bdforge.emulator.errors import BudgetExceeded
from bdforge.emulator.observe import Observer

if TYPE_CHECKING:
    from bdforge.emulator.trace import Party, Recorder

STEP_BUDGET = 200_000_000
HISTORY = 4


class Wait(Protocol):
    """Why an agent is blocked; `sentence` goes into diagnoses, `providers` are those who could end the wait."""

    def sentence(self) -> str: ...

    def providers(self) -> Iterator["Agent"]: ...


class Agent:
    """A core or a DMA channel: a generator that yields whenever it cannot go on.

    Before it yields, it has set `waiting` and registered itself where it will be woken. Where the scheduler has a
    recorder, `trace` notes what the agent does.
    """

    kind = "agent"
    place = (0, 0)
    direction = ""

    def __init__(self, name: str, scheduler: "Scheduler | None" = None):
        self.name = name
        self.scheduler = scheduler
        self.waiting: Wait | None = None
        self.scheduled = False
        self.pressed = False  # woken because nobody else can move: small progress is better than none
        self.steps: Generator[None, None, None] | None = None
        self.history: deque[str] = deque(maxlen=HISTORY)
        recorder = None if scheduler is None else scheduler.recorder
        self.trace: Party | None = None if recorder is None else recorder.party(self)

    def run(self) -> Generator[None, None, None]:
        """The agent's life."""
        raise NotImplementedError

    def note(self, kind: str, what: str) -> None:
        """Remember an event for diagnoses and tell observers."""
        self.history.append(f"{kind} {what}")
        if self.scheduler is not None and self.scheduler.observers:
            self.scheduler.tell(self.name, kind, what)


class Patient(Protocol):
    """A blocked source that could move a little now, but more later."""

    owner: Agent
    blocked: bool
    listed: bool


class Scheduler:
    """Runs agents in turn until all are blocked.

    Patient ones (a source whose sinks have only their small buffers free) get their turn when nobody else can
    move, which keeps transfers large and changes no value.
    """

    def __init__(self, budget: int = STEP_BUDGET):
        self._ready: deque[Agent] = deque()
        self._patient: deque[Patient] = deque()
        self._left = self.budget = budget
        self.observers: list[Observer] = []
        self.clock = 0
        self.recorder: Recorder | None = None
        self.last: Agent | None = None

    @property
    def steps(self) -> int:
        """Steps that agents have taken."""
        return self.budget - self._left

    def tell(self, party: str, kind: str, what: str) -> None:
        """Number an event and hand it to every observer."""
        self.clock += 1
        for observer in self.observers:
            observer.event(self.clock, party, kind, what)

    def wake(self, agent: Agent) -> None:
        """Let `agent` run again soon."""
        if agent.scheduled:
            return
        agent.scheduled = True
        self._ready.append(agent)

    def refill(self) -> None:
        """The whole budget again, for another run on the same array."""
        self._left = self.budget

    def clear(self) -> None:
        """Forget everybody who could run."""
        self._ready.clear()
        self._patient.clear()

    def step(self) -> bool:
        """Let one party make progress; False when nobody can."""
        return self._advance()

    def wake_when_idle(self, patient: Patient) -> None:
        """Let the owner run when nobody else can, if it is still blocked then."""
        if not patient.listed:
            patient.listed = True
            self._patient.append(patient)

    def run(self) -> None:
        """Run until nobody can move; BudgetExceeded after too many steps."""
        while self._advance():
            pass

    def between_operations(self) -> None:
        """Progress of the array between two operations of the controller: all that is possible."""
        self.run()

    def portion(self, count: int) -> int:
        """How many of `count` words to move at once: all."""
        return count

    def _advance(self) -> bool:
        """Let one agent run; False when nobody can."""
        if self._ready:
            agent = self._next_ready()
            agent.scheduled = False
            self._step(agent)
            return True
        if not self._patient:
            return False
        self._press(self._patient.popleft())
        return True

    def _next_ready(self) -> Agent:
        return self._ready.popleft()

    def _press(self, patient: Patient) -> None:
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
            agent.steps = agent.run()
        agent.waiting = None
        self.last = agent
        if self.recorder is None:
            next(agent.steps, None)
            return
        self.recorder.agent = agent
        next(agent.steps, None)
        self.recorder.agent = None


class RandomScheduler(Scheduler):
    """An adversary: shuffles every legal choice by a seed.

    Who runs next, how many words move at once, whether small buffers are filled early, and how far the array
    gets between two operations of the controller (perhaps not at all).
    """

    def __init__(self, seed: int, budget: int = STEP_BUDGET):
        super().__init__(budget)
        self._random = random.Random(seed)

    def between_operations(self) -> None:
        for _ in range(self._random.choice((0, 0, 1, 3, 10, 100))):
            if not self._advance():
                return

    def portion(self, count: int) -> int:
        return self._random.choice((1, count // 2 or 1, count, count))

    def _advance(self) -> bool:
        if self._patient and (not self._ready or self._random.random() < 0.1):
            self._patient.rotate(self._random.randrange(len(self._patient)))
            self._press(self._patient.popleft())
            return True
        return super()._advance()

    def _next_ready(self) -> Agent:
        self._ready.rotate(self._random.randrange(len(self._ready)))
        return self._ready.popleft()


def scheduler_named(schedule: str, seed: int, budget: int) -> Scheduler:
    """The scheduler called "in-order" or "random"."""
    return RandomScheduler(seed, budget) if schedule == "random" else Scheduler(budget)


SCHEDULES = ("in-order", "random")
