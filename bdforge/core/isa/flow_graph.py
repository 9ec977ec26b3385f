"""The control-flow graph of a program: blocks of bundles that issue one after the other, and where each leads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.flow import ControlFlow
from bdforge.core.isa.program_work import ProgramWork

_Ends = Mapping[int, int]
"""By the address of a block's last bundle that of its branch, or of the first one of a hardware loop."""


class FlowEdge(NamedTuple):
    """A way from a block to the one that starts at `target`: "next", "jump", "loop" (of hardware) or "call"."""

    target: int
    kind: str


@dataclass(frozen=True, slots=True)
class FlowBlock:
    """Addresses of bundles that are entered at the first one only."""

    addresses: tuple[int, ...]
    edges: tuple[FlowEdge, ...]

    @property
    def start(self) -> int:
        """The first bundle."""
        return self.addresses[0]


def blocks_of(work: ProgramWork) -> list[FlowBlock]:
    """All blocks, by address; a branch ends one with its last delay slot. Of ways by registers the known ones."""
    known, program = work.known, work.program
    ends = {slots[-1]: at for at in program.branches if (slots := program.slots(at))}
    hardware = {loop.last: loop.start for loop in work.loops if loop.hardware}
    starts = {0, *known.targets.values(), *hardware.values(), *_behind(program, [*ends, *hardware])}
    found: list[list[int]] = []
    for address in sorted(program.bundles):
        if not found or address in starts or program.followers.get(found[-1][-1]) != address:
            found.append([])
        found[-1].append(address)
    return [FlowBlock(tuple(block), tuple(_edges(known, block[-1], ends, hardware))) for block in found]


def _behind(program: ControlFlow, last: Iterable[int]) -> Iterator[int]:
    return (program.followers[address] for address in last if address in program.followers)


def _edges(
    known: KnownConstants, last: int, ends: Mapping[int, int], hardware: Mapping[int, int]
) -> Iterator[FlowEdge]:
    """Where a block leads that ends with a bundle."""
    program, behind = known.program, known.program.followers.get(last)
    if last in hardware:
        yield FlowEdge(hardware[last], "loop")
    branch = program.branches[ends[last]] if last in ends else None
    if branch is not None and (target := known.targets[ends[last]]) is not None:
        yield FlowEdge(target, "call" if branch.call else "jump")
    goes_on = not program.stops(last) if branch is None else branch.falls or branch.call
    if goes_on and behind is not None:
        yield FlowEdge(behind, "next")


def dot(blocks: Sequence[FlowBlock], name: str, titles: Mapping[int, str]) -> str:
    """The graph for Graphviz; `titles` are names of addresses."""
    lines = [f"digraph {name} {{", "\tnode [shape=box, fontname=monospace];"]
    there = {block.start for block in blocks}
    for block in blocks:
        title = f"{titles.get(block.start, '')} {block.start:#06x}".strip()
        lines.append(f'\tb{block.start:x} [label="{title}\\n{len(block.addresses)} bundles"];')
        for edge in block.edges:
            style = "" if edge.kind == "next" else f' [label="{edge.kind}"{", style=dashed" * (edge.kind == "call")}]'
            lines += [f"\tb{block.start:x} -> b{edge.target:x}{style};"] if edge.target in there else []
    return "\n".join([*lines, "}", ""])
