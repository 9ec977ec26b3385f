"""Functions for core programs out of files: assembly, and objects of compilers.

What relocations of AIE objects mean is known from no source here. So a function of an object is taken when nothing in
its section is relocated: leaf functions without data of their own, as most kernels are. Others are refused by name.
"""

import io
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from bdforge.common.files import read_bytes
from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import CORE_MACHINE, ELF_GENERATIONS, is_elf
from bdforge.core.isa.stack_sizes import frame_bytes

_RELOCATABLE = "ET_REL"
_EXECUTABLE = 4  # of a section's flags
_LINE = 16  # bytes


def linkable(path: Path, generation: str) -> Mapping[str, AssemblyKernel]:
    """Functions of an object, or of assembly (its global symbols), by name.

    CodegenError for another kind of file, another generation, or an object none of whose functions can be linked;
    AssemblyError for wrong assembly.
    """
    data = read_bytes(path, CodegenError)
    if not is_elf(data):
        return _of_assembly(data, path.name, generation)
    try:
        return _of_object(data, path.name, generation)
    except (ELFError, ValueError, KeyError, IndexError) as error:
        raise CodegenError(f"{path}: no readable object file (ELF): {error}") from None


def _of_assembly(data: bytes, name: str, generation: str) -> dict[str, AssemblyKernel]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise CodegenError(f"{name} is neither an ELF nor text") from None
    exported = assemble(text, generation, name).exported
    if not exported:
        raise CodegenError(f"{name} exports no function; say .globl NAME")
    return {function: AssemblyKernel(Callee(function), text, name) for function in sorted(exported)}


def _of_object(data: bytes, name: str, generation: str) -> dict[str, AssemblyKernel]:
    elf = ELFFile(io.BytesIO(data))
    if elf.header["e_type"] != _RELOCATABLE or int.from_bytes(data[18:20], "little") != CORE_MACHINE:
        raise CodegenError(f"{name} is no object of an AIE compiler; a linked program is a core's elf_file")
    made_for = ELF_GENERATIONS.get(elf.header["e_flags"] & 3)
    if made_for not in (None, generation):
        raise CodegenError(f"{name} is for {made_for}, not for {generation}")
    frames, moved = frame_bytes(data), _relocated(elf)
    found: dict[str, AssemblyKernel] = {}
    refused: list[str] = []
    for function, section, text in _functions(elf, name):
        if section in moved:
            refused.append(function)
        else:
            found[function] = AssemblyKernel(Callee(function, stack_bytes=frames.get(function, 0)), text, name)
    if not found:
        raise CodegenError(f"{name}: {_why(refused)}")
    return found


def _why(refused: list[str]) -> str:
    if not refused:
        return "it holds no functions"
    return (
        f"{', '.join(refused[:4])} cannot be linked here: what relocations of AIE objects mean is not known, and their "
        "code has some; give assembly, or a linked program as elf_file"
    )


def _relocated(elf: ELFFile) -> set[int]:
    """Sections in which something is relocated."""
    parts = (section for section in elf.iter_sections() if isinstance(section, RelocationSection))
    return {section["sh_info"] for section in parts if section.num_relocations()}


def _functions(elf: ELFFile, name: str) -> Iterator[tuple[str, int, str]]:
    """Global functions with their section and its text."""
    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    symbols = [symbol for table in tables for symbol in table.iter_symbols()]
    for number, section in enumerate(elf.iter_sections()):
        if not section["sh_flags"] & _EXECUTABLE:
            continue
        mine = (s for s in symbols if s["st_shndx"] == number and s["st_info"]["bind"] == "STB_GLOBAL")
        inside = {symbol.name: symbol["st_value"] for symbol in mine}
        text = _bytes_text(section.data(), inside, name)
        yield from ((function, number, text) for function in inside)


def _bytes_text(data: bytes, labels: Mapping[str, int], name: str) -> str:
    """A section as lines of bytes, with its functions' names."""
    lines = [f"// of {name}"]
    starts = sorted({0, len(data), *labels.values(), *range(0, len(data), _LINE)})
    for start, end in pairwise(starts):
        lines += [f"{label}:" for label, at in labels.items() if at == start]
        lines.append(f"        .byte {', '.join(map(hex, data[start:end]))}")
    return "\n".join(lines) + "\n"
