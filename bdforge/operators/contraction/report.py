"""A planned contraction for people: dimensions, fusion, tiles, operands with what staging gains, loops."""

from collections.abc import Iterator
from dataclasses import replace

from bdforge.devices.limits import SHIM
from bdforge.operators.contraction.choose import choose
from bdforge.operators.contraction.config import config_of
from bdforge.operators.contraction.dims import Contraction, ContractionError
from bdforge.operators.contraction.plan import ContractionPlan
from bdforge.operators.contraction.price import useful
from bdforge.operators.contraction.sides import Side
from bdforge.operators.contraction.walks import WalkReason


def report_lines(given: Contraction, plan: ContractionPlan, once: str = "") -> Iterator[str]:
    """Lines; all times are modelled."""
    mapped, price = plan.choice.mapped, plan.choice.price
    yield "dimensions, by the tensors that have them"
    yield from (f"  {dim}" for dim in given.dims)
    fused = {part.dim.name: part.dim for side in mapped.sides for part in side.parts if part.dim.members}
    if fused:
        yield "fused, where one walk goes through both in every tensor that stays in place"
        yield from (f"  {dim.kind} {name} = {dim.size}" for name, dim in fused.items())
    if plan.choice.contraction.swapped:
        yield "inputs exchanged: the second one gives M, the first one N"
    yield f"tiles of {plan.gemm.tiling.m} x {plan.gemm.tiling.k_mt} x {plan.gemm.tiling.n}"
    tiles = mapped.sides[0].tiles
    for kind, box in (("M", tiles.m), ("N", tiles.n), ("K", tiles.k)):
        yield f"  {kind}: {', '.join(f'{p.size} of {p.dim.name} = {p.dim.size}' for p in box)}"
    yield f"  {useful(mapped):.0%} of the cores' work is the answer's"
    yield "operands"
    for side in mapped.sides:
        yield f"  {_operand(side, plan, once)}"
    config = config_of(mapped)
    yield "loops: type, execution, size, strides in the first input, the second one, the output"
    yield from (f"  {level}" for level in config.levels)
    yield f"touches of a tile of the output: {config.first} first, {config.last} last"
    yield f"sequence: {mapped.steps} steps, at most {max(mapped.bds())} BDs of a shim in each"
    yield (
        f"modelled: cores {price.core_us:.0f} us, memory {price.memory_us:.0f} us, controller "
        f"{price.controller_us:.0f} us, together {price.array_us:.0f} us; copies on the host "
        f"{price.total_us(once) - price.array_us:.0f} us"
    )


def _operand(side: Side, plan: ContractionPlan, once: str) -> str:
    run = side.run_elements() * side.store.bits // 8
    if not side.staged:
        return f"{side.name} in place, in runs of {run} B"
    copied = plan.choice.price.copies_us["ABC".index(side.name)]
    cost = "copied before" if side.name in once else f"{copied:.0f} us to copy"
    return f"{side.name} staged tile by tile, {cost}: {_why(side, plan, once)}"


def _why(side: Side, plan: ContractionPlan, once: str) -> str:
    """What it gains, or why it cannot be in place."""
    others = "".join(other.name for other in plan.sides if other.staged and other is not side)
    try:
        other = choose(plan.choice.contraction, plan.gemm, others, once)
    except ContractionError:
        return f"in place {_hindrance(side)}"
    gain = other.price.total_us(once) - plan.choice.price.total_us(once)
    return f"gains {gain:.0f} us of {other.price.total_us(once):.0f} us with it in place"


def _hindrance(side: Side) -> str:
    here = replace(side, staged=False)
    if faults := list(here.unreachable()):
        return faults[0]
    try:
        here.walk(SHIM)
    except WalkReason as reason:
        return f"it {reason}"
    return "no tiles suit all operands"
