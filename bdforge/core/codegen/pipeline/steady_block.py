"""Schedules of blocks: first the steps of k, which are all the same, then what a block does besides."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.block_dataflow import A_BANK, B_BANK, C_BANK, block
from bdforge.core.codegen.pipeline.block_float_steps import Placed, placed_steps
from bdforge.core.codegen.pipeline.dataflow import BANK, DataflowOp, Value, dependences, places
from bdforge.core.codegen.pipeline.product import BlockRegion, Met
from bdforge.core.codegen.pipeline.register_colouring import coloured, lives
from bdforge.core.isa import Isa, load
from bdforge.core.isa.modulo import ModuloProblem, ModuloSchedule, fits, plans

_MOST_IDLE, _IDLE_STEPS = 24, 3  # cycles and steps without products, after which a block is given up
_SKEWS = (0, 0.5, 0.75, 1, 2)  # lanes that end half a step apart need fewer registers than a whole step
_TYPICAL_STEPS = 3  # the middle one of which is like all but the first and the last of any block
_BRANCH = ((("alu", 0), ("mv", 0)),)
"""Slots of one cycle that are left for the branch of a loop of blocks."""
_LOADED, _STORED = 4, 6  # cycles from a load of C to the product that adds it, and from the last product to a store


@dataclass(frozen=True)
class Scheduled:
    """A block's ops with the cycle of each, its alternative, and registers of values; blocks follow each `period`.

    `conflicts` are its accesses that meet another one in a bank, if A, B and C lie in one each; `waits` what it waits
    besides as far as they share one (expected).
    """

    region: BlockRegion
    interval: int
    period: int
    ops: Sequence[DataflowOp]
    issues: Sequence[int]
    choices: Sequence[int]
    registers: Mapping[Value, int]
    conflicts: int
    waits: float

    @property
    def cost(self) -> float:
        """Cycles of a block with stalls, as often as banks are shared."""
        return self.period + self.conflicts * self.region.same_bank + self.waits

    def placed(self) -> list[tuple[int, AssemblyOp]]:
        """Instructions with their cycles."""
        return [
            (issue, AssemblyOp(op.text(choice, self.registers), op.shown))
            for op, issue, choice in zip(self.ops, self.issues, self.choices, strict=True)
        ]


@cache
def scheduled(region: BlockRegion) -> Scheduled:
    """The block with the least cost that is found; CodegenError where none is."""
    best: Scheduled | None = None
    for interval, idle in _periods(region):
        if best is not None and best.cost <= _period(region, interval, idle):
            break
        for found in _found(region, interval, idle):
            best = found if best is None or found.cost < best.cost else best
    if best is None:
        raise CodegenError(f"no schedule was found for blocks of {region.rows} x {region.columns} of {region.product}")
    return best


def _found(region: BlockRegion, interval: int, idle: int) -> Iterator[Scheduled]:
    """Schedules of a period: one whose accesses to C keep clear of each other, or else some in which they meet."""
    alike = len(region.lanes) == 1 or region.product.blocks
    skewed = [replace(region, skew=skew) for skew in ((0,) if alike else _SKEWS)]
    period = _period(region, interval, idle)
    held = [(one, _registers(one, interval, idle, period)) for one in skewed]
    usable = [(one, registers) for one, registers in held if registers is not None]
    tried = [
        (one, takes, registers)
        for one, registers in usable
        for takes in dict.fromkeys(_takes(one, interval, period // one.unrolled, after) for after in (True, False))
    ]  # fmt: skip
    for strict in (True, False):
        for one, takes, registers in tried:
            found = _attempt(one, interval, idle, takes, registers, strict)
            if found is None:
                continue
            yield found
            if strict and not any(region.product.met):
                return


def _period(region: BlockRegion, interval: int, idle: int) -> int:
    """Cycles of a loop's pass."""
    return region.unrolled * (interval * region.product.steps + idle)


def _periods(region: BlockRegion) -> Iterator[tuple[int, int]]:
    """(cycles of a step, cycles without products), the shortest blocks first: whole steps, unless masks or conversions
    take what cycles a block has besides."""
    p, least = region.product, region.step_cycles
    if p.blocks:
        first = len(region.lanes) * p.c_accesses if p.c_bytes == 2 else 0  # such a store finds no cycle in a step
        yield from ((least, idle) for idle in range(first, _MOST_IDLE))
        return
    fine = p.weights == "i2" and p.generation == "aie2p"  # AIE2's short blocks would lose more at both ends
    tried = [
        (i, idle) for i in (least, least + 1)
        for idle in range(0, (_MOST_IDLE // i + _IDLE_STEPS) * i, 1 if fine and i == least else i)
    ]  # fmt: skip
    yield from sorted(tried, key=lambda pair: (pair[0] * p.steps + pair[1], pair))


def _attempt(
    region: BlockRegion, interval: int, idle: int, takes: tuple[int, ...], registers: Mapping[Value, int], strict: bool
) -> Scheduled | None:
    """A schedule in which accesses to C keep clear of each other, if `strict`."""
    isa, issues = load(region.product.generation), _step_issues(region, interval, idle)
    assert issues is not None
    period = _period(region, interval, idle)
    ops = block(region, takes, interval)
    branch = () if region.product.hardware_loops else (_BRANCH,)  # else blocks are written out: 15 KB of 16
    occupied = [*(places(isa.generation, op, strict) for op in ops), *branch]
    if not fits(occupied, period):
        return None
    fixed = {i: issues[op.key, op.step] for i, op in enumerate(ops) if op.step is not None}
    # Where all lanes add C in the first step, it may come so many cycles before the first load of A and B.
    lead = 2 * len(region.lanes) * region.product.c_accesses if region.product.joint else 0
    problem = ModuloProblem(
        occupied, dependences(isa, ops, values=False), fixed,  # steps keep to those of values
        [i for i, op in enumerate(ops) if op.step is None and op.late],
        min(at for at, _ in fixed.values()) - lead,
    )  # fmt: skip
    for plan in plans(problem, period):
        first = min(plan.issues[: len(ops)])
        issues = [at - first for at in plan.issues[: len(ops)]]
        choices = plan.choices[: len(ops)]
        accesses = Counter(_accesses(ops, plan, isa))
        conflicts = sum(count - 1 for count in accesses.values())
        waits = _waits(accesses, region.product.met)
        return Scheduled(region, interval, period, ops, issues, choices, registers, conflicts, waits)
    return None


def _accesses(ops: Sequence[DataflowOp], plan: ModuloSchedule, isa: Isa) -> Iterator[tuple[str, int]]:
    """(operand, cycle) of the accesses of a block among those around it."""
    for op, issue, choice in zip(ops, plan.issues, plan.choices, strict=False):
        for unit, cycle in places(isa.generation, op)[choice]:
            if unit.startswith(BANK):
                yield unit.removeprefix(BANK), (issue + cycle) % plan.interval


def _waits(accesses: Iterable[tuple[str, int]], met: Met) -> float:
    """Cycles that a block waits where two operands are accessed in one cycle, as often as these lie in one bank."""
    cycles = {operand: {at for one, at in accesses if one == operand} for operand in (A_BANK, B_BANK, C_BANK)}
    pairs = ((A_BANK, C_BANK), (B_BANK, C_BANK), (A_BANK, B_BANK))
    return sum(len(cycles[one] & cycles[other]) * share for (one, other), share in zip(pairs, met, strict=True)) / 100


def _registers(region: BlockRegion, interval: int, idle: int, period: int) -> dict[Value, int] | None:
    """Registers of values, which only steps have."""
    placed = _step_issues(region, interval, idle)
    if placed is None:
        return None
    ops = [op for op in block(region, (0,) * len(region.lanes), interval) if op.step is not None]
    issues = [placed[op.key, op.step][0] for op in ops]
    return coloured(lives(load(region.product.generation), ops, issues), period, region.registers)


def _step_issues(region: BlockRegion, interval: int, idle: int) -> Placed | None:
    """Cycle and alternative of each op of a step, over all blocks of a pass."""
    if region.product.blocks:
        return placed_steps(region, idle)
    steps, count = _steps(region, interval), region.product.steps
    if steps is None:
        return None
    return {
        (key, step): (at + interval * step + step // count * idle, choice)
        for key, (at, choice) in steps.items() for step in range(region.unrolled * count)
    }  # fmt: skip


@cache
def _steps(region: BlockRegion, interval: int) -> dict[str, tuple[int, int]] | None:
    """Cycle and alternative of each op of the first step; those of the others follow by the interval."""
    isa = load(region.product.generation)
    typical = replace(region, product=replace(region.product, k=_TYPICAL_STEPS * region.product.depth))
    ops = [op for op in block(typical, (0,) * len(region.lanes), interval) if op.step == 1]
    lanes = {f"mac {i}": region.behind(i, interval) for i in range(len(region.lanes))}
    fixed = {i: (lanes[op.key], 0) for i, op in enumerate(ops) if op.key in lanes}
    problem = ModuloProblem(
        [places(isa.generation, op) for op in ops], dependences(isa, ops), fixed,
        [i for i, op in enumerate(ops) if op.key not in lanes],
    )  # fmt: skip
    for plan in plans(problem, interval):
        return {op.key: (plan.issues[i], plan.choices[i]) for i, op in enumerate(ops)}
    return None


def _takes(region: BlockRegion, interval: int, period: int, after: bool) -> tuple[int, ...]:
    """In which step each lane adds what C was: evenly over the block, or over what the stores of C leave of it; in
    the first where each lane has its own accumulator for it."""
    if region.product.joint:
        return (0,) * len(region.lanes)
    lanes, last = len(region.lanes), region.product.steps - 1
    first_store = interval * last + _STORED
    stored = first_store + region.behind(lanes - 1, interval) + region.product.c_accesses
    begin = stored - period if after else -period // lanes
    room = first_store - begin if after else period
    shares = [
        begin + _LOADED + (lane + 1) * room // lanes - region.behind(lane, interval) for lane in range(lanes)
    ]  # fmt: skip
    latest = max(0, last - (region.results[0] != 0))  # which adds to a sum in place
    return tuple(min(latest, max(0, round(share / interval))) for share in shares)
