"""Loops, choices and calls of a core's program, as blocks and branches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from bdforge.array.core_bodies.value_locations import constant_of, is_number, refused
from bdforge.array.mlir.locations import value_name
from bdforge.core.codegen.abi import NUMBERS, POINTERS, RESULT
from bdforge.core.isa.meaning.semantics import signed

if TYPE_CHECKING:
    from bdforge.array.core_bodies.compiled_body import CompiledBody

_LONGEST = (1 << 31) - 1  # passes; more take longer than any array runs

Choice = SSAValue | tuple[SSAValue, "Choice", "Choice"]
"""A value, or (condition, value if it holds, value if not)."""


def for_loop(b: "CompiledBody", op: scf.ForOp) -> None:
    """The test stands at the end; before the first pass it is made only where it can fail."""
    variable, *carried = op.body.block.args
    b.copy(carried, op.iter_args)
    ends = [constant_of(value) for value in (op.lb, op.ub, op.step)]
    first, end, step = ends
    if step is not None and step < 1:
        raise refused(op, f"the step of a loop is {step}; it must be positive")
    passes = None if first is None or end is None or step is None else max(0, -((first - end) // step))
    if passes == 0:
        return
    name, after = b.label(value_name(variable) or "loop"), b.label("after")
    b.copy([variable], [op.lb])
    if passes is None:
        b.branch(f"jz {_goes_on(b, variable, op.ub)}, #{after}", after)
    b.start(name)
    endless = passes is not None and passes > _LONGEST
    with b.constants.loop():
        b.block(op.body.block)
        if not endless or list(variable.uses):  # else nobody reads the count
            b.result(variable, lambda d: b.emit(f"add {d}, {b.read(variable)}, {b.read(op.step)}"))
        if endless:
            b.branch(f"j #{name}", name)
            b.end()
            return
        b.branch(f"jnz {_goes_on(b, variable, op.ub)}, #{name}", name)
    b.start(after)


def _goes_on(b: "CompiledBody", variable: SSAValue, end: SSAValue) -> str:
    condition = b.temporary()
    b.emit(f"lt {condition}, {b.read(variable)}, {b.read(end)}")
    return condition


def while_loop(b: "CompiledBody", op: scf.WhileOp) -> None:
    """Region, test, region, and back."""
    before, after = op.before_region.block, op.after_region.block
    name, exit_ = b.label("while"), b.label("after")
    b.copy(before.args, op.operands)
    b.start(name)
    with b.constants.loop():
        b.block(before)
        test = before.last_op
        assert isinstance(test, scf.ConditionOp)
        b.copy(after.args, test.operands[1:])
        b.branch(f"jz {b.read(test.operands[0])}, #{exit_}", exit_)
        b.start(b.label("do"))
        b.block(after)
        b.branch(f"j #{name}", name)
    b.end()
    b.start(exit_)


def condition(b: "CompiledBody", op: scf.IfOp) -> None:
    """Arms that differ only in what they give one function become one call; others become branches."""
    call = _merged(op)
    if call is not None:
        _call(b, *call)
        return
    otherwise, end = b.label("else"), b.label("end")
    has_else = bool(op.false_region.blocks)
    b.branch(f"jz {b.read(op.cond)}, #{otherwise if has_else else end}", otherwise if has_else else end)
    b.start(b.label("then"))
    b.block(op.true_region.block)
    if has_else:
        b.branch(f"j #{end}", end)
        b.end()
        b.start(otherwise)
        b.block(op.false_region.block)
    b.start(end)


def index_switch(b: "CompiledBody", op: scf.IndexSwitchOp) -> None:
    """A comparison for each case, in order; the default is where all have failed."""
    end = b.label("end")
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        if case != signed(case, 32):
            raise refused(op, f"case {case} is no number of 32 bits, which is what an index has in machine code")
        other, same = b.label("case"), b.temporary()
        b.emit(f"eq {same}, {b.read(op.arg)}, {b.number(case)}")
        b.branch(f"jz {same}, #{other}", other)
        b.start(b.label("then"))
        b.block(region.block)
        b.branch(f"j #{end}", end)
        b.end()
        b.start(other)
    b.block(op.default_region.block)
    b.start(end)


def yielded(b: "CompiledBody", op: scf.YieldOp) -> None:
    """Values for the next pass, or of the arm."""
    parent = op.parent_op()
    match parent:
        case scf.ForOp():
            b.copy(parent.body.block.args[1:], op.operands)
        case scf.WhileOp():
            b.copy(parent.before_region.block.args, op.operands)
        case scf.IfOp() | scf.IndexSwitchOp():
            b.copy(parent.results, op.operands)
        case _:
            raise refused(op, "no machine code is made for it here")


def call(b: "CompiledBody", op: func.CallOp) -> None:
    """A function of another object."""
    _call(b, op, list(op.operands))


def _merged(op: scf.IfOp) -> tuple[func.CallOp, list[Choice]] | None:
    """The one function that both arms call, with its arguments as choices."""
    if op.results or not op.false_region.blocks:
        return None
    arms = [_only_call(region.block) for region in (op.true_region, op.false_region)]
    if arms[0] is None or arms[1] is None or arms[0][0].callee != arms[1][0].callee:
        return None
    pairs = zip(arms[0][1], arms[1][1], strict=True)
    return arms[0][0], [a if a == b else (op.cond, a, b) for a, b in pairs]


def _only_call(block: Block) -> tuple[func.CallOp, list[Choice]] | None:
    ops = [op for op in block.ops if not isinstance(op, scf.YieldOp)]
    if len(ops) != 1 or ops[0].results:
        return None
    if isinstance(ops[0], scf.IfOp):
        return _merged(ops[0])
    return (ops[0], list(ops[0].operands)) if isinstance(ops[0], func.CallOp) else None


def _call(b: "CompiledBody", op: func.CallOp, arguments: Sequence[Choice]) -> None:
    name = op.callee.string_value()
    callee = b.callees.get(name)
    if callee is None:
        raise refused(op, f"there is no machine code of {name}: assemble it, or give an object that has it")
    held: list[SSAValue] = []
    for register, argument in zip(_registers(op), arguments, strict=True):
        if isinstance(argument, SSAValue) and (text := b.immediate(argument)) is not None:
            b.set(register, text)
        else:
            b.emit(f"mov {register}, {_chosen(b, argument, held)}")
    b.branch(f"jl #{name}", name, f"{name}, line {b.line(op)}")
    b.start(b.label("back"), quiet=0 if callee.quiet else b.quiet)
    for result in op.results:
        b.result(result, lambda d: b.emit(f"mov {d}, {RESULT}"))


def _registers(op: func.CallOp) -> list[str]:
    """A register for each argument."""
    pointers, numbers, found = iter(POINTERS), iter(NUMBERS), []
    for value in op.operands:
        pointer = isinstance(value.type, MemRefType)
        if not pointer and not is_number(value.type):
            raise refused(op, f"{op.callee.string_value()} takes a {value.type}; arguments are memrefs and integers")
        register = next(pointers if pointer else numbers, None)
        if register is None:
            raise refused(
                op, f"{op.callee.string_value()} takes more than {len(POINTERS)} memrefs or {len(NUMBERS)} numbers"
            )
        found.append(register)
    if len(op.results) > 1 or not all(is_number(r.type) for r in op.results):
        raise refused(op, f"{op.callee.string_value()} returns more than an integer")
    return found


def _chosen(b: "CompiledBody", argument: Choice, held: list[SSAValue]) -> str:
    """A register with a choice's value; `held` is the condition that the choice before has left in r27."""
    if isinstance(argument, SSAValue):
        return b.read(argument)
    test, then, otherwise = argument
    texts = _chosen(b, then, held), _chosen(b, otherwise, held)
    register = b.temporary()
    if held != [test]:
        b.decide(b.read(test))
        held[:] = [test]
    b.pick(register, *texts)
    return register


def only(op: Operation) -> Block:
    """The one block of an operation's first region."""
    blocks = list(op.regions[0].blocks)
    if len(blocks) != 1:
        raise refused(op, f"its body has {len(blocks)} blocks; machine code is made of structured control flow (scf)")
    return blocks[0]
