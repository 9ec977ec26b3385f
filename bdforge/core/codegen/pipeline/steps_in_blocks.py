"""Blocks of equal steps: a step is scheduled once, the others of a block follow each interval behind it.

What a block does once, such as loads and stores of sums, finds its cycles between its steps, and between those of
blocks, which for that may be some cycles apart. So schedules are found for bodies that are too large to be searched as
a whole, and a function's text holds a block's steps as a loop in a loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, Value, dependences, files, places
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, registers_of
from bdforge.core.codegen.pipeline.register_colouring import lives, meet
from bdforge.core.isa import Isa, load
from bdforge.core.isa.modulo import ModuloProblem, ModuloSchedule, late_plans, plans

_MOST_INTERVAL, _MOST_IDLE = 96, 64
_BRANCH = ((("alu", 0), ("mv", 0)),)
"""Slots of one cycle of a step that are left for the branch of its loop."""
_LEAD = 48  # cycles before a block's first step in which what it does once may begin


@dataclass(frozen=True)
class BlockOfSteps:
    """What a block does: once `before` its `steps`, in each of them, and once `behind` them.

    `step(i)` are the ops of step i, the same ones in each but for the steps of pointers. `free` are the registers that
    their values may have; what happens once works with registers that stay. `fixed` are the cycles of those ops of a
    step that leave no other choice, by their keys; the others then come as late as they may. Blocks are `apart` cycles
    apart at least, beside their steps, of which each takes the `shortest` interval or a longer one.
    """

    before: Sequence[DataflowOp]
    step: Callable[[int], Sequence[DataflowOp]]
    behind: Sequence[DataflowOp]
    steps: int
    free: Mapping[str, Sequence[int]]
    fixed: Mapping[str, int] = field(default_factory=dict)
    apart: int = 0
    shortest: int = 1

    @property
    def ops(self) -> list[DataflowOp]:
        """All of a block in an order that is right."""
        middle = [replace(op, step=i, values=_of(op, i)) for i in range(self.steps) for op in self.step(i)]
        return [*self.before, *middle, *self.behind]


def _of(op: DataflowOp, step: int) -> dict[str, Value]:
    return {hole: (name, step) for hole, (name, _) in op.values.items()}


def stepped(generation: str, setup: Sequence[AssemblyOp], block: BlockOfSteps, times: int) -> FunctionPart:
    """A part of so many blocks, as near to each other as their loads and stores allow; CodegenError for none."""
    isa, ops = load(generation), block.ops
    cells, edges = [places(generation, op) for op in ops], dependences(isa, ops)
    first, count = len(block.before), len(block.step(0))
    steps = [(i, *divmod(i - first, count)) for i, op in enumerate(ops) if op.step is not None]
    for plan, registers in _steps(isa, block):
        for idle in range(block.apart, _MOST_IDLE):
            fixed = {
                i: (plan.issues[number] + step * plan.interval, plan.choices[number]) for i, step, number in steps
            }  # fmt: skip
            late = [i for i, op in enumerate(ops) if op.late]
            start = min(at for at, _ in fixed.values()) - _LEAD
            period = block.steps * plan.interval + idle
            found = next(iter(plans(ModuloProblem(cells, edges, fixed, late, start), period)), None)
            if found is not None and not _meet(isa, ops, found, registers):
                return _part(setup, ops, found, registers, (plan.interval, times))
    raise CodegenError(f"no schedule was found for blocks of {block.steps} steps of {count} instructions")


def _meet(isa: Isa, ops: Sequence[DataflowOp], plan: ModuloSchedule, registers: Mapping[Value, int]) -> bool:
    """Whether values of a block's last steps meet in a register with those of the next block's first ones."""
    kinds, named = files(ops), {name: register for (name, _), register in registers.items()}
    found = lives(isa, ops, plan.issues)
    return meet(found, plan.interval, {life.value: (kinds[life.value], named[life.value[0]]) for life in found})


def _steps(isa: Isa, block: BlockOfSteps) -> Iterator[tuple[ModuloSchedule, dict[Value, int]]]:
    """Schedules of a step with registers for its values, those of the shortest interval."""
    ops = list(block.step(0))
    cells, edges = [places(isa.generation, op) for op in ops], dependences(isa, ops)
    settled = {i: (block.fixed[op.key], 0) for i, op in enumerate(ops) if op.key in block.fixed}
    late = [i for i in range(len(ops)) if i not in settled] if settled else ()
    problem = ModuloProblem([*cells, *(() if settled else (_BRANCH,))], edges, settled, late)
    for interval in range(block.shortest, _MOST_INTERVAL):
        for plan in (*(() if settled else late_plans(problem, interval)), *plans(problem, interval)):
            registers = registers_of(isa, ops, plan, block.free)
            if registers is not None:
                yield plan, registers
                break


def _part(
    setup: Sequence[AssemblyOp], ops: Sequence[DataflowOp], plan: ModuloSchedule, registers: Mapping[Value, int],
    periods: tuple[int, int],
) -> FunctionPart:  # fmt: skip
    interval, times = periods
    first = min(plan.issues)
    texts = [
        AssemblyOp(op.text(choice, {(name, op.step or 0): register for (name, _), register in registers.items()}))
        for op, choice in zip(ops, plan.choices, strict=True)
    ]
    issues = [(at - first, text) for at, text in zip(plan.issues, texts, strict=True)]
    return FunctionPart(setup, issues, plan.interval, times, interval)
