"""Instruction forms of AIE2 and AIE2P cores: slot, latency, operand read cycles and ports of each.

`data/aie2p_isa.csv` holds the table: forms of llvm-aie's scheduler (`AIE2PGenSchedule.td`, `AIE2Schedule.td`), with
the source and the confidence of each row in its own columns. Cycles count from an instruction's issue, cycle 1.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bdforge.devices import AIE2, AIE2P, Generation

SLOTS: tuple[str, ...] = ("lda", "ldb", "st", "alu", "mv", "vec")
"""Issue slots of a bundle, one instruction each per cycle; `lng` instructions take alu and mv together."""

VECTOR_REGISTERS = 12
"""x registers of 512 bits, both generations (llvm-aie register files). With an exponent each they are AIE2P's ex."""

ACCUMULATOR_TILES: Mapping[tuple[str, int], int] = {
    (AIE2.name, 1024): 9,
    (AIE2.name, 512): 18,
    (AIE2P.name, 2048): 5,
}
"""Accumulators that a core holds, by generation and bits of one micro-tile of C (llvm-aie: cm0-cm8; dm0-dm4)."""

_PORT = re.compile(r"([A-Z][A-Z0-9_]*)@(\d+)(?:-(\d+))?")


class IsaError(Exception):
    """An instruction form that the table lacks or does not name uniquely."""


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """One instruction form.

    `slots` are alternatives, each the issue slots that the instruction takes. `write_cycle` is when the result can be
    read (None: no register result), `reads` the cycle at which each operand is read, `ports` the exclusive ports with
    the cycles in which they are busy, `forwards` the bypass class of operands and of the result (`dst`).
    """

    mnemonic: str
    form: str
    slots: tuple[tuple[str, ...], ...]
    write_cycle: int | None
    reads: Mapping[str, int]
    ports: tuple[tuple[str, int], ...]
    forwards: Mapping[str, str]

    def distance_to(self, reader: "Form", operand: str) -> int:
        """Least cycles from this instruction's issue to that of `reader` which reads its result as `operand`.

        w - r + 1, less one when both ends share a bypass class (equations of llvm-aie's itineraries).
        """
        if self.write_cycle is None:
            raise IsaError(f"{self.mnemonic} {self.form}: has no register result that {reader.mnemonic} could read")
        forwarded = self.forwards.get("dst") is not None and self.forwards.get("dst") == reader.forwards.get(operand)
        return self.write_cycle - reader.read_cycle(operand) + 1 - forwarded

    def read_cycle(self, operand: str) -> int:
        """Cycle at which an operand is read; IsaError if the form has no such operand."""
        if operand not in self.reads:
            known = ", ".join(self.reads) or "none"
            raise IsaError(f"{self.mnemonic} {self.form}: no operand {operand!r}; the table lists {known}")
        return self.reads[operand]


def form(generation: Generation, mnemonic: str, start: str = "") -> Form:
    """The form of `mnemonic` whose description is `start` or, if only one does, starts with it.

    IsaError lists the forms to choose from.
    """
    known = [f for f in _table()[generation.name] if mnemonic in (f.mnemonic, *f.mnemonic.split("/"))]
    found = [f for f in known if f.form == start] or [f for f in known if f.form.startswith(start)]
    if len(found) == 1:
        return found[0]
    choice = "; ".join(f.form for f in found or known) or "no form of this mnemonic"
    reason = "ambiguous" if found else "unknown"
    raise IsaError(f"{generation.name} instruction {mnemonic} {start!r} is {reason}; the table has: {choice}")


@cache
def _table() -> Mapping[str, tuple[Form, ...]]:
    text = files("bdforge.perf").joinpath("data", "aie2p_isa.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return {g.name: tuple(_form(row) for row in rows if row["arch"] == g.name.lower()) for g in (AIE2, AIE2P)}


def _form(row: Mapping[str, str]) -> Form:
    latency = row["result_latency"]
    return Form(
        mnemonic=row["mnemonic"],
        form=row["form"],
        slots=_slots(row["slot"]),
        write_cycle=int(latency) if latency else None,
        reads=_reads(row["operand_read_cycles"]),
        ports=tuple(_ports(row["exclusive_resources"])),
        forwards=_forwards(row["bypass"]),
    )


def _slots(text: str) -> tuple[tuple[str, ...], ...]:
    if text == "-":
        return ((),)
    return tuple(("alu", "mv") if slot == "lng" else (slot,) for slot in text.split("|"))


def _reads(text: str) -> dict[str, int]:
    """Operands with the first cycle in which they are read; `>` marks further outputs."""
    pairs = (item.split("=") for item in text.split(";") if "=" in item and not item.startswith(">"))
    return {name: int(cycle.split(",")[0]) for name, cycle in pairs}


def _ports(text: str) -> list[tuple[str, int]]:
    """Ports and cycles; a list of alternatives (`A|B@7`) or a remark in brackets claims no port for certain."""
    busy: list[tuple[str, int]] = []
    for item in re.split(r";", text):
        match = _PORT.fullmatch(item.strip())
        if match:
            first, last = int(match[2]), int(match[3] or match[2])
            busy += [(match[1], cycle) for cycle in range(first, last + 1)]
    return busy


def _forwards(text: str) -> dict[str, str]:
    """Bypass classes; `acc1:VEC(in only)` names the operand's alone."""
    pairs = (item.split(":") for item in text.split(";") if ":" in item)
    return {name: kind.split("(")[0].strip() for name, kind in pairs}
