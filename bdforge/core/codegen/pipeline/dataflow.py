"""What a pipelined kernel does with one block of its results, as dataflow: operations on named values.

An operation is a template of an instruction. `x{a}` in it stands for the vector register that will hold a value, `y{a}`
for a pair, whose halves are `x{a.0}` and `x{a.1}`, and `dm{a}`, `cml{a}`, `bmll{a}` for an accumulator and its parts;
all other registers are named as they are and stay the same in every block. Edges follow from the registers that the
instructions read and write, with the stages of `bdforge.core.isa.effects`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from bdforge.core.codegen.basic_block import instruction
from bdforge.core.isa import Instruction, Isa
from bdforge.core.isa.core_registers import is_status
from bdforge.core.isa.effects import RegisterAccess, distance, effects, register_order, touched
from bdforge.core.isa.modulo import Edge, Places

Value = tuple[str, int]
"""A value in a vector register: its name, and the step that makes it."""

BANK = "bank "
"""Begins the name of the unit that stands for a bank."""

_HOLE = re.compile(r"\{(\w+)(?:\.([01]))?\}")
_FILE = re.compile(r"\b([a-z]+)(?:\{(\w+)(\.[01])?\}|(\d+)\b)")
_VECTORS = ("x", "ex", "wl", "wh", "el", "eh")
_SAMPLES = range(12)
_ACCUMULATOR = ("bmll", "bmlh", "bmhl", "bmhh")
_ACCUMULATORS = (*_ACCUMULATOR, "cml", "cmh", "dm")


@dataclass(frozen=True, slots=True)
class DataflowOp:
    """An operation of a block: alternatives of text, and the values that its holes stand for.

    `key` is what it is, the same in each `step`; ops of no step happen once in a block. `bank` names the memory that it
    accesses: two accesses to one bank never happen in the same cycle. `late` ones happen as late as they may.
    """

    key: str
    texts: tuple[str, ...]
    values: Mapping[str, Value] = field(default_factory=dict)
    step: int | None = None
    bank: str | None = None
    shown: str = ""
    late: bool = False

    def text(self, choice: int, registers: Mapping[Value, int]) -> str:
        """The instruction with registers filled in."""
        return _filled(
            self.texts[choice], {hole: registers[value] for hole, value in self.values.items() if value in registers}
        )


def named_op(text: str, bank: str | None = None, key: str = "") -> DataflowOp:
    """An operation whose holes are named as their values, known by its text, or by `key` where that stands twice."""
    values = {match[1]: (match[1], 0) for match in _HOLE.finditer(text)}
    return DataflowOp(key or text, (text,), values, bank=bank)


class OpTouch(NamedTuple):
    """A read or write by an op: of a leaf of a register that stays, or of a leaf of a value's register."""

    op: int
    place: tuple
    access: RegisterAccess
    writes: bool


Pattern = tuple[tuple[str, int], ...]
"""Holes of an op with the registers of its sample: equal ones for equal values."""


def _pattern(op: DataflowOp) -> Pattern:
    numbers: dict[Value, int] = {}
    values = tuple((hole, numbers.setdefault(value, len(numbers))) for hole, value in op.values.items())
    return _numbered(op.texts[0], values)


@cache
def _numbered(text: str, values: tuple[tuple[str, int], ...]) -> Pattern:
    """Registers for values, which are no others of the text and overlap nowhere."""
    taken: dict[bool, set[int]] = {True: set(), False: set()}
    for name, hole, _, number in _FILE.findall(text):
        if not hole and name in (*_VECTORS, "y"):
            taken[False] |= {2 * int(number), 2 * int(number) + 1} if name == "y" else {int(number)}
        elif not hole and name in _ACCUMULATORS:
            taken[True].add(int(number))
    kinds, found = _files(text), {}
    for hole, value in values:
        if value not in found and hole in kinds:
            used, width = taken[kinds[hole] == "dm"], 2 if kinds[hole] == "y" else 1
            found[value] = next(i for i in _SAMPLES if used.isdisjoint(range(width * i, width * (i + 1))))
            used.update(range(width * found[value], width * (found[value] + 1)))
    return tuple((hole, found[value]) for hole, value in values if hole in kinds)


@cache
def _files(text: str) -> dict[str, str]:
    """The file of each hole."""
    return {
        hole: "y" if half or name == "y" else "x" if name in _VECTORS else "dm"
        for name, hole, half, _ in _FILE.findall(text) if hole
    }  # fmt: skip


def files(ops: Sequence[DataflowOp]) -> dict[Value, str]:
    """Where values live: in vector registers x, pairs y, or accumulators dm."""
    return {op.values[hole]: file for op in ops for hole, file in _files(op.texts[0]).items()}


@cache
def _sampled(generation: str, text: str, pattern: Pattern) -> Instruction:
    """An op's instruction with some registers: all that its timing needs."""
    return instruction(generation, _filled(text, dict(pattern)))


def _filled(text: str, numbers: Mapping[str, int]) -> str:
    """A text with registers in its holes; those of halves of pairs are twice as many."""

    def number(hole: re.Match[str]) -> str:
        found = numbers[hole[1]]
        return str(found if hole[2] is None else 2 * found + int(hole[2]))

    return _HOLE.sub(number, text)


def touches(isa: Isa, ops: Sequence[DataflowOp]) -> Iterator[OpTouch]:
    """All reads and writes, in the ops' order, reads of an op first."""
    for index, op in enumerate(ops):
        for hole, leaf, access, writes in _touched(isa.generation, op.texts[0], _pattern(op)):
            yield OpTouch(index, (op.values[hole], leaf) if hole else (leaf,), access, writes)


@cache
def _touched(generation: str, text: str, pattern: Pattern) -> tuple[tuple[str, str, RegisterAccess, bool], ...]:
    """Reads and writes of a text: the hole, "" for a register that stays, and the leaf, or the part of the hole's."""
    places = dict(_leaves(text, pattern))
    return tuple(
        (*places.get(leaf, ("", leaf)), access, writes)
        for leaf, access, writes in touched(generation, _sampled(generation, text, pattern))
        if not (writes and is_status(leaf) and leaf != "srCarry")
    )


def _leaves(text: str, pattern: Pattern) -> Iterator[tuple[str, tuple[str, str]]]:
    """(leaf, (hole, part)) of the registers that holes stand for."""
    kinds = _files(text)
    for hole, number in pattern:
        if kinds[hole] == "dm":
            yield from ((f"{part}{number}", (hole, part)) for part in _ACCUMULATOR)
            continue
        first, width = (2 * number, 2) if kinds[hole] == "y" else (number, 1)
        for i in range(first, first + width):
            yield from ((f"{part}{i}", (hole, f"{part}{i - first}")) for part in ("wl", "wh", "el", "eh"))


def dependences(isa: Isa, ops: Sequence[DataflowOp], values: bool = True) -> list[Edge]:
    """Edges of a block and to the block after it, whose ops touch the same registers that stay.

    Values are renamed: of them only what reads them waits. Without `values` there are edges of other registers alone.
    """
    found: dict[tuple[int, int, int], int] = {}
    by_place: dict[tuple, list[OpTouch]] = defaultdict(list)
    for touch in touches(isa, ops):
        if values or len(touch.place) == 1:
            by_place[touch.place].append(touch)
    for place, touching in by_place.items():
        for earlier, later, delay, blocks in _of_place(touching, value=len(place) > 1):
            key = earlier, later, blocks
            found[key] = max(found.get(key, delay), delay)
    return [Edge(earlier, later, delay, blocks) for (earlier, later, blocks), delay in found.items()]


def _of_place(found: Sequence[OpTouch], value: bool) -> Iterator[tuple[int, int, int, int]]:
    """(earlier, later, cycles, blocks between) of what touches one register, or one value."""
    if not any(touch.writes for touch in found):
        return
    if not value:
        yield from register_order([(touch.op, touch.access, touch.writes) for touch in found], (0, 1))
        return
    writer: OpTouch | None = None
    for touch in found:
        if touch.writes:
            writer = touch
        elif writer is not None:
            yield writer.op, touch.op, distance(writer.access, touch.access), 0


def places(generation: str, op: DataflowOp, strict: bool = True) -> Places:
    """What an op's alternatives occupy: slots, units, and if `strict` the bank at the stage of the access."""
    pattern, bank = _pattern(op), op.bank if strict else None
    return tuple(_cells(_sampled(generation, text, pattern), bank) for text in op.texts)


@cache
def _cells(found: Instruction, bank: str | None) -> tuple[tuple[str, int], ...]:
    cells = [(slot, 0) for slot in found.form.slots]
    cells += [(unit, cycle) for unit, cycle, reserved in effects(found).units if not reserved]
    if bank is not None:
        cells.append((f"{BANK}{bank}", max(found.form.timing.memory_stages) - 1))
    return tuple(cells)
