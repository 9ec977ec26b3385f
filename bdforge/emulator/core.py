"""Core programs: an `aie.core` body becomes a Python generator that yields wherever the core would stall.

Translation to Python source keeps one meaning per operation (`core_ops.py`) and runs about as fast as Python can.
Integers are kept as signed Python ints of their type's range, `index` as 64 bits, i1 as 0 or 1.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Block, Operation, Region, SSAValue

from bdforge.emulator.core_ops import EMITTERS
from bdforge.emulator.errors import BudgetExceeded, CoreError
from bdforge.emulator.lock import Lock
from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.mlir import location
from bdforge.mlir.array_ops import BufferOp, CoreOp, LockOp

LOOP_BUDGET = 1 << 28


class Surroundings(Protocol):
    """What a core program reaches outside of itself."""

    def lock(self, op: LockOp) -> Lock: ...

    def view(self, op: BufferOp) -> np.ndarray: ...

    def kernel(self, name: str, core: "Core", op: Operation) -> Callable[..., None]: ...


class Core(Agent):
    """A core tile's processor."""

    def __init__(self, name: str, op: CoreOp, outside: Surroundings, scheduler: Scheduler):
        super().__init__(name, scheduler)
        self.fuel = LOOP_BUDGET
        self.released: list[Lock] = []
        self._program = Translation(self, op, outside).compile()

    def run(self) -> Generator[None, None, None]:
        return self._program(self)

    def exhausted(self, where: Callable[[], str]) -> None:
        """A loop that went round too often without an end."""
        raise BudgetExceeded(f"{self.name}: no end after {LOOP_BUDGET} loop iterations{where()}")


class Translation:
    """Source text of one core program and the objects that it refers to."""

    def __init__(self, core: Core, op: CoreOp, outside: Surroundings):
        self.core, self.op, self.outside = core, op, outside
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[SSAValue, str] = {}
        self.objects: dict[str, Any] = {"np": np}
        self.blocks: dict[Block, int] = {}

    def compile(self) -> Callable[[Core], Generator[None, None, None]]:
        """The program as a generator function of its core."""
        self.region(self.op.body)
        source = "def program(core):\n" + "\n".join(self.lines) + "\n    return\n    yield\n"
        exec(compile(source, f"<{self.core.name}>", "exec"), self.objects)
        return self.objects["program"]

    def region(self, region: Region) -> None:
        """A core's body: straight code, or a loop over its blocks where there are several."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            self.block(blocks[0])
            return
        self.blocks = {block: i for i, block in enumerate(blocks)}
        self.line("block = 0")
        self.line("while True:")
        self.indented(lambda: [self._case(block) for block in blocks])

    def _case(self, block: Block) -> None:
        self.line(f"if block == {self.blocks[block]}:")
        self.indented(lambda: (self.spend_fuel(block.ops.first), self.block(block)))

    def block(self, block: Block) -> None:
        """Every operation of a block."""
        for op in block.ops:
            self.operation(op)

    def body(self, block: Block, before: Callable[[], None] = lambda: None) -> None:
        """An indented block, never empty."""
        self.indented(lambda: (self.line("pass"), before(), self.block(block)))

    def operation(self, op: Operation) -> None:
        """One operation; CoreError for those without a meaning here."""
        emit = EMITTERS.get(op.name)
        if emit is None:
            raise CoreError(f"{location(op)}: {op.name} is not supported in a core program")
        emit(self, op)

    def indented(self, write: Callable[[], Any]) -> None:
        """What `write` emits, one level deeper."""
        self.depth += 1
        write()
        self.depth -= 1

    def line(self, text: str) -> None:
        """Add a line of source."""
        self.lines.append("    " * self.depth + text)

    def value(self, value: SSAValue) -> str:
        """The expression that holds `value`."""
        if value not in self.names:
            owner = value.owner
            if isinstance(owner, BufferOp):
                return self.define(value, self.object("B", self.outside.view(owner)))
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def define(self, value: SSAValue, expression: str) -> str:
        """Let `expression` stand for `value`."""
        self.names[value] = expression
        return expression

    def assign(self, op: Operation, expression: str) -> None:
        """Store the only result of `op`."""
        self.line(f"{self.value(op.results[0])} = {expression}")

    def object(self, prefix: str, thing: Any) -> str:
        """A global name for `thing`."""
        name = f"{prefix}{len(self.objects)}"
        self.objects[name] = thing
        return name

    def where(self, op: Operation) -> str:
        """Name of a function that says where `op` stands, as a suffix of messages."""
        suffix = f" ({location(op)})"
        return self.object("S", lambda: suffix)

    def spend_fuel(self, op: Operation | None) -> None:
        """Bound the number of loop iterations."""
        self.line("core.fuel -= 1")
        self.line(f"if core.fuel < 0: core.exhausted({self.where(op or self.op)})")
