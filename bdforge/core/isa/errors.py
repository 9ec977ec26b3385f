"""What can be wrong with machine code or assembly, one type per kind of fault."""

from bdforge.common.messages import InputError


class IsaError(InputError):
    """Any fault of this package: unknown generation, form, register or number; parent of the others."""


class DecodeError(IsaError):
    """Bytes that no bundle has.

    `offset` is the byte offset of the bundle in the data that was given, `bits` the first and last bit, counted from
    bit 0 of the bundle's first byte, that make it unknown.
    """

    def __init__(self, offset: int, bits: tuple[int, int], reason: str) -> None:
        self.offset = offset
        self.bits = bits
        self.reason = reason
        low, high = bits
        where = f"bit {low}" if low == high else f"bits {low} to {high}"
        super().__init__(f"unknown bundle at {offset:#x}, {where}: {reason}")


class EncodeError(IsaError):
    """An operand that a form cannot encode, or instructions that no bundle format holds."""


class AssemblyError(IsaError):
    """A line of assembly that cannot be assembled; the message starts with file and line."""


class HazardError(IsaError):
    """Code that a core would run wrongly without a word; the message lists the hazards."""


class ExecutionError(IsaError):
    """A core program that cannot go on: parent of the faults below. The message starts with the bundle's address."""


class OpenError(ExecutionError):
    """What an instruction does here is not known from any source, so no result is made up."""


class AccessError(ExecutionError):
    """A load or store outside of the four data memories, or at an address that is no multiple of its size."""


class ControlError(ExecutionError):
    """A branch where none may be, or execution of what is no bundle."""


class StepBudgetError(ExecutionError):
    """A program that did not end within the bundles that it was given."""
