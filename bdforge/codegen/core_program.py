"""Core programs: from the body of an `aie.core` and kernels to assembly, and to the ELF that the core runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Operation

from bdforge.codegen.abi import Callee
from bdforge.codegen.body import Body
from bdforge.codegen.errors import CodegenError, refused
from bdforge.codegen.kernel import Kernel, callees, joined
from bdforge.codegen.schedule import scheduled
from bdforge.codegen.symbols import core_symbols, reach
from bdforge.isa import load
from bdforge.isa.assembler import Assembled, assemble
from bdforge.isa.hazards import check_source
from bdforge.mlir.array_ops import BufferOp, CoreOp, LockOp
from bdforge.mlir.places import location


@dataclass(frozen=True, slots=True)
class CoreSource:
    """A core's program as assembly, the functions that it calls, and the bytes of stack that it and they take."""

    text: str
    calls: tuple[str, ...]
    stack_bytes: int


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """A linked program: its whole source, its ELF, and what it takes of program memory and stack."""

    source: str
    elf: bytes
    code_bytes: int
    stack_bytes: int


def core_program(core: CoreOp, kernels: Mapping[str, Kernel]) -> CoreProgram:
    """The program of a core with the kernels that it calls.

    CodegenError for what there is no machine code for, for code beyond program memory and for a stack that does not
    fit; AssemblyError for a kernel's text.
    """
    source = core_source(core, callees(kernels))
    text = source.text + joined(kernels[name].text for name in source.calls)
    assembled = _assembled(core, text)
    return CoreProgram(text, assembled.elf(), sum(len(data) for _, data in assembled.code), source.stack_bytes)


def _assembled(core: CoreOp, text: str) -> Assembled:
    device, column, row = core.tile.device_op, core.tile.column, core.tile.row
    name = f"core_{column}_{row}.s"
    generation = load(device.device.generation).generation
    assembled = assemble(text, generation, name, core_symbols(device, column, row))
    if hazards := check_source(assembled):
        raise refused(core, f"the program has {len(hazards)} hazards, the first: {hazards[0]}")
    return assembled


def core_source(core: CoreOp, functions: Mapping[str, Callee]) -> CoreSource:
    """The program of a core's body, which calls functions by the convention of `bdforge.codegen.abi`.

    CodegenError names the operation for which there is no machine code, or the stack that does not fit.
    """
    isa = load(core.tile.device_op.device.generation)
    body = Body(core, functions, _names(core))
    blocks = body.run()
    calls = tuple(dict.fromkeys(op.callee.string_value() for op in core.walk() if isinstance(op, func.CallOp)))
    stack = body.stack_bytes + max((functions[name].stack_bytes for name in calls), default=0)
    if stack > core.stack_size:
        raise CodegenError(
            f"{location(core)}: the program keeps {body.stack_bytes} bytes on the stack and what it calls up to "
            f"{stack - body.stack_bytes}, but stack_size is {core.stack_size}: make it {stack} or more"
        )
    lines = [
        f"// Core ({core.tile.column}, {core.tile.row}), made of {location(core)}; comments begin with the line there.",
        f"FRAME = {body.stack_bytes}",
        "        .globl  main",
    ]
    for block in blocks:
        lines += [f"{block.label}:"] if block.label else []
        lines += scheduled(isa, block)
    return CoreSource("\n".join(lines) + "\n", calls, stack)


def _names(core: CoreOp) -> Callable[[Operation], str | None]:
    """Buffers and locks as the core's program writes them: names where the text has some, else numbers."""
    column, row = core.tile.column, core.tile.row
    numbers, own = reach(core.tile.device_op, column, row), f"core_{column}_{row}_"

    def name(op: Operation) -> str | None:
        assert isinstance(op, BufferOp | LockOp)
        if op not in numbers:
            return None
        return op.symbol.removeprefix(own) if op.symbol else str(numbers[op])

    return name
