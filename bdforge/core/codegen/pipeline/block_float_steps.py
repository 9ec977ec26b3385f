"""When the steps of k of block floats issue: bfloat16 becomes block floats in one accumulator, a tile at a time.

That accumulator is what such a product is short of. A tile that a product by ones widens takes it for a cycle, one that
two loads widen for two. So all follows from the cycles of the conversions: they come as soon as they may, with the
cycles that a block has to spare between them, where stores of C find theirs. Products take what cycles of their slot
are left.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from bdforge.core.codegen.pipeline.block_dataflow import block
from bdforge.core.codegen.pipeline.dataflow import dependences, places
from bdforge.core.codegen.pipeline.product import BlockRegion
from bdforge.core.isa import load
from bdforge.core.isa.modulo import ModuloProblem, plans

_WIDENED, _LOADED = 6, (8, 7)  # cycles from a product by ones, and from loads of two halves, to the conversion
_CONVERTED = 4  # and from there to a product

Step = tuple[str, int | None]
"""Key and step of an op."""
Placed = dict[Step, tuple[int, int]]
"""Cycles and alternatives of ops."""


@cache
def placed_steps(region: BlockRegion, spare: int) -> Placed | None:
    """The steps of all blocks of a pass, each with so many cycles to spare; None where loads have no room."""
    isa = load(region.product.generation)
    ops = [op for op in block(region, (0,) * len(region.lanes), region.step_cycles) if op.step is not None]
    period = region.unrolled * (region.step_cycles * region.product.steps + spare)
    rigid: dict[Step, int] = dict(_rigid(region, spare, period))
    fixed = {i: (rigid[op.key, op.step], 0) for i, op in enumerate(ops) if (op.key, op.step) in rigid}
    free = [i for i in range(len(ops)) if i not in fixed]
    problem = ModuloProblem([places(isa.generation, op) for op in ops], dependences(isa, ops), fixed, free)
    for plan in plans(problem, period):
        return {(op.key, op.step): at for op, at in zip(ops, zip(plan.issues, plan.choices, strict=True), strict=True)}
    return None


def _rigid(region: BlockRegion, spare: int, period: int) -> Iterator[tuple[Step, int]]:
    """Cycles of what makes block floats, and of products."""
    converted, widened = {}, set()
    for name, step, at in _conversions(region, spare):
        converted[name, step] = at
        yield (f"block {name}", step), at
        if region.multiplied(name[0]):
            widened.add((at - _WIDENED) % period)
            yield (f"widen {name}", step), at - _WIDENED
        else:
            yield from (((f"{name}.{half}", step), at - before) for half, before in enumerate(_LOADED))
    yield from _products(region, converted, widened, period)


def _products(
    region: BlockRegion, converted: Mapping[tuple[str, int], int], taken: set[int], period: int
) -> Iterator[tuple[Step, int]]:
    """Products as soon as their operands are there, a sum's and their slot allow."""
    last: dict[tuple[int, int], int] = {}
    for step in range(region.unrolled * region.product.steps):
        for number, (i, j) in enumerate(region.lanes):
            lane = step // region.product.steps, number
            at = max(converted[f"a{i}", step], converted[f"b{j}", step]) + _CONVERTED
            at = max(at, last.get(lane, 0) + region.product.vectors.chain)
            last[lane] = at = next(cycle for cycle in range(at, at + period) if cycle % period not in taken)
            taken.add(at % period)
            yield (f"mac {number}", step), at


def _conversions(region: BlockRegion, spare: int) -> Iterator[tuple[str, int, int]]:
    """(tile, step, cycle) in their order: rows and columns in turn."""
    tiles = sorted([(i, f"a{i}") for i in range(region.rows)] + [(j, f"b{j}") for j in range(region.columns)])
    takes = [1 if region.multiplied(name[0]) else 2 for _, name in tiles]
    idle, at = region.step_cycles - sum(takes), 0
    for step in range(region.unrolled * region.product.steps):
        at += _waited(region, step % region.product.steps, spare)
        for number, ((_, name), cycles) in enumerate(zip(tiles, takes, strict=True)):
            at += cycles + _share(idle, number, len(tiles))
            yield name, step, at


def _waited(region: BlockRegion, step: int, spare: int) -> int:
    """Cycles to spare before a step of a block: all at its start where nobody takes turns with it in accumulators."""
    if region.unrolled == 1:
        return 0 if step else spare
    return _share(spare, step, region.product.steps)


def _share(cycles: int, number: int, count: int) -> int:
    return (number + 1) * cycles // count - number * cycles // count
