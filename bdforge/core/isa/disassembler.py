"""Listings of programs: assembly text that assembles to the same bytes, with addresses, bytes and latencies aside."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bdforge.core.isa.bundle_codec import Isa, load
from bdforge.core.isa.effects import effects
from bdforge.core.isa.elf import CoreProgram, CoreSegment, generation_of
from bdforge.core.isa.errors import DecodeError
from bdforge.core.isa.flow import DELAY_SLOTS, TARGET_BYTES, ControlFlow, branch_of
from bdforge.core.isa.forms import Bundle, Instruction
from bdforge.core.isa.syntax import BRANCH_KINDS, LOOP_REGISTERS, text_of

_TEXT_COLUMN = 96


@dataclass(frozen=True, slots=True)
class Disassembled:
    """A bundle at its address, or bytes that are none with the reason."""

    address: int
    data: bytes
    bundle: Bundle | None
    reason: str = ""


def pieces(isa: Isa, program: CoreProgram) -> list[list[Disassembled]]:
    """Bundles of each segment, in order; bytes between those that execution reaches are taken as bundles if they fit.

    Execution is followed from the lowest address, named addresses and all targets of branches, so that what fills the
    gap before a function is not taken for the start of a bundle in it.
    """
    found = reached(isa, program)
    return [list(_sweep(isa, segment, found)) for segment in program.code]


def reached(isa: Isa, program: CoreProgram) -> dict[int, Bundle]:
    """Bundles by address that execution reaches from the lowest address and from named ones, by constant targets."""
    found: dict[int, Bundle] = {}
    entries, aimed = set[int](), {program.code[0].address, *program.symbols}
    while new := aimed - entries:
        entries |= new
        for segment in program.code:
            aimed |= {target for bundle in _follow(isa, segment, new, found) for target in targets(bundle)}
    return found


def control_flow(program: CoreProgram, generation: str | None = None, whole: bool = True) -> ControlFlow:
    """The bundles of a program by address; bytes that are none are left out.

    Without `whole`, what constants lead to alone: others may stand around it.
    """
    isa = load(generation or generation_of(program))
    if not whole:
        return ControlFlow(isa.generation, reached(isa, program))
    found = (piece for part in pieces(isa, program) for piece in part)
    return ControlFlow(isa.generation, {piece.address: piece.bundle for piece in found if piece.bundle})


def _follow(isa: Isa, segment: CoreSegment, entries: set[int], reached: dict[int, Bundle]) -> list[Bundle]:
    """Bundles of a segment that run from an entry on, up to a jump that is always taken, or to what is `reached`."""
    found = []
    for entry in entries:
        address, left = entry, -1  # delay slots left of a jump; below 0: none
        while left and segment.address <= address < segment.address + len(segment.data) and address not in reached:
            try:
                bundle = isa.decode(segment.data, address - segment.address)
            except DecodeError:
                break
            found.append(bundle)
            reached[address] = bundle
            left -= 1
            branches = [branch_of(i) for i in bundle if i.form.delay_slots]
            if left < 0 and not all(branch.falls or branch.call for branch in branches):
                left = DELAY_SLOTS
            address += bundle.size
    return found


def _sweep(isa: Isa, segment: CoreSegment, reached: Container[int]) -> Iterator[Disassembled]:
    """All of a segment; an unknown bundle ends at the next multiple of 16, where functions and targets start."""
    offset, data = 0, segment.data
    while offset < len(data):
        address = segment.address + offset
        end = min(offset + isa.size(data[offset]), len(data))
        bundle, reason = None, ""
        try:
            bundle = isa.decode(data, offset)
        except DecodeError as error:
            reason = error.reason
            end = min(end, offset + TARGET_BYTES - address % TARGET_BYTES)
        inside = next((at for at in range(offset + 1, end) if segment.address + at in reached), None)
        if inside and address not in reached:
            bundle, reason, end = None, f"ends where the bundle at {segment.address + inside:#x} starts", inside
        yield Disassembled(address, data[offset:end], bundle, reason)
        offset = end


@dataclass(frozen=True, slots=True)
class ListingNotes:
    """What a listing says besides bundles, by address: lines `above` one, and the cycle in which it issues.

    `entered` are addresses that get labels as targets of branches do.
    """

    above: Mapping[int, Sequence[str]] = field(default_factory=dict)
    cycles: Mapping[int, int] = field(default_factory=dict)
    entered: Iterable[int] = ()


def disassemble(
    program: CoreProgram, generation: str | None = None, latencies: bool = False, notes: ListingNotes | None = None
) -> Iterator[str]:
    """Lines of assembly; each bundle with its address and bytes in a comment, on request with latencies."""
    isa, notes = load(generation or generation_of(program)), notes or ListingNotes()
    yield f"// {program.name or 'core program'}, {isa.generation}"
    decoded = pieces(isa, program)
    labels = _labels(program.symbols, [piece for part in decoded for piece in part], notes.entered)
    for segment, part in zip(program.code, decoded, strict=True):
        if segment.address:
            yield f"\t.org\t{segment.address:#x}"
        for piece in part:
            yield from (f"\t// {line}" for line in notes.above.get(piece.address, ()))
            if piece.address in labels:
                yield f"{labels[piece.address]}:"
            yield from _lines(isa, piece, labels, latencies, notes.cycles.get(piece.address))


def bundle_text(generation: str, bundle: Bundle, labels: Mapping[int, str] | None = None) -> str:
    """A bundle as one line; slots that are filled with NOPs only to reach the size are shown, for they are the size."""
    return " ; ".join(text_of(generation, instruction, labels) for instruction in bundle.slots)


def _lines(
    isa: Isa, piece: Disassembled, labels: Mapping[int, str], latencies: bool, cycle: int | None
) -> Iterator[str]:
    comment = f"// {piece.address:#06x}{'' if cycle is None else f' {cycle:4}'}: {piece.data.hex(' ', 2)}"
    if piece.bundle is None:
        yield f"\t.byte\t{', '.join(f'{byte:#04x}' for byte in piece.data)}\t{comment}: {piece.reason}"
        return
    text = bundle_text(isa.generation, piece.bundle, labels).replace("\t", " ")
    yield f"\t{text:{_TEXT_COLUMN}}{comment}"
    if latencies:
        yield from (f"\t\t// {line}" for line in map(latency, piece.bundle) if line)


def latency(instruction: Instruction) -> str:
    """When the instruction's results can be read and when it reads late: `VLDA...: x0 after 7; reads su at 7`."""
    found = effects(instruction)
    results = [f"{write.register} after {write.stage}" for write in found.writes]
    late = [f"{read.register} at {read.stage}" for read in found.reads if read.stage > 1]
    parts = ([", ".join(results)] if results else []) + ([f"reads {', '.join(late)}"] if late else [])
    return f"{instruction.form.name}: {'; '.join(parts)}" if parts else ""


def targets(bundle: Bundle) -> Iterator[int]:
    """Addresses in program memory that a bundle names: of branches, and of loops that it sets up."""
    for instruction in bundle:
        for f, value in zip(instruction.form.fields, instruction.values, strict=True):
            loop = instruction.form.slot == "lng" and instruction.values[0] in LOOP_REGISTERS
            if isinstance(value, int) and (f.kind.name in BRANCH_KINDS or loop):
                yield value


def _labels(symbols: Mapping[int, str], all_pieces: list[Disassembled], entered: Iterable[int]) -> dict[int, str]:
    """Names for all targets at which a bundle starts."""
    starts = {piece.address for piece in all_pieces}
    aimed = {*entered} | {target for piece in all_pieces if piece.bundle for target in targets(piece.bundle)}
    labels = {address: f".L{address:x}" for address in aimed & starts}
    taken: set[str] = set()
    for address, name in symbols.items():
        usable = name.replace("_", "a").replace(".", "a").replace("$", "a")
        if address in starts and usable.isalnum() and not name[0].isdigit() and name not in taken:
            labels[address] = name
            taken.add(name)
    return labels
