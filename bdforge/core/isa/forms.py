"""Instruction forms, instructions, bundle formats and bundles."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bdforge.core.isa.errors import EncodeError, IsaError
from bdforge.core.isa.form_timing import Timing
from bdforge.core.isa.operand_kinds import OperandKind, Value


@dataclass(frozen=True, eq=False, slots=True)
class Field:
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
    operands are read and results appear (`bdforge.core.isa.form_timing`). `delay_slots` bundles after a branch run in
    any case. Forms are compared by identity: there is one object per form and generation.
    """

    name: str
    slot: str
    width: int
    mask: int
    value: int
    delay_slots: int
    fields: tuple[Field, ...]
    timing: Timing

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

    def field(self, name: str) -> Field:
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
