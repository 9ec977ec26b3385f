"""What each operation of a core program means: one emitter of Python source per operation name."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from bdforge.emulator.errors import CoreError
from bdforge.mlir import location
from bdforge.mlir.array_ops import UseLockOp
from bdforge.mlir.words import LockAction

if TYPE_CHECKING:
    from bdforge.emulator.core import Translation

INDEX_BITS = 64
Emitter = Callable[["Translation", Operation], None]
EMITTERS: dict[str, Emitter] = {}


def emits(*names: str) -> Callable[[Callable], Callable]:
    """Register an emitter for operations of these names."""

    def register(function: Callable) -> Callable:
        EMITTERS.update(dict.fromkeys(names, function))
        return function

    return register


def width(type_: Attribute) -> int:
    """Bits of an integer or index type."""
    if isinstance(type_, IntegerType):
        return type_.width.data
    if isinstance(type_, IndexType):
        return INDEX_BITS
    raise CoreError(f"an integer is expected, not {type_}")


def wrapped(expression: str, type_: Attribute) -> str:
    """`expression` reduced to the type's range, two's complement; i1 is 0 or 1."""
    bits = width(type_)
    if bits == 1:
        return f"({expression}) & 1"
    half = 1 << (bits - 1)
    return f"((({expression}) + {half}) & {2 * half - 1}) - {half}"


def unsigned(expression: str, type_: Attribute) -> str:
    """The bits of `expression` as an unsigned number."""
    return f"({expression} & {(1 << width(type_)) - 1})"


@emits("arith.constant")
def constant(t: "Translation", op: arith.ConstantOp) -> None:
    match op.value:
        case IntegerAttr() as number:
            literal = str(number.value.data & 1 if width(op.result.type) == 1 else number.value.data)
        case FloatAttr() as number:
            literal = repr(number.value.data)
        case other:
            raise CoreError(f"{location(op)}: constants of type {other} are not supported")
    t.define(op.result, f"({literal})")


def _binary(name: str, expression: str) -> None:
    @emits(f"arith.{name}")
    def emit(t: "Translation", op: Operation) -> None:
        a, b = (t.value(operand) for operand in op.operands[:2])
        t.assign(op, wrapped(expression.format(a=a, b=b), op.results[0].type))


def _unsigned_binary(name: str, expression: str) -> None:
    @emits(f"arith.{name}")
    def emit(t: "Translation", op: Operation) -> None:
        type_ = op.results[0].type
        a, b = (unsigned(t.value(operand), type_) for operand in op.operands[:2])
        t.assign(op, wrapped(expression.format(a=a, b=b), type_))


for _name, _expression in {
    "addi": "{a} + {b}", "subi": "{a} - {b}", "muli": "{a} * {b}",
    "andi": "{a} & {b}", "ori": "{a} | {b}", "xori": "{a} ^ {b}",
    "shli": "{a} << {b}", "shrsi": "{a} >> {b}",
    "maxsi": "max({a}, {b})", "minsi": "min({a}, {b})",
}.items():  # fmt: skip
    _binary(_name, _expression)

for _name, _expression in {"shrui": "{a} >> {b}", "maxui": "max({a}, {b})", "minui": "min({a}, {b})"}.items():
    _unsigned_binary(_name, _expression)


def truncating_divide(a: int, b: int, where: Callable[[], str]) -> tuple[int, int]:
    """Quotient towards zero and remainder with the dividend's sign; CoreError for a division by zero."""
    if b == 0:
        raise CoreError(f"division by zero{where()}")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - b * quotient


@emits("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
def divide(t: "Translation", op: Operation) -> None:
    type_ = op.results[0].type
    a, b = (t.value(operand) for operand in op.operands)
    if op.name.endswith("ui"):
        a, b = unsigned(a, type_), unsigned(b, type_)
    t.objects["divide"] = truncating_divide
    part = 0 if "div" in op.name else 1
    t.assign(op, wrapped(f"divide({a}, {b}, {t.where(op)})[{part}]", type_))


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6


@emits("arith.cmpi")
def compare(t: "Translation", op: arith.CmpiOp) -> None:
    code = op.predicate.value.data
    a, b = t.value(op.lhs), t.value(op.rhs)
    if code >= _FIRST_UNSIGNED:
        a, b = unsigned(a, op.lhs.type), unsigned(b, op.rhs.type)
    t.assign(op, f"int({a} {_COMPARISONS[code]} {b})")


@emits("arith.select")
def select(t: "Translation", op: arith.SelectOp) -> None:
    t.assign(op, f"{t.value(op.lhs)} if {t.value(op.cond)} else {t.value(op.rhs)}")


@emits("arith.index_cast", "arith.extsi", "arith.trunci", "arith.index_castui", "arith.extui")
def cast(t: "Translation", op: Operation) -> None:
    source, target = op.operands[0], op.results[0].type
    value = t.value(source)
    if op.name.endswith("ui"):
        value = unsigned(value, source.type)
    elif width(source.type) == 1:
        value = f"-{value}"  # a signed i1 is 0 or -1
    t.assign(op, wrapped(value, target))


@emits("scf.for")
def for_loop(t: "Translation", op: scf.ForOp) -> None:
    block = op.body.block
    variable, *carried = block.args
    _copy(t, carried, op.iter_args)
    t.line(f"for {t.value(variable)} in range({t.value(op.lb)}, {t.value(op.ub)}, {t.value(op.step)}):")
    t.body(block, lambda: t.spend_fuel(op))
    _copy(t, op.results, carried)


@emits("scf.if")
def condition(t: "Translation", op: scf.IfOp) -> None:
    t.line(f"if {t.value(op.cond)}:")
    t.body(op.true_region.block)
    if op.false_region.blocks:
        t.line("else:")
        t.body(op.false_region.block)


@emits("scf.while")
def while_loop(t: "Translation", op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    _copy(t, before.args, op.operands)
    t.line("while True:")
    t.indented(lambda: (t.spend_fuel(op), t.block(before), t.block(after)))
    _copy(t, op.results, after.args)


@emits("scf.condition")
def while_condition(t: "Translation", op: scf.ConditionOp) -> None:
    loop = op.parent_op()
    assert isinstance(loop, scf.WhileOp)
    _copy(t, loop.after_region.block.args, op.operands[1:])
    t.line(f"if not {t.value(op.operands[0])}: break")


@emits("scf.yield")
def yielded(t: "Translation", op: scf.YieldOp) -> None:
    parent = op.parent_op()
    match parent:
        case scf.ForOp():
            _copy(t, parent.body.block.args[1:], op.operands)
        case scf.WhileOp():
            _copy(t, parent.before_region.block.args, op.operands)
        case scf.IfOp():
            _copy(t, parent.results, op.operands)
        case _:
            raise CoreError(f"{location(op)}: scf.yield is not supported here")


@emits("cf.br")
def branch(t: "Translation", op: cf.BranchOp) -> None:
    _jump(t, op.successor, op.arguments)


@emits("cf.cond_br")
def conditional_branch(t: "Translation", op: cf.ConditionalBranchOp) -> None:
    t.line(f"if {t.value(op.cond)}:")
    t.indented(lambda: _jump(t, op.then_block, op.then_arguments))
    t.line("else:")
    t.indented(lambda: _jump(t, op.else_block, op.else_arguments))


def _jump(t: "Translation", target, arguments) -> None:
    _copy(t, target.args, arguments)
    t.line(f"block = {t.blocks[target]}")
    t.line("continue")


def _copy(t: "Translation", targets, sources) -> None:
    """Assign all at once, so that exchanged values survive."""
    if len(targets):
        left = ", ".join(t.value(v) for v in targets)
        t.line(f"{left} = {', '.join(t.value(v) for v in sources)}")


def _index(t: "Translation", op: Operation, array: SSAValue, indices) -> str:
    """A checked index expression: Python's negative indices would hide an overrun."""
    t.objects["at"] = checked_index
    place = ", ".join(t.value(i) for i in indices)
    return f"at({t.value(array)}, ({place}{',' if place else ''}), {t.where(op)})"


def checked_index(array, index: tuple[int, ...], where: Callable[[], str]) -> tuple[int, ...]:
    """`index` when it lies inside `array`; CoreError otherwise."""
    if all(0 <= i < size for i, size in zip(index, array.shape, strict=True)):
        return index
    raise CoreError(f"index {list(index)} is outside a memref of shape {list(array.shape)}{where()}")


@emits("memref.load")
def load(t: "Translation", op: memref.LoadOp) -> None:
    t.assign(op, f"{t.value(op.memref)}[{_index(t, op, op.memref, op.indices)}].item()")


@emits("memref.store")
def store(t: "Translation", op: memref.StoreOp) -> None:
    t.line(f"{t.value(op.memref)}[{_index(t, op, op.memref, op.indices)}] = {t.value(op.value)}")


@emits("func.call")
def call(t: "Translation", op: func.CallOp) -> None:
    if op.results:
        raise CoreError(f"{location(op)}: a kernel cannot return values")
    name = op.callee.string_value()
    kernel = t.object("K", t.outside.kernel(name, t.core, op))
    t.line(f"{kernel}({', '.join(t.value(a) for a in op.arguments)})")


@emits("aie.use_lock")
def use_lock(t: "Translation", op: UseLockOp) -> None:
    lock = t.outside.lock(op.lock)
    name, where = t.object("L", lock), t.where(op)
    if op.is_acquire:
        if op.enabled:
            equal = op.action is LockAction.ACQUIRE
            t.line(f"if not {name}.take(core, {op.value}, {equal}, {where}): yield")
        return
    t.core.released.append(lock)
    t.line(f"{name}.add({op.value}, {where})")


@emits("aie.end")
def end(t: "Translation", op: Operation) -> None:
    t.line("return")


@emits("aie.event")
def event(t: "Translation", op: Operation) -> None:
    """A trace marker: no effect."""
