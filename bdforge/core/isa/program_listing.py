"""A program as files for reading: assembly with its loops and cycles, and its control-flow graph."""

from collections.abc import Iterator
from typing import NamedTuple

from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.disassembler import ListingNotes, control_flow, disassemble
from bdforge.core.isa.elf import CoreProgram
from bdforge.core.isa.flow_graph import FlowBlock, blocks_of, dot
from bdforge.core.isa.loops import ProgramLoop
from bdforge.core.isa.program_work import BundleWork, ProgramFunction, ProgramWork


class ProgramListing(NamedTuple):
    """Assembly that assembles to the program's bytes, and a graph for Graphviz."""

    assembly: str
    graph: str


def listing_of(program: CoreProgram, name: str, title: str, generation: str | None = None) -> ProgramListing:
    """Both of a program called `name`; the assembly begins with `title`.

    Cycles in the margin count from the start of a block, which is where labels stand and behind branches.
    """
    work = ProgramWork(KnownConstants(control_flow(program, generation)))
    blocks, above = blocks_of(work), dict[int, list[str]]()
    for function in work.functions():
        above.setdefault(function.start, []).append(function_text(function))
    for loop in work.loops:
        above.setdefault(loop.start, []).append(loop_text(loop, work.own[loop]))
    cycles = {address: cycle for block in blocks for cycle, address in enumerate(block.addresses)}
    found = work.program.generation
    back = f"`bdforge asm {name}.s --unchecked --arch {found} -o {name}.elf` makes the same bytes of this text"
    lines = disassemble(program, found, notes=ListingNotes(above, cycles, _entered(blocks)))
    text = "\n".join([f"// {title}", f"// {back}", *lines, ""])
    return ProgramListing(text, dot(blocks, name, program.symbols))


def _entered(blocks: list[FlowBlock]) -> Iterator[int]:
    return (edge.target for block in blocks for edge in block.edges if edge.kind != "next")


def function_text(function: ProgramFunction) -> str:
    """A function in a line."""
    size = f"function of {function.bundles} bundles, {function.code_bytes} bytes"
    if function.work is None:
        return f"{size}; the code does not tell {function.missing}"
    return f"{size}; a call issues {work_text(function.work)}"


def loop_text(loop: ProgramLoop, own: BundleWork) -> str:
    """A loop in a line, with what one pass does besides inner loops."""
    kind = "hardware loop" if loop.hardware else "loop"
    times = "as often as registers say" if loop.trips is None else f"{loop.trips} times"
    return f"{kind} to {loop.last:#06x}, {times}: {work_text(own)}"


def work_text(work: BundleWork) -> str:
    """Bundles with what they do."""
    counts = [f"{work.bundles} bundles"]
    counts += [f"{number} {what}" for number, what in ((work.loads, "loads"), (work.stores, "stores")) if number]
    counts += [f"{count} products {product}" for product, count in sorted(work.products.items())]
    counts += [f"{work.macs_per_bundle:.1f} MACs a bundle"] * bool(work.macs)
    counts += [f"{work.unknown} products of unknown shape"] * bool(work.unknown)
    return ", ".join(counts)
