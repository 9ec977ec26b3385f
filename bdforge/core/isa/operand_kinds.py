"""Kinds of operands: classes of registers, each with codes of its own, and immediates with range and step."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bdforge.core.isa.errors import EncodeError

Value = str | int
"""An operand's value: the name of a register, or an immediate in the unit that assembly text shows (scaled)."""


@dataclass(frozen=True, eq=False, slots=True)
class RegisterClass:
    """Registers that a field can name; the same register has different codes in different classes."""

    name: str
    codes: Mapping[str, int]
    names: Mapping[int, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", {code: name for name, code in self.codes.items()})

    def decode(self, code: int) -> Value | None:
        """The register with this code, None if the code is unassigned."""
        return self.names.get(code)

    def encode(self, value: Value) -> int:
        """The code of a register; EncodeError if the class lacks it."""
        code = self.codes.get(value) if isinstance(value, str) else None
        if code is None:
            raise EncodeError(f"{value} is not in register class {self.name} ({self.summary})")
        return code

    @property
    def summary(self) -> str:
        """First and last members, for messages."""
        members = list(self.codes)
        return ", ".join(members) if len(members) <= 8 else f"{', '.join(members[:6])}, ... {len(members)} in all"


@dataclass(frozen=True, eq=False, slots=True)
class Immediate:
    """A number of `bits` bits in units of `step`: two's complement if `signed`, below zero if `always_negative`."""

    name: str
    bits: int
    step: int
    signed: bool
    always_negative: bool

    @property
    def low(self) -> int:
        """Least value."""
        if self.always_negative:
            return -(1 << self.bits) * self.step
        return -(1 << (self.bits - 1)) * self.step if self.signed else 0

    @property
    def high(self) -> int:
        """Greatest value."""
        return self.low + ((1 << self.bits) - 1) * self.step

    def decode(self, code: int) -> Value | None:
        """The value of an encoded number; every number has one."""
        negative = self.always_negative or (self.signed and code >> (self.bits - 1))
        return (code - (1 << self.bits) if negative else code) * self.step

    def encode(self, value: Value) -> int:
        """The encoded number; EncodeError outside the range or between two steps."""
        if not isinstance(value, int):
            raise EncodeError(f"{value} is a register where a number is needed")
        if value % self.step:
            raise EncodeError(f"#{value} is not a multiple of {self.step}")
        if not self.low <= value <= self.high:
            raise EncodeError(f"#{value} is outside {self.low} to {self.high} in steps of {self.step}")
        return (value // self.step) & ((1 << self.bits) - 1)


OperandKind = RegisterClass | Immediate
"""What a field of an instruction holds."""
