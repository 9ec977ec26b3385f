"""Functions of assembly made of parts, each a block of instructions that starts anew every few cycles."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.basic_block import AssemblyOp, Cycle, instruction, load_constant, signs
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.cycle_trace import after_setup, declare_old, ended, returning, trace
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, Value, dependences, files, places
from bdforge.core.codegen.pipeline.loop_folding import HARDWARE_COUNTER, SHORTEST, FoldedPiece, folded, lines
from bdforge.core.codegen.pipeline.register_colouring import coloured, lives
from bdforge.core.isa import Isa, load
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.meaning.semantics import signed
from bdforge.core.isa.modulo import Edge, ModuloProblem, ModuloSchedule, late_plans, plans

COUNTER, STEP_COUNTER = "r7", "r5"
"""Count the passes of a part's loop, and of the steps in it."""

_SOURCE = "bdforge.core.codegen.kernels"
_MOST_PERIOD = 256
_SHORTEST = range(-512, 512)  # in the move slot of both generations


@dataclass(frozen=True)
class FunctionPart:
    """A set-up, and instructions with their cycles in a block that starts `times` times, every `period` cycles.

    A block may be made of steps, `step` cycles each.
    """

    setup: Sequence[AssemblyOp]
    issues: Sequence[tuple[int, AssemblyOp]]
    period: int
    times: int
    step: int = 0


@dataclass(frozen=True)
class LoopOfParts:
    """Parts that run `times` times one after the other; the register `counter` counts, which they leave alone."""

    parts: Sequence[FunctionPart]
    times: int
    counter: str


def function(
    name: str, generation: str, parts: Sequence[FunctionPart | LoopOfParts], *about: str, hardware: bool = False
) -> AssemblyKernel:
    """The function of parts one after the other; `about` is the comment at its head, with {cycles} for its cycles.

    Loops end with JNZ and work in its delay slots, or are `hardware` loops. The last part is none of parts.
    """
    made = _Text(load(generation), name, hardware)
    flat = [part for one in parts for part in (one.parts if isinstance(one, LoopOfParts) else (one,))]
    kinds = signs(generation, [op for part in flat for _, op in part.issues])
    for number, part in enumerate(parts):
        setup, last = () if number else kinds, number == len(parts) - 1
        made.pieces += made.loop(part, setup) if isinstance(part, LoopOfParts) else made.part(part, setup, last)
    total = sum(len(piece.cycles) * piece.passes for piece in made.pieces)
    head = [f"// {line}".replace("{cycles}", str(total)).rstrip() for line in about]
    text = "\n".join([*head, f"        .globl  {name}", f"{name}:", *lines(made.isa, made.pieces)]) + "\n"
    return AssemblyKernel(Callee(name, quiet=True), text, f"{_SOURCE}: {name}", total)


@dataclass
class _Text:
    """Writes a function's pieces; its parts have numbers for labels."""

    isa: Isa
    name: str
    hardware: bool
    pieces: list[FoldedPiece] = field(default_factory=list)
    written: int = 0

    def part(self, part: FunctionPart, more: Sequence[AssemblyOp], last: bool = False) -> list[FoldedPiece]:
        """A part's pieces, with more in its set-up; the last one returns."""
        setup = spread(self.isa.generation, [*part.setup, *more])
        cycles = after_setup(self.isa, setup, trace(part.issues, part.period, part.times))
        (returning if last else ended)(self.isa, cycles)
        declare_old(self.isa, cycles)
        label, self.written = f"{self.name}.blocks_{self.written}", self.written + 1
        inner = HARDWARE_COUNTER if self.hardware else STEP_COUNTER if part.step else COUNTER
        period = part.period * -(-SHORTEST // part.period)
        pieces = folded(self.isa, cycles, period, label, COUNTER if part.step else inner)
        return [one for i, piece in enumerate(pieces) for one in self._steps(part, piece, f"{label}_{i}", inner)]

    def _steps(self, part: FunctionPart, piece: FoldedPiece, label: str, counter: str) -> list[FoldedPiece]:
        """A piece with its steps as a loop in it."""
        if not part.step:
            return [piece]
        found = folded(self.isa, piece.cycles, part.step * -(-SHORTEST // part.step), label, counter)
        found[0].label = piece.label
        for one in found:
            one.passes *= piece.passes
        return found

    def loop(self, loop: LoopOfParts, more: Sequence[AssemblyOp]) -> list[FoldedPiece]:
        """Parts in a loop, with more in the set-up of the first."""
        label = f"{self.name}.parts_{self.written}"
        inside = [one for i, part in enumerate(loop.parts) for one in self.part(part, () if i else more)]
        inside[0].label = label
        back = [Cycle([AssemblyOp(text)]) for text in (f"add {loop.counter}, {loop.counter}, #-1",
                                                       f"jnz {loop.counter}, #{label}")]  # fmt: skip
        inside.append(FoldedPiece([*back, *(Cycle() for _ in range(DELAY_SLOTS))]))
        for piece in inside:
            piece.passes *= loop.times
        return [FoldedPiece([Cycle([set_register(loop.counter, loop.times)])]), *inside]


def repeated(
    generation: str, setup: Sequence[AssemblyOp], ops: Sequence[DataflowOp], times: int,
    free: Mapping[str, Sequence[int]] = MappingProxyType({}), order: Sequence[tuple[str, str]] = (),
    fixed: Mapping[str, int] = MappingProxyType({}), shortest: int = 1, closed: bool = False,
) -> FunctionPart:  # fmt: skip
    """A part whose blocks follow each other as soon as registers and units allow.

    `free` are the registers of each file ("x", "y", "dm") that the values of its ops may have; `order` are keys of ops
    of which the second comes after the first, so that fewer values live at a time. `fixed` are the cycles of those that
    leave no other choice, by their keys: then ops that are `late` come as late as they may. Periods are tried from the
    `shortest` on; where it is to be `closed`, those with a cycle for a loop's branch: short where others are unrolled.
    """
    isa = load(generation)
    number = {op.key: i for i, op in enumerate(ops)}
    ordered = [Edge(number[first], number[second], 1, 0) for first, second in order]
    edges, late = [*dependences(isa, ops), *ordered], [i for i, op in enumerate(ops) if op.late and fixed]
    settled = {number[key]: (at, 0) for key, at in fixed.items()}
    problem = ModuloProblem([places(generation, op) for op in ops], edges, settled, late)
    for period in range(shortest, _MOST_PERIOD):
        for plan in (late_plans if free and not fixed else plans)(problem, period):
            registers = registers_of(isa, ops, plan, free)
            if registers is None or (closed and not _leaves_branch(generation, ops, plan)):
                continue
            first = min(plan.issues)
            texts = [AssemblyOp(op.text(0, registers), op.shown) for op in ops]
            return FunctionPart(
                setup, [(at - first, op) for op, at in zip(texts, plan.issues, strict=True)], period, times
            )
    raise CodegenError(f"no period below {_MOST_PERIOD} cycles was found for {len(ops)} instructions")


def _leaves_branch(generation: str, ops: Sequence[DataflowOp], plan: ModuloSchedule) -> bool:
    """Whether a cycle of each period has the slots of a branch free."""
    taken = {
        at % plan.interval
        for at, op in zip(plan.issues, ops, strict=True)
        if {slot for slot, _ in places(generation, op)[0]} & {"alu", "mv"}
    }
    return len(taken) < plan.interval


def registers_of(
    isa: Isa, ops: Sequence[DataflowOp], plan: ModuloSchedule, free: Mapping[str, Sequence[int]]
) -> dict[Value, int] | None:
    """A register for each value, file by file; None where they are too few."""
    kinds, found = files(ops), lives(isa, ops, plan.issues)
    registers: dict[Value, int] = {}
    for file in sorted(set(kinds.values())):
        colours = coloured([life for life in found if kinds[life.value] == file], plan.interval, free[file])
        if colours is None:
            return None
        registers |= colours
    return registers


def set_register(register: str, value: int, comment: str = "") -> AssemblyOp:
    """A constant of 32 bits in a register."""
    return AssemblyOp(load_constant(register, str(signed(value, 32))), comment)


def set_control(register: str, value: int, comment: str = "") -> list[AssemblyOp]:
    """A value in a control register, by way of r15."""
    return [set_register("r15", value), AssemblyOp(f"movx {register}, r15", comment)]


def spread(generation: str, setup: Sequence[AssemblyOp]) -> list[AssemblyOp]:
    """A set-up whose short constants go through the move slot too, where that has less to do than the load slot."""
    slots = Counter(instruction(generation, op.text).form.slot for op in setup)
    more, ops = (slots["lda"] - slots["mv"] - slots["lng"]) // 2, list(setup)
    for at in range(len(ops) - 1, -1, -1):
        name, _, rest = ops[at].text.partition(" ")
        if more > 0 and name == "mova" and int(rest.partition("#")[2]) in _SHORTEST:
            ops[at], more = replace(ops[at], text=f"mov {rest}"), more - 1
    return ops
