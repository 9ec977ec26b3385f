"""Designs with one deliberate fault, whose end the slow interpreter names under several schedules."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from oracle.array_design import (
    Alternate,
    Chain,
    Core,
    Design,
    Memcpy,
    Program,
    SetLock,
    Start,
    Statement,
    Times,
    UseLock,
    WaitToken,
)
from oracle.random_designs import random_design
from oracle.slow_array import Outcome, SlowArray

FIFO_WORDS = (1, 16, 64)  # an end must not depend on the depth of streams


@dataclass(frozen=True, slots=True)
class FaultyDesign:
    design: Design
    fault: str
    outcome: Outcome


def edited_uses(body: tuple[Statement, ...], edit: Callable[[UseLock], tuple[UseLock, ...]]) -> tuple[Statement, ...]:
    """A core's body with every lock operation exchanged for what `edit` makes of it."""
    result: list[Statement] = []
    for statement in body:
        match statement:
            case UseLock():
                result += edit(statement)
            case Times(count, inner):
                result.append(Times(count, edited_uses(inner, edit)))
            case Alternate(bodies):
                result.append(Alternate(tuple(edited_uses(inner, edit) for inner in bodies)))
            case _:
                result.append(statement)
    return tuple(result)


def core_without_a_release(random: Random, design: Design) -> Design:
    core = random.choice(design.cores)
    released: list[str] = []
    edited_uses(core.body, lambda use: released.append(use.lock) or () if use.action == "Release" else ())
    lock = random.choice(released)
    body = edited_uses(core.body, lambda use: () if (use.lock, use.action) == (lock, "Release") else (use,))
    return design.with_changes(cores=tuple(Core(c.tile, body) if c is core else c for c in design.cores))


def with_another_bd_use(random: Random, design: Design, which: str, step: int) -> Design:
    """One BD that acquires or releases another value."""
    guarded = [
        (p, t, b)
        for p, program in enumerate(design.programs)
        for t, chain in enumerate(program.tasks)
        for b, bd in enumerate(chain.bds)
        if bd.acquire and bd.release
    ]
    p, t, b = random.choice(guarded)
    program = design.programs[p]
    chain = program.tasks[t]
    use = getattr(chain.bds[b], which)
    bd = replace(chain.bds[b], **{which: replace(use, value=use.value + step)})
    tasks = (
        *program.tasks[:t],
        Chain((*chain.bds[:b], bd, *chain.bds[b + 1 :]), chain.runs, chain.loops),
        *program.tasks[t + 1 :],
    )
    return design.with_changes(programs=(*design.programs[:p], Program(program.port, tasks), *design.programs[p + 1 :]))


def bd_that_acquires_too_much(random: Random, design: Design) -> Design:
    return with_another_bd_use(random, design, "acquire", random.choice((1, 40)))


def bd_that_releases_too_much(random: Random, design: Design) -> Design:
    return with_another_bd_use(random, design, "release", random.choice((30, 60)))


def lock_that_starts_at_zero(random: Random, design: Design) -> Design:
    lock = random.choice([lock for lock in design.locks if lock.init])
    return design.with_changes(locks=tuple(replace(k, init=0) if k is lock else k for k in design.locks))


def sequence_without_a_step(random: Random, design: Design) -> Design:
    """One push or gate less; the waits stay."""
    steps = [i for i, op in enumerate(design.sequence) if isinstance(op, Memcpy | Start | SetLock)]
    index = random.choice(steps)
    return design.with_changes(sequence=design.sequence[:index] + design.sequence[index + 1 :])


def one_wait_too_many(random: Random, design: Design) -> Design:
    ports = sorted({op.port for op in design.sequence if isinstance(op, Memcpy)})
    return design.with_changes(sequence=(*design.sequence, *[WaitToken(random.choice(ports))] * 20))


def too_many_pushes(random: Random, design: Design) -> Design:
    """Transfers to the host before anything can arrive, with BDs of their own."""
    memcpys = [op for op in design.sequence if isinstance(op, Memcpy) and op.port.direction == "S2MM"]
    op = random.choice(memcpys)
    pushes = tuple(replace(op, id=i, raw=False) for i in range(TASK_QUEUE_ENTRIES + 1))
    return design.with_changes(sequence=(*pushes, *design.sequence))


def finite_program_that_ends_early(random: Random, design: Design) -> Design:
    finite = [p for p in design.programs if any(not t.loops and t.runs > 1 for t in p.tasks)]
    program = random.choice(finite)
    tasks = tuple(t if t.loops else replace(t, runs=max(1, t.runs - 1)) for t in program.tasks)
    changed = Program(program.port, tasks)
    return design.with_changes(programs=tuple(changed if p is program else p for p in design.programs))


FAULTS = (
    core_without_a_release,
    bd_that_acquires_too_much,
    bd_that_releases_too_much,
    lock_that_starts_at_zero,
    sequence_without_a_step,
    one_wait_too_many,
    too_many_pushes,
    finite_program_that_ends_early,
)


def common_outcome(design: Design) -> Outcome | None:
    """How a design ends whatever the schedule and the depth of streams; None when that depends."""
    outcomes = set()
    for seed, words in enumerate(FIFO_WORDS):
        outcomes.add(SlowArray(design, seed, words, turns=300_000).run())
        if len(outcomes) > 1:
            return None
    return outcomes.pop()


def faulty_design(seed: int) -> FaultyDesign:
    """A design with a fault that ends it: seeds go round all kinds of faults."""
    random = Random(seed)
    fault = FAULTS[seed % len(FAULTS)]
    for attempt in range(200):
        design = random_design(1_000_000 + seed * 200 + attempt)
        try:
            broken = fault(random, design)
        except IndexError:  # nothing here that could be broken like this
            continue
        outcome = common_outcome(broken) if broken.sequence else None
        if outcome not in (None, Outcome.DONE, Outcome.STUCK, Outcome.ENDLESS):
            return FaultyDesign(broken, fault.__name__, outcome)
    raise AssertionError(f"seed {seed}: {fault.__name__} ends no design")
