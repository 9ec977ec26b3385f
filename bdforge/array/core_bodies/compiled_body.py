"""The body of an `aie.core` as blocks of instructions."""

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from bdforge.array.core_bodies import compiled_control as control
from bdforge.array.core_bodies.arithmetic import arithmetic, bits_of
from bdforge.array.core_bodies.value_locations import (
    Constants,
    Homes,
    check_type,
    constant_of,
    fixed_view,
    is_same,
    refused,
)
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import EndOp
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import DECLARATIONS, BufferOp, UseLockOp
from bdforge.core.codegen.abi import KEPT, TEMPORARY, Callee, quiet_cycles
from bdforge.core.codegen.basic_block import AssemblyOp, BasicBlock, load_constant
from bdforge.core.isa.meaning.semantics import signed
from bdforge.devices.limits import CORE_OWN_MEMORY

_POINTER = "p6"  # of loads and stores
_STACK_STEP = 64  # of the stack pointer


class CompiledBody:
    """Walks a core's operations in order and writes what each does; `callees` are the functions that there are.

    `names` tells how a buffer's address, or a lock's number, is written; `kept` are registers of constants that loops
    read, which are loaded at the start.
    """

    def __init__(
        self, core: CoreOp, callees: Mapping[str, Callee], names: Callable[[Operation], str | None],
        kept: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.callees, self.names = callees, names
        self.constants = Constants(kept)
        self.quiet = quiet_cycles(core.tile.device_op.device.generation)
        self.blocks: list[BasicBlock] = []
        self._core, self._text = core, ""
        self._labels = 0
        self._wanted: set[str] = set()
        self._turn = 0
        self._dead = False
        calls = [op.callee.string_value() for op in core.walk() if isinstance(op, func.CallOp)]
        quiet = all(callees[name].quiet for name in calls if name in callees)
        self._homes = Homes(control.only(core), KEPT if quiet else ())  # a compiler's function may use them all

    def run(self) -> list[BasicBlock]:
        """All blocks, the first at the program's start."""
        self.start("main")
        place = len(self.blocks[0].ops)
        self.block(control.only(self._core))
        setup = BasicBlock("")
        setup.add(f"movxm sp, #{CORE_OWN_MEMORY + self.stack_bytes:#x}", "the stack, from the bottom of the memory")
        for text, register in self.constants.kept.items():
            setup.add(load_constant(register, text), "kept, for it is read in loops")
        self.blocks[0].ops[place:place] = setup.ops
        return self.blocks

    @property
    def stack_bytes(self) -> int:
        """What the program itself keeps on the stack."""
        return -(-4 * self._homes.slots // _STACK_STEP) * _STACK_STEP

    def best_kept(self) -> dict[str, str]:
        """Once it has run: registers that hold no value, for the constants that loops read most."""
        return self.constants.best(self._homes.free)

    # Blocks.

    def label(self, hint: str) -> str:
        """A new name."""
        self._labels += 1
        return f"{hint}_{self._labels}"

    def start(self, label: str, quiet: int = 0) -> None:
        """What follows has a name."""
        self._dead = self._dead and label not in self._wanted
        if not self._dead:
            self.blocks.append(BasicBlock(label, quiet=quiet))

    def end(self) -> None:
        """Nothing gets beyond here."""
        self._dead = True

    def branch(self, text: str, target: str, comment: str = "") -> None:
        """End the block with a branch."""
        if not self._dead:
            self._wanted.add(target)
            self.blocks[-1].branch = AssemblyOp(text, comment or self._text)
            self.blocks.append(BasicBlock(""))

    def block(self, block: Block) -> None:
        """All operations of a block."""
        for op in block.ops:
            self._text = f"{self.line(op)}: {op.name}"
            self._operation(op)

    def line(self, op: Operation) -> int:
        """Line of the text."""
        return location(op).line

    # Values.

    def emit(self, text: str, memory: str | None = None) -> None:
        """Append an instruction."""
        if not self._dead:
            self.blocks[-1].add(text, self._text, memory)

    def temporary(self) -> str:
        """A register for the next few instructions."""
        self._turn += 1
        return TEMPORARY[self._turn % len(TEMPORARY)]

    def number(self, value: int) -> str:
        """A register that holds a number."""
        return self._constant(str(signed(value, 32)))

    def _constant(self, text: str) -> str:
        home = self.constants.read(text)
        if home is not None:
            return home
        register = self.temporary()
        self.emit(load_constant(register, text))
        return register

    def set(self, register: str, text: str) -> None:
        """Let a register hold a constant or an address."""
        home = self.constants.read(text)
        self.emit(load_constant(register, text) if home is None else f"mov {register}, {home}")

    def immediate(self, value: SSAValue) -> str | None:
        """A constant or an address as the assembler reads it; None for what is computed."""
        if isinstance(owner := value.owner, BufferOp):
            if (name := self.names(owner)) is None:
                raise refused(owner, f"a core that does not reach buffer {owner.symbol or ''} uses it")
            return name
        if (view := fixed_view(value)) is not None:
            return f"{self.immediate(view.source)} + {constant_of(view.byte_shift)}"
        number = constant_of(value)
        return None if number is None else str(signed(number, 32))

    def read(self, value: SSAValue) -> str:
        """A register that holds a value."""
        text = self.immediate(value)
        if text is not None:
            return self._constant(text)
        home = self._homes[value]
        if isinstance(home, str):
            return home
        register = self.temporary()
        self.emit(f"lda {register}, [sp, #{self._slot(home)}]", _memory(home))
        return register

    def decide(self, condition: str) -> None:
        """Let r27 hold the condition of what is picked next."""
        self.emit(f"mov r27, {condition}")

    def pick(self, d: str, then: str, otherwise: str) -> None:
        """d = r27 ? then : otherwise."""
        self.emit(f"sel.nez {d}, {then}, {otherwise}, r27")

    def _slot(self, number: int) -> str:
        return f"{4 * number} - FRAME"

    def result(self, value: SSAValue, compute: Callable[[str], None]) -> None:
        """Let `compute` write a register, which becomes the value."""
        check_type(value, value.owner if isinstance(value.owner, Operation) else self._core)
        home = self._homes[value]
        register = home if isinstance(home, str) else self.temporary()
        compute(register)
        if not isinstance(home, str):
            self.emit(f"st {register}, [sp, #{self._slot(home)}]", _memory(home))

    def copy(self, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        """Copies that happen at once: what is overwritten before it is read goes over the stack."""
        moved = [(t, s) for t, s in zip(targets, sources, strict=True) if self._home(s) != self._home(t)]
        kept: dict[SSAValue, int] = {}
        for i, (_, source) in enumerate(moved):
            if self._home(source) is not None and self._home(source) in [self._home(t) for t, _ in moved[:i]]:
                kept[source] = self._homes.word()
                self.emit(f"st {self.read(source)}, [sp, #{self._slot(kept[source])}]", _memory(kept[source]))
        for target, source in moved:
            self.result(target, lambda d, s=source: self._move(d, s, kept.get(s)))

    def _home(self, value: SSAValue) -> str | int | None:
        return None if self.immediate(value) is not None else self._homes[value]

    def _move(self, register: str, source: SSAValue, kept: int | None) -> None:
        text = self.immediate(source)
        if kept is not None:
            self.emit(f"lda {register}, [sp, #{self._slot(kept)}]", _memory(kept))
        elif text is not None:
            self.set(register, text)
        else:
            self.emit(f"mov {register}, {self.read(source)}")

    # Operations.

    def _operation(self, op: Operation) -> None:
        if isinstance(op, DECLARATIONS):
            return  # the array has it before the core runs
        if op.results and all(constant_of(result) is not None for result in op.results):
            return  # it stands where it is used
        match op:
            case scf.ConditionOp():
                pass  # its loop reads it
            case EndOp():
                self.start(self.label("end"), self.quiet)
                self.emit("done")
                self.end()
            case UseLockOp():
                self._lock(op)
            case memref.LoadOp():
                self._load(op)
            case memref.StoreOp():
                self._store(op)
            case memref.ViewOp():
                self._view(op)
            case scf.ForOp():
                control.for_loop(self, op)
            case scf.WhileOp():
                control.while_loop(self, op)
            case scf.IfOp():
                control.condition(self, op)
            case scf.IndexSwitchOp():
                control.index_switch(self, op)
            case scf.YieldOp():
                control.yielded(self, op)
            case func.CallOp():
                control.call(self, op)
            case _:
                if not is_same(op) and not arithmetic(self, op):
                    raise refused(op, f"no machine code is made of {op.name} here; give the core an elf_file")

    def _lock(self, op: UseLockOp) -> None:
        if op.is_acquire and not op.enabled:
            return
        number = self.names(op.lock)
        if number is None:
            raise refused(op, f"the core does not reach lock {op.lock.symbol or ''}")
        negative = op.action.name == "ACQUIRE_GREATER_EQUAL"
        if op.amount is None:
            register = self.number(-op.value if negative else op.value)
        elif negative:
            register = self.temporary()
            self.emit(f"sub {register}, {self.number(0)}, {self.read(op.amount)}")
        else:
            register = self.read(op.amount)
        self.emit(f"{'acq' if op.is_acquire else 'rel'} #{number}, {register}")

    def _load(self, op: memref.LoadOp) -> None:
        suffix = _suffix(op, op.res.type)
        place = self._place(op, op.memref, op.indices)
        self.result(op.res, lambda d: self.emit(f"lda{suffix} {d}, {place}"))

    def _store(self, op: memref.StoreOp) -> None:
        suffix = _suffix(op, op.value.type)
        register = self.read(op.value)
        place = self._place(op, op.memref, op.indices)
        self.emit(f"st{suffix} {register}, {place}")

    def _view(self, op: memref.ViewOp) -> None:
        if op.sizes:
            raise refused(op, "a view whose size only the running program knows has no machine code here")
        if self.immediate(op.result) is None:
            source, shift = self.read(op.source), self.read(op.byte_shift)
            self.result(op.result, lambda d: self.emit(f"add {d}, {source}, {shift}"))

    def _place(self, op: Operation, memory: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Point at an element."""
        kind = memory.type
        assert isinstance(kind, MemRefType)
        size = _bytes(op, kind.element_type)
        offset, steps = 0, size
        moving: list[tuple[SSAValue, int]] = []
        for index, length in reversed(list(zip(indices, kind.get_shape(), strict=True))):
            number = constant_of(index)
            if number is None:
                moving.append((index, steps))
            else:
                offset += number * steps
            steps *= length
        base = self.immediate(memory)
        if base is not None and not moving:
            self.emit(f"movxm {_POINTER}, #{base} + {offset}")
            return f"[{_POINTER}, #0]"
        register = self.temporary()
        start = self.read(memory)
        self.emit(f"add {register}, {start}, {self.number(offset)}")
        for index, step in moving:
            product = self.temporary()
            self.emit(f"mul {product}, {self.read(index)}, {self.number(step)}")
            self.emit(f"add {register}, {register}, {product}")
        self.emit(f"mov {_POINTER}, {register}")
        return f"[{_POINTER}, #0]"


def _memory(slot: int) -> str:
    return f"stack {slot}"


def _bytes(op: Operation, kind: object) -> int:
    bits = bits_of(kind) if isinstance(kind, IntegerType) else 0
    if isinstance(kind, IndexType) or bits not in (8, 16, 32):
        raise refused(
            op, f"elements of {kind} are neither loaded nor stored by machine code here; there are i8, i16 and i32"
        )
    return bits // 8


def _suffix(op: Operation, kind: object) -> str:
    return {1: ".s8", 2: ".s16", 4: ""}[_bytes(op, kind)]
