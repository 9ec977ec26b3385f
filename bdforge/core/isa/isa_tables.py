"""The tables of this package, read into forms, formats and register classes.

`data/` holds facts of the instruction sets: bit patterns, register codes, stages and units. They were taken from
Xilinx/llvm-aie (`llvm/lib/Target/AIE/aie2p/*.td` at 1b54f072, 685e83f8, bd07681e), ROCm/hrx-system
(`core_encoding_data.py`, `core_machine_form_data.py`, `core_schedule_data.py` at d9cc47d5) and, for AIE2,
FIM43-Redeye/xdna-emu 7380bd56, and agree with 1,138,759 bundles of 686 real programs. Columns:

- `*_formats.csv`: format, bytes, mask and value (hexadecimal), slots as slot@lsb:width.
- `*_encodings.csv`: form, slot, width, mask and value (hexadecimal), delay slots, fields as name@lsb:width:class, and
  assembly text with operands in braces. A field in several pieces lists them low bits first. Of two texts, separated by
  `|`, the last one is written where it can be: operands that a text leaves out have the code 0.
- `*_registers.csv`: class, register, code; rows of class `imm:NAME` describe immediates.
- `*_aliases.csv`: composed registers and the bits of their parts. AIE2's follow from the sizes of its registers
  (llvm-aie: cm = bml, bmh; bm = two am; x = wl, wh); that l0 to l7 are the pairs from r16 on, and which half of q goes
  with qwl, is from the register names alone. `plfr` are pointer, FIFO and position that one bit of a FIFO load chooses
  together (llvm-aie: ePF).
- `widths.csv`: bits of registers, by their names without numbers; `products.csv` and `shuffles.csv`: shapes by
  modes.
- `*_meanings.csv`: see `bdforge.core.isa.meaning.form_meanings`.
- `*_timing.csv`: see `bdforge.core.isa.forms.FormTiming`; PART_WORD_STORE is taken from the cycle after the store on,
  for real programs load in the store's own cycle. SEL, conditional locks and FIFO stores do not take L_RM, and nothing
  takes TRACE: public programs have them beside each other.

For AIE2 only the result stage of each itinerary is known as a table (llvm-aie `AIE2Schedule.td`). The rest follows from
what is known of the families: operands are read at stage 1 save accumulators (3: chains of VMAC at distance 2, of
VMAC.f at 4), the source of VUNPACK (7), shift and modes of VLDA.UPS (7) and the source of 8- and 16-bit stores (7);
memory is read at 5 and written at 5, by VST.SRS and VST.CONV at 7, by 8- and 16-bit stores at 11. Units other than the
lock port and the window of 8- and 16-bit stores are not known, so structural conflicts of others are not checked.
"""

import csv
from collections.abc import Iterator, Mapping
from importlib.resources import files

from bdforge.core.isa.forms import Form, Format, FormField, FormTiming, Resource
from bdforge.core.isa.operand_kinds import Immediate, OperandKind, RegisterClass

GENERATIONS: tuple[str, ...] = ("aie2p", "aie2")
"""Generations with tables."""


def rows(name: str) -> Iterator[Mapping[str, str]]:
    """Rows of `data/NAME.csv`."""
    text = files("bdforge.core.isa").joinpath("data", f"{name}.csv").read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


def read_kinds(generation: str) -> dict[str, OperandKind]:
    """Register classes and immediates by name."""
    codes: dict[str, dict[str, int]] = {}
    immediates: dict[str, OperandKind] = {}
    for row in rows(f"{generation}_registers"):
        name = row["class"]
        if name.startswith("imm:"):
            immediates[name[4:]] = _immediate(name[4:], row["register"])
        else:
            codes.setdefault(name, {})[row["register"]] = int(row["code"])
    return {name: RegisterClass(name, members) for name, members in codes.items()} | immediates


def read_formats(generation: str) -> list[Format]:
    """Bundle formats."""
    found = []
    for row in rows(f"{generation}_formats"):
        places = [item.replace("@", ":").split(":") for item in split(row["slots"])]
        lanes = tuple((slot, int(lsb), int(width)) for slot, lsb, width in places)
        found.append(Format(row["format"], int(row["bytes"]), int(row["mask"], 16), int(row["value"], 16), lanes))
    return found


def read_forms(generation: str, kinds: Mapping[str, OperandKind]) -> list[Form]:
    """Instruction forms, with the timing of each."""
    found, timings = [], {row["name"]: _timing(row) for row in rows(f"{generation}_timing")}
    for row in rows(f"{generation}_encodings"):
        fields = tuple(_field(text, kinds) for text in split(row["fields"]))
        bits = int(row["width"]), int(row["mask"], 16), int(row["value"], 16), int(row["delay_slots"])
        found.append(Form(row["name"], row["slot"], *bits, fields, timings[row["name"]], row["assembly"]))
    return found


def read_parts(generation: str) -> dict[str, tuple[tuple[str, int, int], ...]]:
    """Composed registers: (part, lsb in the whole, bits of the part), low parts first."""
    parts: dict[str, list[tuple[str, int, int]]] = {}
    for row in rows(f"{generation}_aliases"):
        parts.setdefault(row["register"], []).append((row["part"], int(row["lsb"]), int(row["part_bits"])))
    return {whole: tuple(sorted(those, key=lambda part: part[1])) for whole, those in parts.items()}


def split(text: str) -> list[str]:
    """Items of a list in a cell."""
    return [item for item in text.split(";") if item]


def pairs(text: str, by: str = "=") -> dict[str, str]:
    """A mapping in a cell."""
    return dict(item.split(by, 1) for item in split(text))  # type: ignore[misc]  # two parts each


def _immediate(name: str, text: str) -> Immediate:
    facts = {key: int(value) for key, value in pairs(text).items()}
    return Immediate(name, facts["bits"], facts["step"], bool(facts["signed"]), bool(facts["always_negative"]))


def _field(text: str, kinds: Mapping[str, OperandKind]) -> FormField:
    name, place = text.split("@")
    bits, kind = place.rsplit(":", 1)
    pieces = [piece.split(":") for piece in bits.split(",")]
    return FormField(name, tuple((int(lsb), int(width)) for lsb, width in pieces), kinds[kind])


def _stages(text: str) -> dict[str, int]:
    return {name: int(stage) for name, stage in pairs(text, "@").items()}


def _timing(row: Mapping[str, str]) -> FormTiming:
    return FormTiming(
        defs=_stages(row["defs"]),
        uses=_stages(row["uses"]),
        implicit_defs=_stages(row["implicit_defs"]),
        implicit_uses=_stages(row["implicit_uses"]),
        bypass=pairs(row["bypass"], ":"),
        ties=pairs(row["ties"]),
        fixed=pairs(row["fixed"]),
        resources=tuple(_resource(text) for text in split(row["resources"])),
        ports=tuple(_ports(text) for text in split(row["ports"])),
        memory_stages=tuple(int(stage) for stage in split(row["memory_stage"])),
    )


def _resource(text: str) -> Resource:
    name, place = text.split("@")
    cycle, _, cycles = place.partition("+")
    return Resource(name.rstrip("~"), int(cycle), int(cycles or 1), name.endswith("~"))


def _ports(text: str) -> tuple[str, int, Mapping[str, tuple[str, ...]]]:
    place, choice = text.split(":")
    operand, cycle = place.split("@")
    units = {prefix: tuple(names.split("+")) for prefix, names in (item.split("=") for item in choice.split("|"))}
    return operand, int(cycle), units
