"""Loops, branches, choices and calls: the scf, cf and func dialects, and poison."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import affine, cf, func, scf
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from bdforge.array.emulator.cores.interpreted.emit import emits, is_vector, tuple_of, unsupported
from bdforge.array.emulator.cores.interpreted.number_formats import dtype_of_vector, is_float, is_integer
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import elementwise_ops as elementwise
from bdforge.array.mlir.memory_ops import LockOp

CALL_COST = 8
"""Loop iterations that a call of a function of the design counts as: it takes about as long."""


@emits("scf.for")
def for_loop(t: Translation, op: scf.ForOp) -> None:
    step = t.constant(op.step)
    if step is None or step < 1:
        t.require(f"{t.value(op.step)} > 0", f"the step of a loop is {{{t.value(op.step)}}}; it must be positive", op)
    carrying_loop(t, op, op.iter_args, t.values((op.lb, op.ub, op.step)))


def carrying_loop(t: Translation, op: scf.ForOp | affine.ForOp, first: Sequence[SSAValue], bounds: list[str]) -> None:
    """A loop over numbers, and values from turn to turn."""
    block = op.body.block
    variable, *carried = block.args
    t.copy(carried, first)
    t.loop(op, t.value(variable), bounds, lambda: t.block(block))
    t.copy(op.results, carried)


@emits("scf.if")
def condition(t: Translation, op: scf.IfOp) -> None:
    t.choice(t.value(op.cond), op.true_region, op.false_region)


@emits("scf.while")
def while_loop(t: Translation, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    t.copy(before.args, op.operands)
    t.line("while True:")
    t.indented(lambda: (t.spend_fuel(op), t.block(before), t.block(after)))
    t.copy(op.results, after.args)


@emits("scf.condition")
def while_condition(t: Translation, op: scf.ConditionOp) -> None:
    loop = op.parent_op()
    assert isinstance(loop, scf.WhileOp)
    t.copy(loop.after_region.block.args, op.operands[1:])
    t.line(f"if not {t.value(op.operands[0])}: break")


@emits("scf.index_switch")
def index_switch(t: Translation, op: scf.IndexSwitchOp) -> None:
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        t.line(f"{'if' if region is op.case_regions[0] else 'elif'} {t.value(op.arg)} == {case}:")
        t.body(region.block)
    t.line("else:" if op.case_regions else "if True:")
    t.body(op.default_region.block)


@emits("scf.yield", "affine.yield")
def yielded(t: Translation, op: scf.YieldOp | affine.YieldOp) -> None:
    parent = op.parent_op()
    match parent:
        case scf.ForOp() | affine.ForOp():
            t.copy(parent.body.block.args[1:], op.operands)
        case scf.WhileOp():
            t.copy(parent.before_region.block.args, op.operands)
        case scf.IfOp() | scf.IndexSwitchOp() | affine.IfOp():
            t.copy(parent.results, op.operands)
        case _:
            raise unsupported(op, "is not supported here")


@emits("cf.br")
def branch(t: Translation, op: cf.BranchOp) -> None:
    t.jump(op, op.successor, op.arguments)


@emits("cf.cond_br")
def conditional_branch(t: Translation, op: cf.ConditionalBranchOp) -> None:
    t.line(f"if {t.value(op.cond)}:")
    t.indented(lambda: t.jump(op, op.then_block, op.then_arguments))
    t.jump(op, op.else_block, op.else_arguments)


@emits("cf.assert")
def assertion(t: Translation, op: cf.AssertOp) -> None:
    message = op.msg.data.replace("{", "{{").replace("}", "}}")
    t.require(t.value(op.arg), f"the program's assertion failed: {message}", op)


@emits("func.call")
def call(t: Translation, op: func.CallOp) -> None:
    function = t.function_named(op)
    if function is None:
        kernel = t.outside.kernel(op.callee.string_value(), t.core, op)
        if t.core.waits_in_kernels:
            t.pass_locks([value for value in op.arguments if isinstance(value.owner, LockOp)])
        _call_kernel(t, op, t.object("K", kernel))
        return
    t.pass_locks([value for value in op.arguments if isinstance(value.owner, LockOp)])
    t.spend_fuel(op, CALL_COST)
    expression = f"yield from {t.call_name(op, function)}({', '.join(['core', *t.values(op.arguments)])})"
    t.line(f"{tuple_of(t.values(op.results))} = {expression}" if op.results else expression)


def _call_kernel(t: Translation, op: func.CallOp, kernel: str) -> None:
    t.line(f"r = {kernel}({', '.join(t.values(op.arguments))})")
    t.line(f"if r is not None: r = yield from {kernel}.finish(r)")
    if not op.results:
        return
    if len(op.results) > 1 or not (is_integer(op.results[0].type) or is_float(op.results[0].type)):
        raise unsupported(op, "a kernel returns nothing or one number")
    result = op.results[0]
    number = f"{t.helper(_returned)}(r, {is_float(result.type)}, {op.callee.string_value()!r}, {t.where(op)})"
    if is_float(result.type):
        t.assign(op, number)
    else:
        t.wrapped(result, number)


def _returned(value, is_float: bool, name: str, where) -> float:
    kinds, what = ((int, float, np.integer, np.floating), "a number") if is_float else ((int, np.integer), "an integer")
    if not isinstance(value, kinds):
        raise CoreError(f"{name} returned {value!r}, not {what}{where()}")
    return float(value) if is_float else int(value)


@emits("func.constant")
def function(t: Translation, op: Operation) -> None:
    """Nothing: no operation here calls a function by its value."""


@emits("func.return")
def returned(t: Translation, op: func.ReturnOp) -> None:
    t.line(f"return {tuple_of(t.values(op.arguments))}" if op.arguments else "return")


@emits("arith.select")
def select(t: Translation, op: elementwise.SelectOp) -> None:
    condition, yes, no = t.values(op.operands)
    t.assign(op, f"np.where({condition}, {yes}, {no})" if is_vector(op.cond) else f"{yes} if {condition} else {no}")


@emits("ub.poison")
def poison(t: Translation, op: Operation) -> None:
    """A value that nobody may depend on: 0 here."""
    type_ = op.results[0].type
    if isinstance(type_, VectorType):
        zeros = np.zeros(type_.get_shape(), dtype_of_vector(type_.element_type))
        t.define(op.results[0], t.object("C", zeros))
    elif is_integer(type_) or is_float(type_):
        t.define(op.results[0], "(0.0)" if is_float(type_) else "(0)")
    else:
        raise unsupported(op, f"values of type {type_} are not supported")
