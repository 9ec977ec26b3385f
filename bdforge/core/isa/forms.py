"""Instruction forms with their timing, instructions, bundle formats and bundles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bdforge.core.isa.errors import EncodeError, IsaError
from bdforge.core.isa.operand_kinds import OperandKind, Value


@dataclass(frozen=True, slots=True)
class Resource:
    """A unit that is taken for `cycles` cycles from `cycle` on (0 is the issue cycle).

    Two that are `reserved` may share a unit; a reserved and a required one, or two required ones, may not.
    """

    name: str
    cycle: int
    cycles: int = 1
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class FormTiming:
    """Stages of a form's operands by operand name.

    Stages count from 1, the issue cycle: an instruction issued at cycle t reads an operand of stage r in cycle t + r -
    1 and its result of stage w is there for reads in cycle t + w at the latest. A read sees a write issued d cycles
    before if w < d + r, or if w == d + r and both ends carry the same bypass class. Otherwise it sees the **old**
    value: nothing interlocks (source: llvm-aie's itineraries; 29 real GEMM programs are exact only with it).

    `defs` are results and `uses` operands that are read. Names that are no fields of the encoding are either in
    `fixed` (operand -> the register that it always is), in `ties` (result -> the operand that it updates in place:
    `ptr_out` -> `ptr`), or follow from another operand: `dc`, `dcl`, `dch` are counters of the address walk `mod`.
    `implicit_defs` and `implicit_uses` are control and status registers by name. `bypass` names forwarding classes of
    operands, `ports` units that depend on an operand's register: (operand, cycle, {register prefix: units}).
    `memory_stages` are the stages at which memory is read or written.
    """

    defs: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)
    implicit_defs: Mapping[str, int] = field(default_factory=dict)
    implicit_uses: Mapping[str, int] = field(default_factory=dict)
    bypass: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    ports: tuple[tuple[str, int, Mapping[str, tuple[str, ...]]], ...] = ()
    memory_stages: tuple[int, ...] = ()

    @property
    def last_stage(self) -> int:
        """The last stage of any of it but memory."""
        stages = (self.defs, self.uses, self.implicit_defs, self.implicit_uses)
        units = [resource.cycle + resource.cycles for resource in self.resources]
        return max([0, *units, *(stage for found in stages for stage in found.values())])


@dataclass(frozen=True, eq=False, slots=True)
class FormField:
    """An operand in a form's encoding: `pieces` are (lsb, width) in the slot word, low bits first."""

    name: str
    pieces: tuple[tuple[int, int], ...]
    kind: OperandKind

    @property
    def mask(self) -> int:
        """Bits of the slot word that the field takes."""
        return sum(((1 << width) - 1) << lsb for lsb, width in self.pieces)

    def extract(self, word: int) -> int:
        """The field's code in a slot word."""
        if len(self.pieces) == 1:  # nearly always
            lsb, width = self.pieces[0]
            return word >> lsb & (1 << width) - 1
        code = shift = 0
        for lsb, width in self.pieces:
            code |= ((word >> lsb) & ((1 << width) - 1)) << shift
            shift += width
        return code

    def insert(self, code: int) -> int:
        """A slot word with this field only."""
        word = 0
        for lsb, width in self.pieces:
            word |= (code & ((1 << width) - 1)) << lsb
            code >>= width
        return word


@dataclass(frozen=True, eq=False)
class Form:
    """One instruction form: what its bits are, what operands it has and when it reads and writes them.

    `mask` and `value` fix bits of the slot word of `width` bits. `fields` are in the table's order. `timing` says when
    operands are read and results appear (`FormTiming`), `assembly` how it is written. `delay_slots` bundles after a
    branch run in any case. Forms are compared by identity: there is one object per form and generation.
    """

    name: str
    slot: str
    width: int
    mask: int
    value: int
    delay_slots: int
    fields: tuple[FormField, ...]
    timing: FormTiming
    assembly: str

    def __repr__(self) -> str:
        return f"Form({self.name})"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(f.name for f in self.fields)

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The slots in which nothing else issues with it: its own, two for a long form."""
        return ("alu", "mv") if self.slot == "lng" else (self.slot,)

    @cached_property
    def free_bits(self) -> int:
        """Bits of the slot word that are neither fixed nor in a field: 0 in all code that was ever seen."""
        used = self.mask
        for f in self.fields:
            used |= f.mask
        return ((1 << self.width) - 1) & ~used

    def field(self, name: str) -> FormField:
        """The field of this name; IsaError if there is none."""
        if name not in self.names:
            raise IsaError(f"{self.name} has no operand {name!r}, only {', '.join(self.names) or 'none'}")
        return self.fields[self.names.index(name)]


@dataclass(frozen=True, slots=True)
class Instruction:
    """A form with its operands' values, in the order of `form.fields`."""

    form: Form
    values: tuple[Value, ...] = ()

    def __getitem__(self, name: str) -> Value:
        """The value of the operand `name`; IsaError if the form lacks it."""
        if name not in self.form.names:
            self.form.field(name)
        return self.values[self.form.names.index(name)]

    @property
    def operands(self) -> Mapping[str, Value]:
        """Values by field name."""
        return dict(zip(self.form.names, self.values, strict=True))

    @property
    def is_nop(self) -> bool:
        """Whether this only fills its slot."""
        return self.form.name.startswith("NOP")

    @property
    def word(self) -> int:
        """The slot word; EncodeError names the operand that does not fit."""
        if len(self.values) != len(self.form.fields):
            raise EncodeError(f"{self.form.name} takes {len(self.form.fields)} operands, not {len(self.values)}")
        word = self.form.value
        for f, value in zip(self.form.fields, self.values, strict=True):
            try:
                word |= f.insert(f.kind.encode(value))
            except EncodeError as error:
                raise EncodeError(f"{self.form.name}, operand {f.name}: {error}") from None
        return word


@dataclass(frozen=True, eq=False)
class Format:
    """A bundle format: its size, the bits that mark it and where each slot word lies: (slot, lsb, width)."""

    name: str
    size: int
    mask: int
    value: int
    lanes: tuple[tuple[str, int, int], ...]

    @cached_property
    def used(self) -> int:
        """Bits that mark it or lie in a slot word; others are 0."""
        return self.mask | sum(((1 << width) - 1) << lsb for _, lsb, width in self.lanes)

    @cached_property
    def slots(self) -> frozenset[str]:
        """The slots that the format holds; no two formats of a generation hold the same."""
        return frozenset(slot for slot, _, _ in self.lanes)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Instructions that issue together, one per slot of the format, in the format's order."""

    format: Format
    slots: tuple[Instruction, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.format.size

    def __bytes__(self) -> bytes:
        """The bundle as it lies in program memory."""
        word = self.format.value
        for (slot, lsb, _), instruction in zip(self.format.lanes, self.slots, strict=True):
            if instruction.form.slot != slot:
                raise EncodeError(f"{instruction.form.name} is for slot {instruction.form.slot}, not {slot}")
            word |= instruction.word << lsb
        return word.to_bytes(self.format.size, "little")

    def __iter__(self):
        """The instructions that do something."""
        return (instruction for instruction in self.slots if not instruction.is_nop)
