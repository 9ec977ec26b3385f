"""`bdforge asm` and `bdforge disasm`, and options for cores that run machine code: which programs, breaks, counts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bdforge.array.core_bodies.core_program import core_symbols
from bdforge.array.emulator.cores.machine_code_core import Breakpoints
from bdforge.array.emulator.module_choice import choose
from bdforge.array.explain.program_cores import cores_text
from bdforge.array.images.programs import distinct, read_programs
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.cli.design_texts import module_of
from bdforge.cli.options import Force, new_path, print_warnings, write
from bdforge.common.binary import ImageError
from bdforge.common.files import named, read_bytes, read_text
from bdforge.common.messages import clip, listed
from bdforge.common.screen import new_table, put, say, screen
from bdforge.core.exact.profile import SLOTS, CoreProfile
from bdforge.core.isa import HazardError, load
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.assembly_text import evaluate, is_symbol
from bdforge.core.isa.disassembler import bundle_text, disassemble
from bdforge.core.isa.elf import CoreProgram
from bdforge.core.isa.hazard_layout import HazardVerdict
from bdforge.core.isa.hazards import check_program, check_source
from bdforge.core.isa.program_listing import listing_of

if TYPE_CHECKING:
    from bdforge.core.exact.translated import Executor


Break = Annotated[
    list[str] | None,
    typer.Option("--break", help="COLUMN,ROW:PLACE: show a core before the bundle at an address or name; repeatable."),
]
Core = Annotated[str | None, typer.Option("--core", help="Only this core: COLUMN,ROW.")]
Define = Annotated[
    list[str] | None,
    typer.Option(
        "--define", help="NAME=NUMBER: a constant of the assembly, or an option of assembled kernels; repeatable."
    ),
]
Elf = Annotated[
    list[str] | None,
    typer.Option("--elf", help="COLUMN,ROW=FILE: an ELF that a core runs instead; FILE alone: all cores; repeatable."),
]
Profile = Annotated[bool, typer.Option("--profile", help="Where the cycles of machine code went (emulated).")]

MOST_LOOKS = 32
_MOST_DIGITS = 64
_WHOLE = re.compile(r"(r|p|m|dn|dj|dc|s|x|e|q|dm|cm)\d+|lc|ls|le|lr|sp|cr[A-Z]\w*|srCarry")


def defined(texts: Sequence[str]) -> dict[str, int]:
    """Constants from NAME=NUMBER."""
    found = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not (is_symbol(name) and equals):
            raise typer.BadParameter(f"{clip(repr(text))} is not NAME=NUMBER, such as TILE_M=64")
        found[name] = evaluate(number, found)
    return found


def design_symbols(design: Path | None, core: str | None) -> dict[str, int]:
    """Names of a design that a core reaches; none without a design."""
    if design is None and core is None:
        return {}
    if design is None or core is None:
        raise typer.BadParameter("--design and --core COLUMN,ROW go together")
    device, _ = choose(module_of(design), None, None, str(design))
    return core_symbols(device, *_place(core))


def elfs_of(texts: Sequence[str], design: str, file: str) -> dict[tuple[int, int], Path]:
    """ELFs by core; one without a core is for all that have none of their own."""
    alone = [Path(text) for text in texts if "=" not in text]
    named = [text.split("=", 1) for text in texts if "=" in text]
    cores = [op.tile for op in parse(design, file).walk() if isinstance(op, CoreOp)] if alone else []
    everywhere = {(tile.column, tile.row): path for path in alone for tile in cores}
    return everywhere | {_place(place): Path(path) for place, path in named}


def _place(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\(?(\d{1,3}), ?(\d{1,3})\)?", text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no core: write COLUMN,ROW, such as 0,2")
    return int(match[1]), int(match[2])


class _Looker:
    """Prints cores where they stop: all of what is not 0 at first, then what has changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], dict[str, int]] = {}
        self._left = MOST_LOOKS

    def __call__(self, place: tuple[int, int], core: "Executor", where: str) -> None:
        if self._left == 0:
            return
        self._left -= 1
        text = bundle_text(core.isa.generation, core.isa.decode(core.code, core.pc))
        say(f"core {place}{where}, cycle {core.cycle}: {text}")
        before = self._seen.get(place, {})
        now = {name: core.read(name) for name in sorted(core.isa.registers, key=_natural) if _WHOLE.fullmatch(name)}
        for name, value in now.items():
            if value != before.get(name, 0):
                say(f"    {name:6} {_digits(value)}")
        self._seen[place] = now
        if self._left == 0:
            say(f"    no more than {MOST_LOOKS} are shown")


def _natural(name: str) -> tuple[str, int]:
    digits = re.search(r"\d+$", name)
    return (name[: digits.start()], int(digits[0])) if digits else (name, 0)


def _digits(value: int) -> str:
    text = f"{value:#x}"
    return text if len(text) <= _MOST_DIGITS else f"{text[:8]} ... {text[-_MOST_DIGITS:]} (highest ... lowest)"


def looked_at(places: list[str]) -> Breakpoints | None:
    """Where cores are shown; ArgumentError for what names no place."""
    return Breakpoints.of(places, _Looker()) if places else None


def show_profiles(profiles: Sequence[CoreProfile]) -> None:
    if not profiles:
        say("no core ran machine code: there is nothing to profile")
    for profile in profiles:
        _show(profile)


def show_cores(profiles: Sequence[CoreProfile]) -> None:
    """What each core did in a run, cores that did the same in one row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for profile in profiles:
        alike.setdefault(_row(profile), []).append(profile.core)
    table = new_table("", "core", ">bundles", ">MACs", ">MACs/bundle", ">waits for banks", "blocked on")
    for row, cores in alike.items():
        table.add_row(cores[0] if len(cores) == 1 else f"{cores[0]} and {len(cores) - 1} more", *row)
    put(screen(), table)


def _row(profile: CoreProfile) -> tuple[str, ...]:
    each = f"{profile.macs / (profile.bundles or 1):.1f}"
    return str(profile.bundles), str(profile.macs), each, str(profile.conflicts), _waits(profile)


def _waits(profile: CoreProfile) -> str:
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(profile.waits.items())) or "nothing"


def _show(profile: CoreProfile) -> None:
    total = profile.bundles or 1
    table = new_table(
        f"{profile.core}, {profile.file}: {profile.bundles} bundles (emulated)",
        "function", ">bundles", ">share", *(f">{slot}" for slot in SLOTS), ">MACs/cycle",
    )  # fmt: skip
    for share in profile.shares:
        slots = (f"{share.slots[slot] / share.bundles:.0%}" for slot in SLOTS)
        macs = f"{share.macs / share.bundles:.1f}"
        table.add_row(share.name, str(share.bundles), f"{share.bundles / total:.1%}", *slots, macs)
    put(screen(), table)
    say(f"  waited {profile.conflicts} cycles for its own banks; blocked on {_waits(profile)}")


app = typer.Typer()

_LINE = 360  # characters of a hazard

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
    write(out, program.elf(), force, f": {sum(len(code) for _, code in program.code)} bytes of code")


@app.command()
def disasm(
    file: Annotated[Path, typer.Argument(help="Core ELF, full ELF, PDI, CDO or xclbin.")],
    arch: Arch = None,
    raw: Annotated[bool, typer.Option("--raw", help="The file is plain code from address 0 on.")] = False,
    core: Core = None,
    latencies: Annotated[bool, typer.Option("--latencies", help="Below each bundle: when results are there.")] = False,
    check: Annotated[bool, typer.Option("--check", help="End with the hazards of the code, if there are any.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for new files: of each distinct program assembly and a graph."),
    ] = None,
    force: Force = False,
) -> None:
    """Print core programs as assembly that assembles to the same bytes, each bundle with its address and bytes.

    With --out, of each distinct program a file with its loops and cycles, and a control-flow graph for Graphviz.
    """
    generation = load(arch).generation if arch else None
    programs = _chosen(read_programs(read_bytes(file), raw), core, file)
    if out is not None:
        _write_listings(programs, generation, out, force)
    for program in programs if out is None else ():
        for line in disassemble(program, generation, latencies):
            say(line)
    if check:
        found: dict[HazardVerdict, list[str]] = {}
        for program in programs:
            found.setdefault(HazardVerdict.of(check_program(program, generation)), []).append(program.name or str(file))
        _judge(found, f"{file} has hazards")


def _write_listings(programs: Sequence[CoreProgram], generation: str | None, out: Path, force: bool) -> None:
    """A .s and a .dot of each distinct program, numbered in the order of the file."""
    with named(out, "written"):
        out.mkdir(parents=True, exist_ok=True)
    for number, found in enumerate(distinct(programs)):
        name = f"program{number}"
        listing = listing_of(found.program, name, f"{name}: {cores_text(found)}", generation)
        write(out / f"{name}.s", listing.assembly, force, f": {cores_text(found)}")
        write(out / f"{name}.dot", listing.graph, force)


def _judge(found: Mapping[HazardVerdict, Sequence[str]], what: str) -> None:
    """Tell once of each program what is unusual in it; HazardError if one has errors."""
    for verdict, names in found.items():
        more = f" and {len(names) - 1} more like it" if len(names) > 1 else ""
        print_warnings([f"{names[0]}{more}: {verdict.unusual}"] if verdict.unusual else [])
    if errors := [f"  {error}"[:_LINE] for verdict in found for error in verdict.errors]:
        raise HazardError(f"{what}:\n{listed(errors, chr(10))}")


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
