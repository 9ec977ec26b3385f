"""What forms do, from the tables `data/*_meanings.csv`; how they make and step addresses follows from their operands.

A row is for all forms of a name without its addressing mode, or for one whose operands are called otherwise. Its
columns are those of `Meaning`: operands by name, constants as numbers, `access` as `load BYTES` or `store BYTES`,
that of a FIFO as `fill`, `pop`, `push` or `flush BYTES`, that of four elements as `gather BITS LINE-BYTES FIRST-WORD
OPERAND`. A row without an operation is of a form whose meaning no source tells, and its note says what is missing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from bdforge.core.isa.effects import RegisterAccess, effects
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.forms import Bundle, Form, Instruction
from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning.fifo import LINE_BYTES
from bdforge.core.isa.meaning.semantics import AddressWalk, Meaning, MemoryAccess

_MODES = re.compile(r"_(ag_)?(idx|pstm_nrm|spill)(_imm)?(?=_|$)|_[23]D(?=_|$)|_ag(?=_|$)")
_WALKS = {"eD": AddressWalk.WALK_2D, "eDS": AddressWalk.WALK_3D}
_PASS_ON = {"move", "vinsert", "vshuffle", "vselect", "vshift", "vpush_high", "vpush_low"}
_ACCUMULATE = {"multiply", "fmultiply", "fmatrix"}
_FACTORS = 3  # operands of a product behind its accumulators: s1, s2, conf


def bare_name(form: Form) -> str:
    """A form's name without its addressing mode."""
    return _MODES.sub("", form.name)


@cache
def meaning_of(generation: str, form: Form) -> Meaning:
    """What a form does; OpenError if no source tells."""
    if form.name.startswith("NOP"):
        return Meaning("none")
    row = _row(generation, form)
    if not row["operation"]:
        raise OpenError(f"what {form.name} does is open: {row['note']}")
    access, counts, part = _access(row["access"]), row["counts"].split(), _operands(row["part"])
    walk = _fifo_walk(form) if access and access.counter else walk_of(form)
    outputs, options = tuple(row["outputs"].split()), tuple(map(int, row["options"].split()))
    return Meaning(
        row["operation"], _operands(row["inputs"]), outputs, options,
        request=row["request"], asks=_operands(row["asks"]),
        access=access,
        walk=walk, offset="" if walk is AddressWalk.NONE else offset_of(form), part=part[0] if part else None,
        counts=(counts[0], counts[1]) if counts else None, doubtful=tuple(row["doubtful"].split()),
        low_bits=int(row["low_bits"] or 0), note=row["note"],
    )  # fmt: skip


def _access(cell: str) -> MemoryAccess | None:
    match cell.split():
        case []:
            return None
        case ["gather", bits, line_bytes, first, addresses]:
            return MemoryAccess(False, int(line_bytes), "gather", int(bits), int(first), addresses)
        case [kind, size] if kind in ("load", "store"):
            return MemoryAccess(kind == "store", int(size))
        case [kind, size]:
            return MemoryAccess(kind in ("push", "flush"), LINE_BYTES, kind, int(size))
    raise ValueError(f"no access is called {cell!r}")


def _fifo_walk(form: Form) -> AddressWalk:
    """How the pointer of a FIFO is stepped behind the bytes that are moved."""
    return _WALKS.get(form.field("mod").kind.name, AddressWalk.POST) if "mod" in form.names else AddressWalk.NONE


def access_of(generation: str, form: Form) -> MemoryAccess | None:
    """The load or store of data memory in a form, if there is one and sources tell what the form does."""
    try:
        return meaning_of(generation, form).access
    except OpenError:
        return None


def what_is_open(generation: str, form: Form) -> str:
    """What no source tells of a form without meaning; "" for one that has one."""
    row = _row(generation, form)
    return "" if row["operation"] else row["note"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """How sure a meaning is, and by what: H by two sources or a public program with a known answer, M by one, L a guess
    that fits."""

    confidence: str
    source: str


@cache
def evidence_of(generation: str, form: Form) -> Evidence | None:
    """What a form's meaning rests on; None for those of which all sources say the same."""
    for row in rows("evidence"):
        if row["generation"] in ("", generation) and re.fullmatch(row["forms"], form.name):
            return Evidence(row["confidence"], row["evidence"])
    return None


def _row(generation: str, form: Form) -> Mapping[str, str]:
    found = _table(generation)
    return found[form.name] if form.name in found else found[bare_name(form)]


@cache
def _table(generation: str) -> Mapping[str, Mapping[str, str]]:
    return {row["form"]: row for row in rows(f"{generation}_meanings")}


def _operands(cell: str) -> tuple[str | int, ...]:
    return tuple(int(item) if item.isdecimal() else item for item in cell.split())


@cache
def offset_of(form: Form) -> str:
    """The operand by which an address is stepped or indexed, "" without."""
    return next((name for name in ("dj", "imm", "mod") if name in form.names), "")


@cache
def walk_of(form: Form) -> AddressWalk:
    """How a form makes and steps its address."""
    if "ptr" in form.names:
        if offset_of(form) == "mod" and (walk := _WALKS.get(form.field("mod").kind.name)):
            return walk
        return AddressWalk.POST if "ptr_out" in form.timing.defs else AddressWalk.INDEX
    if "sp" in form.timing.implicit_defs:
        return AddressWalk.STACK_STEP
    return AddressWalk.STACK if "sp" in form.timing.implicit_uses else AddressWalk.NONE


def depends_on(generation: str, bundle: Bundle, access: RegisterAccess) -> bool:
    """Whether a bundle's read of a register makes anything depend on its value.

    Compilers read registers that nobody has written: saved ones are stored to the stack or copied while the function's
    first loads into them are under way; vectors are built lane by lane in whatever a register holds, shuffles of one
    register name a second, and a product that drops its accumulator (zero_acc) names one. Reads of other kinds -
    addresses, conditions, sums, stores to memory - use the value.
    """
    readers = [i for i in bundle if access in effects(i).reads]
    return any(not _passes_on(generation, i, access.operand) for i in readers)


@lru_cache(maxsize=1 << 12)
def _passes_on(generation: str, instruction: Instruction, operand: str) -> bool:
    try:
        meaning = meaning_of(generation, instruction.form)
    except OpenError:
        return False
    if operand not in meaning.inputs:
        return False
    if meaning.operation == "store_low":
        return meaning.walk is AddressWalk.STACK
    if meaning.operation in _ACCUMULATE:
        return operand in meaning.inputs[:-_FACTORS]
    return meaning.operation in _PASS_ON and meaning.access is None
