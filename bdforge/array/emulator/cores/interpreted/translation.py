"""From an `aie.core` body to Python source: generators that yield wherever the core would stall.

Each operation has one emitter (`emit.EMITTERS`, which the modules of operations fill); this keeps the names, the
control flow between blocks, the functions that are called, and from which operation each line came.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Protocol

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from bdforge.array.emulator.cores.core import EmulatedCore
from bdforge.array.emulator.cores.interpreted.emit import EMITTERS, literal, refuse
from bdforge.array.emulator.cores.interpreted.number_formats import range_of, size_bits
from bdforge.array.emulator.cores.kernel_call import KernelCall
from bdforge.array.emulator.errors import CoreError, EmulationError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.mlir import location
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.memory_ops import DECLARATIONS, BufferOp, LockOp, UseLockOp
from bdforge.array.mlir.operation import constant_of
from bdforge.devices.limits import CORE

PREPAID_TRIPS = 4096
"""Loops with fewer, known trips pay for all of them at once: less to count inside."""

Program = Callable[[EmulatedCore], Generator[None, None, None]]


class DesignView(Protocol):
    """What a core program reaches outside of itself."""

    @property
    def functions(self) -> Mapping[str, func.FuncOp]: ...

    def lock(self, op: LockOp) -> EmulatedLock: ...

    def view(self, op: BufferOp) -> np.ndarray: ...

    def kernel(self, name: str, core: EmulatedCore, op: Operation) -> KernelCall: ...

    def check_acquire(self, use: UseLockOp) -> None: ...


class _PlacedError(CoreError):
    """A fault whose message starts with its place."""


def _placed(error: CoreError, op: Operation) -> CoreError:
    """The error with the place of `op`, unless its message starts with one."""
    if isinstance(error, _PlacedError):
        return error
    text, place = str(error), str(location(op))
    return _PlacedError(text if text.startswith(place) else f"{place}: {op.name}: {text}")


def _check_vectors(op: Operation) -> None:
    for type_ in op.result_types:
        if isinstance(type_, VectorType) and not 0 < size_bits(type_) <= 8 * CORE.memory_bytes:
            raise CoreError(f"{type_} is empty or larger than a core's memory of {CORE.memory_bytes} bytes")


_FREE = frozenset({
    "arith.constant", "arith.index_cast", "func.call", "aie.use_lock", "aie.event", "aie.end",
    "aie.get_stream", "aie.put_stream", "aie.get_cascade", "aie.put_cascade",
    *(kind.name for kind in DECLARATIONS),
})  # fmt: skip


def operations_that_cost(block: Block) -> int:
    """Operations of a block that take an issue slot of their own; locks, calls and ports have theirs."""
    return sum(op.name not in _FREE for op in block.ops)


@lru_cache(maxsize=256)
def _code(source: str, file: str) -> CodeType:
    """Compiled source: a design is run more often than it changes."""
    return compile(source, file, "exec")


class Translation:
    """Source text of one core program and the objects that it refers to."""

    def __init__(self, core: EmulatedCore, op: CoreOp, outside: DesignView):
        self.core, self.op, self.outside = core, op, outside
        self.file = f"<{core.name}>"
        self.lines: list[str] = []
        self.origins: list[Operation] = []
        self.depth = 0
        self.current: Operation = op
        self.names: dict[SSAValue, str] = {}
        self.constants: dict[SSAValue, int] = {}
        self.objects: dict[str, Any] = {"np": np}
        self._shared: dict[Any, str] = {}
        self._blocks: dict[Block, tuple[str, int]] = {}
        self._functions: dict[func.FuncOp, str] = {}
        self._open: list[func.FuncOp] = []
        self._sources: list[tuple[list[str], list[Operation]]] = []
        self.stack_bytes = 0  # what the program keeps on its stack

    def compile(self) -> Program:
        """The program as a generator function of its core; CoreError for what cannot be run."""
        try:
            self._function("program", self.op.body, [])
            self.lines = [line for lines, _ in self._sources for line in lines]
            self.origins = [op for _, origins in self._sources for op in origins]
            exec(_code("\n".join(self.lines), self.file), self.objects)
        except (SyntaxError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            place = location(self.origin(line) if line else self.current)
            raise CoreError(
                f"{place}: the program of {self.core.name} is nested too deeply to run: more than 20 loops or 95 "
                "blocks inside one another; move the inner ones to a func.func"
            ) from None
        return self.objects["program"]

    def origin(self, line: int) -> Operation:
        """The operation that a line (from 1) of the source came from."""
        return self.origins[min(line, len(self.origins)) - 1]

    def _function(self, name: str, region: Region, arguments: Sequence[SSAValue]) -> None:
        saved = self.lines, self.origins, self.depth, self.current
        self.lines, self.origins, self.depth = [], [], 0
        self.line(f"def {name}({', '.join(['core', *map(self.value, arguments)])}):")
        self.indented(lambda: (self.region(region), self.line("return"), self.line("yield")))  # makes it a generator
        self._sources.append((self.lines, self.origins))
        self.lines, self.origins, self.depth, self.current = saved

    def region(self, region: Region) -> None:
        """Straight code, or a loop over the blocks where there are several."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            self.block(blocks[0])
            return
        state = f"b{len(self._blocks)}"
        self._blocks |= {block: (state, number) for number, block in enumerate(blocks)}
        self.line(f"{state} = 0")
        self.line("while True:")
        self.indented(lambda: self._dispatch(state, blocks, 0))

    def _dispatch(self, state: str, blocks: list[Block], first: int) -> None:
        if len(blocks) == 1:
            self.line("pass")
            self.block(blocks[0])
            return
        half = len(blocks) // 2  # Python has no jump: n blocks take log2 n comparisons
        self.line(f"if {state} < {first + half}:")
        self.indented(lambda: self._dispatch(state, blocks[:half], first))
        self.line("else:")
        self.indented(lambda: self._dispatch(state, blocks[half:], first + half))

    def jump(self, op: Operation, target: Block, arguments: Sequence[SSAValue]) -> None:
        self.copy(target.args, arguments)
        here = op.parent_block()
        state, number = self._blocks[target]
        if here is None or number <= self._blocks[here][1]:  # only ways back can go on for ever
            self.spend_fuel(op)
        self.line(f"{state} = {number}")
        self.line("continue")

    def block(self, block: Block) -> None:
        if self.core.observed and (work := operations_that_cost(block)):
            self.line(f"core.work += {work}")
        for op in block.ops:
            self.operation(op)

    def body(self, block: Block) -> None:
        """An indented block, never empty."""
        self.indented(lambda: (self.line("pass"), self.block(block)))

    def loop(self, op: Operation, variable: str, bounds: Sequence[str], body: Callable[[], Any]) -> None:
        """A counted loop from and to (exclusive) `bounds` with a step; `body` emits what it repeats."""
        trips = self._trips(bounds)
        header = f"for {variable} in range({', '.join(bounds)}):"
        if trips is None or trips > PREPAID_TRIPS:
            self.line(header)
            self.indented(lambda: (self.spend_fuel(op), body()))
            return
        self.spend_fuel(op, trips)
        self.line(header)
        self.indented(lambda: (self.line("pass"), body()))

    def choice(self, condition: str, then: Region, otherwise: Region) -> None:
        """One region or the other, which may be empty."""
        self.line(f"if {condition}:")
        self.body(then.block)
        if otherwise.blocks:
            self.line("else:")
            self.body(otherwise.block)

    def _trips(self, bounds: Sequence[str]) -> int | None:
        low, high, step = map(literal, bounds)
        if low is None or high is None or step is None or step < 1:
            return None
        return max(0, -((low - high) // step))

    def operation(self, op: Operation) -> None:
        """One operation; CoreError for those without a meaning here."""
        emit = EMITTERS.get(op.name)
        if emit is None:
            raise _PlacedError(f"{location(op)}: {op.name} is not supported in a core program")
        outer, self.current = self.current, op
        try:
            _check_vectors(op)
            emit(self, op)
        except CoreError as error:
            raise _placed(error, op) from None
        except (EmulationError, RecursionError):
            raise
        except Exception as error:  # a combination of types or attributes that no emitter foresaw
            raise CoreError(f"{location(op)}: {op.name} cannot be run as it stands here: {error}") from error
        self.current = outer

    def indented(self, write: Callable[[], Any]) -> None:
        self.depth += 1
        write()
        self.depth -= 1

    def line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)
        self.origins.append(self.current)

    def value(self, value: SSAValue) -> str:
        """The expression that holds `value`."""
        if value not in self.names:
            owner = value.owner
            if isinstance(owner, BufferOp):
                self.names[value] = self.shared(owner, lambda: self.outside.view(owner))
            elif isinstance(owner, LockOp):
                self.names[value] = f"({self.core.number_of(self.outside.lock(owner), owner)})"
            elif isinstance(owner, Operation) and not isinstance(owner.parent_op(), DeviceOp):
                self.names[value] = f"v{len(self.names)}"
            elif isinstance(owner, arith.ConstantOp):
                self.operation(owner)
            elif isinstance(owner, Operation):
                where = location(owner)
                raise _PlacedError(f"{where}: {owner.name} outside of the core is not supported; move it inside")
            else:
                self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def values(self, values: Sequence[SSAValue]) -> list[str]:
        return [self.value(value) for value in values]

    def mixed(self, static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[str]:
        """Expressions of a list whose unknown entries are values."""
        left = iter(dynamic)
        return [self.value(next(left)) if entry == DYNAMIC_INDEX else str(entry) for entry in static]

    def constant(self, value: SSAValue) -> int | None:
        """The integer that `value` always is, if that is known."""
        self.value(value)
        return self.constants.get(value)

    def define(self, value: SSAValue, expression: str) -> str:
        self.names[value] = expression
        return expression

    def assign(self, op: Operation, expression: str) -> None:
        self.line(f"{self.value(op.results[0])} = {expression}")

    def wrapped(self, value: SSAValue, expression: str) -> None:
        """Store an integer that may have left its type's range. Comparing first is faster than always masking."""
        low, high = range_of(value.type)
        name = self.value(value)
        self.line(f"{name} = {expression}")
        self.line(f"if not {low} <= {name} <= {high}: {name} = (({name} - {low}) & {high - low}) + {low}")

    def copy(self, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        """Assign all at once, so that exchanged values survive."""
        if len(targets):
            self.line(f"{', '.join(self.values(targets))} = {', '.join(self.values(sources))}")

    def require(self, condition: str, message: str, op: Operation) -> None:
        """Stop with a CoreError unless `condition` holds; `message` is the body of an f-string."""
        self.line(f"if not ({condition}): {self.helper(refuse)}(f{message!r}, {self.where(op)})")

    def simple(self, expression: str) -> str:
        """`expression`, computed first if it is more than a name or a literal."""
        if expression.isidentifier() or literal(expression) is not None:
            return expression
        name = f"i{len(self.lines)}"
        self.line(f"{name} = {expression}")
        return name

    def object(self, prefix: str, thing: Any) -> str:
        """A global name for `thing`."""
        name = f"{prefix}{len(self.objects)}"
        self.objects[name] = thing
        return name

    def shared(self, key: Any, make: Callable[[], Any]) -> str:
        """The global name of the one thing that belongs to `key`."""
        if key not in self._shared:
            self._shared[key] = self.object("G", make())
        return self._shared[key]

    def helper(self, function: Callable) -> str:
        """A global name for a function that the program calls."""
        return self.shared(function, lambda: function)

    def where(self, op: Operation) -> str:
        """Name of a function that says where `op` stands, as a suffix of messages."""
        suffix = f" ({location(op)})"
        return self.shared(suffix, lambda: lambda: suffix)

    def spend_fuel(self, op: Operation, trips: int = 1) -> None:
        """Bound the number of loop iterations and calls."""
        self.line(f"core.fuel -= {trips}")
        self.line(f"if core.fuel < 0: core.exhausted({self.where(op)})")

    def use_stack(self, size_bytes: int) -> None:
        """Count what the program keeps on its stack; CoreError when that is too much."""
        self.stack_bytes += size_bytes
        if self.stack_bytes > self.op.stack_size:
            raise CoreError(
                f"{self.stack_bytes} bytes of memref.alloca do not fit the stack of {self.op.stack_size}; set the "
                "stack_size of the aie.core, or use aie.buffer"
            )

    def pass_locks(self, values: Sequence[SSAValue]) -> None:
        """The program may release these locks, where they are some."""
        self.core.released += [lock for v in values if (lock := self._lock_of(v)) is not None]

    def lock(self, value: SSAValue) -> str:
        """The expression that holds the lock of an aie.use_lock."""
        lock = self._lock_of(value)
        return f"core.lock({self.value(value)})" if lock is None else self.shared(id(lock), lambda: lock)

    def _lock_of(self, value: SSAValue) -> EmulatedLock | None:
        """The lock of an aie.lock, or by its number as the core counts them; None for a function's argument."""
        if isinstance(value.owner, LockOp):
            return self.outside.lock(value.owner)
        if (number := constant_of(value)) is None:
            return None
        return self.core.lock(number)

    def function_named(self, op: func.CallOp) -> func.FuncOp | None:
        """The function that is called, if the design gives its body."""
        found = self.outside.functions.get(op.callee.string_value())
        return found if found is not None and found.body.blocks else None

    def call_name(self, op: func.CallOp, function: func.FuncOp) -> str:
        """The Python name of a called function, translated on first use; CoreError for a recursion."""
        if function in self._open:
            way = " -> ".join(f"@{f.sym_name.data}" for f in [*self._open[self._open.index(function) :], function])
            raise _PlacedError(f"{location(op)}: recursion is not supported: {way}")
        if function not in self._functions:
            self._functions[function] = f"function{len(self._functions)}"
            self._open.append(function)
            self._function(self._functions[function], function.body, function.body.blocks[0].args)
            self._open.pop()
        return self._functions[function]
