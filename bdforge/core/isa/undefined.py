"""Reads of registers that nobody has written, as compilers make them: the value goes on, and nothing depends on it.

Saved registers are stored to the stack or copied while the function's first loads into them are under way. Vectors are
built lane by lane in whatever a register holds, shuffles of one register name a second, and a product that drops its
accumulator (zero_acc) names one. Reads of other kinds - addresses, conditions, sums, stores to memory - use the value.
"""

from functools import lru_cache

from bdforge.core.isa.effects import RegisterAccess, effects
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.forms import Bundle, Instruction
from bdforge.core.isa.meaning import AddressWalk, meaning_of

_PASS_ON = {"move", "vinsert", "vshuffle", "vselect", "vshift", "vpush_high", "vpush_low"}
_ACCUMULATE = {"multiply", "fmultiply", "fmatrix"}
_FACTORS = 3  # operands of a product behind its accumulators: s1, s2, conf


def uses(generation: str, bundle: Bundle, access: RegisterAccess) -> bool:
    """Whether a bundle's read of a register makes anything depend on its value."""
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
