"""Hazards that show in a program's layout alone, and the words for bundles in messages."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from bdforge.core.isa.disassembler import bundle_text
from bdforge.core.isa.flow import DELAY_SLOTS, TARGET_BYTES, ControlFlow, constant_moved
from bdforge.core.isa.forms import Bundle
from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.syntax import LOOP_REGISTERS
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Hazard:
    """A fault: its `rule`, the bundles at `address` and at `other` (None if there is one only), and what is wrong.

    Compiled programs have those that are `unusual` too; others are errors.
    """

    rule: str
    address: int
    other: int | None
    message: str
    unusual: bool = False

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class HazardVerdict:
    """What is wrong with a program: its errors, and in one sentence what is unusual ("": nothing)."""

    errors: tuple[str, ...]
    unusual: str

    @classmethod
    def of(cls, hazards: Sequence[Hazard]) -> "HazardVerdict":
        """Of the hazards of one program."""
        errors = tuple(f"{hazard.rule}: {hazard}" for hazard in hazards if not hazard.unusual)
        rest = [hazard for hazard in hazards if hazard.unusual]
        if not rest:
            return cls(errors, "")
        found = Counter(hazard.rule for hazard in rest).most_common()
        counts = ", ".join(f"{count} {rule}{_in_public(rule)}" for rule, count in found)
        places = f"{len(rest)} place{'s are' if len(rest) > 1 else ' is'} unusual, though compiled code has such"
        return cls(errors, f"{places}: {counts}; the first: {rest[0]}")


PUBLIC_PROGRAMS = 816
"""Distinct programs of cores that were looked at for what compilers do (`data/public_hazards.csv`)."""


@cache
def _in_public(rule: str) -> str:
    """How many public programs have what is unusual by a rule, in words; "" where nobody counted."""
    counts = [row["programs"] for row in rows("public_hazards") if (row["rule"], row["verdict"]) == (rule, "unusual")]
    return f" (as in {counts[0]} of {PUBLIC_PROGRAMS} public programs)" if counts else ""


@dataclass(frozen=True, slots=True)
class BundleNames:
    """Bundles in messages: `0x0040 (kernel.s:12) `vlda x0, [p0], #64``."""

    program: ControlFlow
    where: Callable[[int], str]

    def __call__(self, address: int) -> str:
        where = self.where(address)
        shown = _doing(self.program.generation, self.program.bundles[address])
        return f"{address:#06x}{f' ({where})' if where else ''} `{shown[:_SHOWN]}`"


@lru_cache(maxsize=1 << 12)
def _doing(generation: str, bundle: Bundle) -> str:
    """The bundle's text without NOPs."""
    texts = bundle_text(generation, bundle).replace("\t", " ").split(" ; ")
    return " ; ".join(text for text in texts if not text.startswith("nop")) or "nop"


def layout_hazards(program: ControlFlow, named: "BundleNames") -> Iterator[Hazard]:
    """Faults of single bundles and of their places: size, branch and loop targets, delay slots that are missing."""
    bundles = program.bundles
    last = max(bundles)
    if last + bundles[last].size > PROGRAM_MEMORY_BYTES:
        end = last + bundles[last].size
        yield Hazard("size", last, None, f"code ends at {end:#x}, beyond program memory ({PROGRAM_MEMORY_BYTES:#x})")
    for address, bundle in bundles.items():
        branching = [i for i in bundle if i.form.delay_slots]
        if len(branching) > 1:
            yield Hazard("delay-slot", address, None, f"{named(address)} branches twice")
        if branching and len(program.slots(address)) < DELAY_SLOTS:
            yield Hazard("delay-slot", address, None, f"the code ends in the delay slots of {named(address)}")
        yield from _targets(program, named, address, bundle)


def _targets(program: ControlFlow, named: "BundleNames", address: int, bundle: Bundle) -> Iterator[Hazard]:
    branch = program.branches.get(address)
    aims = [("branch", branch.target)] if branch and branch.target is not None else []
    aims += [(m[0], m[1]) for i in bundle if (m := constant_moved(i)) and m[0] in LOOP_REGISTERS]
    for what, target in aims:
        rule = "target" if what == "branch" else "loop"
        verb = "jumps to" if what == "branch" else f"sets {what} to"
        if target % TARGET_BYTES:
            message = f"{named(address)} {verb} {target:#x}, which is not a multiple of {TARGET_BYTES}"
            yield Hazard(rule, address, None, message)
        elif target not in program.bundles:
            yield Hazard(rule, address, None, f"{named(address)} {verb} {target:#x}, where no bundle starts")
