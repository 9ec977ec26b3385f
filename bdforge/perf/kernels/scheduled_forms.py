"""Instruction forms as a schedule sees them: slots, latencies and units, from the tables of `bdforge.core.isa`.

Nothing is stated here: stages, units and forwarding are those of `bdforge.core.isa.forms`, registers those that
the tables name. Operands are called `dst`, `src`, `acc1`, `s1`, `s2` on both generations, as AIE2P's forms call them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.core.isa import Form, IsaError, load
from bdforge.core.isa.isa_tables import read_kinds
from bdforge.core.isa.operand_kinds import Immediate, RegisterClass
from bdforge.devices import AIE2, AIE2P, Generation

SLOTS: tuple[str, ...] = ("lda", "ldb", "st", "alu", "mv", "vec")
"""Issue slots of the longest bundle, one instruction each per cycle; `lng` instructions take alu and mv together."""

_TOGETHER = {"lng": ("alu", "mv")}
_ACCUMULATORS = {"eCM", "mBMa"}  # AIE2's classes of what the vec slot adds to
_RESULTS = ("dst", "d", "op", "op0")


@dataclass(frozen=True, eq=False, slots=True)
class TimedForm:
    """What a schedule must know of an instruction and its registers.

    `slots` are the issue slots that the instruction takes together. `write_cycle` is when the result can be read (None:
    no register result), `reads` the cycle at which each operand is read, from the issue, cycle 1, on; `ports` the
    exclusive units with the cycles in which they are busy, counted from 0; `forwards` the bypass class of operands and
    of the result (`dst`).
    """

    name: str
    slots: tuple[str, ...]
    write_cycle: int | None
    reads: Mapping[str, int]
    ports: tuple[tuple[str, int], ...]
    forwards: Mapping[str, str]

    def distance_to(self, reader: "TimedForm", operand: str) -> int:
        """Least cycles from this instruction's issue to that of `reader` which reads its result as `operand`.

        w - r + 1, less one when both ends share a bypass class (equations of llvm-aie's itineraries).
        """
        if self.write_cycle is None:
            raise IsaError(f"{self.name}: has no register result that {reader.name} could read")
        forwarded = self.forwards.get("dst") is not None and self.forwards.get("dst") == reader.forwards.get(operand)
        return self.write_cycle - reader.read_cycle(operand) + 1 - forwarded

    def read_cycle(self, operand: str) -> int:
        """Cycle at which an operand is read; IsaError if the form has no such operand."""
        if operand not in self.reads:
            raise IsaError(f"{self.name}: no operand {operand!r}, only {', '.join(self.reads) or 'none'}")
        return self.reads[operand]


def timed_form(generation: Generation, name: str, **registers: str) -> TimedForm:
    """The form `name` as schedules see it; IsaError if the tables have none of that name.

    `registers` names the kind of an operand's register where it may be several: `src="bm"` or `dst="bm"`, else x. What
    forwards and which units are taken depends on it.
    """
    return _timed_form(generation.name.lower(), name, tuple(sorted(registers.items())))


@cache
def _timed_form(generation: str, name: str, registers: tuple[tuple[str, str], ...]) -> TimedForm:
    form, kinds = load(generation).form(name), dict(registers)
    timing, names = form.timing, dict(_operands(form))
    stages = {names.get(operand, operand): stage for operand, stage in timing.uses.items()}
    results = [stage for operand, stage in timing.defs.items() if operand in _RESULTS]
    return TimedForm(
        name=name,
        slots=_TOGETHER.get(form.slot, (form.slot,)),
        write_cycle=results[0] if results else None,
        reads=stages,
        ports=tuple(_ports(form, kinds)),
        forwards={
            names.get(operand, operand): kind
            for operand, kind in timing.bypass.items()
            if not (kind == "MV" and names.get(operand, operand) in kinds)
        },
    )


def _operands(form: Form) -> Iterator[tuple[str, str]]:
    """Fields with the names that they have here: AIE2 numbers them, results first."""
    numbered = [f for f in form.fields if f.name.startswith("op") and not isinstance(f.kind, Immediate)]
    sources = [f for f in numbered if f.name in form.timing.uses]
    yield from ((name, "dst") for name in _RESULTS if name in form.timing.defs)
    if len(sources) == 1:
        yield sources[0].name, "src"
        return
    sums = [f for f in sources if f.kind.name in _ACCUMULATORS]
    yield from zip((f.name for f in sums), ("acc1", "acc2"), strict=False)
    yield from zip((f.name for f in sources if f not in sums), ("s1", "s2", "mod"), strict=False)


def _ports(form: Form, kinds: Mapping[str, str]) -> Iterable[tuple[str, int]]:
    """Units taken alone, with the cycle; those that an operand's register decides for the kinds that are named."""
    for unit in form.timing.resources:
        if not unit.reserved:
            yield from ((unit.name, unit.cycle + later) for later in range(unit.cycles))
    for operand, cycle, units in form.timing.ports:
        yield from ((name, cycle) for name in units.get(kinds.get(operand, ""), ()))


@cache
def registers(generation: Generation, stem: str) -> int:
    """How many registers a core has whose names are `stem` and a number."""
    classes = read_kinds(generation.name.lower()).values()  # of all tables only this one: it is read on import
    names = {name for one in classes if isinstance(one, RegisterClass) for name in one.codes}
    return sum(re.fullmatch(rf"{stem}\d+", name) is not None for name in names)


VECTOR_REGISTERS = registers(AIE2P, "x")
"""x registers of 512 bits, as many in both generations. With an exponent each they are AIE2P's ex."""

ACCUMULATOR_TILES: Mapping[tuple[str, int], int] = {
    (AIE2.name, 1024): registers(AIE2, "cm"),
    (AIE2.name, 512): registers(AIE2, "bm[lh]"),
    (AIE2P.name, 2048): registers(AIE2P, "dm"),
}
"""Accumulators that a core holds, by generation and bits of one micro-tile of C."""
