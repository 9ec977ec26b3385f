"""Programs of cores, linked with the kernels that they call: sources, and the ELFs that cores run."""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.codegen.core_source import CoreSource, core_source
from bdforge.codegen.errors import refused
from bdforge.codegen.kernel import Kernel, callees, joined
from bdforge.codegen.symbols import core_symbols
from bdforge.isa.assembler import assemble
from bdforge.isa.hazards import check_source
from bdforge.mlir.array_ops import CoreOp


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """A linked program: its whole source, its ELF, and what it takes of program memory and stack."""

    source: str
    elf: bytes
    code_bytes: int
    stack_bytes: int


def core_program(core: CoreOp, kernels: Mapping[str, Kernel]) -> CoreProgram:
    """The program of a core's body with the kernels that it calls.

    CodegenError for what there is no machine code for and for a stack that does not fit; AssemblyError for a kernel's
    text, and for code beyond program memory.
    """
    device, column, row = core.tile.device_op, core.tile.column, core.tile.row
    return linked(core, core_source(core, callees(kernels)), kernels, core_symbols(device, column, row))


def linked(core: CoreOp, source: CoreSource, kernels: Mapping[str, Kernel], symbols: Mapping[str, int]) -> CoreProgram:
    """A core's source with its kernels' as one program, which the checker has passed; `symbols` are the core's."""
    text = source.text + joined(kernels[name].text for name in source.calls)
    generation = core.tile.device_op.device.generation.name.lower()
    assembled = assemble(text, generation, f"core_{core.tile.column}_{core.tile.row}.s", symbols)
    mine = (hazard for hazard in check_source(assembled) if hazard.address in assembled.sources)
    if hazards := list(mine):  # compilers read old values on purpose
        raise refused(core, f"its machine code has {len(hazards)} hazards, the first: {hazards[0]}")
    return CoreProgram(text, assembled.elf(), sum(len(data) for _, data in assembled.code), source.stack_bytes)
