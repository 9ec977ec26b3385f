"""Who runs next. Meaning only: there is no clock, any order that the array allows is a legal one."""

from collections import deque
from collections.abc import Generator, Iterator
from typing import Protocol

from bdforge.emulator.errors import BudgetExceeded

STEP_BUDGET = 200_000_000


class Wait(Protocol):
    """Why an agent is blocked; `sentence` goes into diagnoses, `providers` are those who could end the wait."""

    def sentence(self) -> str: ...

    def providers(self) -> Iterator["Agent"]: ...


class Agent:
    """A core or a DMA channel: a generator that yields whenever it cannot go on.

    Before it yields, it has set `waiting` and registered itself where it will be woken.
    """

    def __init__(self, name: str):
        self.name = name
        self.waiting: Wait | None = None
        self.scheduled = False
        self.pressed = False  # woken because nobody else can move: small progress is better than none
        self.steps: Generator[None, None, None] | None = None

    def run(self) -> Generator[None, None, None]:
        """The agent's life."""
        raise NotImplementedError


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

    def wake(self, agent: Agent) -> None:
        """Let `agent` run again soon."""
        if agent.scheduled:
            return
        agent.scheduled = True
        self._ready.append(agent)

    def wake_when_idle(self, patient: Patient) -> None:
        """Let the owner run when nobody else can, if it is still blocked then."""
        if not patient.listed:
            patient.listed = True
            self._patient.append(patient)

    def run(self) -> None:
        """Run until nobody can move; BudgetExceeded after too many steps."""
        while True:
            while self._ready:
                agent = self._ready.popleft()
                agent.scheduled = False
                self._step(agent)
            if not self._patient:
                return
            patient = self._patient.popleft()
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
        next(agent.steps, None)
