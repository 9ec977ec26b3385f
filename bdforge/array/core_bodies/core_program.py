"""Programs of cores: assembly made of the body of an `aie.core`, linked with the kernels that it calls, as ELFs.

Cores know buffers by address and locks by number: those of their own tile and of their neighbours'.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from bdforge.array.core_bodies.compiled_body import CompiledBody
from bdforge.array.core_bodies.value_locations import refused
from bdforge.array.mlir.allocate import AddressMap, allocate
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.locations import location, take_places
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.core.codegen.abi import AssemblyKernel, Callee, callees, joined
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.schedule import scheduled
from bdforge.core.isa import load
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.hazards import check_source
from bdforge.devices.limits import (
    CORE,
    CORE_LOCK_WINDOWS,
    CORE_OWN_MEMORY,
    PROGRAM_LINE_BYTES,
    PROGRAM_MEMORY_BYTES,
    TileKind,
)

_OWN_WINDOW = len(CORE_LOCK_WINDOWS) - 1


def core_symbols(device: DeviceOp, column: int, row: int, allocation: AddressMap | None = None) -> dict[str, int]:
    """Named buffers and locks that the core at (column, row) reaches, in its own and its neighbours' tiles.

    Names of its own tile that begin with `core_COLUMN_ROW_` are known without that too, so that cores with the same
    layout can share a program. `allocation` is the device's, where it is known already.
    """
    found = {op.symbol: number for op, number in reach(device, column, row, allocation).items() if op.symbol}
    own = f"core_{column}_{row}_"
    return found | {name.removeprefix(own): value for name, value in found.items() if name.startswith(own)}


def reach(
    device: DeviceOp, column: int, row: int, allocation: AddressMap | None = None
) -> dict[BufferOp | LockOp, int]:
    """Addresses of buffers and numbers of locks as the core at (column, row) knows them, of all that it reaches."""
    allocation = allocation or allocate(device)
    found: dict[BufferOp | LockOp, int] = {}
    for window, (east, north) in enumerate(CORE_LOCK_WINDOWS):
        there = allocation.by_tile.get((column + east, row + north))
        if there and device.device.kind(column + east, row + north) is TileKind.CORE:
            found |= {op: at + _first(op, window) for op, at in there.items()}
    return found


def _first(op: BufferOp | LockOp, window: int) -> int:
    if isinstance(op, LockOp):
        return CORE.locks * window
    return CORE_OWN_MEMORY - CORE.memory_bytes * (_OWN_WINDOW - window)


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
    symbols = core_symbols(core.tile.device_op, *core.tile.place)
    return linked(core, core_source(core, callees(kernels)), kernels, symbols)


def linked(
    core: CoreOp, source: CoreSource, kernels: Mapping[str, AssemblyKernel], symbols: Mapping[str, int],
    at_end: bool = False,
) -> LinkedProgram:  # fmt: skip
    """A core's source with its kernels' as one program, which the checker has passed; `symbols` are the core's.

    With `at_end` it ends where program memory does; cores start at address 0, where then a jump to it stands.
    """
    text = source.text + joined(kernels[name].text for name in source.calls)
    generation, file = core.tile.device_op.device.generation.name.lower(), f"core_{core.tile.column}_{core.tile.row}.s"
    assembled = assemble(text, generation, file, symbols)
    if at_end:
        text = _at_end(text, sum(len(data) for _, data in assembled.code))
        assembled = assemble(text, generation, file, symbols)
    mine = (hazard for hazard in check_source(assembled) if hazard.address in assembled.sources)
    if hazards := list(mine):  # compilers read old values on purpose
        raise refused(core, f"its machine code has {len(hazards)} hazards, the first: {hazards[0]}")
    return LinkedProgram(text, assembled.elf(), sum(len(data) for _, data in assembled.code), source.stack_bytes)


def _at_end(text: str, size: int) -> str:
    start = (PROGRAM_MEMORY_BYTES - size) // PROGRAM_LINE_BYTES * PROGRAM_LINE_BYTES
    return "\n".join(["        j #main", *["        nop"] * DELAY_SLOTS, f"        .org {start}", text])


def core_source(core: CoreOp, functions: Mapping[str, Callee], allocation: AddressMap | None = None) -> CoreSource:
    """The program of a core's body, which calls functions by the convention of `bdforge.core.codegen.abi`.

    `allocation` is its device's, where it is known already.

    CodegenError names the operation for which there is no machine code, or the stack that does not fit.
    """
    isa = load(core.tile.device_op.device.generation)
    names = _names(core, allocation)
    counted = CompiledBody(core, functions, names, {})
    counted.run()  # to learn which constants loops read most: these stay in registers
    body = CompiledBody(core, functions, names, counted.best_kept())
    blocks = body.run()
    stack = body.stack_bytes + max((functions[name].stack_bytes for name in core.callees), default=0)
    if stack > core.stack_size:
        raise CodegenError(
            f"{location(core)}: the program keeps {body.stack_bytes} bytes on the stack and what it calls up to "
            f"{stack - body.stack_bytes}, but stack_size is {core.stack_size}: make it {stack} or more"
        )
    lines = [
        f"// Core {core.tile.place}, made of {location(core)}; comments begin with the line there.",
        f"FRAME = {body.stack_bytes}",
        "        .globl  main",
    ]
    for block in blocks:
        lines += [f"{block.label}:"] if block.label else []
        lines += scheduled(isa, block)
    return CoreSource("\n".join(lines) + "\n", core.callees, stack)


def _names(core: CoreOp, allocation: AddressMap | None) -> Callable[[Operation], str | None]:
    """Buffers and locks as the core's program writes them: names of their own where the text has some, else numbers."""
    device, (column, row) = core.tile.device_op, core.tile.place
    numbers, own = reach(device, column, row, allocation), f"core_{column}_{row}_"
    known = core_symbols(device, column, row, allocation)

    def name(op: Operation) -> str | None:
        assert isinstance(op, BufferOp | LockOp)
        if op not in numbers:
            return None
        symbol = (op.symbol or "").removeprefix(own)
        return symbol if known.get(symbol) == numbers[op] else str(numbers[op])

    return name


Tile = tuple[int, int]
"""Column and row."""

_COMMENT = re.compile(r"//.*")


@dataclass(frozen=True, slots=True)
class DevicePrograms:
    """Machine code by core, and why there is none for the others; cores with an `elf_file` are in neither."""

    programs: Mapping[Tile, LinkedProgram]
    without: Mapping[Tile, str]


def device_programs(device: DeviceOp, kernel: Callable[[str], AssemblyKernel], at_end: bool = False) -> DevicePrograms:
    """Programs of cores that have a body; `kernel` gives functions that they call, or raises CodegenError.

    With `at_end` they end where program memory does.

    CodegenError and AssemblyError for what is wrong with a program whose kernels are there.
    """
    programs: dict[Tile, LinkedProgram] = {}
    without: dict[Tile, str] = {}
    known: dict[tuple, LinkedProgram] = {}
    allocation = allocate(device)
    for core in _bodies(device):
        tile = core.tile.place
        try:
            kernels = {name: kernel(name) for name in core.callees}
        except CodegenError as error:
            without[tile] = str(error)
            continue
        source = core_source(core, callees(kernels), allocation)
        symbols = core_symbols(device, *tile, allocation)
        key = _identity(source, symbols)
        if key not in known:
            known[key] = linked(core, source, kernels, symbols, at_end)
        programs[tile] = known[key]
    return DevicePrograms(programs, without)


def naming_programs(device: DeviceOp, programs: Mapping[Tile, LinkedProgram]) -> DeviceOp:
    """A copy of a device whose cores run the ELFs called as `elf_name` says, instead of their bodies."""
    copy = device.clone()
    take_places(copy, device)
    for core in _bodies(copy):
        tile = core.tile.place
        if tile in programs:
            core.properties["elf_file"] = StringAttr(elf_name(tile))
    return copy


def elf_name(tile: Tile) -> str:
    """What stands for a core's program where files do; no file of a user's is called so."""
    return f"(made here)/core_{tile[0]}_{tile[1]}.elf"


def _bodies(device: DeviceOp) -> Iterator[CoreOp]:
    return (op for op in device.walk() if isinstance(op, CoreOp) and op.elf_file is None)


def _identity(source: CoreSource, symbols: Mapping[str, int]) -> tuple:
    """What two programs have in common when they are the same: text but for comments, and the names' values in it."""
    text = _COMMENT.sub("", source.text)
    words = set(re.findall(r"[\w.$]+", text))
    return text, source.calls, tuple(sorted((name, value) for name, value in symbols.items() if name in words))
