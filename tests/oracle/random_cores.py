"""Random core programs: per firing they take all inputs, compute every output, and give both on."""

from dataclasses import dataclass, field
from math import lcm
from random import Random
from typing import TYPE_CHECKING

from oracle.array_design import (
    Access,
    Alternate,
    Buffer,
    Call,
    Combine,
    Copy,
    Fetch,
    Statement,
    Sum,
    Tile,
    Times,
    UseLock,
)

if TYPE_CHECKING:
    from oracle.random_resources import Part, Resources, Source

OPERATIONS = ("addi", "subi", "muli", "xori", "maxsi", "minsi", "copy")


@dataclass
class CorePlan:
    """What a core will do; its program is written once all streams are known."""

    tile: Tile
    firings: int  # per round
    rounds: int
    inputs: "list[Part]" = field(default_factory=list)
    outputs: "list[Part]" = field(default_factory=list)
    in_place: "Part | None" = None
    scratch: str = ""
    parameters: str = ""  # an i32 buffer that the host writes before it opens the gate
    gate: str = ""
    sources: "list[Source]" = field(default_factory=list)
    observed: bool = False  # the host waits for what becomes of each round

    def finish(self, resources: "Resources") -> None:
        """Takes what the core has besides its parts: memory of its own, parameters."""
        random = resources.random
        if random.random() < 0.4:
            self.scratch = resources.buffer(
                random.choice(resources.reach(self.tile)), random.choice(("i16", "i32")), 12
            )
        if not resources.array_only and random.random() < 0.5:
            self.parameters = resources.buffer(random.choice(resources.reach(self.tile)), "i32", 4, addressed=True)
            self.gate = resources.lock(random.choice(resources.reach(self.tile)))

    @property
    def parts(self) -> "list[Part]":
        return [*self.inputs, *self.outputs, *([self.in_place] if self.in_place else [])]

    @property
    def turns(self) -> int:
        """Firings until every part is at its first slot again."""
        return lcm(*(len(p.pairs) for p in self.parts))

    @property
    def gated_per_round(self) -> bool:
        return bool(self.gate) and self.observed and self.firings % self.turns == 0

    def program(self, random: Random, buffers: dict[str, Buffer]) -> tuple[Statement, ...]:
        bodies = [Firing(self, turn, random, buffers).statements() for turn in range(self.turns)]
        opening = self.opening()
        if self.gated_per_round:
            body = opening + self.loop(random, bodies, self.firings)
            return (Times(random.choice((None, self.rounds)), body),)
        total = self.firings * self.rounds
        return opening + self.loop(random, bodies, random.choice((None, total)))

    def opening(self) -> tuple[Statement, ...]:
        if not self.gate:
            return ()
        fetches = (Fetch(f"p{i}", self.parameters, i) for i in range(2))
        return (UseLock(self.gate, "AcquireGreaterEqual", 1), *fetches)

    @staticmethod
    def loop(random: Random, bodies: list, count: int | None) -> tuple[Statement, ...]:
        """`count` firings: unrolled over the slots, or choosing by the loop's index."""
        whole = count is None or count % len(bodies) == 0
        if len(bodies) > 1 and (not whole or random.random() < 0.3):
            return (Times(count, (Alternate(tuple(bodies)),)),)
        return (Times(count if count is None else count // len(bodies), tuple(s for body in bodies for s in body)),)


class Firing:
    """One firing at a given turn through the slots."""

    def __init__(self, plan: CorePlan, turn: int, random: Random, buffers: dict[str, Buffer]):
        self.plan, self.turn, self.random, self.buffers = plan, turn, random, buffers

    def slot(self, part: "Part") -> int:
        return self.turn % len(part.pairs)

    def memory(self, part: "Part") -> str:
        return part.slots[self.slot(part)]

    def statements(self) -> tuple[Statement, ...]:
        plan = self.plan
        takes = [self.use(p, "full", "AcquireGreaterEqual", p.full_credits) for p in self.readable()]
        takes += [self.use(p, "free", "AcquireGreaterEqual", p.free_credits) for p in plan.outputs]
        gives = [self.use(p, "free", "Release", p.free_credits) for p in plan.inputs]
        gives += [self.use(p, "full", "Release", p.full_credits) for p in plan.outputs]
        if plan.in_place:
            gives.append(UseLock(plan.in_place.done, "Release", 1))
        self.random.shuffle(gives)
        return (*takes, *self.work(), *gives)

    def readable(self) -> "list[Part]":
        return [*self.plan.inputs, *([self.plan.in_place] if self.plan.in_place else [])]

    def use(self, part: "Part", which: str, action: str, value: int) -> UseLock:
        return UseLock(part.pairs[self.slot(part)][which == "full"], action, value)

    def work(self) -> list[Statement]:
        sources = [self.memory(p) for p in self.readable()]
        targets = [self.memory(p) for p in self.plan.outputs] or sources
        work: list[Statement] = []
        if self.plan.scratch:
            target = self.element_of(self.plan.scratch)
            source = self.random.choice(sources)
            work.append(Combine((), "addi", target, target, self.element_of(source)))
            sources = [*sources, self.plan.scratch]
        for target in targets:
            for _ in range(self.random.choice((1, 1, 2))):
                work.append(self.compute(target, self.random.choice(sources), sources))
        return work

    def compute(self, target: str, source: str, sources: list[str]) -> Statement:
        one, other = self.buffers[source], self.buffers[target]
        if (one.element, one.elements) == (other.element, other.elements) and source != target:
            return Copy(source, target)
        kind = self.random.random()
        if kind < 0.15 and source != target:
            kernel = f"kernel_{target}_{source}_{self.turn}_{self.random.randrange(10**6)}"
            return Call(kernel, source, target, self.random.randint(-3, 3) or 5, self.number())
        if kind < 0.3:
            count = self.random.randint(1, min(12, one.elements))
            return Sum(count, self.element_of(target), self.access(source, (count,)))
        loops = tuple(self.random.randint(1, 6) for _ in range(self.random.randint(1, 2)))
        operation = self.random.choice(OPERATIONS)
        operand = self.access(self.random.choice(sources), loops) if self.random.random() < 0.4 else self.number()
        return Combine(loops, operation, self.access(target, loops), self.access(source, loops), operand)

    def number(self) -> int | str:
        if self.plan.gate and self.random.random() < 0.6:
            return f"p{self.random.randint(0, 1)}"
        return self.random.randint(-100, 100)

    def element_of(self, name: str) -> Access:
        return Access(name, self.random.randrange(self.buffers[name].elements))

    def access(self, name: str, loops: tuple[int, ...]) -> Access:
        """Any element for each loop index: strides as large as the memory allows."""
        elements = self.buffers[name].elements
        offset = self.random.randrange(min(4, elements))
        share = (elements - 1 - offset) // len(loops)
        return Access(name, offset, tuple(self.random.randint(0, share // max(1, n - 1)) for n in loops))
