"""Addresses of bundles in program memory."""

from bdforge.isa import Isa
from bdforge.isa.errors import ControlError
from bdforge.isa.flow import DELAY_SLOTS


def checked(pc: int, program: bytes) -> int:
    """The address of the next bundle; ControlError where none can be."""
    if pc >= len(program) or pc % 2:
        raise ControlError(f"execution leaves program memory, which ends at {len(program):#x}")
    return pc


def behind_slots(isa: Isa, program: bytes, address: int) -> int | None:
    """The address behind the five bundles at `address`; None beyond program memory."""
    for _ in range(DELAY_SLOTS):
        if address >= len(program):
            return None
        address += isa.size(program[address])
    return address
