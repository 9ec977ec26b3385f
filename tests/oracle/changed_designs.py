"""Designs with some numbers changed: legal syntax, often another meaning, sometimes none."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from oracle.array_design import ELEMENT_BYTES, WORD_BYTES, Bd, Chain, Design, Memcpy, Program, UseLock
from oracle.slow_array import Outcome, SlowArray, word_offsets

SCHEDULES = ((1, 1), (2, 16), (3, 64))  # seeds and FIFO words


def changed_use(random: Random, use: UseLock | None) -> UseLock | None:
    return use and replace(use, value=max(1, use.value + random.choice((-1, 1, 2))))


def changed_bd(random: Random, bd: Bd) -> Bd:
    changes: list[Callable[[], Bd]] = [
        lambda: replace(bd, offset=max(0, bd.offset + random.choice((-4, 4, 8)))),
        lambda: replace(bd, acquire=changed_use(random, bd.acquire)),
        lambda: replace(bd, release=changed_use(random, bd.release)),
    ]
    if not bd.dims:
        changes.append(lambda: replace(bd, length=max(4, bd.length + random.choice((-4, 4)))))
    if len(bd.dims) > 1:
        changes.append(lambda: replace(bd, dims=(*bd.dims[1::-1], *bd.dims[2:])))
        changes.append(lambda: replace(bd, dims=(replace(bd.dims[0], stride=bd.dims[0].stride + 4), *bd.dims[1:])))
    return random.choice(changes)()


def changed_chain(random: Random, chain: Chain) -> Chain:
    kind = random.randrange(5)
    if kind == 0:
        return replace(chain, runs=max(1, chain.runs + random.choice((-1, 1))), loops=False)
    if kind == 1:
        return replace(chain, loops=not chain.loops)
    index = random.randrange(len(chain.bds))
    bds = list(chain.bds)
    if kind == 2 and len(bds) > 1:
        other = random.randrange(len(bds))
        bds[index], bds[other] = bds[other], bds[index]
    else:
        bds[index] = changed_bd(random, bds[index])
    return replace(chain, bds=tuple(bds))


def changed_program(random: Random, design: Design) -> Design:
    index = random.randrange(len(design.programs))
    program = design.programs[index]
    task = random.randrange(len(program.tasks))
    tasks = list(program.tasks)
    tasks[task] = changed_chain(random, tasks[task])
    programs = list(design.programs)
    programs[index] = Program(program.port, tuple(tasks))
    return design.with_changes(programs=tuple(programs))


def changed_lock(random: Random, design: Design) -> Design:
    index = random.randrange(len(design.locks))
    locks = list(design.locks)
    locks[index] = replace(locks[index], init=max(0, locks[index].init + random.choice((-1, 1, 3))))
    return design.with_changes(locks=tuple(locks))


def changed_sequence(random: Random, design: Design) -> Design:
    """Two neighbouring operations in the other order, or one transfer of another number of runs."""
    index = random.randrange(len(design.sequence) - 1)
    operations = list(design.sequence)
    match operations[index]:
        case Memcpy(sizes=(runs, *inner)) as op if random.random() < 0.7:
            operations[index] = replace(op, sizes=(max(1, runs + random.choice((-1, 1))), *inner))
        case _:
            operations[index : index + 2] = reversed(operations[index : index + 2])
    return design.with_changes(sequence=tuple(operations))


def changed_design(random: Random, design: Design) -> Design:
    """One or two changes."""
    for _ in range(random.choice((1, 1, 2))):
        changes = [changed_program, changed_program] if design.programs else []
        changes += [changed_lock] if design.locks else []
        changes += [changed_sequence] if len(design.sequence) > 1 else []
        if changes:
            design = random.choice(changes)(random, design)
    return design


def fits(design: Design) -> bool:
    """Whether every transfer of the host stays inside its argument, whether or not it ever starts."""
    sizes = {a.name: a.elements * ELEMENT_BYTES[a.element] for a in design.arguments}
    transfers = [SlowArray.transfer(op) for op in design.sequence if isinstance(op, Memcpy)]
    touched = ((bd.memory, word_offsets(bd, run)) for t in transfers for bd in t.bds for run in range(t.runs))
    return all(o is not None and o + WORD_BYTES <= sizes[name] for name, offsets in touched for o in offsets)


def stable_end(design: Design) -> tuple[Outcome, dict[str, bytes]] | None:
    """Outcome and memory where every schedule agrees; None where they differ, or where the design means nothing."""
    if not fits(design):
        return None
    ends: list[tuple[Outcome, dict[str, bytes]]] = []
    for seed, words in SCHEDULES:
        array = SlowArray(design, seed, words, turns=300_000)
        try:
            outcome = array.run()
        except (AssertionError, KeyError):
            return None
        ends.append((outcome, {name: bytes(memory) for name, memory in array.memory.items()}))
        if ends[-1] != ends[0] and (outcome, ends[0][0]) != (Outcome.DEADLOCK, Outcome.DEADLOCK):
            return None
    return ends[0]


def is_race(design: Design, outcome: Outcome, memory: dict[str, bytes]) -> bool:
    """Whether some of many more schedules leave other memory: a change may have broken what the locks protected."""
    for seed in range(40):
        array = SlowArray(design, 1000 + seed, (1, 2, 4, 16, 64)[seed % 5], turns=300_000)
        if array.run() is not outcome or any(bytes(array.memory[name]) != old for name, old in memory.items()):
            return True
    return False
