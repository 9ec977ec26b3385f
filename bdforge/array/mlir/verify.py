"""The verifier: structure, values in scope, and the rules of each operation."""

from collections.abc import Callable, Iterable
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, NoTerminator, SymbolTable

from bdforge.array.mlir import verify_dma, verify_memref, verify_sequence, verify_switch  # noqa: F401 - they make rules
from bdforge.array.mlir.dialect_forms import fold
from bdforge.array.mlir.dominance import Dominance
from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.array.mlir.fields import unreadable
from bdforge.array.mlir.locations import error_at, location, value_name
from bdforge.array.mlir.newer_ops import attribute_problem
from bdforge.array.mlir.operation import AieOperation
from bdforge.array.mlir.parser import parse_text
from bdforge.array.mlir.upstream import FunctionOp
from bdforge.array.mlir.verify_array import RULES, Faults


def read_module(context: Context, source: SourceText) -> ModuleOp:
    """Parse and verify; MlirError for whatever is wrong with the text."""
    module = parse_text(context, source)
    try:
        verify(module)
    except MlirError:
        raise
    except RecursionError:
        deepest, depth = _deepest(module)
        raise error_at(deepest, f"{deepest.name}: nested too deeply to check: {depth} operations around it") from None
    return module


def verify(module: ModuleOp) -> None:
    """Check a parsed module and fold its constants; MlirError at the first operation that breaks a rule."""
    _Scope().check(module)  # before `fold` takes constants out that are defined too late
    fold(module)
    tables: dict[Operation | None, dict[str, FuncOp]] = {}
    operations = list(module.walk())  # once for both passes
    for op in operations:
        if isinstance(op, CallOp | FunctionOp):
            _verify_function(op, tables)
        else:
            _verify_operation(op)
    for op in operations:
        for rule in _rules_of(type(op)):
            _apply(rule, op)


def _deepest(module: Operation) -> tuple[Operation, int]:
    """The operation with the most operations around it, and how many those are."""
    depth, level = 0, [module]
    while inner := [op for outer in level for region in outer.regions for block in region.blocks for op in block.ops]:
        depth, level = depth + 1, inner
    return level[0], depth


@cache
def _rules_of(kind: type[Operation]) -> list[Callable[..., Faults]]:
    return [rule for base in reversed(kind.__mro__) for rule in RULES.get(base, ())]


def _apply(rule: Callable[..., Faults], op: Operation) -> None:
    try:
        fault = next(iter(rule(op)), None)
    except Exception as error:  # a rule may meet a later operation that is itself malformed
        raise error_at(op, f"{op.name}: {error}") from error
    if fault is not None:
        raise error_at(fault[0], f"{fault[0].name}: {fault[1]}")


def _verify_operation(op: Operation) -> None:
    if (problem := attribute_problem(op)) is not None:
        raise error_at(op, f"{op.name}: {problem}")
    for successor in op.successors:
        if successor.parent is not op.parent_region():
            raise error_at(op, f"{op.name} leads to a block of another region")
    for region in op.regions:
        for block in region.blocks:
            _verify_end(op, region, block)
    if op.has_trait(SymbolTable):
        _verify_names(op)
    try:
        op.verify_()
    except Exception as error:  # xDSL's verifiers raise whatever their accessors do on malformed operations
        raise error_at(op, f"{op.name}: {(str(error) or 'malformed').splitlines()[0]}") from error
    if (problem := unreadable(op)) is not None:
        raise error_at(op, f"{op.name}: {problem}")


def _verify_names(table: Operation) -> None:
    """Every name stands for one operation."""
    known: dict[str, Operation] = {}
    for op in (op for region in table.regions for block in region.blocks for op in block.ops):
        name = op.properties.get("sym_name")
        if isinstance(name, StringAttr) and (first := known.setdefault(name.data, op)) is not op:
            problem = (
                f"@{name.data} is the name of the {first.name} in line {location(first).line} already; give another"
            )
            raise error_at(op, f"{op.name}: {problem}")


def _verify_end(op: Operation, region: Region, block: Block) -> None:
    if _is_single(region) and op.has_trait(NoTerminator):
        return
    last = block.last_op
    if last is None or not last.has_trait(IsTerminator):
        wanted = "aie.end" if isinstance(op, AieOperation) else "a terminator"
        raise error_at(last or op, f"{op.name}: a block of its region must end with {wanted}" + _found(last))


def _is_single(region: Region) -> bool:
    """Whether there is one block; xDSL would count all of them, for each of them."""
    return region.blocks.first is region.blocks.last


def _found(last: Operation | None) -> str:
    return ", but it is empty" if last is None else f", not {last.name}"


def _verify_function(op: CallOp | FunctionOp, tables: dict[Operation | None, dict[str, FuncOp]]) -> None:
    """A call, or a function as a value, must name a function of its device and fit its type.

    `tables` are those of devices seen before; xDSL would search for every call.
    """
    callee = op.properties.get("callee", op.properties.get("value"))
    if not isinstance(callee, SymbolRefAttr):
        raise error_at(op, f"{op.name} needs the name of a function, as in {op.name} @kernel(...)")
    name, holder = callee.root_reference.data, op.parent_op()
    while holder is not None and not holder.has_trait(SymbolTable):
        holder = holder.parent_op()
    if holder not in tables:
        ops = () if holder is None else (op for block in holder.regions[0].blocks for op in block.ops)
        tables[holder] = {op.sym_name.data: op for op in ops if isinstance(op, FuncOp)}
    if name not in tables[holder]:
        known = ", ".join(f"@{known}" for known in tables[holder]) or "none"
        raise error_at(op, f"{op.name}: no func.func is called @{name} here; known: {known}")
    called = FunctionType.from_lists(list(op.operand_types), list(op.result_types))
    given, used = (op.result.type, "taken") if isinstance(op, FunctionOp) else (called, "called")
    if (wanted := tables[holder][name].function_type) != given:
        raise error_at(op, f"{op.name}: @{name} is of type {wanted}, but is {used} as {given}")


class _Scope:
    """Which values each operation may use: those defined before it, in its region or around it."""

    def __init__(self) -> None:
        self._visible: dict[SSAValue, Block] = {}
        self._passed: set[SSAValue] = set()
        self._dominance: dict[Region, Dominance] = {}

    def check(self, op: Operation) -> None:
        """Check an operation and all in it."""
        for operand in op.operands:
            self._check_operand(op, operand)
        for region in op.regions:
            self._check_region(region)

    def _check_region(self, region: Region) -> None:
        own: list[SSAValue] = []
        if not _is_single(region):
            for block in region.blocks:
                self._show(block, [*block.args, *(result for op in block.ops for result in op.results)], own)
        for block in region.blocks:
            self._show(block, block.args, own)
            self._passed.update(block.args)
            for op in block.ops:
                self.check(op)
                self._show(block, op.results, own)
                self._passed.update(op.results)
        for value in own:
            self._visible.pop(value, None)

    def _show(self, block: Block, values: Iterable[SSAValue], own: list[SSAValue]) -> None:
        for value in values:
            self._visible[value] = block
            own.append(value)

    def _check_operand(self, op: Operation, operand: SSAValue) -> None:
        name = f"%{known}" if (known := value_name(operand)) else "a value"
        block = self._visible.get(operand)
        if block is None:
            raise error_at(op, f"{op.name} uses {name}, which is not defined before it in a scope that it sees")
        region = block.parent
        if region is None or _is_single(region):
            return
        user = _block_in(region, op)
        if user is block:
            before = operand in self._passed
        else:
            before = user is None or self._dominance_of(region).dominates(block, user)
        if not before:
            raise error_at(op, f"{op.name} uses {name}, which is not defined on every way to it")

    def _dominance_of(self, region: Region) -> Dominance:
        if region not in self._dominance:
            self._dominance[region] = Dominance(region)
        return self._dominance[region]


def _block_in(region: Region, op: Operation) -> Block | None:
    current: Operation | None = op
    while current is not None and current.parent_region() is not region:
        current = current.parent_op()
    return None if current is None else current.parent_block()
