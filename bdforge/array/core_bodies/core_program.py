"""Programs of cores: assembly made of the body of an `aie.core`, linked with the kernels that it calls, as ELFs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from bdforge.array.core_bodies.compiled_body import CompiledBody
from bdforge.array.core_bodies.refusal import refused
from bdforge.array.core_bodies.symbols import core_symbols, reach
from bdforge.array.mlir.allocate import AddressMap
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.core.codegen.abi import AssemblyKernel, Callee, callees, joined
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.schedule import scheduled
from bdforge.core.isa import load
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.hazards import check_source


@dataclass(frozen=True, slots=True)
class CoreSource:
    """A core's program as assembly, the functions that it calls, and the bytes of stack that it and they take."""

    text: str
    calls: tuple[str, ...]
    stack_bytes: int


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """A linked program: its whole source, its ELF, and what it takes of program memory and stack."""

    source: str
    elf: bytes
    code_bytes: int
    stack_bytes: int


def core_program(core: CoreOp, kernels: Mapping[str, AssemblyKernel]) -> LinkedProgram:
    """The program of a core's body with the kernels that it calls.

    CodegenError for what there is no machine code for and for a stack that does not fit; AssemblyError for a kernel's
    text, and for code beyond program memory.
    """
    device, column, row = core.tile.device_op, core.tile.column, core.tile.row
    return linked(core, core_source(core, callees(kernels)), kernels, core_symbols(device, column, row))


def linked(
    core: CoreOp, source: CoreSource, kernels: Mapping[str, AssemblyKernel], symbols: Mapping[str, int]
) -> LinkedProgram:
    """A core's source with its kernels' as one program, which the checker has passed; `symbols` are the core's."""
    text = source.text + joined(kernels[name].text for name in source.calls)
    generation = core.tile.device_op.device.generation.name.lower()
    assembled = assemble(text, generation, f"core_{core.tile.column}_{core.tile.row}.s", symbols)
    mine = (hazard for hazard in check_source(assembled) if hazard.address in assembled.sources)
    if hazards := list(mine):  # compilers read old values on purpose
        raise refused(core, f"its machine code has {len(hazards)} hazards, the first: {hazards[0]}")
    return LinkedProgram(text, assembled.elf(), sum(len(data) for _, data in assembled.code), source.stack_bytes)


def core_source(core: CoreOp, functions: Mapping[str, Callee], allocation: AddressMap | None = None) -> CoreSource:
    """The program of a core's body, which calls functions by the convention of `bdforge.core.codegen.abi`.

    `allocation` is its device's, where it is known already.

    CodegenError names the operation for which there is no machine code, or the stack that does not fit.
    """
    isa = load(core.tile.device_op.device.generation)
    names = _names(core, allocation)
    counted = CompiledBody(core, functions, names, {})
    counted.run()
    body = CompiledBody(core, functions, names, counted.best_kept())
    blocks = body.run()
    stack = body.stack_bytes + max((functions[name].stack_bytes for name in core.callees), default=0)
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
    return CoreSource("\n".join(lines) + "\n", core.callees, stack)


def _names(core: CoreOp, allocation: AddressMap | None) -> Callable[[Operation], str | None]:
    """Buffers and locks as the core's program writes them: names of their own where the text has some, else numbers."""
    device, column, row = core.tile.device_op, core.tile.column, core.tile.row
    numbers, own = reach(device, column, row, allocation), f"core_{column}_{row}_"
    known = core_symbols(device, column, row, allocation)

    def name(op: Operation) -> str | None:
        assert isinstance(op, BufferOp | LockOp)
        if op not in numbers:
            return None
        symbol = (op.symbol or "").removeprefix(own)
        return symbol if known.get(symbol) == numbers[op] else str(numbers[op])

    return name
