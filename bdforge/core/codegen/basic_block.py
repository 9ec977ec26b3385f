"""Straight pieces of a program before they are scheduled, and the text of their bundles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.isa import EncodeError, Instruction, Isa, load
from bdforge.core.isa.core_registers import SIGN
from bdforge.core.isa.flow import TARGET_BYTES
from bdforge.core.isa.syntax import match

_NOPS = {"lda": "nopa", "ldb": "nopb", "st": "nops", "alu": "nopx", "mv": "nopm", "lng": "nopxm", "vec": "nopv"}
_COMMENT_COLUMN = 62
_INDENT = " " * 8
_SHORT = range(-1024, 1024)  # of a constant in one slot


@dataclass(frozen=True, slots=True)
class AssemblyOp:
    """An instruction as text, for the scheduler.

    `memory` names what a load or store accesses: two with different names never meet. Without one it may meet any.
    """

    text: str
    comment: str = ""
    memory: str | None = None


@dataclass(slots=True)
class BasicBlock:
    """Instructions in an order that is right, a branch after them or none, and a name that branches know.

    `quiet` is the first cycle in which it may do anything, as what a called function began may still be under way.
    """

    label: str
    ops: list[AssemblyOp] = field(default_factory=list)
    branch: AssemblyOp | None = None
    quiet: int = 0

    def add(self, text: str, comment: str = "", memory: str | None = None) -> None:
        """Append an instruction."""
        self.ops.append(AssemblyOp(text, comment, memory))


@dataclass(slots=True)
class Cycle:
    """What issues together, and the registers whose old values it reads."""

    ops: list[AssemblyOp] = field(default_factory=list)
    old: set[str] = field(default_factory=set)

    @property
    def texts(self) -> tuple[str, ...]:
        """Instructions, in an order that does not depend on where they come from."""
        return tuple(sorted(op.text for op in self.ops))

    def slots(self, generation: str) -> list[str]:
        """Those of its instructions."""
        return [instruction(generation, op.text).form.slot for op in self.ops]


@cache
def instruction(generation: str, text: str) -> Instruction:
    """The instruction of a text; CodegenError where there is none."""
    try:
        return match(load(generation), text, {}, assume=True)
    except EncodeError as error:
        raise CodegenError(f"{text}: {error}") from None


def load_constant(register: str, text: str) -> str:
    """The instruction that makes a register hold a number or a name's address."""
    short = text.lstrip("-").isdigit() and int(text) in _SHORT and not register.startswith("p")
    return f"{'mova' if short else 'movxm'} {register}, #{text}"


def signs(generation: str, ops: Iterable[AssemblyOp]) -> list[AssemblyOp]:
    """What sets the sign registers that instructions read: those whose names end with 1 signed, others not.

    Whoever ran before may have left anything there.
    """
    forms = {instruction(generation, op.text).form for op in ops}
    read = {register for form in forms for register in form.timing.implicit_uses if SIGN.search(register)}
    values = [(register, int(register.endswith("1"))) for register in sorted(read)]
    if generation == "aie2p":  # AIE2's movx takes no number for them
        return [AssemblyOp(f"movx {register}, #{value}", "sign") for register, value in values]
    return [
        op for r, value in values for op in (AssemblyOp(f"mova r15, #{value}"), AssemblyOp(f"movx {r}, r15", "sign"))
    ]


def bundle_lines(isa: Isa, cycles: Sequence[Cycle], whole_last: bool = False) -> list[str]:
    """The text of bundles, padded so that their bytes are a multiple of TARGET_BYTES without a cycle more.

    Bundles grow by NOPs in slots that are free: the fewest bytes that reach a multiple; with `whole_last` the last one
    has TARGET_BYTES by itself.
    """
    used = [frozenset(cycle.slots(isa.generation)) for cycle in cycles]
    rest = [_sizes(isa.generation, used[-1])[TARGET_BYTES]] if whole_last else []
    formats = _formats(isa, used[:-1] if whole_last else used) + rest
    return [_line(isa.generation, cycle, slots) for cycle, slots in zip(cycles, formats, strict=True)]


def _formats(isa: Isa, used: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Slots to write for each bundle: the smallest total that is a multiple of TARGET_BYTES, by its remainders."""
    best: dict[int, tuple[int, tuple]] = {0: (0, ())}
    for slots in used:
        following: dict[int, tuple[int, tuple]] = {}
        for total, chain in best.values():
            for size, written in _sizes(isa.generation, slots).items():
                whole = total + size
                known = following.get(whole % TARGET_BYTES)
                if known is None or whole < known[0]:
                    following[whole % TARGET_BYTES] = whole, (chain, written)
        best = following
    chain, found = best[0][1], []
    while chain:
        chain, written = chain
        found.append(written)
    return found[::-1]


@cache
def _sizes(generation: str, slots: frozenset[str]) -> dict[int, frozenset[str]]:
    """Sizes that a bundle with these slots can have, with what is then written."""
    isa = load(generation)
    smallest = isa.bundle_format(slots)
    sizes = {smallest.size: slots}
    for fmt in isa.formats.values():
        if fmt.slots > slots and "nop" not in fmt.slots and isa.bundle_format(fmt.slots).size == fmt.size:
            sizes.setdefault(fmt.size, fmt.slots)
    return sizes


def _line(generation: str, cycle: Cycle, slots: frozenset[str]) -> str:
    mine = {slot: op.text for slot, op in zip(cycle.slots(generation), cycle.ops, strict=True)}
    texts = [mine.get(slot, _NOPS[slot]) for slot in _NOPS if slot in slots]
    text = _INDENT + (" ; ".join(texts) or "nop")
    comments = "; ".join(dict.fromkeys(op.comment for op in cycle.ops if op.comment))
    return f"{text:<{_COMMENT_COLUMN}}  // {comments}" if comments else text
