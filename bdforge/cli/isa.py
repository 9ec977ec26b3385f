"""`bdforge asm` and `bdforge disasm`: machine code of cores to and from text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.images import ImageError
from bdforge.array.images.programs import read_programs
from bdforge.cli.machine_code import Core, Define, defined, design_symbols
from bdforge.cli.options import Force, new_path, print_warnings, write
from bdforge.common.files import read_bytes, read_text
from bdforge.common.screen import say
from bdforge.core.isa import HazardError, load
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.disassembler import disassemble
from bdforge.core.isa.hazard_layout import HazardVerdict
from bdforge.core.isa.hazards import check_program, check_source
from bdforge.core.isa.program_memory import CoreProgram

app = typer.Typer()

_MOST_SHOWN, _LINE = 10, 360

Arch = Annotated[
    str | None, typer.Option("--arch", help="aie2p or aie2; without, what the file is (of assembly: aie2p).")
]


@app.command()
def asm(
    source: Annotated[Path, typer.Argument(help="Assembly of one core's program.")],
    out: Annotated[Path, new_path("New ELF to write, as `elf_file` takes it.", "--out", "-o")],
    arch: Arch = "aie2p",
    design: Annotated[
        Path | None, typer.Option(help="MLIR whose names the source may use: buffers and locks that --core reaches.")
    ] = None,
    core: Core = None,
    define: Define = None,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="Write the ELF in spite of hazards.")] = False,
    force: Force = False,
) -> None:
    """Assemble a core's program into an ELF, unless a core would run it wrongly; docs/isa.md has syntax and rules."""
    symbols = design_symbols(design, core) | defined(define or [])
    program = assemble(read_text(source), load(arch or "aie2p").generation, str(source), symbols)
    if not unchecked:
        found = {HazardVerdict.of(check_source(program)): [str(source)]}
        _judge(found, f"{source} has hazards (--unchecked writes the ELF nevertheless)")
    write(out, program.elf(), force)
    say(f"wrote {out}: {sum(len(code) for _, code in program.code)} bytes of code")


@app.command()
def disasm(
    file: Annotated[Path, typer.Argument(help="Core ELF, full ELF, PDI, CDO or xclbin.")],
    arch: Arch = None,
    raw: Annotated[bool, typer.Option("--raw", help="The file is plain code from address 0 on.")] = False,
    core: Core = None,
    latencies: Annotated[bool, typer.Option("--latencies", help="Below each bundle: when results are there.")] = False,
    check: Annotated[bool, typer.Option("--check", help="End with the hazards of the code, if there are any.")] = False,
) -> None:
    """Print core programs as assembly that assembles to the same bytes, each bundle with its address and bytes."""
    generation = load(arch).generation if arch else None
    programs = _chosen(read_programs(read_bytes(file), raw), core, file)
    for program in programs:
        for line in disassemble(program, generation, latencies):
            say(line)
    if check:
        found: dict[HazardVerdict, list[str]] = {}
        for program in programs:
            found.setdefault(HazardVerdict.of(check_program(program, generation)), []).append(program.name or str(file))
        _judge(found, f"{file} has hazards")


def _judge(found: Mapping[HazardVerdict, Sequence[str]], what: str) -> None:
    """Tell once of each program what is unusual in it; HazardError if one has errors."""
    for verdict, names in found.items():
        more = f" and {len(names) - 1} more like it" if len(names) > 1 else ""
        print_warnings([f"{names[0]}{more}: {verdict.unusual}"] if verdict.unusual else [])
    _refuse([error for verdict in found for error in verdict.errors], what)


def _refuse(errors: Sequence[str], what: str) -> None:
    if errors:
        shown = [f"  {error}"[:_LINE] for error in errors[:_MOST_SHOWN]]
        more = len(errors) - len(shown)
        raise HazardError("\n".join([f"{what}:", *shown, *([f"  and {more} more"] if more else [])]))


def _chosen(programs: list[CoreProgram], core: str | None, file: Path) -> list[CoreProgram]:
    """Programs of one core, or all."""
    if core is None:
        return programs
    wanted = f"tile ({', '.join(part.strip() for part in core.strip('()').split(','))})"
    found = [program for program in programs if program.name.endswith(wanted)]
    if not found:
        there = ", ".join(dict.fromkeys(program.name for program in programs if program.name)) or "one without a tile"
        raise ImageError(f"{file} has no program of {wanted}; there is {there}")
    return found
